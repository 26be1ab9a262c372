//! Pages whose numbers are checked in a browser, with weights from the engine beside them, for random cells.

use foveal::{Attention, Mask};
use foveal_view::{Error, Group, Kind, Language, Layer, Page, Storage, Tokens};
use ndarray::{Array4, s};
use serde_json::{Value, json};

use crate::pages::noise;
use crate::sample::tokens;

const LAYERS: u32 = 3;
const HEADS: usize = 4;
const GROUPS: usize = 2;
const TOKENS: usize = 200;
const DIM: usize = 32;
/// Places of a page, and cells of each.
const PLACES: usize = 20;
const CELLS: usize = 50;

/// One run of a made-up model: name, how it is stored, size of its queries and keys, attention.
pub fn pages() -> Result<Vec<(&'static str, Page, Value)>, Error> {
    let causal = Attention::new().mask(Mask::causal());
    let near = Attention::new().mask(Mask::window(40, 0)).softcap(30.0);
    Ok(vec![
        page("page-exact", Storage::Exact, 1.0, &causal)?,
        page("page-half", Storage::Half, 1.2, &near)?,
        // Scores of standard deviation 8.
        page("page-steep", Storage::Exact, 2.83, &Attention::new())?,
    ])
}

fn page(
    name: &'static str,
    storage: Storage,
    size: f32,
    attention: &Attention,
) -> Result<(&'static str, Page, Value), Error> {
    let axis = Tokens::new(tokens(Language::English, TOKENS));
    let mut group = Group::new(Kind::Decoder, axis.clone(), axis)?;
    let mut weights: Vec<Array4<f32>> = Vec::new();
    for layer in 0..LAYERS {
        let q = noise((1, HEADS, TOKENS, DIM), 100 + layer, size);
        let k = noise((1, GROUPS, TOKENS, DIM), 200 + layer, size);
        let forward = attention.forward(&q, &k, &k).expect("shapes that fit");
        weights.push(attention.weights(&q, &k).expect("shapes that fit"));
        let plain =
            |head| attention.head_options((0, head), (TOKENS, TOKENS, DIM)).ok().flatten().expect("plain options");
        let one = |x: &Array4<f32>| x.slice(s![0, .., .., ..]).to_owned();
        let lse = forward.lse.slice(s![0, .., ..]).to_owned();
        group = group.layer(Layer::scores(one(&q), one(&k), lse, (0..HEADS).map(plain).collect())?)?;
    }
    Ok((name, Page::new(vec![group]).storage(storage).title(name), json!(places(&weights))))
}

/// Random windows of 20 × 20 tokens, and in each some cells with their weights.
fn places(weights: &[Array4<f32>]) -> Vec<Value> {
    let mut state = 9u32;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % limit
    };
    let mut place = |_| {
        let (layer, head, top) = (below(weights.len()), below(HEADS), below(TOKENS - 20));
        let left = below(top + 1);
        let mut cell = |_| {
            let (i, j) = (below(20), below(20));
            json!([i, j, weights[layer][[0, head, top + i, left + j]]])
        };
        let cells: Vec<Value> = (0..CELLS).map(&mut cell).collect();
        json!({ "layer": layer, "head": head, "top": top, "left": left, "cells": cells })
    };
    (0..PLACES).map(&mut place).collect()
}

//! Heads one by one: their gradients, and switching them off.

use std::sync::Arc;

use foveal_models::layer::MultiHeadAttention;
use foveal_models::model::transformer::Batch;
use foveal_models::model::{Bert, Gpt2, HeadGradients, LanguageModel, Llama, Sentences, Transformer, Vit};
use foveal_models::trace::{Head, Kind, Probe, Site};
use ndarray::{Array1, Array2, Axis, s};

use crate::expected::{Expected, load, near};

/// A factor on the output of a head is a factor on its columns of W_o: its gradient is Σ W_o·dW_o over these. `parts` gives
/// the layer and its gradient.
pub fn check_gradients<'a>(
    of_heads: &HeadGradients,
    parts: impl Fn(Site) -> (&'a MultiHeadAttention, &'a MultiHeadAttention),
) {
    for (site, of_heads) in of_heads {
        let (layer, grad) = parts(*site);
        let products = &*layer.output.weight * &*grad.output.weight;
        let columns = products.axis_chunks_iter(Axis(1), layer.head_dim());
        let sums: Array1<f64> = columns.map(|columns| f64::from(columns.sum())).collect();
        near(format_args!("the heads of {site:?}"), &sums, &of_heads.sum_axis(Axis(0)).mapv(f64::from), 1e-5);
    }
}

/// A head that is switched off gives what its columns of W_o give when they are 0, and not what it gave before.
fn check_off<M: Clone>(
    model: &M,
    head: Head,
    layer: impl Fn(&mut M) -> &mut MultiHeadAttention,
    run: impl Fn(&M, &mut Probe) -> Array2<f32>,
) {
    let whole = run(model, &mut Probe::default());
    let off = run(model, &mut Probe::default().without([head]));
    let mut cut = model.clone();
    let attention = layer(&mut cut);
    let columns = head.head * attention.head_dim()..(head.head + 1) * attention.head_dim();
    Arc::make_mut(&mut attention.output).weight.slice_mut(s![.., columns]).fill(0.0);
    let cut = run(&cut, &mut Probe::default());
    near(format_args!("{head:?} off"), &cut.mapv(f64::from), &off.mapv(f64::from), 1e-5);
    assert!(whole.iter().zip(&off).any(|(whole, off)| (whole - off).abs() > 1e-2), "{head:?} does nothing");
}

#[test]
fn of_language_models() {
    let ids = [3, 1, 4, 1, 5, 9, 2, 6];
    let gpt2: Gpt2 = load("gpt2");
    for (layer, head) in [(0, 0), (1, 2)] {
        check_off(
            &gpt2,
            Head::new(Kind::Decoder, layer, head),
            |model| model.layers[layer].attention.layer.attention_mut().unwrap(),
            |model, probe| model.infer(&ids, 2, None, probe).unwrap(),
        );
    }
    let llama: Llama = load("llama");
    for (layer, head) in [(0, 1), (1, 3)] {
        check_off(
            &llama,
            Head::new(Kind::Decoder, layer, head),
            |model| model.layers[layer].attention.layer.attention_mut().unwrap(),
            |model, probe| {
                // With a cache, where the heads are off in every run.
                let mut cache = model.cache(1, 0);
                let runs = ids.map(|id| model.infer(&[id], 1, Some(&mut cache), probe).unwrap().remove_axis(Axis(0)));
                ndarray::stack(Axis(0), &runs.each_ref().map(|row| row.view())).unwrap()
            },
        );
    }
}

#[test]
fn of_encoders() {
    let (bert, sentences): (Bert, _) = (load("bert"), crate::bert::batch(&Expected::of("bert")));
    check_off(
        &bert,
        Head::new(Kind::Encoder, 1, 1),
        |model| model.layers[1].attention.layer.attention_mut().unwrap(),
        |model, probe| model.embed(&Sentences::new(&sentences), probe).unwrap(),
    );
    let (vit, images): (Vit, _) = (load("vit"), Expected::of("vit").images("images"));
    check_off(
        &vit,
        Head::new(Kind::Encoder, 0, 2),
        |model| model.layers[0].attention.layer.attention_mut().unwrap(),
        |model, probe| model.infer(&images, probe).unwrap(),
    );
}

#[test]
fn of_an_encoder_decoder() {
    let model: Transformer = load("norm_first");
    let run = |model: &Transformer, probe: &mut Probe| {
        let source = Batch { tokens: &[3, 1, 4, 1, 5], lengths: &[5] };
        let memory = model.encode(source, probe).unwrap();
        let mut state = model.start(source, memory.view()).unwrap();
        model.write(&[2, 7, 1], &mut state, probe).unwrap()
    };
    check_off(
        &model,
        Head::new(Kind::Encoder, 0, 0),
        |model| model.encoder[0].attention.layer.attention_mut().unwrap(),
        run,
    );
    check_off(
        &model,
        Head::new(Kind::Decoder, 0, 1),
        |model| model.decoder[0].attention.layer.attention_mut().unwrap(),
        run,
    );
    check_off(&model, Head::new(Kind::Cross, 1, 2), |model| &mut model.decoder[1].cross.as_mut().unwrap().layer, run);
}

#[test]
fn all_heads_at_once() {
    let model: Gpt2 = load("gpt2");
    let all = (0..2).flat_map(|layer| (0..3).map(move |head| Head::new(Kind::Decoder, layer, head)));
    let off = model.infer(&[3, 1, 4], 1, None, &mut Probe::default().without(all)).unwrap();
    let mut cut = model.clone();
    cut.layers
        .iter_mut()
        .for_each(|block| Arc::make_mut(&mut block.attention.layer.attention_mut().unwrap().output).weight.fill(0.0));
    let cut = cut.infer(&[3, 1, 4], 1, None, &mut Probe::default()).unwrap();
    near("all heads off", &cut.mapv(f64::from), &off.mapv(f64::from), 1e-5);
}

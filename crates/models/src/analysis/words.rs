//! Whole words instead of tokens: the weights on the tokens of a word are added up, those from them averaged.
//!
//! $$ \bar A_{uw} = \frac{1}{|u|} \sum_{i \in u} \sum_{j \in w} A_{ij} $$
//!
//! Rows that summed to 1 still do.

use std::ops::Range;

use ndarray::Array2;

use crate::layer::expect;
use crate::{Encoding, Result};

/// Tokens that belong together, and what to call them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The word, or the label of a token that belongs to none.
    pub label: String,
    /// Its tokens.
    pub tokens: Range<usize>,
}

/// The words of a text, and between them the tokens that belong to none. A word whose characters are cut into several tokens,
/// as byte-level vocabularies do with Hangul, is whole again.
pub fn groups(encoding: &Encoding) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let words = encoding.words();
    for i in 0..encoding.len() {
        match groups.last_mut() {
            Some(group) if words[i].is_some() && words[i] == words[i - 1] => group.tokens.end = i + 1,
            _ => groups.push(Group { label: encoding.labels()[i].clone(), tokens: i..i + 1 }),
        }
    }
    for group in groups.iter_mut().filter(|group| words[group.tokens.start].is_some()) {
        group.label = text_of(encoding, &group.tokens);
    }
    groups
}

/// The text that some tokens come from, without the space around it.
fn text_of(encoding: &Encoding, tokens: &Range<usize>) -> String {
    let spans = encoding.spans()[tokens.clone()].iter().flatten();
    let (start, end) = spans.fold((usize::MAX, 0), |(start, end), span| (start.min(span.start), end.max(span.end)));
    let text = encoding.text();
    let start = (0..=start.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let end = (end..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    text[start..end.max(start)].trim().to_owned()
}

/// The weights between words, from those between tokens: [T, S]. Row 0 is the first token of the first query, so that a band of
/// rows can be merged by itself; keys likewise.
///
/// # Errors
/// If the groups are not those of the rows and columns.
pub fn merge(weights: &Array2<f32>, queries: &[Group], keys: &[Group]) -> Result<Array2<f32>> {
    let (rows, cols) = (tokens(queries), tokens(keys));
    expect("the weights between these tokens", &[rows.len(), cols.len()], weights.shape())?;
    let within = |group: &Group, all: &Range<usize>| group.tokens.start - all.start..group.tokens.end - all.start;
    Ok(Array2::from_shape_fn((queries.len(), keys.len()), |(u, w)| {
        let (rows, cols) = (within(&queries[u], &rows), within(&keys[w], &cols));
        let count = rows.len() as f32;
        weights.slice(ndarray::s![rows, cols]).sum() / count
    }))
}

/// The tokens of groups that follow each other.
pub fn tokens(groups: &[Group]) -> Range<usize> {
    match groups {
        [] => 0..0,
        [first, ..] => first.tokens.start..groups[groups.len() - 1].tokens.end,
    }
}

//! Whole words instead of tokens: the weights on the tokens of a word are added up, those from them averaged.
//!
//! $$ \bar A_{uw} = \frac{1}{|u|} \sum_{i \in u} \sum_{j \in w} A_{ij} $$
//!
//! Rows that summed to 1 still do.

use ndarray::Array2;

use crate::layer::expect;
use crate::{Encoding, Result};

/// Tokens that belong together, and what to call them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The word, or the label of a token that belongs to none.
    pub label: String,
    /// Its tokens.
    pub tokens: std::ops::Range<usize>,
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
fn text_of(encoding: &Encoding, tokens: &std::ops::Range<usize>) -> String {
    let spans = encoding.spans()[tokens.clone()].iter().flatten();
    let (start, end) = spans.fold((usize::MAX, 0), |(start, end), span| (start.min(span.start), end.max(span.end)));
    let text = encoding.text();
    let start = (0..=start.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let end = (end..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    text[start..end.max(start)].trim().to_owned()
}

/// The weights between words, from those between tokens: [T, S].
///
/// # Errors
/// If the groups are not those of the rows and columns.
pub fn merge(weights: &Array2<f32>, queries: &[Group], keys: &[Group]) -> Result<Array2<f32>> {
    let tokens = |groups: &[Group]| groups.last().map_or(0, |group| group.tokens.end);
    expect("the weights between these tokens", &[tokens(queries), tokens(keys)], weights.shape())?;
    Ok(Array2::from_shape_fn((queries.len(), keys.len()), |(u, w)| {
        let (rows, cols) = (queries[u].tokens.clone(), keys[w].tokens.clone());
        let count = rows.len() as f32;
        weights.slice(ndarray::s![rows, cols]).sum() / count
    }))
}

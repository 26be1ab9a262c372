//! "Cannot", and where it is wanted "don't", "I'm", "she'll": two words that English writes as one.

use super::writer::{English, Id};
use crate::pair::Part;

/// An English word as it is written, with all that it was made of.
pub(crate) struct Contracted {
    pub(crate) ids: Vec<Id>,
    pub(crate) pieces: Vec<String>,
    pub(crate) part: Part,
}

/// Writes words together; "can not" always.
pub(crate) fn contracted(english: Vec<English>, short: bool) -> Vec<Contracted> {
    let mut words: Vec<Contracted> = Vec::with_capacity(english.len());
    let last = english.len().saturating_sub(1);
    for (n, word) in english.into_iter().enumerate() {
        let before = words.last_mut().filter(|before| before.pieces.len() == 1);
        // Nothing is shortened at the very end: "Yes, I am."
        let one = before.filter(|_| n < last || word.pieces[0] == "not").and_then(|before| {
            let text = together(&before.pieces[0], &word.pieces[0], short)?;
            Some((before, text))
        });
        match one {
            Some((before, text)) => {
                before.pieces = vec![text];
                before.pieces.extend(word.pieces.into_iter().skip(1));
                before.ids.push(word.id);
                if word.part != Part::Function && before.part == Part::Function {
                    before.part = word.part;
                }
            }
            None => words.push(Contracted { ids: vec![word.id], pieces: word.pieces, part: word.part }),
        }
    }
    words
}

fn together(first: &str, second: &str, short: bool) -> Option<String> {
    let lower = first.to_lowercase();
    match (lower.as_str(), second) {
        ("can", "not") => Some(if short { "can't" } else { "cannot" }.to_owned()),
        _ if !short => None,
        ("will", "not") => Some("won't".to_owned()),
        (
            "do" | "does" | "did" | "is" | "are" | "was" | "were" | "could" | "should" | "must" | "has" | "have"
            | "had",
            "not",
        ) => Some(format!("{first}n't")),
        ("i", "am") => Some(format!("{first}'m")),
        ("he" | "she" | "it" | "that" | "there", "is") => Some(format!("{first}'s")),
        ("you" | "we" | "they", "are") => Some(format!("{first}'re")),
        ("i" | "you" | "he" | "she" | "we" | "they" | "it", "will") => Some(format!("{first}'ll")),
        _ => None,
    }
}

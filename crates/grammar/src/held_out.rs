//! Sentences that nobody learns from, so that they can be tested on.
//!
//! A sentence is known by a hash of its letters alone: neither case, nor punctuation, nor "don't" for "do not" makes it
//! another one. Both languages count, so that a translator from Korean is tested on what it has not seen, either.

use std::collections::HashSet;

use crate::Pair;

/// A set of sentences that are held out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldOut {
    hashes: HashSet<u64>,
}

impl HeldOut {
    /// The sentences of [`everyday`], in both languages, and two hundred more that are tested on elsewhere.
    pub fn everyday() -> Self {
        let mut held_out = HeldOut::default();
        for (english, korean) in everyday() {
            held_out.insert(english);
            held_out.insert(korean);
        }
        for hash in include_str!("../data/held_out_hashes.txt").lines().filter(|line| !line.starts_with('#')) {
            held_out.hashes.extend(u64::from_str_radix(hash, 16));
        }
        held_out
    }

    /// Adds a sentence of either language.
    pub fn insert(&mut self, sentence: &str) {
        self.hashes.insert(hash(&normalised(sentence)));
    }

    /// Whether a sentence is held out.
    pub fn contains(&self, sentence: &str) -> bool {
        self.hashes.contains(&hash(&normalised(sentence)))
    }

    /// Whether either side of a pair is held out.
    pub fn holds(&self, pair: &Pair) -> bool {
        self.contains(&pair.english_text()) || self.contains(&pair.korean_text())
    }
}

/// Sixty everyday sentences and a right translation of each, as a test: the grammar writes others of their kinds.
pub fn everyday() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = include_str!("../data/everyday.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('\t'))
}

/// A sentence in lower case, without punctuation, with the short forms of "not", "is", "are", "am", "will" and "have" in full.
///
/// ```
/// use foveal_grammar::normalised;
///
/// assert_eq!(normalised("I can't swim, and she's late!"), "i can not swim and she is late");
/// ```
pub fn normalised(sentence: &str) -> String {
    let mut words = Vec::new();
    for word in sentence.to_lowercase().split_whitespace() {
        let word: String = word.chars().filter(|c| c.is_alphanumeric() || matches!(c, '\'' | '-')).collect();
        let full = match word.as_str() {
            "cannot" | "can't" => "can not".to_owned(),
            "won't" => "will not".to_owned(),
            "let's" | "o'clock" => word,
            _ => {
                let mut full = word.clone();
                for (short, long) in
                    [("n't", " not"), ("'m", " am"), ("'re", " are"), ("'ll", " will"), ("'ve", " have")]
                {
                    if let Some(stem) = word.strip_suffix(short) {
                        full = format!("{stem}{long}");
                    }
                }
                match word.strip_suffix("'s") {
                    Some(stem @ ("he" | "she" | "it" | "that" | "there" | "who" | "what" | "where")) => {
                        format!("{stem} is")
                    }
                    _ => full,
                }
            }
        };
        if !full.is_empty() {
            words.push(full);
        }
    }
    words.join(" ")
}

/// FNV-1a, which is the same everywhere.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_makes_no_other_sentence() {
        let mut held_out = HeldOut::default();
        held_out.insert("I do not like it.");
        held_out.insert("문을 열어 주세요.");
        for same in ["i don't like it", "I DO NOT LIKE IT!", "문을 열어 주세요!"] {
            assert!(held_out.contains(same), "{same}");
        }
        assert!(!held_out.contains("I do like it.") && !held_out.contains("창문을 열어 주세요."));
        let known = HeldOut::everyday();
        assert!(
            known.contains("The sun is shining.") && known.contains("It is raining.") && known.contains("세 시예요.")
        );
        assert!(known.hashes.len() > 300);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c, "FNV-1a as published");
    }
}

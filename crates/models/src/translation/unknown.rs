//! A sentence as a translator reads it, with the words it has never seen.
//!
//! A vocabulary may have slots, `<1>`, `<2>` and so on: a word that is not in it is read as a slot, the next one as the next
//! slot, the same word as the same slot. The translator has learned to write a slot where its word belongs, and there the
//! word is copied. In a vocabulary without slots such words are read as `<unk>`, and lost.
//!
//! A word that was copied was not translated, so nobody should be sure of its sentence: each halves the confidence.

use crate::tokenizer::Encoding;
use crate::{Result, Tokenizer};

/// A sentence, in tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// The text and its tokens as the tokenizer has them.
    pub encoding: Encoding,
    /// The tokens as the model reads them, with slots.
    pub ids: Vec<u32>,
    /// The words that are not in the vocabulary, each once, in the order of the text.
    pub unknown: Vec<Unknown>,
}

/// A word that is not in the vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// As it is written.
    pub word: String,
    /// The first token that stands for it.
    pub token: usize,
    /// What it is read as, if it has a slot.
    pub slot: Option<String>,
}

impl Sentence {
    /// Reads a sentence.
    ///
    /// # Errors
    /// If it has a character that the vocabulary lacks and has no token for unknown ones.
    pub fn read(tokenizer: &Tokenizer, text: &str) -> Result<Self> {
        Ok(Sentence::of(tokenizer, tokenizer.encode_bare(text)?))
    }

    /// The same of a text that is encoded already.
    pub fn of(tokenizer: &Tokenizer, encoding: Encoding) -> Self {
        let mut ids = encoding.ids().to_vec();
        let mut unknown: Vec<Unknown> = Vec::new();
        let unk = tokenizer.special().unk;
        for (token, id) in ids.iter_mut().enumerate().filter(|(_, id)| Some(**id) == unk) {
            let word = encoding.spans()[token].clone().and_then(|span| encoding.text().get(span)).unwrap_or_default();
            let number = unknown.iter().position(|unknown| unknown.word == word.trim()).unwrap_or_else(|| {
                let slot = slot(unknown.len() + 1);
                let slot = tokenizer.id(&slot).map(|_| slot);
                unknown.push(Unknown { word: word.trim().to_owned(), token, slot });
                unknown.len() - 1
            });
            *id = unknown[number].slot.as_deref().and_then(|slot| tokenizer.id(slot)).unwrap_or(*id);
        }
        Sentence { encoding, ids, unknown }
    }

    /// A written text with the unknown words in their slots.
    pub fn fill(&self, written: &str) -> String {
        let slots = self.unknown.iter().filter_map(|unknown| Some((unknown.slot.as_deref()?, &unknown.word)));
        slots.fold(written.to_owned(), |text, (slot, word)| text.replace(slot, word))
    }

    /// How sure the model is of what it wrote with this probability: that, halved for each word that it does not know.
    pub fn confidence(&self, log_probability: f32) -> f32 {
        log_probability.exp() * 0.5f32.powi(i32::try_from(self.unknown.len()).unwrap_or(i32::MAX))
    }
}

/// How a vocabulary spells a slot.
fn slot(number: usize) -> String {
    format!("<{number}>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::translation::{Case, Vocabulary};

    #[test]
    fn unknown_words_get_slots_in_order() {
        let pieces = ["the", "cat", "likes", "and", ".", "<1>", "<2>"];
        let tokenizer = Vocabulary::pieces(pieces, Case::Lower).unwrap();
        let sentence = Sentence::read(&tokenizer, "The Zorp likes Blip and Zorp and Mux.").unwrap();
        let spelt: Vec<String> = sentence.ids.iter().map(|id| tokenizer.token(*id).unwrap()).collect();
        assert_eq!(spelt, ["the", "<1>", "likes", "<2>", "and", "<1>", "and", "<unk>", "."]);
        let words: Vec<&str> = sentence.unknown.iter().map(|unknown| unknown.word.as_str()).collect();
        assert_eq!(words, ["Zorp", "Blip", "Mux"]);
        assert_eq!(sentence.unknown.iter().map(|unknown| unknown.token).collect::<Vec<_>>(), [1, 3, 7]);
        assert_eq!(sentence.fill("<2>이(가) <1>을(를) 좋아해요."), "Blip이(가) Zorp을(를) 좋아해요.");
        assert_eq!(sentence.confidence(0.0), 0.125);
        let known = Sentence::read(&tokenizer, "the cat").unwrap();
        assert!(known.unknown.is_empty() && known.confidence(0.0) == 1.0);
    }
}

//! Decoding as tokens come. A token may end within a character; what is held back until the rest comes is at most the
//! beginning of one.

use super::{Spelling, Tokenizer, problem};
use crate::Result;

/// Text from tokens, one by one.
///
/// ```no_run
/// # fn show(tokenizer: &foveal_models::Tokenizer, ids: &[u32]) -> foveal_models::Result<()> {
/// let mut stream = tokenizer.stream();
/// for &id in ids {
///     print!("{}", stream.push(id)?);
/// }
/// println!("{}", stream.finish());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Stream<'a> {
    tokenizer: &'a Tokenizer,
    /// Of a byte-level vocabulary: the beginning of a character.
    bytes: Vec<u8>,
    /// Of any other: the last tokens, on which the text of the next depends.
    ids: Vec<u32>,
    /// How many of them have said what they say.
    said: usize,
}

/// No character takes more tokens than it has bytes; when text has not come for longer, it is not going to.
const MAX_HELD: usize = 8;

/// The text of a token depends on whether others stand before it and not on how many: a few are kept, for characters of
/// several tokens.
const KEPT: usize = 2 * MAX_HELD;

impl<'a> Stream<'a> {
    /// A stream that goes on from a text of these tokens.
    pub(super) fn after(tokenizer: &'a Tokenizer, before: &[u32]) -> Result<Self> {
        for &id in before {
            tokenizer.token(id)?;
        }
        let spoken: Vec<u32> = before.iter().copied().filter(|&id| !tokenizer.is_special(id)).collect();
        let kept = &spoken[spoken.len().saturating_sub(KEPT)..];
        let mut stream = Stream { tokenizer, bytes: Vec::new(), ids: Vec::new(), said: 0 };
        match tokenizer.spelling {
            Spelling::Bytes => {
                for &id in kept {
                    stream.bytes.extend(tokenizer.bytes(id)?);
                }
                whole_characters(&mut stream.bytes);
            }
            Spelling::Text => {
                stream.ids = kept.to_vec();
                // Tokens at the end that are the beginning of a character have said nothing yet.
                let unfinished = (0..=kept.len().min(MAX_HELD))
                    .take_while(|&n| stream.text_of(kept.len() - n).is_ok_and(|text| text.ends_with('\u{FFFD}')));
                stream.said = kept.len() - unfinished.count();
            }
        }
        Ok(stream)
    }

    /// The text that is certain now that this token has come; often one word, and nothing for a special token or for the
    /// beginning of a character.
    ///
    /// # Errors
    /// If the id is not in the vocabulary.
    pub fn push(&mut self, id: u32) -> Result<String> {
        self.tokenizer.token(id)?;
        if self.tokenizer.is_special(id) {
            return Ok(String::new());
        }
        match self.tokenizer.spelling {
            Spelling::Bytes => {
                self.bytes.extend(self.tokenizer.bytes(id)?);
                Ok(whole_characters(&mut self.bytes))
            }
            Spelling::Text => {
                self.ids.push(id);
                self.say(false)
            }
        }
    }

    /// What the first tokens of those kept say.
    fn text_of(&self, count: usize) -> Result<String> {
        self.tokenizer.inner.decode(&self.ids[..count], true).map_err(|error| problem("".as_ref(), error))
    }

    /// What the tokens say beyond what was said, unless a character may still become whole.
    fn say(&mut self, all: bool) -> Result<String> {
        let (before, now) = (self.text_of(self.said)?, self.text_of(self.ids.len())?);
        if now.ends_with('\u{FFFD}') && !all && self.ids.len() - self.said <= MAX_HELD {
            return Ok(String::new());
        }
        // What follows where the two part. Only BERT's decoder, which tidies up spaces, changes what was said before.
        let alike = before.chars().zip(now.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
        let new = now[alike..].to_owned();
        let old = self.ids.len().saturating_sub(KEPT);
        self.ids.drain(..old);
        self.said = self.ids.len();
        Ok(new)
    }

    /// What was held back, with `�` for a character that never came whole.
    pub fn finish(mut self) -> String {
        let mut rest = String::from_utf8_lossy(&std::mem::take(&mut self.bytes)).into_owned();
        rest.push_str(&self.say(true).unwrap_or_default());
        rest
    }
}

/// Takes the text from the front of the bytes, up to a last character that may still become whole.
fn whole_characters(bytes: &mut Vec<u8>) -> String {
    let mut text = String::new();
    let mut used = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        used += chunk.valid().len();
        let invalid = chunk.invalid();
        if !invalid.is_empty() {
            if used + invalid.len() == bytes.len() && may_go_on(invalid) {
                break;
            }
            text.push('\u{FFFD}');
            used += invalid.len();
        }
    }
    bytes.drain(..used);
    text
}

/// Whether these bytes, which are no character, could be the beginning of one.
fn may_go_on(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_half_characters() {
        let mut bytes = Vec::new();
        let mut texts = Vec::new();
        for byte in "a한😀".bytes().chain(*b"\xED\xED\x95x\xFF") {
            bytes.push(byte);
            texts.push(whole_characters(&mut bytes));
        }
        let expected = ["a", "", "", "한", "", "", "", "😀", "", "\u{FFFD}", "", "\u{FFFD}x", "\u{FFFD}"];
        assert_eq!(texts, expected);
        assert!(bytes.is_empty());
    }
}

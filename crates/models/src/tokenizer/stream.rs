//! Decoding as tokens come. A token may end within a character; what is held back until the rest comes is at most the
//! beginning of one.

use tokenizers::tokenizer::step_decode_stream;

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
    /// Of any other: the tokens that the next one's text depends on, and what they say.
    ids: Vec<u32>,
    prefix: String,
    prefix_index: usize,
    /// The tokens since text came last.
    held: Vec<u32>,
}

/// No character takes more tokens than it has bytes; when text has not come for longer, it is not going to.
const MAX_HELD: usize = 8;

impl<'a> Stream<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer) -> Self {
        let (ids, held) = (Vec::new(), Vec::new());
        Stream { tokenizer, bytes: Vec::new(), ids, prefix: String::new(), prefix_index: 0, held }
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
            Spelling::Text => self.push_text(id),
        }
    }

    fn push_text(&mut self, id: u32) -> Result<String> {
        let Stream { ids, prefix, prefix_index, .. } = self;
        let text = step_decode_stream(&self.tokenizer.inner, vec![id], true, ids, prefix, prefix_index);
        let text = text.map_err(|error| problem("".as_ref(), error))?;
        self.held.push(id);
        if text.is_some() {
            self.held.clear();
        } else if self.held.len() > MAX_HELD {
            return Ok(self.flush());
        }
        Ok(text.unwrap_or_default())
    }

    /// What was held back, with `�` for a character that never came whole.
    pub fn finish(mut self) -> String {
        self.flush()
    }

    fn flush(&mut self) -> String {
        let mut rest = String::from_utf8_lossy(&std::mem::take(&mut self.bytes)).into_owned();
        if !self.held.is_empty() {
            let all = self.tokenizer.inner.decode(&self.ids, true).unwrap_or_default();
            rest.push_str(all.strip_prefix(self.prefix.as_str()).unwrap_or_default());
            (self.prefix, self.prefix_index) = (String::new(), 0);
            self.ids.clear();
            self.held.clear();
        }
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

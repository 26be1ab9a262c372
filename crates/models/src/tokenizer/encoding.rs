//! Tokens and their places in the text.
//!
//! A token is not always a piece of text: GPT-2's cut characters in the middle (`한` is three bytes, and often two or three
//! tokens), BERT's take Hangul apart into letters that the text does not have. So a token has a *span*, the bytes of the
//! text it comes from, and a *label* that can be read: the characters that its span touches, and where several tokens
//! share a character, which of them it is: `한₁`, `한₂`.

use std::ops::Range;

use super::{Spelling, Tokenizer, problem};
use crate::Result;

/// A text as tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoding {
    text: String,
    ids: Vec<u32>,
    spans: Vec<Option<Range<usize>>>,
    labels: Vec<String>,
    words: Vec<Option<usize>>,
}

impl Encoding {
    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The ids of its tokens.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// For each token the bytes of the text that it comes from; none for those that were put around the text. A span of a
    /// byte-level token may begin or end within a character.
    pub fn spans(&self) -> &[Option<Range<usize>>] {
        &self.spans
    }

    /// For each token what it looks like: the characters it comes from, with a small number where it shares one with its
    /// neighbours; the name of a special token.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// For each token the number of the word it belongs to, counted from 0; none for special tokens and for tokens of
    /// nothing but space. A word is what stands between spaces, in Korean as in English; a token that reaches over
    /// several belongs to the first. The space before a word belongs to it also where it is a token of its own, which
    /// in GPT-2 depends on whether the word's first letter is in the vocabulary.
    pub fn words(&self) -> &[Option<usize>] {
        &self.words
    }

    /// At most the first `most` tokens. Those that end every text, as BERT's `[SEP]` does, still end it, in the place of some
    /// of its own. The text is cut to what is left of it.
    #[must_use]
    pub fn truncated(mut self, most: usize) -> Self {
        if most >= self.len() {
            return self;
        }
        let after = self.spans.iter().rev().take_while(|span| span.is_none()).count().min(most);
        let cut = most - after..self.len() - after;
        let end = self.spans[..cut.start].iter().flatten().map(|span| span.end).max().unwrap_or(0);
        let end = (end..self.text.len()).find(|&at| self.text.is_char_boundary(at)).unwrap_or(self.text.len());
        self.text.truncate(end);
        self.ids.drain(cut.clone());
        self.spans.drain(cut.clone());
        self.labels.drain(cut.clone());
        self.words.drain(cut);
        self
    }

    pub(super) fn of(tokenizer: &Tokenizer, text: &str, special: bool) -> Result<Self> {
        let found = tokenizer.inner.encode(text, special).map_err(|error| problem("".as_ref(), error))?;
        let ids = found.get_ids().to_vec();
        let inserted: Vec<bool> = found.get_special_tokens_mask().iter().map(|&mask| mask == 1).collect();
        let spans = match exact_spans(tokenizer, text, &ids, &inserted)? {
            Some(spans) => spans,
            None => {
                let ranges = found.get_offsets().iter().map(|&(start, end)| start.min(text.len())..end.min(text.len()));
                ranges.zip(&inserted).map(|(range, inserted)| Some(range).filter(|_| !inserted)).collect()
            }
        };
        Encoding::new(tokenizer, text.to_owned(), ids, spans)
    }

    pub(super) fn of_ids(tokenizer: &Tokenizer, before: &[u32], ids: &[u32]) -> Result<Self> {
        let mut spans = Vec::with_capacity(ids.len());
        let mut end = 0;
        let mut grow = |special: bool, length: usize| {
            let start = end;
            end += length;
            spans.push(Some(start..end).filter(|_| !special));
        };
        let text = match tokenizer.spelling {
            Spelling::Bytes => {
                let mut bytes = Vec::new();
                for &id in ids {
                    let token = tokenizer.bytes(id)?;
                    let special = tokenizer.is_special(id);
                    grow(special, if special { 0 } else { token.len() });
                    bytes.extend(token.into_iter().filter(|_| !special));
                }
                lossy(&bytes, &mut spans)
            }
            Spelling::Text => {
                let mut text = String::new();
                let mut stream = tokenizer.stream_after(before)?;
                for (i, &id) in ids.iter().enumerate() {
                    let mut piece = stream.push(id)?;
                    if i + 1 == ids.len() {
                        piece.push_str(&std::mem::replace(&mut stream, tokenizer.stream()).finish());
                    }
                    grow(tokenizer.is_special(id), piece.len());
                    text.push_str(&piece);
                }
                text
            }
        };
        Encoding::new(tokenizer, text, ids.to_vec(), spans)
    }

    fn new(tokenizer: &Tokenizer, text: String, ids: Vec<u32>, spans: Vec<Option<Range<usize>>>) -> Result<Self> {
        let words = words(&text, &spans);
        let mut labels = labels(&text, &spans);
        for ((label, &id), span) in labels.iter_mut().zip(&ids).zip(&spans) {
            if span.is_none() {
                *label = tokenizer.token(id)?;
            }
        }
        Ok(Encoding { text, ids, spans, labels, words })
    }
}

/// Where byte-level tokens are to the byte, if together they spell the text; `tokenizers` itself gives whole characters,
/// and in some files leaves out spaces.
fn exact_spans(
    tokenizer: &Tokenizer,
    text: &str,
    ids: &[u32],
    inserted: &[bool],
) -> Result<Option<Vec<Option<Range<usize>>>>> {
    if tokenizer.spelling == Spelling::Text {
        return Ok(None);
    }
    let mut spans = Vec::with_capacity(ids.len());
    let mut start = 0;
    for (&id, &inserted) in ids.iter().zip(inserted) {
        if inserted {
            spans.push(None);
            continue;
        }
        let token = tokenizer.bytes(id)?;
        if !text.as_bytes()[start..].starts_with(&token) {
            return Ok(None);
        }
        spans.push(Some(start..start + token.len()));
        start += token.len();
    }
    Ok((start == text.len()).then_some(spans))
}

/// The bytes as text, with `�` for what is no UTF-8, and the spans of the bytes as spans of the text.
fn lossy(bytes: &[u8], spans: &mut [Option<Range<usize>>]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut moved = Vec::with_capacity(bytes.len() + 1);
    for chunk in bytes.utf8_chunks() {
        moved.extend((0..chunk.valid().len()).map(|i| text.len() + i));
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            moved.extend(chunk.invalid().iter().map(|_| text.len()));
            text.push('\u{FFFD}');
        }
    }
    moved.push(text.len());
    for span in spans.iter_mut().flatten() {
        let (start, end) = (moved[span.start], moved[span.end]);
        // A token that is a part of what became one `�` still comes from there.
        let whole = start == end && span.start < span.end;
        *span = start..if whole { start + '\u{FFFD}'.len_utf8() } else { end };
    }
    text
}

/// The characters that a span touches.
fn touched<'a>(text: &'a str, span: &Range<usize>) -> (usize, &'a str) {
    if span.is_empty() {
        return (span.start, "");
    }
    let (mut start, mut end) = (span.start, span.end);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    (start, &text[start..end])
}

/// The label of each token that has a span.
fn labels(text: &str, spans: &[Option<Range<usize>>]) -> Vec<String> {
    // How many tokens touch the character at a place. Only the first and the last character of a token can be shared,
    // and only with its neighbours, so it is enough to count those.
    let mut shared = std::collections::HashMap::<usize, usize>::new();
    let ends = |span: &Range<usize>| {
        let (start, chars) = touched(text, span);
        let last = chars.char_indices().next_back().map(|(at, _)| start + at);
        (Some(start).filter(|_| !chars.is_empty()), last.filter(|&last| last != start))
    };
    for span in spans.iter().flatten() {
        let (first, last) = ends(span);
        for at in first.into_iter().chain(last) {
            *shared.entry(at).or_default() += 1;
        }
    }
    let mut seen = std::collections::HashMap::<usize, usize>::new();
    let label = |span: &Option<Range<usize>>| {
        let Some(span) = span else { return String::new() };
        let (start, chars) = touched(text, span);
        let (first, last) = ends(span);
        let mut label = String::with_capacity(chars.len());
        for (at, c) in chars.char_indices() {
            label.push(c);
            let at = start + at;
            if (Some(at) == first || Some(at) == last) && shared[&at] > 1 {
                let number = seen.entry(at).or_default();
                *number += 1;
                label.push_str(&small(*number));
            }
        }
        label
    };
    spans.iter().map(label).collect()
}

/// A number in the small digits that stand below the line.
fn small(number: usize) -> String {
    number.to_string().bytes().filter_map(|digit| char::from_u32(0x2080 + u32::from(digit - b'0'))).collect()
}

/// The word of each token.
fn words(text: &str, spans: &[Option<Range<usize>>]) -> Vec<Option<usize>> {
    let mut starts = Vec::new();
    let mut space = true;
    for (at, c) in text.char_indices() {
        if space && !c.is_whitespace() {
            starts.push(at);
        }
        space = c.is_whitespace();
    }
    let word = |span: &Option<Range<usize>>| {
        let (start, chars) = touched(text, span.as_ref()?);
        let at = match chars.char_indices().find(|(_, c)| !c.is_whitespace()) {
            Some((at, _)) => start + at,
            None => Some(start + 1).filter(|next| chars == " " && starts.binary_search(next).is_ok())?,
        };
        Some(starts.partition_point(|&word| word <= at) - 1)
    };
    spans.iter().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_characters_are_numbered() {
        // " 한" and "국" of three bytes each, cut at bytes 2, 3 and 6.
        let spans = [Some(0..2), Some(2..3), Some(3..6), Some(6..7)];
        assert_eq!(labels(" 한국", &spans), [" 한₁", "한₂", "한₃국₁", "국₂"]);
        assert_eq!(words(" 한국", &spans), [Some(0); 4]);
        let spans = [None, Some(0..3), Some(0..3), Some(4..5), None];
        assert_eq!(labels("한 b", &spans), ["", "한₁", "한₂", "b", ""]);
        assert_eq!(words("한 b", &spans), [None, Some(0), Some(0), Some(1), None]);
    }

    #[test]
    fn words_lie_between_spaces() {
        let spans = [Some(0..1), Some(1..4), Some(4..6), Some(6..7), Some(7..8), Some(0..0)];
        assert_eq!(words("a bc.\n x", &spans), [Some(0), Some(1), Some(1), Some(2), Some(2), None]);
        assert_eq!(words("a  b\nc", &[Some(1..2), Some(2..3), Some(4..5), Some(1..3)]), [None, Some(1), None, None]);
        assert_eq!(words("", &[]), []);
    }

    #[test]
    fn bytes_that_are_no_text_keep_their_places() {
        let mut spans = [Some(0..1), Some(1..2), Some(2..3), Some(3..4)];
        assert_eq!(lossy(b"a\xED\x95b", &mut spans), "a\u{FFFD}b");
        assert_eq!(spans, [Some(0..1), Some(1..4), Some(1..4), Some(4..5)]);
    }
}

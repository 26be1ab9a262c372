//! Cutting a document into passages.

use std::ops::Range;

/// The passages of a text, as places in it: its paragraphs, which empty lines divide. One of more than `most` characters is cut
/// between sentences; each part begins with the last sentence of the one before, so that what is said in two sentences is found
/// together. A sentence that is longer by itself is cut between words, and a word that is longer, anywhere.
pub fn cut(text: &str, most: usize) -> Vec<Range<usize>> {
    let most = most.max(1);
    paragraphs(text).into_iter().flat_map(|paragraph| windows(text, paragraph, most)).collect()
}

/// What empty lines divide, without the space around it.
fn paragraphs(text: &str) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    let (mut at, mut open) = (0, false);
    for line in text.split_inclusive('\n') {
        let place = trimmed(text, at..at + line.len());
        at += line.len();
        match all.last_mut() {
            _ if place.is_empty() => open = false,
            Some(paragraph) if open => paragraph.end = place.end,
            _ => {
                all.push(place);
                open = true;
            }
        }
    }
    all
}

fn windows(text: &str, paragraph: Range<usize>, most: usize) -> Vec<Range<usize>> {
    let length = |place: &Range<usize>| text[place.clone()].chars().count();
    if length(&paragraph) <= most {
        return vec![paragraph];
    }
    let sentences = sentences(text, paragraph, most);
    let mut all = Vec::new();
    let mut first = 0;
    while first < sentences.len() {
        let mut last = first;
        while last + 1 < sentences.len() && length(&(sentences[first].start..sentences[last + 1].end)) <= most {
            last += 1;
        }
        all.push(sentences[first].start..sentences[last].end);
        if last + 1 == sentences.len() {
            break;
        }
        // The last sentence comes again, unless there would be no room for another beside it.
        let overlaps = last > first && length(&(sentences[last].start..sentences[last + 1].end)) <= most;
        first = if overlaps { last } else { last + 1 };
    }
    all
}

/// The sentences of a paragraph, none longer than `most` characters.
fn sentences(text: &str, paragraph: Range<usize>, most: usize) -> Vec<Range<usize>> {
    let (mut all, mut start) = (Vec::new(), paragraph.start);
    let (mut length, mut space) = (0, None);
    let mut letters = text[paragraph.clone()].char_indices().peekable();
    while let Some((at, c)) = letters.next() {
        let end = paragraph.start + at + c.len_utf8();
        let last = letters.peek().is_none_or(|(_, next)| next.is_whitespace());
        length += 1;
        if c.is_whitespace() {
            space = Some(end);
        }
        let cut = match c {
            '.' | '!' | '?' | '。' | '…' if last => Some(end),
            _ if length >= most => Some(space.filter(|space| *space > start).unwrap_or(end)),
            _ => None,
        };
        if let Some(cut) = cut {
            all.push(trimmed(text, start..cut));
            (start, space) = (cut, None);
            length = text[cut..end].chars().count();
        }
    }
    all.push(trimmed(text, start..paragraph.end));
    all.retain(|place| !place.is_empty());
    all
}

fn trimmed(text: &str, place: Range<usize>) -> Range<usize> {
    let part = &text[place.clone()];
    let start = place.start + part.len() - part.trim_start().len();
    start..start + part.trim().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str, most: usize) -> Vec<&str> {
        cut(text, most).into_iter().map(|place| &text[place]).collect()
    }

    #[test]
    fn paragraphs_are_divided_by_empty_lines() {
        assert_eq!(parts("One.\nTwo.\n\n  \n Three. \r\n\r\nFour.", 100), ["One.\nTwo.", "Three.", "Four."]);
        assert!(parts(" \n\n ", 100).is_empty() && parts("", 100).is_empty());
    }

    #[test]
    fn long_paragraphs_overlap_by_a_sentence() {
        assert_eq!(parts("A bb. C dd. E ff. G hh.", 12), ["A bb. C dd.", "C dd. E ff.", "E ff. G hh."]);
        assert_eq!(parts("그는 왔다. 그는 봤다. 그는 갔다.", 13), ["그는 왔다. 그는 봤다.", "그는 봤다. 그는 갔다."]);
    }

    #[test]
    fn no_part_is_too_long_and_no_word_is_lost() {
        let text = "word ".repeat(50) + &"x".repeat(70) + ". Then 3.5 more. 이모지🙂".repeat(9).as_str();
        for most in [1, 2, 7, 30, 400] {
            let all = cut(&text, most);
            assert!(all.iter().all(|place| text[place.clone()].chars().count() <= most), "{most}");
            assert!(all.windows(2).all(|pair| pair[0].start < pair[1].start), "{most}");
            let lost = (0..text.len()).find(|at| {
                text.is_char_boundary(*at)
                    && !text[*at..].starts_with(char::is_whitespace)
                    && !all.iter().any(|place| place.contains(at))
            });
            assert_eq!(lost, None, "{most}");
        }
        assert_eq!(parts("It costs 3.5 euros. Good.", 20), ["It costs 3.5 euros.", "Good."]);
    }
}

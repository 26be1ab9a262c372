//! How a token is shown: spaces at its ends, line ends and characters without a picture become visible.

use unicode_width::UnicodeWidthChar;

/// ` light` → `·light`, `\n` → `⏎`. Spaces inside stay: words merged from several tokens read as they are.
pub(crate) fn visible(token: &str) -> String {
    let is_space = |c: char| c == ' ' || c == '\u{a0}' || c == '▁';
    let start = token.len() - token.trim_start_matches(is_space).len();
    let end = token.trim_end_matches(is_space).len().max(start);
    let mut shown = String::with_capacity(token.len());
    for (at, c) in token.char_indices() {
        match c {
            c if is_space(c) && (at < start || at >= end) => shown.push('·'),
            '▁' => shown.push(' '),
            '\n' => shown.push('⏎'),
            '\r' => shown.push('␍'),
            '\t' => shown.push('⇥'),
            '\u{fffd}' => shown.push('□'),
            c => shown.push(harmless(c)),
        }
    }
    if shown.is_empty() { "∅".to_string() } else { shown }
}

/// The character, or □ for what would steer a terminal, or turn or join the text around it.
pub(crate) fn harmless(c: char) -> char {
    match c {
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => '□',
        c if c.is_control() => '□',
        c => c,
    }
}

/// All of them visible.
pub(crate) fn visible_all<S: AsRef<str>>(tokens: &[S]) -> Vec<String> {
    tokens.iter().map(|token| visible(token.as_ref())).collect()
}

/// Columns of a terminal that `text` takes.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

/// As a terminal shows it, after [`harmless`].
fn char_columns(c: char) -> usize {
    harmless(c).width().unwrap_or(0)
}

/// `text`, or its beginning and `…`, in at most `limit` columns.
pub(crate) fn clip(text: &str, limit: usize) -> String {
    if columns(text) <= limit {
        return text.to_string();
    }
    if limit == 0 {
        return String::new();
    }
    let mut used = 1;
    let mut kept = String::new();
    for c in text.chars() {
        used += char_columns(c);
        if used > limit {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

/// `text` clipped to `width` columns and filled up with spaces: after it, or before.
pub(crate) fn fit(text: &str, width: usize, right: bool) -> String {
    let text = clip(text, width);
    let spaces = " ".repeat(width - columns(&text));
    if right { spaces + &text } else { text + &spaces }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_shown() {
        assert_eq!(visible(" light"), "·light");
        assert_eq!(visible("▁빛"), "·빛");
        assert_eq!(visible("new york "), "new york·");
        assert_eq!(visible("\n\n"), "⏎⏎");
        assert_eq!(visible("  "), "··");
        assert_eq!(visible("\u{1b}[31m"), "□[31m");
        assert_eq!(visible(""), "∅");
        assert_eq!(visible("a\u{202e}b\u{fffd}"), "a□b□");
    }

    #[test]
    fn columns_are_kept() {
        for text in ["attention", "어텐션", "漢字🙂", "", "e\u{301}"] {
            for width in 0..12 {
                assert!(columns(&clip(text, width)) <= width);
                assert_eq!(columns(&fit(text, width, true)), width, "{text} {width}");
            }
        }
        assert_eq!(fit("어텐션", 4, false), "어… ");
    }
}

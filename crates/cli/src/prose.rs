//! Sentences in lines.

use unicode_width::UnicodeWidthStr;

/// Lines longer than this are tiring to read.
const READABLE: usize = 96;

/// The text in lines of at most `width` columns, broken at spaces.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.min(READABLE);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hangul_takes_two_columns() {
        assert_eq!(wrap("to be or not", 5), ["to be", "or", "not"]);
        assert_eq!(wrap("나는 학교에 간다", 9), ["나는", "학교에", "간다"]);
        assert_eq!(wrap("나는 학교에 간다", 11), ["나는 학교에", "간다"]);
        assert_eq!(wrap("", 9), [""; 0]);
    }
}

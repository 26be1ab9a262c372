//! How BLEU cuts a text into tokens. The rules are those of `sacrebleu`.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Tokens {
    /// The rules of WMT's `mteval-v13a`, which `sacrebleu` calls `13a`: punctuation stands alone, except points, commas
    /// and dashes within numbers.
    #[default]
    Mteval,
    /// Every character that is no space (`char`): for Korean, where a wrong particle should not cost the whole word.
    Characters,
    /// What stands between spaces (`none`).
    Words,
}

impl Tokens {
    pub(super) fn cut(self, text: &str) -> Vec<String> {
        let text = text.trim_end_matches(is_space);
        match self {
            Tokens::Mteval => words(&mteval(text)),
            Tokens::Characters => text.chars().filter(|&c| !is_space(c)).map(String::from).collect(),
            Tokens::Words => words(text),
        }
    }
}

/// What Python calls a space: Unicode's, and four separators of ASCII.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

fn words(text: &str) -> Vec<String> {
    text.split(is_space).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn mteval(text: &str) -> String {
    let text = text.replace("<skipped>", "").replace("-\n", "").replace('\n', " ");
    let text = text.replace("&quot;", "\"").replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">");
    let mut spaced = String::from(" ");
    for c in text.chars() {
        match c {
            '{'..='~' | '['..='`' | ' '..='&' | '('..='+' | ':'..='@' | '/' => spaced.extend([' ', c, ' ']),
            _ => spaced.push(c),
        }
    }
    spaced.push(' ');
    let point = |c: char| matches!(c, '.' | ',');
    let digit = |c: char| c.is_ascii_digit();
    let spaced = replace(&spaced, |a, b| !digit(a) && point(b), |a, b| [a, ' ', b, ' ']);
    let spaced = replace(&spaced, |a, b| point(a) && !digit(b), |a, b| [' ', a, ' ', b]);
    replace(&spaced, |a, b| digit(a) && b == '-', |a, b| [a, ' ', b, ' '])
}

/// Rewrites pairs of neighbours from left to right; a character is part of one pair at most.
fn replace(text: &str, is: impl Fn(char, char) -> bool, with: impl Fn(char, char) -> [char; 4]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(a) = rest.next() {
        match rest.next_if(|&b| is(a, b)) {
            Some(b) => out.extend(with(a, b)),
            None => out.push(a),
        }
    }
    out
}

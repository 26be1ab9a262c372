//! Sentences of a text.

/// Short forms that a point belongs to.
const SHORT: [&str; 6] = ["mr", "mrs", "ms", "dr", "st", "prof"];

/// The sentences of a text, one after the other: they end with a line, or with a mark and a space.
///
/// ```
/// use foveal_models::translation::sentences;
///
/// let found: Vec<&str> = sentences("Hello! I see Mr. Kim.\n\nIs it 3.5 won?").collect();
/// assert_eq!(found, ["Hello!", "I see Mr. Kim.", "Is it 3.5 won?"]);
/// ```
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(of_line).map(str::trim).filter(|sentence| !sentence.is_empty())
}

fn of_line(line: &str) -> Vec<&str> {
    let (mut found, mut start) = (Vec::new(), 0);
    for (at, mark) in line.match_indices(['.', '?', '!']) {
        let end = at + mark.len();
        let before = line[start..at].rsplit(char::is_whitespace).next().unwrap_or_default();
        let short = mark == "." && SHORT.iter().any(|short| before.eq_ignore_ascii_case(short));
        let alone = line[start..at].trim().is_empty();
        if line[end..].starts_with(char::is_whitespace) && !short && !alone {
            found.push(&line[start..end]);
            start = end;
        }
    }
    found.push(&line[start..]);
    found
}

//! What a learner has written, understood.

use serde::Serialize;

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Numbers, in reading order.
    Numbers(Vec<f64>),
    /// One of the options, from 0.
    Choice(usize),
    /// A layer and a head, from 0.
    Head([usize; 2]),
}

/// Numbers as they were written: each with the digits after its point, and whether that is all that was known of it.
pub(crate) struct Written {
    pub values: Vec<f64>,
    /// The fewest digits that any of them has after its point; fractions and what is not finite have no end of them.
    pub decimals: Option<usize>,
}

/// Reads numbers, however they are separated: `0.5 0.5`, `[0.5, 0.5]`, `3 × 5`, `1/2`, `−∞`. Where `count` of them are only found
/// with commas taken for those of thousands, they are. The word that is no number, if there is one.
pub(crate) fn numbers(text: &str, count: usize) -> Result<Written, String> {
    let plain = separated(text, true)?;
    if plain.values.len() != count
        && text.contains(',')
        && let Ok(grouped) = separated(text, false)
        && grouped.values.len() == count
    {
        return Ok(grouped);
    }
    Ok(plain)
}

fn separated(text: &str, at_commas: bool) -> Result<Written, String> {
    let text: String = text.chars().filter(|c| at_commas || *c != ',').collect();
    let between = |c: char| c.is_whitespace() || "[](){},;|×*".contains(c);
    let mut written = Written { values: Vec::new(), decimals: None };
    // 3x5 is a shape; 0x5 is not meant by anyone.
    let words = text.split(between).flat_map(|word| word.split(['x', 'X'])).filter(|word| !word.is_empty());
    for word in words {
        let plain = word.replace(['−', '–'], "-").replace('∞', "inf");
        let (value, decimals) = one(&plain).ok_or_else(|| word.to_owned())?;
        written.values.push(value);
        written.decimals = [written.decimals, decimals].into_iter().flatten().min();
    }
    Ok(written)
}

/// A number, and the digits after its point if it has an end of them.
fn one(word: &str) -> Option<(f64, Option<usize>)> {
    if let Some((above, below)) = word.split_once('/') {
        return Some((above.parse::<f64>().ok()? / below.parse::<f64>().ok()?, None));
    }
    let value: f64 = word.parse().ok()?;
    let mantissa = word.split(['e', 'E']).next().unwrap_or(word);
    let decimals = mantissa.split_once('.').map_or(0, |(_, digits)| digits.len());
    Some((value, (value.is_finite() && mantissa == word).then_some(decimals)))
}

/// Which of `count` options: a letter, a number from 1.
pub(crate) fn choice(text: &str, count: usize) -> Option<usize> {
    let word = text.trim().trim_end_matches([')', '.']).trim_start_matches('(').to_lowercase();
    let at = match word.chars().next() {
        Some(letter @ 'a'..='z') if word.len() == 1 => letter as usize - 'a' as usize,
        _ => word.parse::<usize>().ok()?.checked_sub(1)?,
    };
    (at < count).then_some(at)
}

/// A layer and a head: `4.3`, `4 3`, `layer 4, head 3`, `층 4, 헤드 3`.
pub(crate) fn head(text: &str) -> Option<[usize; 2]> {
    let numbers: Vec<usize> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|word| !word.is_empty())
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        let read = |text, count| numbers(text, count).map(|written| written.values);
        assert_eq!(read("[0.5, 0.25; −1]", 3), Ok(vec![0.5, 0.25, -1.0]));
        assert_eq!(read("3×5 3x8", 4), Ok(vec![3.0, 5.0, 3.0, 8.0]));
        assert_eq!(read("1/4 −∞", 2), Ok(vec![0.25, f64::NEG_INFINITY]));
        assert_eq!(read("16,384", 1), Ok(vec![16384.0]));
        assert_eq!(read("16,384", 2), Ok(vec![16.0, 384.0]));
        assert_eq!(read("1,000,000 100,000", 2), Ok(vec![1e6, 1e5]));
        assert_eq!(read("a half", 1), Err("a".to_owned()));
        assert_eq!(read("", 1), Ok(vec![]));
        assert!(read("nan 0", 2).unwrap()[0].is_nan());
        let decimals = |text| numbers(text, 1).unwrap().decimals;
        assert_eq!(
            (decimals("0.50 0.125"), decimals("1/3"), decimals("1e-3"), decimals("7")),
            (Some(2), None, None, Some(0))
        );
    }

    #[test]
    fn options_have_letters_and_numbers() {
        let read = |text| choice(text, 4);
        assert_eq!(["b", " B ", "2", "b)", "(b)", "2."].map(read), [Some(1); 6]);
        assert_eq!(["e", "0", "5", "", "both"].map(read), [None; 5]);
    }

    #[test]
    fn heads_are_two_numbers() {
        assert_eq!(["4.3", "4 3", "layer 4, head 3", "층 4 헤드 3"].map(head), [Some([4, 3]); 4]);
        assert_eq!(["4", "4.3.2", "head"].map(head), [None; 3]);
    }
}

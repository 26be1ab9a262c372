//! English numbers in words.

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// A number below 1,000,000: twenty-five, five thousand, one hundred.
pub(crate) fn english_number(n: u32) -> String {
    match n {
        0..20 => SMALL[n as usize].to_owned(),
        20..100 if n.is_multiple_of(10) => TENS[n as usize / 10].to_owned(),
        20..100 => format!("{}-{}", TENS[n as usize / 10], SMALL[n as usize % 10]),
        100..1000 => joined(n / 100, "hundred", n % 100),
        _ => joined(n / 1000, "thousand", n % 1000),
    }
}

fn joined(many: u32, unit: &str, rest: u32) -> String {
    let head = format!("{} {unit}", english_number(many));
    if rest == 0 { head } else { format!("{head} {}", english_number(rest)) }
}

const ORDINALS: [&str; 20] = [
    "",
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
];

/// The day of a month, from 1 to 31: first, twentieth, thirty-first.
pub(crate) fn ordinal(n: u32) -> String {
    match n {
        20 => "twentieth".into(),
        30 => "thirtieth".into(),
        21.. => format!("{}-{}", TENS[n as usize / 10], ORDINALS[n as usize % 10]),
        _ => ORDINALS[n as usize].to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_words() {
        let words = [1, 12, 20, 25, 99, 100, 150, 5000, 12_000, 30_500].map(english_number);
        let expected = "one|twelve|twenty|twenty-five|ninety-nine|one hundred|one hundred fifty|five thousand|twelve thousand|thirty thousand five hundred";
        assert_eq!(words.join("|"), expected);
        assert_eq!([1, 12, 20, 23, 31].map(ordinal).join(" "), "first twelfth twentieth twenty-third thirty-first");
    }
}

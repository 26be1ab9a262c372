//! English words with their endings: books, goes, running, bigger. What no rule gives stands in `data/irregular.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

/// A verb's forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VerbForms {
    /// Read.
    pub(crate) base: String,
    /// Reads.
    pub(crate) third: String,
    /// Read.
    pub(crate) past: String,
    /// Read, as in "has read".
    pub(crate) participle: String,
    /// Reading.
    pub(crate) ing: String,
}

static IRREGULAR: LazyLock<HashMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| {
    let lines = include_str!("../../data/irregular.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' ')).map(|(base, rest)| (base, rest.split(' ').collect())).collect()
});

/// Verbs that are spelt like an irregular one of another meaning: "he lied".
const REGULAR_TWINS: &[(&str, &str)] = &[("lie", "거짓말하다")];

impl VerbForms {
    /// The forms of a verb; its meaning tells two verbs of one spelling apart.
    pub(crate) fn of(base: &str, korean: &str) -> Self {
        let third = match base {
            "have" => "has".to_owned(),
            _ => with_s(base),
        };
        let irregular = IRREGULAR.get(base).filter(|_| !REGULAR_TWINS.contains(&(base, korean)));
        let (past, participle) = match irregular {
            Some(forms) => (forms[0].to_owned(), forms[1].to_owned()),
            None => (with_ed(base), with_ed(base)),
        };
        let doubled = IRREGULAR.get(base).and_then(|forms| forms.get(2)).map(|ing| (*ing).to_owned());
        let ing = doubled.unwrap_or_else(|| with_ing(base));
        VerbForms { base: base.to_owned(), third, past, participle, ing }
    }
}

fn is_vowel(c: char) -> bool {
    matches!(c, 'a' | 'e' | 'i' | 'o' | 'u')
}

fn ends_in_consonant_y(word: &str) -> bool {
    let mut last = word.chars().rev();
    last.next() == Some('y') && last.next().is_some_and(|c| !is_vowel(c))
}

/// One syllable of consonant, vowel, consonant, as in "stop": the last letter doubles.
fn doubles(word: &str) -> bool {
    let letters: Vec<char> = word.chars().collect();
    let [.., a, b, c] = letters[..] else { return false };
    let groups = letters.split(|&c| !is_vowel(c)).filter(|group| !group.is_empty()).count();
    groups == 1 && !is_vowel(a) && is_vowel(b) && !is_vowel(c) && !matches!(c, 'w' | 'x' | 'y')
        || groups == 1 && letters.len() == 4 && letters[0] == 'q' && !is_vowel(c)
}

/// Books, watches, cities: nouns in the plural and verbs of the third person.
pub(crate) fn with_s(word: &str) -> String {
    if ends_in_consonant_y(word) {
        return format!("{}ies", &word[..word.len() - 1]);
    }
    let hissing = ["s", "x", "z", "ch", "sh"].iter().any(|end| word.ends_with(end));
    let long = matches!(word, "go" | "do");
    format!("{word}{}", if hissing || long { "es" } else { "s" })
}

fn with_ed(word: &str) -> String {
    if word.ends_with('e') {
        return format!("{word}d");
    }
    if ends_in_consonant_y(word) {
        return format!("{}ied", &word[..word.len() - 1]);
    }
    match word.chars().next_back().filter(|_| doubles(word)) {
        Some(last) => format!("{word}{last}ed"),
        None => format!("{word}ed"),
    }
}

fn with_ing(word: &str) -> String {
    if word.ends_with('e') && !word.ends_with("ee") && !word.ends_with("ye") {
        return format!("{}ing", &word[..word.len() - 1]);
    }
    match word.chars().next_back().filter(|_| doubles(word)) {
        Some(last) => format!("{word}{last}ing"),
        None => format!("{word}ing"),
    }
}

/// Bigger and biggest; none where English says "more" and "most".
pub(crate) fn compared(word: &str) -> Option<(String, String)> {
    match word {
        "good" => return Some(("better".into(), "best".into())),
        "shy" => return Some(("shyer".into(), "shyest".into())),
        "bad" => return Some(("worse".into(), "worst".into())),
        "quiet" | "narrow" | "simple" | "clever" | "shallow" | "gentle" | "humble" => {}
        "fun" | "right" | "ill" | "wrong" | "real" => return None,
        _ => {
            let letters: Vec<char> = word.chars().collect();
            let vowels = |from: &[char]| from.split(|&c| !is_vowel(c)).filter(|group| !group.is_empty()).count();
            let silent_e = word.ends_with('e') && letters.len() > 3;
            let syllables = vowels(&letters) - usize::from(silent_e);
            let short_y = ends_in_consonant_y(word) && syllables <= 1;
            if syllables > 1 || ends_in_consonant_y(word) && !short_y || word.ends_with("ed") {
                return None;
            }
        }
    }
    let stem = match word {
        _ if ends_in_consonant_y(word) => format!("{}i", &word[..word.len() - 1]),
        _ if word.ends_with('e') => word[..word.len() - 1].to_owned(),
        _ if doubles(word) => format!("{word}{}", word.chars().next_back().unwrap_or_default()),
        _ => word.to_owned(),
    };
    Some((format!("{stem}er"), format!("{stem}est")))
}

/// "A" or "an".
pub(crate) fn article(next: &str) -> &'static str {
    let sounds_long = ["uni", "use", "euro", "one"].iter().any(|start| next.starts_with(start));
    let silent_h = ["honest", "hour"].iter().any(|start| next.starts_with(start));
    let vowel = next.to_lowercase().starts_with(is_vowel);
    if vowel && !sounds_long || silent_h { "an" } else { "a" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_have_their_forms() {
        let table = "read reads read read reading|write writes wrote written writing|study studies studied studied studying|\
             stop stops stopped stopped stopping|visit visits visited visited visiting|run runs ran run running|\
             go goes went gone going|have has had had having|die dies died died dying|watch watches watched watched watching|\
             play plays played played playing|begin begins began begun beginning|agree agrees agreed agreed agreeing|\
             fix fixes fixed fixed fixing|cry cries cried cried crying|chat chats chatted chatted chatting|\
             open opens opened opened opening|snow snows snowed snowed snowing|rain rains rained rained raining|\
             listen listens listened listened listening|hug hugs hugged hugged hugging|put puts put put putting";
        for line in table.split('|') {
            let forms: Vec<&str> = line.split_whitespace().collect();
            let VerbForms { base, third, past, participle, ing } = VerbForms::of(forms[0], "");
            assert_eq!([base, third, past, participle, ing], forms[..]);
        }
        assert_eq!(VerbForms::of("lie", "거짓말하다").past, "lied");
        assert_eq!(VerbForms::of("lie", "눕다").past, "lay");
    }

    #[test]
    fn plurals_comparatives_and_articles() {
        let plurals = ["book", "box", "city", "toy", "church", "bus"].map(with_s);
        assert_eq!(plurals, ["books", "boxes", "cities", "toys", "churches", "buses"]);
        let words = ["big", "large", "happy", "tall", "fast", "good", "dry", "nice", "quiet", "hot", "wet", "simple"];
        let more = ["bigger", "larger", "happier", "taller", "faster", "better", "drier", "nicer", "quieter", "hotter"];
        for (word, expected) in words.iter().zip(more.iter().chain(&["wetter", "simpler"])) {
            assert_eq!(compared(word).map(|(more, _)| more).as_deref(), Some(*expected), "{word}");
        }
        let long = ["beautiful", "expensive", "famous", "interesting", "tired", "useful", "careful", "boring"];
        assert!(long.iter().all(|word| compared(word).is_none()), "{:?}", long.map(compared));
        assert_eq!(compared("bad").unwrap().1, "worst");
        let articles = ["apple", "hour", "university", "honest", "umbrella", "English", "house"].map(article);
        assert_eq!(articles, ["an", "an", "a", "an", "an", "an", "a"]);
    }
}

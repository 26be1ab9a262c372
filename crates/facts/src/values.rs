//! What can stand in the slots of a relation.

use std::collections::BTreeMap;

use foveal_grammar::Random;

use crate::{Language, names};

/// Words by their kind.
pub(crate) struct Words(BTreeMap<&'static str, Vec<&'static str>>);

/// How a pronoun speaks of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gender {
    He,
    She,
    It,
}

/// What stands in a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub text: String,
    pub gender: Gender,
}

/// Kinds of which no two facts of an exercise share a value, unless they are about the same.
pub(crate) const UNIQUE: [&str; 13] = [
    "person",
    "thing",
    "event",
    "building",
    "country",
    "title",
    "pet",
    "town",
    "company",
    "line",
    "locked",
    "container",
    "invention",
];

impl Words {
    /// From lines like `kind: one, two, three`.
    pub fn parse(text: &'static str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(": "));
        Words(lines.map(|(kind, words)| (kind, words.split(", ").collect())).collect())
    }

    fn one_of(&self, kind: &str, random: &mut Random) -> &'static str {
        let words = self.0.get(kind).unwrap_or_else(|| panic!("the data has no words of the kind {kind}"));
        words[random.below(words.len())]
    }

    /// A value of this kind.
    pub fn draw(&self, language: Language, kind: &str, held_out: bool, random: &mut Random) -> Value {
        let it = |text: String| Value { text, gender: Gender::It };
        match kind {
            "person" | "city" | "country" | "pet" => self.name(language, kind, held_out, random),
            "town" => self.name(language, "city", held_out, random),
            "company" => it(self.company(language, held_out, random)),
            "line" => {
                let (to, carrier) = (self.name(language, "city", held_out, random), self.one_of("carrier", random));
                it(language.of(format!("{carrier} to {}", to.text), format!("{}행 {carrier}", to.text)))
            }
            "thing" => it(format!("{} {}", self.one_of("adjective", random), self.one_of("object", random))),
            kind if self.0.contains_key(kind) => it(self.one_of(kind, random).to_owned()),
            number => it(quantity(language, number, random)),
        }
    }

    /// One that there is, or one that nobody has heard before.
    fn name(&self, language: Language, kind: &str, held_out: bool, random: &mut Random) -> Value {
        loop {
            let sex = if random.below(2) == 0 { ("man", Gender::He) } else { ("woman", Gender::She) };
            let (list, gender) = if kind == "person" { sex } else { (kind, Gender::It) };
            let text = if kind == "pet" || random.below(2) == 0 {
                names::invent(language, kind, random)
            } else {
                self.one_of(list, random).to_owned()
            };
            if names::is_held_out(&text) != held_out {
                continue;
            }
            if (language, kind) == (Language::English, "person") && random.below(8) == 0 {
                let surname = self.one_of("surname", random);
                if names::is_held_out(surname) == held_out {
                    return Value { text: format!("{text} {surname}"), gender };
                }
            }
            return Value { text, gender };
        }
    }

    fn company(&self, language: Language, held_out: bool, random: &mut Random) -> String {
        let name = loop {
            let name = names::invent(language, "company", random);
            if names::is_held_out(&name) == held_out {
                break name;
            }
        };
        match (language, random.below(3)) {
            (Language::English, 0) => format!("{name} Ltd"),
            (Language::English, 1) => format!("{name} Motors"),
            (Language::Korean, 0) => format!("{name}전자"),
            (Language::Korean, 1) => format!("{name}식품"),
            _ => name,
        }
    }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WORDS: [&str; 19] = [
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
    "twenty",
];

/// Numbers with what they count.
fn quantity(language: Language, kind: &str, random: &mut Random) -> String {
    let mut from = |least: usize, most: usize| least + random.below(most - least + 1);
    match (language, kind) {
        (Language::English, "year") => from(1850, 2025).to_string(),
        (Language::Korean, "year") => format!("{}년", from(1850, 2025)),
        (Language::English, "age") => from(5, 99).to_string(),
        (Language::Korean, "age") => format!("{}살", from(5, 99)),
        (Language::English, "count") if from(0, 1) == 0 => WORDS[from(0, WORDS.len() - 1)].to_owned(),
        (Language::English, "count") => from(2, 60).to_string(),
        (Language::Korean, "pieces") => format!("{}개", from(2, 60)),
        (Language::English, "price") => match from(0, 2) {
            0 => format!("${}", from(2, 400)),
            1 => format!("{} dollars", from(2, 400)),
            _ => format!("{} euros", from(2, 400)),
        },
        (Language::Korean, "price") if from(0, 1) == 0 => format!("{}만 원", from(1, 90)),
        (Language::Korean, "price") => format!("{},{}00원", from(1, 90), from(0, 9)),
        (Language::English, "height") => format!("{} {}", from(8, 300), ["meters", "metres", "feet"][from(0, 2)]),
        (Language::Korean, "height") => format!("{}미터", from(8, 300)),
        (Language::English, "room") => from(101, 999).to_string(),
        (Language::Korean, "room") => format!("{}호", from(101, 999)),
        (_, "phone") if from(0, 1) == 0 => format!("{}-{}", from(100, 999), from(1000, 9999)),
        (_, "phone") => format!("010-{}-{}", from(1000, 9999), from(1000, 9999)),
        (Language::English, "date") if from(0, 1) == 0 => format!("{} {}", MONTHS[from(0, 11)], from(1, 28)),
        (Language::English, "date") => format!("{} {}", from(1, 28), MONTHS[from(0, 11)]),
        (Language::Korean, "date") => format!("{}월 {}일", from(1, 12), from(1, 28)),
        (Language::English, "track") => from(1, 24).to_string(),
        (Language::Korean, "track") => format!("{}번 승강장", from(1, 24)),
        (Language::English, "weight") => format!("{} {}", from(2, 900), ["kilos", "grams", "pounds"][from(0, 2)]),
        (Language::Korean, "weight") => format!("{}{}", from(2, 900), ["킬로그램", "그램"][from(0, 1)]),
        (Language::English, "population") => format!("{},{}00", from(1, 900), from(0, 9)),
        (Language::Korean, "population") => format!("{}명", from(2, 90) * 100),
        (_, "code") if from(0, 2) > 0 => from(1000, 9999).to_string(),
        (_, "code") => names::invent(Language::English, "code", random).to_lowercase(),
        (Language::English, "temperature") => format!("{} degrees", from(2, 39)),
        (Language::Korean, "temperature") => format!("{}도", from(2, 39)),
        (Language::English, _) => match from(0, 3) {
            0 => format!("{} o'clock", WORDS[from(0, 10)]),
            1 => format!("half past {}", WORDS[from(0, 9)]),
            2 => format!("{}:{}", from(6, 22), ["00", "15", "30", "45"][from(0, 3)]),
            _ => format!("{} {}", from(1, 12), ["am", "pm"][from(0, 1)]),
        },
        (Language::Korean, _) => match from(0, 3) {
            0 => format!("{}시", from(1, 12)),
            1 => format!("{}시 {}분", from(1, 12), [10, 15, 20, 30, 45][from(0, 4)]),
            2 => format!("오전 {}시", from(6, 11)),
            _ => format!("오후 {}시", from(1, 11)),
        },
    }
}

//! What can be turned in a lab, and what it is turned to.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Serialize;

use crate::{Bilingual, Error, Lab, Result};

/// Numbers that a knob takes at most.
const MOST: usize = 12;

/// Something that can be turned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Knob {
    /// Its name; the command's flag is this with `--` before it.
    pub name: &'static str,
    /// What it changes.
    pub summary: Bilingual<&'static str>,
    /// What it can be turned to.
    pub values: Values,
}

/// What a knob can be turned to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Values {
    /// One number.
    One {
        /// Where it stands at first.
        default: usize,
        /// The smallest it can be.
        least: usize,
        /// The largest.
        most: usize,
    },
    /// Several numbers, each tried.
    Several {
        /// Those that are tried at first.
        default: &'static [usize],
        /// Whether there must be two at least, to see how something grows.
        growth: bool,
        /// The smallest that one can be.
        least: usize,
        /// The largest.
        most: usize,
    },
    /// Exactly two numbers, in their order.
    Two {
        /// Where they stand at first.
        default: [usize; 2],
        /// The smallest that one can be.
        least: usize,
        /// The largest.
        most: usize,
    },
    /// A random seed, any number.
    Seed {
        /// The one at first.
        default: u64,
    },
    /// A text or a name.
    Text {
        /// The one at first.
        default: &'static str,
    },
}

impl Knob {
    /// A knob for one number.
    pub const fn one(
        name: &'static str,
        summary: Bilingual<&'static str>,
        default: usize,
        range: RangeInclusive<usize>,
    ) -> Self {
        let (least, most) = (*range.start(), *range.end());
        Knob { name, summary, values: Values::One { default, least, most } }
    }

    /// A knob for several numbers.
    pub const fn several(
        name: &'static str,
        summary: Bilingual<&'static str>,
        default: &'static [usize],
        range: RangeInclusive<usize>,
    ) -> Self {
        let (least, most) = (*range.start(), *range.end());
        Knob { name, summary, values: Values::Several { default, growth: false, least, most } }
    }

    /// Two numbers at least, to see how something grows.
    pub const fn growth(mut self) -> Self {
        if let Values::Several { ref mut growth, .. } = self.values {
            *growth = true;
        }
        self
    }

    /// A knob for a pair of numbers.
    pub const fn two(
        name: &'static str,
        summary: Bilingual<&'static str>,
        default: [usize; 2],
        range: RangeInclusive<usize>,
    ) -> Self {
        let (least, most) = (*range.start(), *range.end());
        Knob { name, summary, values: Values::Two { default, least, most } }
    }

    /// The random seed.
    pub const fn seed() -> Self {
        let summary = Bilingual { en: "Random seed", ko: "난수 시드" };
        Knob { name: "seed", summary, values: Values::Seed { default: 1 } }
    }

    /// The model that is looked at.
    pub const fn model(default: &'static str) -> Self {
        let summary = Bilingual {
            en: "The model: a folder, a .gguf file, a name on the hub, or one inside",
            ko: "모델: 폴더, .gguf 파일, 허브의 이름, 또는 내장 모델",
        };
        Knob { name: "model", summary, values: Values::Text { default } }
    }

    /// As a flag of the command.
    pub fn flag(&self) -> String {
        format!("--{}", self.name)
    }

    /// Refuses what the knob cannot be turned to.
    fn check(&self, value: &Value) -> Result<()> {
        let flag = self.flag();
        match (self.values, value) {
            (Values::One { least, most, .. }, Value::Numbers(numbers)) => match numbers[..] {
                [number] => self.bounded(number, least, most),
                _ => Err(Error::knob(
                    format!("{flag} takes one number here, not {}", numbers.len()),
                    format!("{flag} 옵션에는 숫자 하나가 필요한데 {}개가 있습니다", numbers.len()),
                )),
            },
            (Values::Several { default, growth, least, most }, Value::Numbers(numbers)) => {
                numbers.iter().try_for_each(|number| self.bounded(*number, least, most))?;
                let given = distinct(numbers).len();
                if given < 1 + usize::from(growth) {
                    let example: Vec<String> = default.iter().take(2).map(usize::to_string).collect();
                    let example = example.join(",");
                    return Err(Error::knob(
                        format!("{flag} takes two numbers at least here, to see the growth: {flag} {example}"),
                        format!("증가를 보려면 {flag} 옵션에 숫자가 둘 이상 필요합니다: {flag} {example}"),
                    ));
                }
                if given > MOST {
                    return Err(Error::knob(
                        format!("{flag} takes at most {MOST} numbers, not {given}"),
                        format!("{flag} 옵션에는 숫자를 {MOST}개까지 쓸 수 있는데 {given}개가 있습니다"),
                    ));
                }
                Ok(())
            }
            (Values::Two { default: [a, b], least, most }, Value::Numbers(numbers)) => {
                if numbers.len() != 2 {
                    let Bilingual { en, ko } = self.summary;
                    return Err(Error::knob(
                        format!("{flag} takes two numbers here ({en}): {flag} {a},{b}"),
                        format!("{flag} 옵션에는 숫자 둘이 필요합니다({ko}): {flag} {a},{b}"),
                    ));
                }
                numbers.iter().try_for_each(|number| self.bounded(*number, least, most))
            }
            (Values::Seed { .. }, Value::Seed(_)) | (Values::Text { .. }, Value::Text(_)) => Ok(()),
            (Values::Seed { .. }, Value::Numbers(numbers)) if numbers.len() == 1 => Ok(()),
            (Values::Text { .. }, _) => {
                Err(Error::knob(format!("{flag} takes a text"), format!("{flag} 옵션에는 글이 필요합니다")))
            }
            _ => Err(Error::knob(format!("{flag} takes numbers"), format!("{flag} 옵션에는 숫자가 필요합니다"))),
        }
    }

    fn bounded(&self, number: usize, least: usize, most: usize) -> Result<()> {
        if (least..=most).contains(&number) {
            return Ok(());
        }
        let flag = self.flag();
        Err(Error::knob(
            format!("{flag} {number} does not work here; take a number from {least} to {most}"),
            format!("{flag} {number}은(는) 여기서 쓸 수 없습니다. {least}에서 {most} 사이의 수를 쓰십시오"),
        ))
    }
}

/// What a knob is turned to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Numbers.
    Numbers(Vec<usize>),
    /// A random seed.
    Seed(u64),
    /// A text or a name.
    Text(String),
}

/// What the knobs of a lab are turned to; those that are not mentioned stay where they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Knobs(BTreeMap<String, Value>);

impl Knobs {
    /// All knobs as they stand at first.
    pub fn new() -> Self {
        Knobs::default()
    }

    /// A knob turned to one or several numbers.
    #[must_use]
    pub fn numbers(self, name: impl Into<String>, numbers: impl Into<Vec<usize>>) -> Self {
        self.set(name, Value::Numbers(numbers.into()))
    }

    /// Another random seed.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.set("seed", Value::Seed(seed))
    }

    /// A knob turned to a text or a name.
    #[must_use]
    pub fn text(self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.set(name, Value::Text(text.into()))
    }

    fn set(mut self, name: impl Into<String>, value: Value) -> Self {
        self.0.insert(name.into(), value);
        self
    }

    /// Refuses knobs that the lab does not have, and what they cannot be turned to.
    pub(crate) fn check(&self, lab: &Lab) -> Result<()> {
        for (name, value) in &self.0 {
            match lab.knobs.iter().find(|knob| knob.name == name) {
                Some(knob) => knob.check(value)?,
                None => return Err(useless(lab, name)),
            }
        }
        Ok(())
    }

    /// The number of a knob.
    pub(crate) fn get_one(&self, knob: &Knob) -> usize {
        match (self.0.get(knob.name), knob.values) {
            (Some(Value::Numbers(numbers)), _) if !numbers.is_empty() => numbers[0],
            (_, Values::One { default, .. }) => default,
            _ => 0,
        }
    }

    /// The numbers of a knob, each once, from small to large.
    pub(crate) fn get_several(&self, knob: &Knob) -> Vec<usize> {
        match (self.0.get(knob.name), knob.values) {
            (Some(Value::Numbers(numbers)), _) => distinct(numbers),
            (_, Values::Several { default, .. }) => distinct(default),
            _ => Vec::new(),
        }
    }

    /// Whether a knob was turned at all.
    pub(crate) fn has(&self, knob: &Knob) -> bool {
        self.0.contains_key(knob.name)
    }

    /// Both numbers of a knob, in their order.
    pub(crate) fn get_two(&self, knob: &Knob) -> [usize; 2] {
        match (self.0.get(knob.name), knob.values) {
            (Some(Value::Numbers(numbers)), _) if numbers.len() == 2 => [numbers[0], numbers[1]],
            (_, Values::Two { default, .. }) => default,
            _ => [0, 0],
        }
    }

    /// The random seed.
    pub(crate) fn get_seed(&self, knob: &Knob) -> u64 {
        match (self.0.get(knob.name), knob.values) {
            (Some(Value::Seed(seed)), _) => *seed,
            (Some(Value::Numbers(numbers)), _) if numbers.len() == 1 => numbers[0] as u64,
            (_, Values::Seed { default }) => default,
            _ => 0,
        }
    }

    /// The text of a knob.
    pub(crate) fn get_text(&self, knob: &Knob) -> &str {
        match (self.0.get(knob.name), knob.values) {
            (Some(Value::Text(text)), _) => text,
            (_, Values::Text { default }) => default,
            _ => "",
        }
    }
}

fn distinct(numbers: &[usize]) -> Vec<usize> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn useless(lab: &Lab, name: &str) -> Error {
    let known: Vec<String> = lab.knobs.iter().map(Knob::flag).collect();
    let (lab, known) = (lab.name, known.join(", "));
    if known.is_empty() {
        return Error::knob(
            format!("--{name} changes nothing in {lab}, whose numbers are fixed; leave it out"),
            format!("{lab} 실험의 숫자는 정해져 있어 --{name} 옵션으로 바뀌는 것이 없습니다. 이 옵션을 빼십시오"),
        );
    }
    Error::knob(
        format!("--{name} changes nothing in {lab}; it takes {known}"),
        format!("--{name} 옵션으로는 {lab} 실험에서 바뀌는 것이 없습니다. 쓸 수 있는 옵션: {known}"),
    )
}

//! A question, its right answer, and what common mistakes lead to.

use foveal_labs::{Bilingual, Section, Table, Text, text};
use foveal_view::Scene;
use serde::Serialize;

use crate::answer::{self, Answer, Written};
use crate::code::Code;
use crate::number::{fixed, short};
use crate::{Language, Result};

/// What is asked, and all that is needed to judge an answer.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Task {
    /// What is asked.
    pub question: Text,
    /// Tables and pictures that it is asked of.
    pub sections: Vec<Section>,
    /// The right answer.
    pub expected: Expected,
    /// Each tells a little more than the one before.
    pub hints: Vec<Text>,
    /// What common mistakes lead to.
    pub mistakes: Vec<Mistake>,
    /// What there is to say once the answer is right.
    pub explanation: Text,
}

/// The right answer, by the kind of exercise.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Expected {
    /// Numbers, right to this many digits after the point: one in the last of them is forgiven.
    Numbers {
        /// In reading order.
        values: Vec<f64>,
        /// Digits after the point.
        decimals: usize,
        /// Whether they are weights of one row, which add up to 1.
        shares: bool,
    },
    /// One of several.
    Choice {
        /// What there is to choose from.
        options: Vec<Text>,
        /// Which is right, from 0.
        right: usize,
    },
    /// A head of a model inside.
    Head {
        /// Layers and heads that do what is asked for; any of them is right.
        right: Vec<[usize; 2]>,
        /// Layers and heads that there are.
        of: [usize; 2],
    },
    /// A program with a hole.
    Code(Code),
}

/// A wrong answer that many give, and why it is wrong.
#[derive(Clone, Debug, Serialize)]
pub struct Mistake {
    /// A short name, the same in every exercise where the mistake can be made.
    pub name: &'static str,
    /// What it leads to.
    pub answer: Answer,
    /// Why that is wrong.
    pub why: Text,
}

/// What there is to say to an answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// It is right.
    Right,
    /// It is wrong.
    Wrong {
        /// Why, as far as that can be told.
        why: Text,
        /// The common mistake that it is.
        mistake: Option<&'static str>,
    },
    /// It cannot be understood, and is no attempt.
    Unreadable(Text),
}

impl Verdict {
    /// Whether the answer is right.
    pub fn is_right(&self) -> bool {
        matches!(self, Verdict::Right)
    }

    /// The name of the common mistake, if it is one.
    pub fn mistake(&self) -> Option<&'static str> {
        if let Verdict::Wrong { mistake, .. } = self { *mistake } else { None }
    }

    pub(crate) fn wrong(why: Text) -> Self {
        Verdict::Wrong { why, mistake: None }
    }
}

impl Task {
    fn new(expected: Expected, question: Text) -> Self {
        Task { question, sections: vec![], expected, hints: vec![], mistakes: vec![], explanation: Text::default() }
    }

    /// Asks for numbers.
    pub(crate) fn numbers(question: Text, values: impl IntoIterator<Item = f64>, decimals: usize) -> Self {
        let values = values.into_iter().collect();
        Task::new(Expected::Numbers { values, decimals, shares: false }, question)
    }

    /// Asks for the weights of a row.
    pub(crate) fn weights(question: Text, values: impl IntoIterator<Item = f64>, decimals: usize) -> Self {
        let values = values.into_iter().collect();
        Task::new(Expected::Numbers { values, decimals, shares: true }, question)
    }

    /// Asks for one of several options. The first is right, and the others each have a mistake's name and say why they are
    /// wrong; `right` says where the first is moved to.
    pub(crate) fn choice(question: Text, right: usize, first: Text, wrong: Vec<(&'static str, Text, Text)>) -> Self {
        let mut options: Vec<Text> = wrong.iter().map(|(_, option, _)| option.clone()).collect();
        options.insert(right, first);
        let mut task = Task::new(Expected::Choice { options, right }, question);
        for (at, (name, _, why)) in wrong.into_iter().enumerate() {
            let answer = Answer::Choice(at + usize::from(at >= right));
            task.mistakes.push(Mistake { name, answer, why });
        }
        task
    }

    /// Asks for a head.
    pub(crate) fn head(question: Text, right: Vec<[usize; 2]>, of: [usize; 2]) -> Self {
        Task::new(Expected::Head { right, of }, question)
    }

    /// Asks for a program.
    pub(crate) fn code(question: Text, code: Code) -> Self {
        Task::new(Expected::Code(code), question)
    }

    pub(crate) fn table(mut self, table: Table) -> Self {
        self.sections.push(Section::Table(table));
        self
    }

    pub(crate) fn scene<S: Into<Scene>>(mut self, draw: impl Fn(Language) -> Result<S>) -> Result<Self> {
        let scene = Bilingual::build(|language| draw(language).map(Into::into))?;
        self.sections.push(Section::Scene(Box::new(scene)));
        Ok(self)
    }

    pub(crate) fn hint(mut self, english: impl Into<String>, korean: impl Into<String>) -> Self {
        self.hints.push(text(english, korean));
        self
    }

    /// A mistake in numbers.
    pub(crate) fn mistake(self, name: &'static str, values: impl IntoIterator<Item = f64>, why: Text) -> Self {
        self.mistaken(name, Answer::Numbers(values.into_iter().collect()), why)
    }

    pub(crate) fn mistaken(mut self, name: &'static str, answer: Answer, why: Text) -> Self {
        self.mistakes.push(Mistake { name, answer, why });
        self
    }

    pub(crate) fn because(mut self, english: impl Into<String>, korean: impl Into<String>) -> Self {
        self.explanation = text(english, korean);
        self
    }

    /// The right answer as one would type it; of a program, the file.
    pub fn right_answer(&self) -> String {
        match &self.expected {
            Expected::Numbers { values, decimals, .. } => {
                values.iter().map(|x| fixed(*x, *decimals)).collect::<Vec<_>>().join(" ")
            }
            Expected::Choice { right, .. } => letter(*right).to_string(),
            Expected::Head { right, .. } => {
                right.first().map(|[layer, head]| format!("{layer}.{head}")).unwrap_or_default()
            }
            Expected::Code(code) => code.solution.to_owned(),
        }
    }

    /// Judges what a learner has typed. Programs are judged by a [`Workshop`](crate::Workshop).
    pub fn check(&self, typed: &str) -> Verdict {
        match &self.expected {
            Expected::Numbers { values, decimals, shares } => self.check_numbers(typed, values, *decimals, *shares),
            Expected::Choice { options, right } => match answer::choice(typed, options.len()) {
                Some(at) if at == *right => Verdict::Right,
                Some(at) => self.known(&Answer::Choice(at)),
                None => {
                    let last = letter(options.len() - 1);
                    Verdict::Unreadable(text(
                        format!("Type a letter from a to {last}."),
                        format!("a부터 {last}까지의 글자 하나를 쓰십시오."),
                    ))
                }
            },
            Expected::Head { right, of: [layers, heads] } => match answer::head(typed) {
                Some(head) if right.contains(&head) => Verdict::Right,
                Some([layer, head]) if layer >= *layers || head >= *heads => Verdict::Unreadable(text(
                    format!(
                        "There is no {layer}.{head}: layers go from 0 to {}, heads from 0 to {}.",
                        layers - 1,
                        heads - 1
                    ),
                    format!(
                        "{layer}.{head}은(는) 없습니다. 층은 0부터 {}까지, 헤드는 0부터 {}까지입니다.",
                        layers - 1,
                        heads - 1
                    ),
                )),
                Some(head) => self.known(&Answer::Head(head)),
                None => {
                    Verdict::Unreadable(text("Type a layer and a head, such as 4.3.", "층과 헤드를 4.3처럼 쓰십시오."))
                }
            },
            Expected::Code(_) => Verdict::Unreadable(text(
                "This exercise is answered by a program, in its file.",
                "이 문제의 답은 파일에 쓰는 프로그램입니다.",
            )),
        }
    }

    /// The mistake whose answer this is exactly.
    fn known(&self, answer: &Answer) -> Verdict {
        match self.mistakes.iter().find(|mistake| mistake.answer == *answer) {
            Some(mistake) => Verdict::Wrong { why: mistake.why.clone(), mistake: Some(mistake.name) },
            None => Verdict::wrong(text("That is not it.", "아닙니다.")),
        }
    }

    fn check_numbers(&self, typed: &str, right: &[f64], decimals: usize, shares: bool) -> Verdict {
        let Written { values, decimals: given } = match answer::numbers(typed, right.len()) {
            Ok(written) => written,
            Err(word) => {
                return Verdict::Unreadable(text(
                    format!("“{word}” is no number. Numbers are separated by spaces, such as 0.5 1/4 −2."),
                    format!("“{word}”은(는) 수가 아닙니다. 0.5 1/4 −2처럼 수를 빈칸으로 나누어 쓰십시오."),
                ));
            }
        };
        let fine = tolerance(decimals);
        let coarse = given.filter(|given| *given < decimals).map(|given| 0.5000001 * 10f64.powi(-(given as i32)));
        if near(&values, right, fine) {
            return Verdict::Right;
        }
        let mistake = |within: f64| {
            let found = self
                .mistakes
                .iter()
                .find(|mistake| matches!(&mistake.answer, Answer::Numbers(wrong) if near(&values, wrong, within)));
            found.map(|mistake| Verdict::Wrong { why: mistake.why.clone(), mistake: Some(mistake.name) })
        };
        if let Some(verdict) = mistake(fine) {
            return verdict;
        }
        if let Some(coarse) = coarse {
            if near(&values, right, coarse) {
                return Verdict::wrong(text(
                    format!("Right so far as it goes: give {decimals} digits after the point."),
                    format!("여기까지는 맞습니다. 소수점 아래 {decimals}자리까지 쓰십시오."),
                ));
            }
            if let Some(verdict) = mistake(coarse) {
                return verdict;
            }
        }
        Verdict::wrong(self.remark(&values, right, fine, shares))
    }

    /// What can be said about numbers that are no known mistake.
    fn remark(&self, values: &[f64], right: &[f64], fine: f64, shares: bool) -> Text {
        let (want, got) = (right.len(), values.len());
        if want != got {
            return text(
                format!("{want} numbers are asked for; these are {got}."),
                format!("수 {want}개를 물었는데 {got}개를 쓰셨습니다."),
            );
        }
        let hundredth: Vec<f64> = values.iter().map(|x| x / 100.0).collect();
        if near(&hundredth, right, fine) {
            return text(
                "Those are percent. Weights are shares of 1: divide by 100.",
                "퍼센트로 쓰셨습니다. 가중치는 1의 몫이므로 100으로 나누십시오.",
            );
        }
        if values.iter().any(|x| x.is_nan()) {
            return text("No number here is NaN.", "여기에 NaN인 수는 없습니다.");
        }
        let sum: f64 = values.iter().sum();
        let whole: f64 = right.iter().sum();
        if shares && (sum - whole).abs() > fine * (want as f64 + 1.0) {
            return text(
                format!("The weights of a row add up to {}; these add up to {}.", short(whole), short(sum)),
                format!("한 행의 가중치를 더하면 {}인데, 쓰신 수의 합은 {}입니다.", short(whole), short(sum)),
            );
        }
        if near(values, right, 12.0 * fine) {
            return text(
                "Very close: keep more digits on the way, and round at the end.",
                "아주 가깝습니다. 계산 도중에는 자릿수를 더 남기고 마지막에 반올림하십시오.",
            );
        }
        let wrong: Vec<String> =
            (0..want).filter(|&i| !near(&values[i..=i], &right[i..=i], fine)).map(|i| (i + 1).to_string()).collect();
        if wrong.len() < want {
            let which = wrong.join(", ");
            return text(
                format!("Not all: number {which} of {want} is wrong."),
                format!("{want}개 가운데 {which}번째 수가 틀렸습니다."),
            );
        }
        text("That is not it.", "아닙니다.")
    }
}

/// The letter of an option.
pub(crate) fn letter(at: usize) -> char {
    char::from(b'a' + at as u8)
}

/// One in the last digit; whole numbers are exact.
fn tolerance(decimals: usize) -> f64 {
    if decimals == 0 { 1e-6 } else { 1.0001 * 10f64.powi(-(decimals as i32)) }
}

/// Whether numbers are the same but for `within`. NaN is NaN, and infinite is infinite.
pub(crate) fn near(a: &[f64], b: &[f64], within: f64) -> bool {
    let same = |(x, y): (&f64, &f64)| x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= within;
    a.len() == b.len() && a.iter().zip(b).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Task {
        Task::weights("?".into(), [0.5065, 0.1863, 0.3072], 3).mistake(
            "no-scale",
            [0.6652, 0.09, 0.2447],
            "scale".into(),
        )
    }

    fn said(verdict: Verdict) -> String {
        match verdict {
            Verdict::Right => "right".into(),
            Verdict::Wrong { why, .. } => why.en,
            Verdict::Unreadable(why) => format!("unreadable: {}", why.en),
        }
    }

    #[test]
    fn numbers_are_right_to_their_digits() {
        let check = |typed| said(task().check(typed));
        assert_eq!(check("0.506 0.186 0.307"), "right");
        assert_eq!(check("0.5065, 0.1863, 0.3072"), "right");
        assert!(check("0.51 0.19 0.31").contains("give 3 digits"));
        assert_eq!(check("0.665 0.090 0.245"), "scale");
        // As coarse as they are, they can only be the mistake.
        assert_eq!(check("0.67 0.09 0.24"), "scale");
        assert!(check("0.509 0.184 0.307").contains("Very close"));
        assert!(check("50.65 18.63 30.72").contains("percent"));
        assert!(check("0.5 0.5 0.5").contains("add up to 1; these add up to 1.5"));
        assert!(check("0.2 0.486 0.314").contains("That is not it"));
        assert!(check("0.506 0.286 0.208").contains("number 2, 3 of 3"));
        assert!(check("0.5 0.5").contains("3 numbers are asked for; these are 2"));
        assert!(check("half").contains("“half” is no number"));
        assert!(check("nan nan nan").contains("NaN"));
    }

    #[test]
    fn the_right_option_is_where_it_was_put() {
        let wrong = vec![("x", "first".into(), "no".into()), ("y", "third".into(), "no, neither".into())];
        let task = Task::choice("?".into(), 1, "second".into(), wrong);
        let Expected::Choice { options, right } = &task.expected else { panic!("a choice") };
        assert_eq!(
            (options.iter().map(|o| o.en.as_str()).collect::<Vec<_>>(), *right),
            (vec!["first", "second", "third"], 1)
        );
        assert!(task.check("b").is_right());
        assert_eq!((task.check("a").mistake(), task.check("3").mistake()), (Some("x"), Some("y")));
        assert!(matches!(task.check("d"), Verdict::Unreadable(_)));
    }
}

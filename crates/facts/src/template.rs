//! Sentences with slots: `{p|은} {a}에 살아요.`

use foveal_grammar::korean::Particle;

use crate::values::{Gender, Value};

/// A piece of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Text(&'static str),
    /// The number of a slot, and the form its value takes.
    Slot(usize, &'static str),
}

/// A sentence with slots.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

impl Template {
    /// Slots are letters, in the order of `slots`.
    pub fn parse(text: &'static str, slots: &[char]) -> Self {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (slot, after) = after.split_once('}').expect("a brace is closed");
            let (name, form) = slot.split_once('|').unwrap_or((slot, ""));
            let number = slots.iter().position(|slot| name == slot.to_string()).expect("a slot of the relation");
            if !before.is_empty() {
                pieces.push(Piece::Text(before));
            }
            pieces.push(Piece::Slot(number, form));
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest));
        }
        Template { pieces }
    }

    /// Whether it says this slot.
    pub fn has(&self, slot: usize) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Slot(number, _) if *number == slot))
    }

    /// The sentence with these values.
    pub fn fill(&self, values: &[Value]) -> String {
        capitalised(self.pieces.iter().map(|piece| piece.fill(values)).collect())
    }

    /// The same, where what it is about, the first slot, was just spoken of: a pronoun, or in Korean perhaps nothing, if the
    /// sentence begins with it.
    pub fn fill_again(&self, values: &[Value], silent: bool) -> String {
        let gender = values[0].gender;
        let (begin, rest) = match &self.pieces[..] {
            [Piece::Slot(0, ""), Piece::Text(text), rest @ ..] if text.starts_with("'s ") => {
                (pronoun(gender, ["his", "her", "its"]).to_owned() + &text[2..], rest)
            }
            [Piece::Slot(0, ""), Piece::Text(text), rest @ ..] if text.starts_with("의 ") => {
                (pronoun(gender, ["그의", "그녀의", "그"]).to_owned() + &text["의".len()..], rest)
            }
            [Piece::Slot(0, "은"), Piece::Text(text), rest @ ..] if silent => (text.trim_start().to_owned(), rest),
            [Piece::Slot(0, "은"), rest @ ..] => (pronoun(gender, ["그는", "그녀는", "그것은"]).to_owned(), rest),
            [Piece::Slot(0, ""), Piece::Text(text), rest @ ..] if text.starts_with(' ') => {
                (pronoun(gender, ["he", "she", "it"]).to_owned() + text, rest)
            }
            [Piece::Text("The "), Piece::Slot(0, ""), rest @ ..] => ("it".to_owned(), rest),
            _ => return self.fill(values),
        };
        let rest: String = rest.iter().map(|piece| piece.fill(values)).collect();
        capitalised(begin + &rest)
    }

    /// Whether the sentence begins with what it is about, as the subject of its verb.
    pub fn begins_with_subject(&self) -> bool {
        match &self.pieces[..] {
            [Piece::Slot(0, ""), Piece::Text(text), ..] => text.starts_with(' ') && !text.starts_with(" and "),
            [Piece::Slot(0, "은"), Piece::Text(text), ..] => text.starts_with(' '),
            _ => false,
        }
    }

    /// The sentence without the subject that it [begins with](Template::begins_with_subject), to follow an "and".
    pub fn fill_predicate(&self, values: &[Value]) -> String {
        let predicate: String = self.pieces.iter().skip(1).map(|piece| piece.fill(values)).collect();
        predicate.trim_start().to_owned()
    }
}

/// A sentence that another predicate can follow: "Anna lives in Rome and", "민수는 부산에 있고".
pub(crate) fn open(sentence: &str) -> Option<String> {
    let sentence = sentence.strip_suffix('.')?;
    if sentence.is_ascii() {
        return Some(format!("{sentence} and"));
    }
    for (end, joined) in [("입니다", "이고"), ("합니다", "하고"), ("습니다", "고")] {
        if let Some(stem) = sentence.strip_suffix(end) {
            return Some(format!("{stem}{joined}"));
        }
    }
    // After ㅆ all styles have the same stem: 있어요, 있다; 샀어요, 샀다.
    let stem = sentence.strip_suffix("어요").or_else(|| sentence.strip_suffix('다'))?;
    let coda = (stem.chars().next_back()? as u32).checked_sub('가' as u32)? % 28;
    (coda == 20).then(|| format!("{stem}고"))
}

impl Piece {
    fn fill(&self, values: &[Value]) -> String {
        match self {
            Piece::Text(text) => (*text).to_owned(),
            Piece::Slot(number, form) => {
                let value = &values[*number].text;
                let particle = |particle: Particle| format!("{value}{}", particle.after(value));
                match *form {
                    "" => value.clone(),
                    "a" => format!("{} {value}", if value.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }),
                    "은" => particle(Particle::Topic),
                    "이" => particle(Particle::Subject),
                    "을" => particle(Particle::Object),
                    "과" => particle(Particle::And),
                    "으로" => particle(Particle::By),
                    "이에요" => particle(Particle::Is),
                    "이었다" if Particle::Topic.after(value) == "는" => format!("{value}였다"),
                    "이다" if Particle::Topic.after(value) == "는" => format!("{value}다"),
                    "이라는" if Particle::Topic.after(value) == "는" => format!("{value}라는"),
                    "이다" | "이라는" | "이었다" => format!("{value}{form}"),
                    other => panic!("the data has a form {other}"),
                }
            }
        }
    }
}

fn pronoun(gender: Gender, [he, she, it]: [&'static str; 3]) -> &'static str {
    match gender {
        Gender::He => he,
        Gender::She => she,
        Gender::It => it,
    }
}

fn capitalised(text: String) -> String {
    let mut letters = text.chars();
    let first = letters.next();
    first.map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

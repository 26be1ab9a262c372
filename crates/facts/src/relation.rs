//! Relations, as `data/*-facts.txt` has them.

use crate::template::Template;
use crate::values::UNIQUE;

/// What a fact can be of: its slots, how it is said, how it is asked for.
pub(crate) struct Relation {
    /// The kinds of the slots.
    pub kinds: Vec<&'static str>,
    pub statements: Vec<Template>,
    /// The slot that is asked for, and the question.
    pub questions: Vec<(usize, Template)>,
}

impl Relation {
    /// Whether it is about a person.
    pub fn is_personal(&self) -> bool {
        self.kinds[0] == "person"
    }

    /// Whether a question names something that no other fact names.
    pub fn is_anchored(&self, question: &Template) -> bool {
        (0..self.kinds.len()).any(|slot| question.has(slot) && UNIQUE.contains(&self.kinds[slot]))
    }
}

/// All relations of a language.
pub(crate) fn parse(text: &'static str) -> Vec<Relation> {
    let mut relations: Vec<Relation> = Vec::new();
    let mut slots: Vec<char> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (mark, rest) = line.split_once(' ').expect("a mark or a name, and more");
        match (mark, relations.last_mut()) {
            ("=", Some(relation)) => relation.statements.push(Template::parse(rest, &slots)),
            ("?", Some(relation)) => {
                let (slot, question) = rest.split_once(' ').expect("a slot and its question");
                let asked = slots.iter().position(|known| slot == known.to_string()).expect("a slot of the relation");
                relation.questions.push((asked, Template::parse(question, &slots)));
            }
            _ => {
                let parts = rest.split(' ').map(|part| part.split_once(':').expect("a slot and its kind"));
                let (letters, kinds): (Vec<_>, Vec<_>) = parts.unzip();
                slots = letters.iter().filter_map(|letter: &&str| letter.chars().next()).collect();
                relations.push(Relation { kinds, statements: Vec::new(), questions: Vec::new() });
            }
        }
    }
    relations
}

//! Words in the making: they know what they stand for before it is known where they will stand.

use crate::choices::Choices;
use crate::korean::{Form, Particle};
use crate::lexicon::{Expression, Noun, Pronoun};
use crate::pair::{Certainty, Combination, Link, Pair, Part, Place, Role, Tag, Word};
use crate::{Construction, Random};

/// What tells an English word from the others of its sentence.
pub(crate) type Id = usize;

/// An English word.
#[derive(Clone, Debug)]
pub(crate) struct English {
    pub(crate) id: Id,
    pub(crate) pieces: Vec<String>,
    pub(crate) part: Part,
}

/// A Korean word.
#[derive(Clone, Debug, Default)]
pub(crate) struct Korean {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
struct Piece {
    text: String,
    /// English words and their pieces.
    links: Vec<(Id, usize, Certainty)>,
}

/// A part of a sentence in both languages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phrase {
    pub(crate) english: Vec<English>,
    pub(crate) korean: Vec<Korean>,
}

impl Phrase {
    pub(crate) fn is_empty(&self) -> bool {
        self.english.is_empty() && self.korean.is_empty()
    }

    /// Both, one after the other in both languages.
    pub(crate) fn and(mut self, other: Phrase) -> Phrase {
        self.english.extend(other.english);
        self.korean.extend(other.korean);
        self
    }

    /// With a comma at the end in both languages.
    pub(crate) fn comma(mut self) -> Phrase {
        if let Some(last) = self.english.last_mut() {
            last.pieces.push(",".into());
        }
        self.korean = with_comma(self.korean);
        self
    }
}

/// With a comma at the end.
pub(crate) fn with_comma(mut korean: Vec<Korean>) -> Vec<Korean> {
    if let Some(last) = korean.pop() {
        korean.push(last.and(","));
    }
    korean
}

impl English {
    /// Adds 's.
    pub(crate) fn owning(mut self) -> Self {
        self.pieces.push("'s".into());
        self
    }

    /// Adds a comma.
    pub(crate) fn comma(mut self) -> Self {
        self.pieces.push(",".into());
        self
    }
}

impl Korean {
    /// A word of one piece that stands for English words.
    pub(crate) fn new(text: &str, stands_for: &[Id]) -> Self {
        let links = stands_for.iter().map(|&id| (id, 0, Certainty::Sure)).collect();
        Korean { pieces: vec![Piece { text: text.into(), links }] }
    }

    /// A word that stands in a table as a whole, cut before its ending: 담배·를, 고마워·요.
    pub(crate) fn cut(text: &str, stands_for: &[Id]) -> Self {
        const ENDINGS: [&str; 30] = [
            "이에요",
            "으세요",
            "었어요",
            "았어요",
            "예요",
            "세요",
            "어요",
            "아요",
            "에서",
            "요",
            "은",
            "는",
            "을",
            "를",
            "이",
            "가",
            "에",
            "의",
            "고",
            "서",
            "지",
            "들",
            "만",
            "로",
            "과",
            "와",
            "도",
            "라",
            "어",
            "아",
        ];
        let cut = ENDINGS.iter().find_map(|ending| text.strip_suffix(ending).map(|stem| (stem, *ending)));
        match cut.filter(|(stem, _)| !stem.is_empty()) {
            Some((stem, ending)) => Korean::new(stem, stands_for).and(ending),
            None => Korean::new(text, stands_for),
        }
    }

    /// A verb or an adjective.
    pub(crate) fn form(form: Form, stands_for: &[Id]) -> Self {
        let word = Korean::new(&form.stem, stands_for);
        if form.ending.is_empty() { word } else { word.and(&form.ending) }
    }

    /// Adds a piece that stands for nothing.
    pub(crate) fn and(mut self, text: &str) -> Self {
        self.pieces.push(Piece { text: text.into(), links: Vec::new() });
        self
    }

    /// Adds a particle in the shape that fits. 저, 나 and 누구 melt with the subject's: 제가, 누가.
    pub(crate) fn particle(mut self, particle: Particle) -> Self {
        let so_far: String = self.pieces.iter().map(|piece| piece.text.as_str()).collect();
        let melted = match (so_far.as_str(), particle) {
            ("저", Particle::Subject) => Some("제"),
            ("누구", Particle::Subject) => Some("누"),
            _ => None,
        };
        if let (Some(text), Some(piece)) = (melted, self.pieces.last_mut()) {
            piece.text = text.into();
        }
        self.and(particle.after(&so_far))
    }

    /// Lets the last piece perhaps stand for an English word.
    pub(crate) fn perhaps(mut self, id: Option<Id>) -> Self {
        if let (Some(piece), Some(id)) = (self.pieces.last_mut(), id) {
            piece.links.push((id, 0, Certainty::Possible));
        }
        self
    }

    /// Lets the last piece stand for the 's of an English word.
    pub(crate) fn of(mut self, id: Id) -> Self {
        if let Some(piece) = self.pieces.last_mut() {
            piece.links.push((id, 1, Certainty::Sure));
        }
        self
    }
}

/// Korean words that all stand for the same English ones: 치과 의사.
pub(crate) fn korean_words(text: &str, stands_for: &[Id]) -> Vec<Korean> {
    text.split(' ').map(|word| Korean::new(word, stands_for)).collect()
}

/// Adds a particle to the last of some words.
pub(crate) fn mark(mut words: Vec<Korean>, particle: Particle, perhaps: Option<Id>) -> Vec<Korean> {
    if let Some(last) = words.pop() {
        words.push(last.particle(particle).perhaps(perhaps));
    }
    words
}

/// What a sentence is written with.
pub(crate) struct Writer<'a> {
    pub(crate) choices: Choices<'a>,
    ids: usize,
    /// Nouns and names that the sentence has: it has none of them twice.
    pub(crate) used: Vec<&'static str>,
    pub(crate) combinations: Vec<Combination>,
    /// Which words are subjects, verbs and objects, and of which clause.
    roles: Vec<(Id, Role, usize)>,
    clauses: usize,
    /// The pronoun that is the subject.
    pub(crate) speaker: Option<&'static Pronoun>,
    /// Whether what is owned is the subject's own: one washes one's own hands.
    pub(crate) own: bool,
    /// Whether the subject is a woman.
    pub(crate) woman: bool,
    pub(crate) construction: Construction,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(random: &'a mut Random) -> Self {
        Writer {
            choices: Choices::new(random),
            ids: 0,
            used: Vec::new(),
            combinations: Vec::new(),
            roles: Vec::new(),
            clauses: 0,
            speaker: None,
            own: false,
            woman: false,
            construction: Construction::Action,
        }
    }

    /// A word that says something.
    pub(crate) fn say(&mut self, text: &str, part: Part) -> English {
        self.ids += 1;
        English { id: self.ids, pieces: vec![text.into()], part }
    }

    /// A word of grammar.
    pub(crate) fn word(&mut self, text: &str) -> English {
        self.say(text, Part::Function)
    }

    pub(crate) fn words(&mut self, texts: &[&str]) -> Vec<English> {
        texts.iter().map(|text| self.word(text)).collect()
    }

    /// Words that say one thing together: police officer.
    pub(crate) fn say_all(&mut self, text: &str, part: Part) -> Vec<English> {
        let part_of = |word: &str| if is_article(word) { Part::Function } else { part };
        text.split(' ').map(|word| self.say(word, part_of(word))).collect()
    }

    /// English words and the Korean ones that stand for all of them.
    pub(crate) fn simple(&mut self, english: &str, korean: &str, part: Part) -> Phrase {
        let english = self.say_all(english, part);
        Phrase { korean: korean_words(korean, &ids(&english)), english }
    }

    /// An expression as the lexicon has it.
    pub(crate) fn expression(&mut self, expression: &Expression, part: Part) -> Phrase {
        let mut english = Vec::new();
        for (n, word) in expression.english.iter().enumerate() {
            let bare = word.trim_end_matches(',');
            let says = expression.korean.iter().any(|word| word.stands_for.contains(&n));
            let part = if says && !matches!(bare, "not" | "is" | "am" | "are") { part } else { Part::Function };
            let said = self.say(bare, part);
            english.push(if bare == *word { said } else { said.comma() });
        }
        let korean = expression.korean.iter().map(|word| {
            let ids: Vec<_> = word.stands_for.iter().map(|&n| english[n].id).collect();
            let mut said = if expression.spoken { Korean::cut(word.text, &ids) } else { Korean::new(word.text, &ids) };
            if !word.particle.is_empty() {
                said = said.and(word.particle);
                let first = english.first().filter(|first| matches!(first.pieces[0].as_str(), "in" | "at" | "on"));
                said = said.perhaps(first.map(|first| first.id));
            }
            if word.mark == "," { said.and(",") } else { said }
        });
        Phrase { korean: korean.collect(), english }
    }

    /// One of some nouns, other than those that the sentence has.
    pub(crate) fn noun(&mut self, nouns: &[&'static Noun]) -> Option<&'static Noun> {
        if nouns.is_empty() {
            return None;
        }
        // Few are used; a second or third try finds another.
        for _ in 0..4 {
            let noun = self.choices.favoured(nouns, |noun| noun.common)?;
            if !self.used.contains(&noun.english) {
                self.used.push(noun.english);
                return Some(noun);
            }
        }
        None
    }

    /// Begins a clause, whose subject, verb and object belong together.
    pub(crate) fn new_clause(&mut self) -> usize {
        self.clauses += 1;
        self.clauses
    }

    pub(crate) fn role(&mut self, words: &[Id], role: Role, clause: usize) {
        self.roles.extend(words.iter().map(|&id| (id, role, clause)));
    }

    /// Puts a sentence together. `mark` ends it in both languages; `contract` writes "don't" for "do not".
    pub(crate) fn finish(self, phrase: Phrase, mark: &str, contract: bool) -> Pair {
        let Phrase { english, korean } = phrase;
        let english = super::contraction::contracted(english, contract);
        let mut links = Vec::new();
        for (word, said) in korean.iter().enumerate() {
            for (piece, of) in said.pieces.iter().enumerate() {
                for &(id, part, certainty) in &of.links {
                    if let Some(place) = english.iter().position(|word| word.ids.contains(&id)) {
                        let (english, korean) = (Place { word: place, piece: part }, Place { word, piece });
                        links.push(Link { english, korean, certainty });
                    }
                }
            }
        }
        links.sort_unstable();
        links.dedup_by_key(|link| (link.english, link.korean));
        let tag = |word: &super::contraction::Contracted| {
            let found = self.roles.iter().find(|(id, ..)| word.ids.contains(id));
            Tag { part: word.part, role: found.map(|found| found.1), clause: found.map_or(0, |found| found.2) }
        };
        let tags = english.iter().map(tag).collect();
        let mut english: Vec<Word> = english.into_iter().map(|word| Word { pieces: word.pieces }).collect();
        let pieces = |word: Korean| word.pieces.into_iter().map(|piece| piece.text).collect();
        let mut korean: Vec<Word> = korean.into_iter().map(|word| Word { pieces: pieces(word) }).collect();
        if let Some(first) = english.first_mut().and_then(|word| word.pieces.first_mut()) {
            let mut letters = first.chars();
            *first =
                letters.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default() + letters.as_str();
        }
        for words in [&mut english, &mut korean] {
            if let Some(last) = words.last_mut() {
                last.pieces.push(mark.into());
            }
        }
        let Writer { combinations, construction, .. } = self;
        Pair { english, korean, links, combinations, tags, construction }
    }
}

/// Words that nothing stands for.
fn is_article(word: &str) -> bool {
    matches!(word, "a" | "an" | "the" | "of")
}

/// The ids of some words, without articles: nothing stands for these.
pub(crate) fn ids(english: &[English]) -> Vec<Id> {
    english.iter().filter(|word| !is_article(&word.pieces[0])).map(|word| word.id).collect()
}

//! Words in the making: they know what they stand for before it is known where they will stand.

use super::choices::Choices;
use super::lexicon::Noun;
use super::pair::{Certainty, Combination, Link, Pair, Place, Word};
use crate::layer::Random;
use crate::translation::korean::{Form, Particle};

/// What tells an English word from the others of its sentence.
pub(super) type Name = usize;

/// An English word.
#[derive(Clone, Debug)]
pub(super) struct English {
    pub(super) name: Name,
    pub(super) pieces: Vec<String>,
}

/// A Korean word.
#[derive(Clone, Debug, Default)]
pub(super) struct Korean {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
struct Piece {
    text: String,
    /// English words and their pieces.
    links: Vec<(Name, usize, Certainty)>,
}

/// A part of a sentence in both languages.
#[derive(Clone, Debug, Default)]
pub(super) struct Phrase {
    pub(super) english: Vec<English>,
    pub(super) korean: Vec<Korean>,
}

impl English {
    /// Adds 's.
    pub(super) fn owning(mut self) -> Self {
        self.pieces.push("'s".into());
        self
    }
}

impl Korean {
    /// A word of one piece that stands for English words.
    pub(super) fn new(text: &str, stands_for: &[Name]) -> Self {
        let links = stands_for.iter().map(|&name| (name, 0, Certainty::Sure)).collect();
        Korean { pieces: vec![Piece { text: text.into(), links }] }
    }

    /// A verb or an adjective.
    pub(super) fn form(form: Form, stands_for: &[Name]) -> Self {
        let word = Korean::new(&form.stem, stands_for);
        if form.ending.is_empty() { word } else { word.and(&form.ending) }
    }

    /// Adds a piece that stands for nothing.
    pub(super) fn and(mut self, text: &str) -> Self {
        self.pieces.push(Piece { text: text.into(), links: Vec::new() });
        self
    }

    /// Adds a particle in the shape that fits.
    pub(super) fn particle(self, particle: Particle) -> Self {
        let so_far: String = self.pieces.iter().map(|piece| piece.text.as_str()).collect();
        self.and(particle.after(&so_far))
    }

    /// Lets the last piece perhaps stand for an English word.
    pub(super) fn perhaps(mut self, name: Option<Name>) -> Self {
        if let (Some(piece), Some(name)) = (self.pieces.last_mut(), name) {
            piece.links.push((name, 0, Certainty::Possible));
        }
        self
    }

    /// Lets the last piece stand for the 's of an English word.
    pub(super) fn of(mut self, name: Name) -> Self {
        if let Some(piece) = self.pieces.last_mut() {
            piece.links.push((name, 1, Certainty::Sure));
        }
        self
    }
}

/// What a sentence is written with.
pub(super) struct Writer<'a> {
    pub(super) choices: Choices<'a>,
    names: usize,
    /// Nouns that the sentence has: it has none of them twice.
    used: Vec<&'static str>,
    pub(super) combinations: Vec<Combination>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(random: &'a mut Random) -> Self {
        Writer { choices: Choices::new(random), names: 0, used: Vec::new(), combinations: Vec::new() }
    }

    pub(super) fn word(&mut self, text: &str) -> English {
        self.names += 1;
        English { name: self.names, pieces: vec![text.into()] }
    }

    pub(super) fn words(&mut self, texts: &[&str]) -> Vec<English> {
        texts.iter().map(|text| self.word(text)).collect()
    }

    /// An English word and the Korean one that stands for it.
    pub(super) fn simple(&mut self, english: &str, korean: &str) -> Phrase {
        let english = self.word(english);
        Phrase { korean: vec![Korean::new(korean, &[english.name])], english: vec![english] }
    }

    /// One of some nouns, other than those that the sentence has.
    pub(super) fn noun(&mut self, nouns: &[&'static Noun]) -> Option<&'static Noun> {
        let fresh: Vec<_> = nouns.iter().copied().filter(|noun| !self.used.contains(&noun.english)).collect();
        let noun = self.choices.one_of(&fresh)?;
        self.used.push(noun.english);
        Some(noun)
    }

    /// One of some names, other than those that the sentence has.
    pub(super) fn proper(&mut self, names: &[(&'static str, &'static str)]) -> Option<(&'static str, &'static str)> {
        let fresh: Vec<_> = names.iter().copied().filter(|(english, _)| !self.used.contains(english)).collect();
        let name = self.choices.one_of(&fresh)?;
        self.used.push(name.0);
        Some(name)
    }

    /// Puts a sentence together. `mark` ends it in both languages.
    pub(super) fn finish(self, phrase: Phrase, mark: &str) -> Pair {
        let Phrase { english, korean } = phrase;
        let mut links = Vec::new();
        for (word, piece, links_of) in korean
            .iter()
            .enumerate()
            .flat_map(|(word, k)| k.pieces.iter().enumerate().map(move |(piece, p)| (word, piece, &p.links)))
        {
            for &(name, part, certainty) in links_of {
                if let Some(place) = english.iter().position(|word| word.name == name) {
                    let (english, korean) = (Place { word: place, piece: part }, Place { word, piece });
                    links.push(Link { english, korean, certainty });
                }
            }
        }
        links.sort_unstable();
        let mut english: Vec<Word> = english.into_iter().map(|word| Word { pieces: word.pieces }).collect();
        let mut korean: Vec<Word> = korean
            .into_iter()
            .map(|word| Word { pieces: word.pieces.into_iter().map(|piece| piece.text).collect() })
            .collect();
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
        Pair { english, korean, links, combinations: self.combinations }
    }
}

//! A sentence, its translation, and which word stands for which.

use std::fmt;

/// A sentence in both languages.
///
/// ```
/// use foveal_models::layer::Random;
/// use foveal_models::translation::{Certainty, Grammar};
///
/// let pair = Grammar::new().sample(&mut Random::new(5));
/// println!("{}\t{}", pair.english_text(), pair.korean_text());
/// for (english, korean) in pair.word_links(Certainty::Sure) {
///     println!("{} = {}", pair.english[english], pair.korean[korean]);
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    /// The English words, as spaces divide them.
    pub english: Vec<Word>,
    /// The Korean words (어절), as spaces divide them, with their particles and endings.
    pub korean: Vec<Word>,
    /// Which piece of a Korean word stands for which piece of an English word.
    pub links: Vec<Link>,
    /// The verb with its object and the adjectives with their nouns.
    pub combinations: Vec<Combination>,
}

/// A word, in pieces that are written together: 학생·은, 읽·었어요·., teacher·'s.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    /// The stem first, then particles or endings, then punctuation.
    pub pieces: Vec<String>,
}

/// That two pieces stand for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link {
    /// In the English sentence.
    pub english: Place,
    /// In the Korean sentence.
    pub korean: Place,
    /// How sure it is.
    pub certainty: Certainty,
}

/// A piece of a word of a sentence, both counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The word's number in the sentence.
    pub word: usize,
    /// The piece's number in the word.
    pub piece: usize,
}

/// How sure a link is, in the sense of the alignment error rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Certainty {
    /// An aligner must find it: two words of the same meaning.
    Sure,
    /// An aligner may find it: an English word that Korean says with a particle or an ending.
    Possible,
}

/// A verb and its object, or an adjective and its noun, as the English dictionary has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Combination {
    /// The verb or the adjective.
    pub head: &'static str,
    /// The noun.
    pub noun: &'static str,
}

impl Pair {
    /// The English sentence.
    pub fn english_text(&self) -> String {
        text(&self.english)
    }

    /// The Korean sentence.
    pub fn korean_text(&self) -> String {
        text(&self.korean)
    }

    /// The links between words as (English, Korean), without repetition. With [`Certainty::Possible`] they are all links,
    /// the sure ones among them.
    pub fn word_links(&self, certainty: Certainty) -> Vec<(usize, usize)> {
        self.numbered(certainty, |place, _| place.word)
    }

    /// As [`word_links`](Self::word_links) between pieces, numbered through the sentence as in [`tokens`].
    pub fn piece_links(&self, certainty: Certainty) -> Vec<(usize, usize)> {
        let number = |place: Place, words: &[Word]| {
            words[..place.word].iter().map(|word| word.pieces.len()).sum::<usize>() + place.piece
        };
        self.numbered(certainty, number)
    }

    fn numbered(&self, certainty: Certainty, number: impl Fn(Place, &[Word]) -> usize) -> Vec<(usize, usize)> {
        let wanted = self.links.iter().filter(|link| link.certainty <= certainty);
        let mut links: Vec<_> =
            wanted.map(|link| (number(link.english, &self.english), number(link.korean, &self.korean))).collect();
        links.sort_unstable();
        links.dedup();
        links
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| f.write_str(piece))
    }
}

fn text(words: &[Word]) -> String {
    words.iter().map(Word::to_string).collect::<Vec<_>>().join(" ")
}

/// The pieces of words as a vocabulary spells them: `##` before those that are written together with the one before.
/// Points and question marks stand alone.
///
/// ```
/// use foveal_models::translation::{Word, tokens};
///
/// let word = |pieces: &[&str]| Word { pieces: pieces.iter().map(|piece| piece.to_string()).collect() };
/// assert_eq!(tokens(&[word(&["학생", "은"]), word(&["읽", "어요", "."])]), ["학생", "##은", "읽", "##어요", "."]);
/// ```
pub fn tokens(words: &[Word]) -> Vec<String> {
    let spelt = |(i, piece): (usize, &String)| {
        if i == 0 || matches!(piece.as_str(), "." | "?") { piece.clone() } else { format!("##{piece}") }
    };
    words.iter().flat_map(|word| word.pieces.iter().enumerate().map(spelt)).collect()
}

//! A sentence, its translation, and which word stands for which.

use std::fmt;

/// A sentence in both languages.
///
/// ```
/// use foveal_grammar::{Certainty, Grammar, Random};
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
    /// What each English word is, in the order of [`english`](Self::english).
    pub tags: Vec<Tag>,
    /// What kind of sentence it is.
    pub construction: Construction,
}

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag {
    /// Its part of speech.
    pub part: Part,
    /// What it does in its clause; none for most words.
    pub role: Option<Role>,
    /// The number of its clause in the sentence, from 1; 0 for a word without a role.
    pub clause: usize,
}

/// A part of speech.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// A noun; also what people say to each other, such as "hello".
    Noun,
    /// A name of a person or a place.
    Name,
    /// A pronoun.
    Pronoun,
    /// A verb.
    Verb,
    /// An adjective.
    Adjective,
    /// An adverb, also one that says when or where.
    Adverb,
    /// A number, also "many".
    Number,
    /// A question word.
    Question,
    /// A word of grammar: article, preposition, conjunction, auxiliary.
    Function,
}

/// What a word does in its clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// The noun, name or pronoun that does it or is it.
    Subject,
    /// The verb.
    Verb,
    /// The noun, name or pronoun that it is done to.
    Object,
}

/// A subject or an object with its verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Relation {
    /// The verb's number in the sentence.
    pub verb: usize,
    /// The number of the subject or the object.
    pub word: usize,
    /// Which of the two it is.
    pub role: Role,
}

/// The kinds of sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Construction {
    /// She reads a book. Can you swim?
    Action,
    /// Where do you live? Who is that man?
    Question,
    /// Good morning, Mina.
    Greeting,
    /// Please open the door. Let's eat.
    Command,
    /// Tom sings and Mary dances; but.
    Coordination,
    /// I bought bread because I was hungry.
    Because,
    /// If it rains, I will stay home.
    If,
    /// When I was young, I lived in Busan; before, after.
    When,
    /// The soup is hot.
    Quality,
    /// My father is a doctor. My name is Anna.
    Identity,
    /// There are five books on the table.
    Existence,
    /// The cat is on the chair.
    Location,
    /// I have two dogs.
    Possession,
    /// This car is faster than that bus.
    Comparison,
    /// Seoul is the biggest city in Korea.
    Superlative,
    /// It is raining.
    Weather,
    /// It is three o'clock. He is twenty years old. How much is this?
    Clock,
    /// The woman who lives next door is a doctor.
    Relative,
    /// I think he is right.
    Thought,
    /// I went to the store to buy bread.
    Purpose,
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

    /// The subjects and objects with their verbs, as numbers of English words.
    pub fn relations(&self) -> Vec<Relation> {
        relations(&self.tags)
    }

    /// As [`relations`](Self::relations), as numbers of Korean words. What Korean leaves out is not there.
    pub fn korean_relations(&self) -> Vec<Relation> {
        let function = Tag { part: Part::Function, role: None, clause: 0 };
        let mut tags = vec![function; self.korean.len()];
        let sure = self.word_links(Certainty::Sure);
        for (word, tag) in self.tags.iter().enumerate().filter(|(_, tag)| tag.role.is_some()) {
            let mut linked = sure.iter().filter(|(english, _)| *english == word).map(|(_, korean)| *korean);
            // Of several words that stand together the last is the head: 치과 의사, 담배를 피워요.
            let Some(first) = linked.next() else { continue };
            let head = linked.zip(first + 1..).take_while(|(korean, next)| korean == next).last();
            tags[head.map_or(first, |(korean, _)| korean)] = *tag;
        }
        relations(&tags)
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

fn relations(tags: &[Tag]) -> Vec<Relation> {
    let of = |role: Role| tags.iter().enumerate().filter(move |(_, tag)| tag.role == Some(role));
    let mut relations = Vec::new();
    for (verb, head) in of(Role::Verb) {
        for role in [Role::Subject, Role::Object] {
            let same = of(role).filter(|(_, tag)| tag.clause == head.clause);
            relations.extend(same.map(|(word, _)| Relation { verb, word, role }));
        }
    }
    relations
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
/// Punctuation marks stand alone.
///
/// ```
/// use foveal_grammar::{Word, tokens};
///
/// let word = |pieces: &[&str]| Word { pieces: pieces.iter().map(|piece| piece.to_string()).collect() };
/// assert_eq!(tokens(&[word(&["학생", "은"]), word(&["읽", "어요", "."])]), ["학생", "##은", "읽", "##어요", "."]);
/// ```
pub fn tokens(words: &[Word]) -> Vec<String> {
    let spelt = |(i, piece): (usize, &String)| {
        if i == 0 || matches!(piece.as_str(), "." | "?" | "!" | ",") { piece.clone() } else { format!("##{piece}") }
    };
    words.iter().flat_map(|word| word.pieces.iter().enumerate().map(spelt)).collect()
}

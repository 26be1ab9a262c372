//! The words, and what goes with what: people eat food, read books and go to places; soup is hot and houses are big.
//!
//! The words stand in the files of `data/`. A noun has *kinds*; a verb says which kinds of nouns do it, what they do it to
//! and where; an adjective says which kinds it fits.

mod adjective;
mod english;
mod noun;
#[cfg(test)]
mod tests;
mod verb;
mod vocabulary;
mod word;

pub(crate) use self::adjective::{Adjective, Attribute, adjectives, before, predicates};
pub(crate) use self::english::{VerbForms, article, compared};
pub(crate) use self::noun::{Countable, Noun, nouns, of_kind};
pub(crate) use self::verb::{Frame, Said, Verb, of_frame, verbs};
pub(crate) use self::vocabulary::{content_words, english_vocabulary};
pub(crate) use self::word::{
    Agreement, Expression, IT, Name, Names, PRONOUNS, Pronoun, adverbs, adverbs_of_place, headings, names, phrases,
};

//! Words that nobody knows, as slots: `<1>`, `<2>` and so on stand in both languages for a word that is to be copied.
//!
//! | English | Korean |
//! |---|---|
//! | The cat likes <1>. | 고양이는 <1>을(를) 좋아해요. |
//! | He <1>s → He <1> the door. | 그는 문을 <1>해요. |
//!
//! Nobody knows how the word sounds, so its particle is written in both shapes, as Korean programs do: 은(는), 을(를). A verb
//! or an adjective becomes one with 하다, as Korean borrows them.

use crate::pair::{Link, Pair, Part, Place};
use crate::{Certainty, Construction, Random};

/// How many slots there are.
pub const SLOTS: usize = 6;

/// The slot of a number, from 1 to [`SLOTS`].
///
/// ```
/// assert_eq!(foveal_grammar::slot(1), "<1>");
/// ```
pub fn slot(number: usize) -> String {
    format!("<{number}>")
}

/// Particles that follow the sound of their noun, and both shapes together.
const EITHER: [(&str, &str, &str); 7] = [
    ("은", "는", "은(는)"),
    ("이", "가", "이(가)"),
    ("을", "를", "을(를)"),
    ("과", "와", "과(와)"),
    ("으로", "로", "(으)로"),
    ("이에요", "예요", "이에요(예요)"),
    ("이었어요", "였어요", "이었어요(였어요)"),
];

/// What may follow a noun whatever it sounds like.
const SAME: [&str; 15] =
    ["에", "에서", "에게", "의", "도", "보다", "이고", "이지만", "인", "일", "들", "만", ",", ".", "?"];

/// Endings of 하다, as they stand at the end of a piece.
const HADA: [&str; 6] = ["하러", "하", "해", "했", "한", "할"];

impl Pair {
    /// The same sentence with slots in place of up to `most` words, chosen at random; none if no word can be unknown.
    ///
    /// ```
    /// use foveal_grammar::{Grammar, Random};
    ///
    /// let mut random = Random::new(3);
    /// let unknown = (0..).find_map(|_| Grammar::new().sample(&mut random).with_unknown(1, &mut random)).unwrap();
    /// assert!(unknown.english_text().contains("<1>") && unknown.korean_text().contains("<1>"));
    /// ```
    pub fn with_unknown(&self, most: usize, random: &mut Random) -> Option<Pair> {
        let mut left: Vec<usize> = (0..self.english.len()).collect();
        let (mut pair, mut number) = (self.clone(), 0);
        while number < most.min(SLOTS) && !left.is_empty() {
            let word = left.swap_remove(random.below(left.len()));
            if let Some(with) = pair.with_slot(word, &slot(number + 1)) {
                (pair, number) = (with, number + 1);
            }
        }
        (number > 0).then_some(pair)
    }

    /// The same with this slot in place of one English word and of what stands for it; none if that cannot be told apart.
    fn with_slot(&self, word: usize, slot: &str) -> Option<Pair> {
        let part = self.tags.get(word)?.part;
        if self.construction == Construction::Greeting && part != Part::Name {
            return None;
        }
        let sure = |link: &&Link| link.certainty == Certainty::Sure;
        let mut linked = self.links.iter().filter(sure).filter(|link| link.english.word == word);
        let place = linked.next()?.korean;
        let shared = self.links.iter().filter(sure).filter(|link| link.korean.word == place.word).count();
        if linked.next().is_some() || shared > 1 || place.piece != 0 {
            return None;
        }
        let mut pair = self.clone();
        match part {
            Part::Noun | Part::Name | Part::Adverb => pair.copy_noun(place, slot)?,
            Part::Verb | Part::Adjective => pair.copy_verb(place, slot)?,
            _ => return None,
        }
        pair.english[word].pieces[0] = slot.into();
        Some(pair)
    }

    fn copy_noun(&mut self, place: Place, slot: &str) -> Option<()> {
        let pieces = &mut self.korean[place.word].pieces;
        // Nobody can know that someone is looked up to.
        if pieces[0].ends_with('님') {
            return None;
        }
        if let Some(next) = pieces.get_mut(1) {
            match EITHER.iter().find(|(closed, open, _)| next == closed || next == open) {
                Some((_, _, either)) => *next = (*either).into(),
                None if SAME.contains(&next.as_str()) => {}
                None => return None,
            }
        }
        pieces[0] = slot.into();
        Some(())
    }

    fn copy_verb(&mut self, place: Place, slot: &str) -> Option<()> {
        let pieces = &mut self.korean[place.word].pieces;
        let ending = HADA.iter().find(|ending| pieces[0].ends_with(**ending) && pieces[0] != **ending)?;
        pieces[0] = slot.into();
        pieces.insert(1, (*ending).into());
        for link in self.links.iter_mut().filter(|link| link.korean.word == place.word && link.korean.piece > 0) {
            link.korean.piece += 1;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grammar, tokens};

    #[test]
    fn slots_stand_in_both_languages_and_links_hold() {
        let (grammar, mut random) = (Grammar::new(), Random::new(8));
        let (mut found, mut verbs, mut either) = (0, 0, 0);
        for _ in 0..3_000 {
            let pair = grammar.sample(&mut random);
            let Some(unknown) = pair.with_unknown(2, &mut random) else { continue };
            let (english, korean) = (tokens(&unknown.english), tokens(&unknown.korean));
            for number in 1..=2 {
                let slot = slot(number);
                let count = |tokens: &[String]| tokens.iter().filter(|token| **token == slot).count();
                assert_eq!(count(&english), count(&korean), "{english:?} {korean:?}");
                if count(&english) == 1 {
                    let at = |tokens: &[String]| tokens.iter().position(|token| *token == slot).unwrap();
                    let links = unknown.piece_links(Certainty::Sure);
                    assert!(links.contains(&(at(&english), at(&korean))), "{english:?} {korean:?}");
                }
            }
            found += 1;
            verbs += usize::from(unknown.korean_text().contains("<1>해요"));
            either += usize::from(unknown.korean_text().contains("을(를)"));
        }
        assert!(found > 2_000 && verbs > 10 && either > 300, "{found} {verbs} {either}");
    }
}

//! Which words of a question stand in a passage, and the other way round: the exact-match feature of DrQA (Chen 2017). A small
//! model does not learn from examples that two names are the same; told so, it learns what follows from it.
//!
//! A unit is a word of letters or digits, or one syllable of Hangul, since particles follow nouns without a space. The level of
//! a unit follows from the longest run of units around it that the other text has, too:
//!
//! | level | words | Hangul |
//! |---|---|---|
//! | 0 | none | none |
//! | 1 | one that begins alike: lives, live | one syllable |
//! | 2 | one | two syllables |
//! | 3 | two or more | three or more |

use std::ops::Range;

/// Levels of agreement.
const LEVELS: u32 = 4;

/// The marks there are: a level for each token of the question, and one for each token of the passage.
pub const MARKS: usize = 2 * LEVELS as usize;

/// The side of the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A token of the question.
    Question,
    /// A token of the passage.
    Passage,
}

impl Side {
    /// The mark of a token on this side whose words agree so far.
    pub fn mark(self, level: u32) -> u32 {
        match self {
            Side::Question => level,
            Side::Passage => LEVELS + level,
        }
    }
}

/// The units of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Units {
    /// In lower case.
    texts: Vec<String>,
    places: Vec<Range<usize>>,
}

impl Units {
    /// Cuts a text.
    pub fn of(text: &str) -> Self {
        let mut units = Units { texts: Vec::new(), places: Vec::new() };
        let mut open = false;
        for (at, c) in text.char_indices().filter(|(_, c)| !is_mark(*c)) {
            let end = at + c.len_utf8();
            let alone = is_alone(c);
            let joins = open && !alone && units.places.last().is_some_and(|place| place.end == at);
            if joins && c.is_alphanumeric() {
                units.texts.last_mut().expect("one is open").extend(c.to_lowercase());
                units.places.last_mut().expect("one is open").end = end;
            } else if c.is_alphanumeric() {
                units.texts.push(c.to_lowercase().collect());
                units.places.push(at..end);
            }
            open = c.is_alphanumeric() && !alone;
        }
        units
    }

    /// How far each unit stands in the other text, too.
    pub fn levels(&self, other: &Units) -> Vec<u32> {
        let mut levels = vec![0; self.texts.len()];
        // The lengths of the common runs that end at the unit before, for every unit of the other text.
        let mut before = vec![0; other.texts.len() + 1];
        for (i, unit) in self.texts.iter().enumerate() {
            let mut now = vec![0; other.texts.len() + 1];
            for (j, with) in other.texts.iter().enumerate() {
                if unit == with {
                    let run = before[j] + 1;
                    now[j + 1] = run;
                    let more = u32::from(!unit.chars().all(is_alone));
                    let level = (run as u32 + more).min(LEVELS - 1);
                    levels[i + 1 - run..=i].iter_mut().for_each(|known| *known = level.max(*known));
                } else if begins_alike(unit, with) {
                    levels[i] = levels[i].max(1);
                }
            }
            before = now;
        }
        levels
    }

    /// The level of what stands at this place: the highest of its units.
    pub fn level_at(&self, levels: &[u32], place: &Range<usize>) -> u32 {
        let first = self.places.partition_point(|unit| unit.end <= place.start);
        let here = self.places[first..].iter().take_while(|unit| unit.start < place.end).count();
        levels[first..first + here].iter().copied().max().unwrap_or(0)
    }
}

/// Hangul, and what else is written without spaces.
fn is_alone(c: char) -> bool {
    c >= '\u{2e80}' && c.is_alphabetic()
}

/// What belongs to the letter before it.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{fe00}'..='\u{fe0f}')
}

/// Words of the same stem, as far as their beginnings tell.
fn begins_alike(a: &str, b: &str) -> bool {
    let common = a.chars().zip(b.chars()).take_while(|(a, b)| a == b && !is_alone(*a)).count();
    let shorter = a.chars().count().min(b.chars().count());
    common >= 4 || (common >= 3 && common == shorter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(text: &str, other: &str) -> Vec<u32> {
        Units::of(text).levels(&Units::of(other))
    }

    #[test]
    fn words_agree_whole_in_runs_or_by_their_beginnings() {
        assert_eq!(levels("Anna lives in Rome.", "Where does anna live?"), [2, 1, 0, 0]);
        assert_eq!(levels("He hid the red key", "Where is the red key?"), [0, 0, 3, 3, 3]);
        assert_eq!(levels("Annabel", "Where is Ann?"), [1]);
        assert_eq!(levels("the cat", ""), [0, 0]);
        assert_eq!(levels("", "the cat"), [0; 0]);
    }

    #[test]
    fn hangul_agrees_by_syllables_whatever_particle_follows() {
        assert_eq!(levels("민수는 부산에 산다", "민수의 집은 어디에 있나요?"), [2, 2, 0, 0, 0, 1, 0, 0]);
        assert_eq!(levels("빨간 열쇠", "빨간 열쇠는 어디에 있어요?"), [3, 3, 3, 3]);
    }

    #[test]
    fn places_are_those_of_the_text() {
        let (text, other) = (Units::of("Café 7:30, 서울!"), Units::of("café 서울"));
        let levels = text.levels(&other);
        assert_eq!(text.places, [0..5, 6..7, 8..10, 12..15, 15..18]);
        assert_eq!(text.level_at(&levels, &(0..3)), 2);
        assert_eq!(text.level_at(&levels, &(5..8)), 0);
        assert_eq!(text.level_at(&levels, &(10..13)), 2);
        assert_eq!(text.level_at(&levels, &(18..19)), 0);
    }
}

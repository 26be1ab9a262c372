//! Syllables and their letters.
//!
//! Unicode numbers the 11,172 syllables by initial, vowel and final:
//!
//! $$ \text{code} = \mathrm{AC00}_{16} + (\text{initial} \cdot 21 + \text{vowel}) \cdot 28 + \text{final}. $$

const FIRST: u32 = 0xAC00;
const COUNT: u32 = 11_172;
const VOWELS: &str = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ";
/// The first stands for no final.
const FINALS: &str = "-ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ";

/// A syllable as the number of its initial, its vowel, and its final if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Syllable {
    initial: u32,
    pub(super) vowel: char,
    pub(super) last: Option<char>,
}

impl Syllable {
    /// The letters of a syllable; none for any other character.
    pub(super) fn of(c: char) -> Option<Self> {
        let index = (c as u32).checked_sub(FIRST).filter(|&index| index < COUNT)?;
        let last = (index % 28 > 0).then(|| FINALS.chars().nth(index as usize % 28));
        Some(Syllable {
            initial: index / 588,
            vowel: VOWELS.chars().nth(index as usize / 28 % 21)?,
            last: last.flatten(),
        })
    }

    pub(super) fn with_vowel(self, vowel: char) -> Self {
        Syllable { vowel, ..self }
    }

    pub(super) fn with_last(self, last: Option<char>) -> Self {
        Syllable { last, ..self }
    }

    pub(super) fn to_char(self) -> char {
        let place = |letters: &str, letter| letters.chars().position(|other| other == letter).unwrap_or(0) as u32;
        let last = self.last.map_or(0, |last| place(FINALS, last));
        char::from_u32(FIRST + (self.initial * 21 + place(VOWELS, self.vowel)) * 28 + last).unwrap_or('\u{FFFD}')
    }

    /// Whether a vowel after this one is 아 rather than 어.
    pub(super) fn is_bright(self) -> bool {
        matches!(self.vowel, 'ㅏ' | 'ㅑ' | 'ㅗ')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_syllables_come_apart_and_together() {
        for c in '가'..='힣' {
            assert_eq!(Syllable::of(c).map(Syllable::to_char), Some(c));
        }
        let syllable = Syllable::of('닭').unwrap();
        assert_eq!((syllable.vowel, syllable.last), ('ㅏ', Some('ㄺ')));
        assert_eq!(Syllable::of('예').unwrap().last, None);
        assert_eq!(['a', 'ㄱ', '\u{D7A4}', ' '].map(Syllable::of), [None; 4]);
    }
}

//! Verbs and adjectives with their endings, in the polite style of everyday speech (해요).
//!
//! An ending is added in three ways. 지 and 고 stand after the bare stem. 은 and 을 lose their 으 after a vowel and write
//! their consonant under it: 가 + 을 = 갈. 어요 and 었어요 agree with the stem's last vowel (아 after ㅏ and ㅗ, else 어) and melt
//! into it where it is open:
//!
//! | stem | + 어 | | stem | + 어 | |
//! |---|---|---|---|---|---|
//! | 가, 서, 보내, 켜 | 가, 서, 보내, 켜 | the vowel takes it up | 크, 바쁘 | 커, 바빠 | ㅡ goes |
//! | 보, 오 | 봐, 와 | ㅗ + 아 = ㅘ | 부르 | 불러 | 르: a ㄹ more |
//! | 배우, 주 | 배워, 줘 | ㅜ + 어 = ㅝ | 돕, 덥 | 도와, 더워 | ㅂ becomes a vowel |
//! | 마시 | 마셔 | ㅣ + 어 = ㅕ | 듣 | 들어 | ㄷ becomes ㄹ |
//! | 되 | 돼 | ㅚ + 어 = ㅙ | 짓 | 지어 | ㅅ goes |
//! | 하 | 해 | | 빨갛, 하얗 | 빨개, 하얘 | ㅎ goes, the vowel gains an ㅣ |
//!
//! The right column from ㅂ on holds for irregular stems alone: 입다 and 닫다 are regular. 르 is irregular in all words of
//! the lexicon.

use std::fmt;

use super::hangul::Syllable;

/// A verb or an adjective without its ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stem {
    dictionary: &'static str,
    irregular: bool,
}

/// A word of a stem and an ending, cut behind the last syllable that has a letter of the stem: 읽·어요, 마셔·요, 갈.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// The stem, with what has melted into it.
    pub stem: String,
    /// The rest of the ending; empty if all of it has melted into the stem.
    pub ending: String,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.stem, self.ending)
    }
}

impl Stem {
    /// A word as the dictionary has it, in 다.
    pub const fn regular(dictionary: &'static str) -> Self {
        Stem { dictionary, irregular: false }
    }

    /// A word in 다 whose ㅂ, ㄷ, ㅅ or ㅎ changes before a vowel.
    pub const fn irregular(dictionary: &'static str) -> Self {
        Stem { dictionary, irregular: true }
    }

    /// As the dictionary has it.
    pub fn dictionary(self) -> &'static str {
        self.dictionary
    }

    /// Reads, is big: 읽어요, 커요.
    pub fn polite(self) -> Form {
        let (stem, vowel) = self.open();
        Form { stem, ending: format!("{vowel}요") }
    }

    /// Read, was big: 읽었어요, 컸어요.
    pub fn past(self) -> Form {
        let (mut stem, vowel) = self.open();
        match vowel {
            "" => {
                change_last(&mut stem, |syllable| syllable.with_last(Some('ㅆ')));
                Form { stem, ending: "어요".into() }
            }
            "아" => Form { stem, ending: "았어요".into() },
            _ => Form { stem, ending: "었어요".into() },
        }
    }

    /// Going to read, to be big: 읽을, 클. 거예요 follows.
    pub fn future(self) -> Form {
        self.adnominal('ㄹ', "을")
    }

    /// A big, a small house: 큰, 작은. For adjectives; those in 있다 have 는.
    pub fn modifier(self) -> Form {
        if self.bare().ends_with(['있', '없']) {
            return self.with("는");
        }
        self.adnominal('ㄴ', "은")
    }

    /// Not reading: 읽지. 않아요 follows.
    pub fn negated(self) -> Form {
        self.with("지")
    }

    /// In the midst of reading: 읽고. 있어요 follows.
    pub fn progressive(self) -> Form {
        self.with("고")
    }

    fn bare(self) -> &'static str {
        self.dictionary.strip_suffix('다').unwrap_or(self.dictionary)
    }

    fn with(self, ending: &str) -> Form {
        Form { stem: self.bare().into(), ending: ending.into() }
    }

    fn last(self) -> Option<Syllable> {
        self.bare().chars().next_back().and_then(Syllable::of)
    }

    /// The final consonant that changes before a vowel.
    fn weak(self) -> Option<char> {
        self.last().and_then(|syllable| syllable.last).filter(|_| self.irregular)
    }

    /// The stem before an ending in 어, and the vowel that is left of it.
    fn open(self) -> (String, &'static str) {
        let mut stem = self.bare().to_owned();
        let Some(last) = self.last() else { return (stem, "어") };
        let before = stem.chars().rev().nth(1).and_then(Syllable::of);
        if stem.ends_with('하') {
            change_last(&mut stem, |syllable| syllable.with_vowel('ㅐ'));
            return (stem, "");
        }
        match self.weak() {
            Some('ㅂ') => {
                change_last(&mut stem, |syllable| syllable.with_last(None));
                // Of stems with ㅗ only these two keep the harmony: 가까워, 괴로워, but 도와.
                stem.push(if matches!(self.bare(), "돕" | "곱") { '와' } else { '워' });
                return (stem, "");
            }
            Some('ㅎ') => {
                let vowel = match last.vowel {
                    'ㅑ' => 'ㅒ',
                    'ㅕ' => 'ㅖ',
                    _ => 'ㅐ',
                };
                change_last(&mut stem, |syllable| syllable.with_last(None).with_vowel(vowel));
                return (stem, "");
            }
            Some('ㄷ') => change_last(&mut stem, |syllable| syllable.with_last(Some('ㄹ'))),
            Some('ㅅ') => change_last(&mut stem, |syllable| syllable.with_last(None)),
            _ => {}
        }
        let vowel = if last.is_bright() { "아" } else { "어" };
        if last.last.is_some() {
            return (stem, vowel);
        }
        let bright = before.is_some_and(Syllable::is_bright);
        let melted = match last.vowel {
            'ㅡ' if stem.ends_with('르') => {
                stem.pop();
                change_last(&mut stem, |syllable| syllable.with_last(Some('ㄹ')));
                stem.push(if bright { '라' } else { '러' });
                return (stem, "");
            }
            'ㅡ' if bright => 'ㅏ',
            'ㅡ' => 'ㅓ',
            'ㅗ' => 'ㅘ',
            'ㅜ' => 'ㅝ',
            'ㅣ' => 'ㅕ',
            'ㅚ' => 'ㅙ',
            same @ ('ㅏ' | 'ㅓ' | 'ㅐ' | 'ㅔ' | 'ㅕ') => same,
            _ => return (stem, vowel),
        };
        change_last(&mut stem, |syllable| syllable.with_vowel(melted));
        (stem, "")
    }

    /// The stem before 은 or 을: the consonant alone after a vowel, the whole after a consonant.
    fn adnominal(self, consonant: char, whole: &str) -> Form {
        let mut stem = self.bare().to_owned();
        let under = |syllable: Syllable| syllable.with_last(Some(consonant));
        let last = self.last().and_then(|syllable| syllable.last);
        match (self.weak(), last) {
            (Some('ㅂ'), _) => {
                change_last(&mut stem, |syllable| syllable.with_last(None));
                stem.push('우');
                change_last(&mut stem, under);
            }
            (Some('ㄷ'), _) => {
                change_last(&mut stem, |syllable| syllable.with_last(Some('ㄹ')));
                return Form { stem, ending: whole.into() };
            }
            (Some('ㅅ'), _) => {
                change_last(&mut stem, |syllable| syllable.with_last(None));
                return Form { stem, ending: whole.into() };
            }
            (Some('ㅎ'), _) | (None, None | Some('ㄹ')) => change_last(&mut stem, under),
            _ => return Form { stem, ending: whole.into() },
        }
        Form { stem, ending: String::new() }
    }
}

fn change_last(word: &mut String, change: impl Fn(Syllable) -> Syllable) {
    if let Some(syllable) = word.pop() {
        word.push(Syllable::of(syllable).map_or(syllable, |syllable| change(syllable).to_char()));
    }
}

//! Verbs and adjectives with their endings, in the polite style of everyday speech (해요).
//!
//! Endings are added in four ways:
//!
//! | ending | after a vowel | after a consonant | after ㄹ | |
//! |---|---|---|---|---|
//! | 지, 고, 지만, 기 | 가지 | 읽지 | 살지 | the bare stem |
//! | 는, 는다고 | 가는, 간다고 | 읽는, 읽는다고 | 사는, 산다고 | ㄹ goes |
//! | (으)면, (으)러, (으)세요 | 가면 | 읽으면 | 살면, 사세요 | ㄹ goes before ㅅ |
//! | (으)ㄴ, (으)ㄹ | 간, 갈 | 읽은, 읽을 | 산, 살 | written under the vowel |
//! | 어요, 었어요, 어서 | 가요 | 읽어요 | 살아요 | agrees with the last vowel: 아 after ㅏ and ㅗ, else 어 |
//!
//! The last row melts into an open vowel, and some stems change before a vowel:
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
//! The right column from ㅂ on holds for irregular stems alone: 입다 and 닫다 are regular. Of stems in 르 only 들르다, 따르다,
//! 치르다 and their compounds are regular, and 푸르다 has 러: 푸르러.

use std::fmt;

use super::hangul::Syllable;

/// A verb or an adjective without its ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stem {
    dictionary: &'static str,
    irregular: bool,
    honorific: bool,
}

/// What is said with an ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Reads, is big: 읽어요, 커요.
    Polite,
    /// Read, was big: 읽었어요, 컸어요.
    Past,
    /// Going to read: 읽을. 거예요, 수 있어요 and 때 follow.
    Future,
    /// I will read, as a promise: 읽을게요.
    Promise,
    /// A big house, a book that was read: 큰, 읽은. Stems in 있다 and 없다 have 는.
    Modifier,
    /// A book that is being read: 읽는.
    Relative,
    /// Not reading: 읽지. 않아요 follows.
    Negated,
    /// Reads, and …; in the midst of reading: 읽고.
    And,
    /// Read, and someone else …: 읽었고.
    PastAnd,
    /// Reads, but: 읽지만.
    But,
    /// Read, but: 읽었지만.
    PastBut,
    /// Because one reads: 읽어서.
    Because,
    /// If one reads: 읽으면.
    If,
    /// Before 때, "when one read": 읽었을.
    PastWhen,
    /// Please read: 읽으세요.
    Please,
    /// Before 주다, 보다: 읽어.
    Joined,
    /// Before 하다, "must": 읽어야.
    Must,
    /// Before 되다, "may": 읽어도.
    May,
    /// In order to read, after which one goes: 읽으러.
    Purpose,
    /// Reading, as a noun: 읽기.
    Noun,
    /// That one reads: 읽는다고.
    Quote,
    /// That it is big: 크다고.
    QuoteState,
    /// That one read, that it was big: 읽었다고.
    PastQuote,
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
        Stem { dictionary, irregular: false, honorific: false }
    }

    /// A word in 다 whose ㅂ, ㄷ, ㅅ or ㅎ changes before a vowel.
    pub const fn irregular(dictionary: &'static str) -> Self {
        Stem { dictionary, irregular: true, honorific: false }
    }

    /// With 시, of someone who is looked up to: 읽으세요, 주셨어요. Some verbs have another stem then: 먹다, 드시다.
    pub fn honorific(self) -> Self {
        let other = match self.dictionary {
            "먹다" | "마시다" => "들다",
            "자다" => "주무다",
            "말하다" => "말씀하다",
            "죽다" => "돌아가다",
            _ => return Stem { honorific: true, ..self },
        };
        Stem { dictionary: other, irregular: false, honorific: true }
    }

    /// 계시다, the honorific of 있다 for where someone is and what one is doing.
    pub const fn staying() -> Self {
        Stem { dictionary: "계다", irregular: false, honorific: true }
    }

    /// Whether [`honorific`](Self::honorific) is another verb rather than 시 after the same stem.
    pub fn has_other_honorific(self) -> bool {
        self.honorific().dictionary != self.dictionary
    }

    /// As the dictionary has it.
    pub fn dictionary(self) -> &'static str {
        self.dictionary
    }

    /// With an ending.
    pub fn with(self, ending: Ending) -> Form {
        if self.honorific {
            let Form { stem, ending: vowel } = Stem { honorific: false, ..self }.soft("시", true);
            let rest = match ending {
                Ending::Polite | Ending::Please => "세요".to_owned(),
                _ => Stem::regular("시다").with(ending).to_string(),
            };
            return Form { stem, ending: vowel.trim_end_matches('시').to_owned() + &rest };
        }
        match ending {
            Ending::Polite => self.melted("요"),
            Ending::Because => self.melted("서"),
            Ending::Joined => self.melted(""),
            Ending::Must => self.melted("야"),
            Ending::May => self.melted("도"),
            Ending::Past => self.past("어요"),
            Ending::PastAnd => self.past("고"),
            Ending::PastBut => self.past("지만"),
            Ending::PastWhen => self.past("을"),
            Ending::PastQuote => self.past("다고"),
            Ending::Future => self.under('ㄹ', "을", ""),
            Ending::Promise => self.under('ㄹ', "을", "게요"),
            Ending::Modifier if self.bare().ends_with(['있', '없']) => self.bare_with("는"),
            Ending::Modifier => self.under('ㄴ', "은", ""),
            Ending::Relative => self.without_l("는"),
            Ending::Quote => match self.last().and_then(|syllable| syllable.last) {
                None | Some('ㄹ') => self.under('ㄴ', "는", "다고"),
                Some(_) => self.bare_with("는다고"),
            },
            Ending::QuoteState => self.bare_with("다고"),
            Ending::Negated => self.bare_with("지"),
            Ending::And => self.bare_with("고"),
            Ending::But => self.bare_with("지만"),
            Ending::Noun => self.bare_with("기"),
            Ending::If => self.soft("면", false),
            Ending::Purpose => self.soft("러", false),
            Ending::Please => self.soft("세요", true),
        }
    }

    fn bare(self) -> &'static str {
        self.dictionary.strip_suffix('다').unwrap_or(self.dictionary)
    }

    fn bare_with(self, ending: &str) -> Form {
        Form { stem: self.bare().into(), ending: ending.into() }
    }

    /// Before 는, where ㄹ goes.
    fn without_l(self, ending: &str) -> Form {
        let mut form = self.bare_with(ending);
        if self.last().and_then(|syllable| syllable.last) == Some('ㄹ') {
            change_last(&mut form.stem, |syllable| syllable.with_last(None));
        }
        form
    }

    fn last(self) -> Option<Syllable> {
        self.bare().chars().next_back().and_then(Syllable::of)
    }

    /// The final consonant that changes before a vowel.
    fn weak(self) -> Option<char> {
        self.last().and_then(|syllable| syllable.last).filter(|_| self.irregular)
    }

    fn melted(self, rest: &str) -> Form {
        let (stem, vowel) = self.open();
        Form { stem, ending: format!("{vowel}{rest}") }
    }

    fn past(self, rest: &str) -> Form {
        let (mut stem, vowel) = self.open();
        let past = match vowel {
            "" => {
                change_last(&mut stem, |syllable| syllable.with_last(Some('ㅆ')));
                ""
            }
            "아" => "았",
            _ => "었",
        };
        Form { stem, ending: format!("{past}{rest}") }
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
            'ㅡ' if self.bare() == "푸르" => {
                stem.push('러');
                return (stem, "");
            }
            'ㅡ' if stem.ends_with('르') && !is_plain_reu(self.bare()) => {
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
        // 푸다 alone loses its ㅜ: 퍼요.
        let melted = if self.bare() == "푸" { 'ㅓ' } else { melted };
        change_last(&mut stem, |syllable| syllable.with_vowel(melted));
        (stem, "")
    }

    /// The stem before 으; the second part begins with it where it stays.
    fn soft(self, rest: &str, l_goes: bool) -> Form {
        let mut stem = self.bare().to_owned();
        match (self.weak(), self.last().and_then(|syllable| syllable.last)) {
            (Some('ㅂ'), _) => {
                change_last(&mut stem, |syllable| syllable.with_last(None));
                stem.push('우');
            }
            (Some('ㅎ'), _) => change_last(&mut stem, |syllable| syllable.with_last(None)),
            (Some('ㄷ'), _) => {
                change_last(&mut stem, |syllable| syllable.with_last(Some('ㄹ')));
                return Form { stem, ending: format!("으{rest}") };
            }
            (Some('ㅅ'), _) => {
                change_last(&mut stem, |syllable| syllable.with_last(None));
                return Form { stem, ending: format!("으{rest}") };
            }
            (_, Some('ㄹ')) if l_goes => change_last(&mut stem, |syllable| syllable.with_last(None)),
            (_, None | Some('ㄹ')) => {}
            _ => return Form { stem, ending: format!("으{rest}") },
        }
        Form { stem, ending: rest.into() }
    }

    /// A consonant under the last vowel, or after a consonant the whole syllable.
    fn under(self, consonant: char, whole: &str, rest: &str) -> Form {
        let Form { mut stem, ending } = self.soft("", true);
        if ending.is_empty() {
            change_last(&mut stem, |syllable| syllable.with_last(Some(consonant)));
            return Form { stem, ending: rest.into() };
        }
        Form { stem, ending: format!("{whole}{rest}") }
    }
}

/// Stems in 르 that lose their ㅡ like any other: 들러, 따라, 치러.
fn is_plain_reu(stem: &str) -> bool {
    ["들르", "따르", "치르"].iter().any(|plain| stem.ends_with(plain))
}

fn change_last(word: &mut String, change: impl Fn(Syllable) -> Syllable) {
    if let Some(syllable) = word.pop() {
        word.push(Syllable::of(syllable).map_or(syllable, |syllable| change(syllable).to_char()));
    }
}

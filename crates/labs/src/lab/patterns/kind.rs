//! What a head looks at, by where its weight goes.

use ndarray::Array2;
use serde_json::{Value, json};

use crate::Bilingual;

/// A share must exceed that of equal weights by this much to name a head.
const CLEAR: f32 = 0.1;
/// Tokens before that count as near.
const NEAR: usize = 3;

/// What a head looks at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadKind {
    First,
    Own,
    Local,
    Word,
    Same,
    Punctuation,
    Spread,
}

impl HeadKind {
    pub const ALL: [HeadKind; 7] = [
        HeadKind::First,
        HeadKind::Own,
        HeadKind::Local,
        HeadKind::Word,
        HeadKind::Same,
        HeadKind::Punctuation,
        HeadKind::Spread,
    ];
    /// Those that weight can go to.
    const PLACES: [HeadKind; 6] =
        [HeadKind::First, HeadKind::Own, HeadKind::Local, HeadKind::Word, HeadKind::Same, HeadKind::Punctuation];

    pub fn letter(self) -> char {
        match self {
            HeadKind::First => 'F',
            HeadKind::Own => 'O',
            HeadKind::Local => 'L',
            HeadKind::Word => 'W',
            HeadKind::Same => 'S',
            HeadKind::Punctuation => 'P',
            HeadKind::Spread => '·',
        }
    }

    pub fn name(self) -> Bilingual<&'static str> {
        match self {
            HeadKind::First => Bilingual { en: "first", ko: "첫 토큰" },
            HeadKind::Own => Bilingual { en: "own", ko: "자기 자신" },
            HeadKind::Local => Bilingual { en: "local", ko: "가까운 토큰" },
            HeadKind::Word => Bilingual { en: "word", ko: "같은 단어" },
            HeadKind::Same => Bilingual { en: "same", ko: "같은 토큰" },
            HeadKind::Punctuation => Bilingual { en: "punctuation", ko: "문장 부호" },
            HeadKind::Spread => Bilingual { en: "spread", ko: "고르게" },
        }
    }

    pub fn description(self) -> Bilingual<&'static str> {
        match self {
            HeadKind::First => Bilingual { en: "the first token (positional)", ko: "첫 토큰 (위치)" },
            HeadKind::Own => Bilingual {
                en: "itself, the last it sees (positional)",
                ko: "보이는 마지막 토큰인 자신 (위치)",
            },
            HeadKind::Local => {
                Bilingual { en: "the three tokens before (local)", ko: "바로 앞 토큰 셋 (지역)" }
            }
            HeadKind::Word => {
                Bilingual { en: "earlier pieces of its word (syntactic)", ko: "같은 단어의 앞 조각 (구문)" }
            }
            HeadKind::Same => {
                Bilingual { en: "earlier equal tokens (content)", ko: "앞에 나온 같은 토큰 (내용)" }
            }
            HeadKind::Punctuation => {
                Bilingual { en: "marks before it (syntactic)", ko: "앞에 나온 문장 부호 (구문)" }
            }
            HeadKind::Spread => {
                Bilingual { en: "nothing of these in particular", ko: "어느 것에도 치우치지 않음" }
            }
        }
    }
}

/// What is known of the tokens.
#[derive(Clone, Copy)]
pub struct Tokens<'a> {
    pub ids: &'a [u32],
    /// The number of the word that each belongs to.
    pub words: &'a [Option<usize>],
    pub labels: &'a [String],
}

/// The share of a head's weight on each kind of key, and what it would be if all keys had equal weight; means over the queries.
/// A token may be of several kinds.
pub struct Shares {
    means: [(f32, f32); 6],
}

impl Shares {
    /// From causal weights [T, T].
    pub fn of(weights: &Array2<f32>, tokens: &Tokens) -> Self {
        let Tokens { ids, words, labels } = tokens;
        let marks: Vec<bool> = labels.iter().map(|label| is_mark(label)).collect();
        let means = HeadKind::PLACES.map(|kind| {
            let is = |i: usize, j: usize| match kind {
                HeadKind::First => j == 0,
                HeadKind::Own => j == i,
                HeadKind::Local => j < i && j + NEAR >= i,
                HeadKind::Word => j < i && words[i].is_some() && words[j] == words[i],
                HeadKind::Same => j < i && ids[j] == ids[i],
                HeadKind::Punctuation => j < i && marks[j],
                HeadKind::Spread => false,
            };
            // The first tokens see too little to choose from.
            let queries = NEAR + 1..weights.nrows();
            let (mut share, mut equal) = (0.0, 0.0);
            for i in queries.clone() {
                let keys = (0..=i).filter(|&j| is(i, j));
                share += keys.clone().map(|j| weights[[i, j]]).sum::<f32>();
                equal += keys.count() as f32 / (i + 1) as f32;
            }
            let count = queries.len().max(1) as f32;
            (share / count, equal / count)
        });
        Shares { means }
    }

    /// The share, and that of equal weights.
    pub fn get(&self, kind: HeadKind) -> (f32, f32) {
        self.means.get(kind as usize).copied().unwrap_or((0.0, 0.0))
    }

    /// How much more than equal weights would give.
    pub fn lift(&self, kind: HeadKind) -> f32 {
        let (share, equal) = self.get(kind);
        share - equal
    }

    /// The kind that stands out most, if any does.
    pub fn kind(&self) -> HeadKind {
        let best = HeadKind::PLACES.into_iter().max_by(|a, b| self.lift(*a).total_cmp(&self.lift(*b)));
        best.filter(|kind| self.lift(*kind) > CLEAR).unwrap_or(HeadKind::Spread)
    }

    pub fn figures(&self) -> Value {
        let figures = HeadKind::PLACES.into_iter().map(|kind| {
            let (share, equal) = self.get(kind);
            (kind.name().en.to_owned(), json!({ "share": share, "equal": equal }))
        });
        figures.collect::<serde_json::Map<_, _>>().into()
    }
}

fn is_mark(label: &str) -> bool {
    let word = label.trim_matches([' ', '▁']);
    !word.is_empty() && word.chars().all(|c| c.is_ascii_punctuation())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every query puts all its weight on one key.
    fn looking(at: impl Fn(usize) -> usize) -> HeadKind {
        let weights = Array2::from_shape_fn((12, 12), |(i, j)| if at(i) == j { 1.0 } else { 0.0 });
        let labels = ["A", ",", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"].map(str::to_owned);
        let words = [0, 0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4].map(Some);
        let tokens = Tokens { ids: &[0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3], words: &words, labels: &labels };
        Shares::of(&weights, &tokens).kind()
    }

    #[test]
    fn heads_are_named_after_what_they_look_at() {
        assert_eq!(looking(|_| 0), HeadKind::First);
        assert_eq!(looking(|i| i), HeadKind::Own);
        assert_eq!(looking(|i| i.saturating_sub(1)), HeadKind::Local);
        assert_eq!(looking(|_| 1), HeadKind::Punctuation);
        assert_eq!(looking(|i| i.min(5)), HeadKind::Word);
        assert_eq!(looking(|i| i.saturating_sub(4)), HeadKind::Same);
        let equal = Array2::from_shape_fn((12, 12), |(i, j)| if j <= i { 1.0 / (i + 1) as f32 } else { 0.0 });
        let labels = vec!["x".to_owned(); 12];
        let tokens = Tokens { ids: &[7; 12], words: &[None; 12], labels: &labels };
        assert_eq!(Shares::of(&equal, &tokens).kind(), HeadKind::Spread);
    }
}

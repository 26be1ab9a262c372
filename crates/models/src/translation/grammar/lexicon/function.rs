//! The words of which there are few: pronouns, numbers, times, places beside things.

/// A pronoun: as a subject, as an object, as an owner; in English and in Korean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Pronoun {
    pub(in super::super) subject: &'static str,
    pub(in super::super) object: &'static str,
    pub(in super::super) owner: &'static str,
    pub(in super::super) korean: &'static str,
    /// 제 책, 우리 책; the others take 의.
    pub(in super::super) short: Option<&'static str>,
    pub(in super::super) agreement: Agreement,
}

/// What a verb agrees with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Agreement {
    /// I.
    First,
    /// He, she, a student.
    Singular,
    /// You, we, they, students.
    Plural,
}

/// Pronouns.
#[rustfmt::skip]
pub(in super::super) const PRONOUNS: &[Pronoun] = &[
    Pronoun { subject: "I", object: "me", owner: "my", korean: "저", short: Some("제"), agreement: Agreement::First },
    Pronoun { subject: "you", object: "you", owner: "your", korean: "당신", short: None, agreement: Agreement::Plural },
    Pronoun { subject: "he", object: "him", owner: "his", korean: "그", short: None, agreement: Agreement::Singular },
    Pronoun { subject: "she", object: "her", owner: "her", korean: "그녀", short: None, agreement: Agreement::Singular },
    Pronoun { subject: "we", object: "us", owner: "our", korean: "우리", short: Some("우리"), agreement: Agreement::Plural },
    Pronoun { subject: "they", object: "them", owner: "their", korean: "그들", short: None, agreement: Agreement::Plural },
];

/// Numbers, as they stand before a counter.
#[rustfmt::skip]
pub(in super::super) const NUMBERS: &[(&str, &str)] = &[
    ("one", "한"), ("two", "두"), ("three", "세"), ("four", "네"), ("five", "다섯"),
    ("six", "여섯"), ("seven", "일곱"), ("eight", "여덟"), ("nine", "아홉"), ("ten", "열"),
];

/// When, for each tense: English words, and Korean words with the numbers of the English words they stand for.
pub(in super::super) type Time = (&'static [&'static str], &'static [(&'static str, &'static str, &'static [usize])]);

/// Times past.
pub(in super::super) const PAST: &[Time] = &[
    (&["yesterday"], &[("어제", "", &[0])]),
    (&["last", "week"], &[("지난주", "에", &[0, 1])]),
    (&["last", "year"], &[("작년", "에", &[0, 1])]),
];

/// Times that come again.
pub(in super::super) const PRESENT: &[Time] =
    &[(&["every", "day"], &[("매일", "", &[0, 1])]), (&["every", "week"], &[("매주", "", &[0, 1])])];

/// Now.
pub(in super::super) const NOW: &[Time] = &[(&["now"], &[("지금", "", &[0])])];

/// Times to come.
pub(in super::super) const FUTURE: &[Time] = &[
    (&["tomorrow"], &[("내일", "", &[0])]),
    (&["next", "week"], &[("다음", "", &[0]), ("주", "에", &[1])]),
    (&["next", "year"], &[("내년", "에", &[0, 1])]),
];

/// Times of the day. The first word says "in" or "at", which 에 stands for.
pub(in super::super) const DAYTIME: &[(&[&str], &str)] =
    &[(&["in", "the", "morning"], "아침"), (&["in", "the", "evening"], "저녁"), (&["at", "night"], "밤")];

/// How often.
pub(in super::super) const FREQUENCY: &[(&str, &str)] = &[("often", "자주"), ("always", "항상"), ("sometimes", "가끔")];

/// How fast.
pub(in super::super) const SPEED: &[(&str, &str)] = &[("quickly", "빨리"), ("slowly", "천천히")];

/// How hard.
pub(in super::super) const HARD: &[(&str, &str)] = &[("hard", "열심히")];

/// How well.
pub(in super::super) const WELL: &[(&str, &str)] = &[("well", "잘")];

/// How quietly.
pub(in super::super) const QUIET: &[(&str, &str)] = &[("quietly", "조용히")];

/// Where something is beside something else: all English words stand for the Korean one.
pub(in super::super) const BESIDE: &[(&[&str], &str)] =
    &[(&["on"], "위"), (&["under"], "아래"), (&["behind"], "뒤"), (&["next", "to"], "옆")];

/// Words that sentences have without a table: articles, auxiliaries, prepositions, question words.
#[rustfmt::skip]
pub(in super::super) const FUNCTION: &[&str] = &[
    "a", "an", "the", "this", "that", "many", "very", "and", "of", "cup", "have", "be", "do", "will", "not", "there", "to", "for", "with", "by", "in",
    "at", "on", "who", "what", "how", "where", "when", "why",
];

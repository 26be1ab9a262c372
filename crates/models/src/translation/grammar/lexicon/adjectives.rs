//! Adjectives and what they fit.

use super::kind::*;
use super::{Kinds, Which};
use crate::translation::korean::Stem;

/// An adjective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Adjective {
    pub(in super::super) english: &'static str,
    pub(in super::super) korean: Attribute,
    pub(in super::super) fits: Which,
}

/// What stands for an adjective in Korean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Attribute {
    /// A word that can end a sentence, too: 큰 집, 집이 커요.
    Stem(Stem),
    /// Before nouns only: 새 집.
    Before(&'static str),
}

impl Adjective {
    const fn but(self, kinds: Kinds) -> Self {
        Adjective { fits: self.fits.but(kinds), ..self }
    }
}

const fn regular(english: &'static str, korean: &'static str, fits: Kinds) -> Adjective {
    Adjective { english, korean: Attribute::Stem(Stem::regular(korean)), fits: Which::any(fits) }
}

const fn irregular(english: &'static str, korean: &'static str, fits: Kinds) -> Adjective {
    Adjective { english, korean: Attribute::Stem(Stem::irregular(korean)), fits: Which::any(fits) }
}

const fn before(english: &'static str, korean: &'static str, fits: Kinds) -> Adjective {
    Adjective { english, korean: Attribute::Before(korean), fits: Which::any(fits) }
}

/// Adjectives.
#[rustfmt::skip]
pub(in super::super) const ADJECTIVES: &[Adjective] = &[
    regular("big", "크다", ANIMAL | FRUIT | HEAVY | BUILDING | ROOM | CONTAINER | SURFACE | PLANT | BALL).but(READING | CLOTHES),
    regular("small", "작다", ANIMAL | FRUIT | BUILDING | ROOM | CONTAINER | SURFACE | PLANT | BALL | SHOP),
    regular("good", "좋다", GOODS | CONTENT | SONG).but(FOOD | DRINK),
    regular("bad", "나쁘다", CONTENT),
    regular("kind", "친절하다", PERSON),
    regular("brave", "용감하다", PERSON | ANIMAL),
    regular("smart", "똑똑하다", PERSON | PET),
    regular("honest", "정직하다", PERSON),
    regular("diligent", "부지런하다", PERSON),
    regular("healthy", "건강하다", PERSON | ANIMAL),
    regular("happy", "행복하다", PERSON),
    regular("sad", "슬프다", PERSON | CONTENT | SONG),
    regular("busy", "바쁘다", PERSON),
    regular("tired", "피곤하다", PERSON),
    regular("hungry", "배고프다", PERSON | ANIMAL),
    irregular("lonely", "외롭다", PERSON),
    regular("young", "젊다", JOB),
    regular("strong", "강하다", PERSON | ANIMAL),
    regular("famous", "유명하다", JOB | CONTENT | CULTURE | SONG),
    irregular("cute", "귀엽다", CHILD | PET),
    irregular("scary", "무섭다", WILD),
    regular("fast", "빠르다", ANIMAL | VEHICLE),
    regular("slow", "느리다", SWIMMER | VEHICLE),
    regular("pretty", "예쁘다", COLOURED).but(FOOD | VEHICLE | HEAVY | BALL | HAT | OPENS),
    irregular("beautiful", "아름답다", PLANT | OUTDOORS | SONG | SKY | WATERS),
    regular("delicious", "맛있다", FOOD | DRINK),
    irregular("hot", "뜨겁다", WARM),
    irregular("cold", "차갑다", DRINK),
    regular("warm", "따뜻하다", WARM | CLOTHES | HOME),
    regular("sweet", "달다", SWEET),
    irregular("spicy", "맵다", SPICY),
    regular("fresh", "신선하다", FRUIT),
    regular("expensive", "비싸다", GOODS),
    regular("cheap", "싸다", GOODS),
    irregular("heavy", "무겁다", HEAVY),
    irregular("light", "가볍다", HEAVY).but(SURFACE),
    regular("long", "길다", LONG),
    regular("short", "짧다", LONG),
    irregular("red", "빨갛다", COLOURED),
    irregular("blue", "파랗다", COLOURED).but(FOOD),
    irregular("yellow", "노랗다", COLOURED).but(FOOD),
    irregular("white", "하얗다", COLOURED).but(FOOD),
    irregular("black", "까맣다", COLOURED).but(FOOD | PLANT),
    regular("interesting", "재미있다", CONTENT | SUBJECT),
    irregular("difficult", "어렵다", SUBJECT | HARD),
    irregular("easy", "쉽다", SUBJECT | HARD),
    regular("clean", "깨끗하다", ROOM | WATERS | CLOTHES | HAT | SHOES),
    regular("quiet", "조용하다", STUDY | HOME | OUTDOORS | EATERY),
    regular("spacious", "넓다", ROOM | FIELD).but(STUDY),
    regular("deep", "깊다", WATERS),
    regular("bright", "밝다", ROOM | SKY),
    before("new", "새", GOODS | VEHICLE | BUILDING | SHOP | CONTENT).but(FOOD | DRINK),
    before("old", "오래된", BUILDING | SHOP | READING | CLOTHES | SURFACE | VEHICLE),
];

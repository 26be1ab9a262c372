//! Verbs, who does them, to what, and where.

use super::kind::*;
use super::{Kinds, Which};
use crate::translation::korean::{Particle, Stem};

/// How something may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Manner {
    Any,
    /// Quickly, slowly.
    Speed,
    /// Hard.
    Hard,
    /// Well.
    Well,
    /// Quietly.
    Quiet,
}

/// A verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Verb {
    /// Read, reads, read, reading.
    pub(in super::super) english: [&'static str; 4],
    pub(in super::super) korean: Stem,
    /// Who does it.
    pub(in super::super) who: Which,
    /// To what; nothing for an intransitive verb.
    pub(in super::super) what: Which,
    /// Where.
    pub(in super::super) place: Kinds,
    /// What stands before the object in English: waits *for* the bus.
    pub(in super::super) preposition: &'static str,
    /// Whether it can be under way: "is reading", but not "is liking".
    pub(in super::super) progressive: bool,
    /// Whether it goes on for years: nobody loves at night.
    pub(in super::super) lasting: bool,
    /// Whether it is done to one thing at a time: nobody wears two hats.
    pub(in super::super) single: bool,
    pub(in super::super) manner: Manner,
    /// What it may be done with.
    pub(in super::super) tool: Kinds,
}

impl Verb {
    /// Past like the present but for the third person: "they read" needs a time to be clear.
    pub(in super::super) fn past_is_base(&self) -> bool {
        self.english[0] == self.english[2]
    }

    const fn not_by(self, kinds: Kinds) -> Self {
        Verb { who: self.who.but(kinds), ..self }
    }

    const fn but(self, kinds: Kinds) -> Self {
        Verb { what: self.what.but(kinds), ..self }
    }

    const fn state(self) -> Self {
        Verb { progressive: false, ..self }
    }

    const fn lasting(self) -> Self {
        Verb { lasting: true, ..self }
    }

    const fn single(self) -> Self {
        Verb { single: true, ..self }
    }

    const fn to(self, preposition: &'static str) -> Self {
        Verb { preposition, ..self }
    }

    const fn manner(self, manner: Manner) -> Self {
        Verb { manner, ..self }
    }

    const fn with(self, tool: Kinds) -> Self {
        Verb { tool, ..self }
    }
}

const fn verb(english: [&'static str; 4], korean: &'static str, who: Kinds, what: Kinds, place: Kinds) -> Verb {
    Verb {
        english,
        korean: Stem::regular(korean),
        who: Which::any(who),
        what: Which::any(what),
        place,
        preposition: "",
        progressive: true,
        lasting: false,
        single: false,
        manner: Manner::Any,
        tool: 0,
    }
}

const fn irregular(english: [&'static str; 4], korean: &'static str, who: Kinds, what: Kinds, place: Kinds) -> Verb {
    Verb { korean: Stem::irregular(korean), ..verb(english, korean, who, what, place) }
}

const P: Kinds = PERSON;
const PA: Kinds = PERSON | ANIMAL;

/// Verbs with an object.
#[rustfmt::skip]
pub(in super::super) const TRANSITIVE: &[Verb] = &[
    verb(["read", "reads", "read", "reading"], "읽다", P, READING, STUDY | HOME | FIELD | EATERY).manner(Manner::Quiet),
    verb(["write", "writes", "wrote", "writing"], "쓰다", P, WRITING, STUDY | HOME).with(PEN),
    verb(["eat", "eats", "ate", "eating"], "먹다", P, FOOD, EATERY | HOME | FIELD).but(COOKED).manner(Manner::Speed),
    verb(["eat", "eats", "ate", "eating"], "먹다", P, COOKED, EATERY | HOME).manner(Manner::Speed).with(CUTLERY),
    verb(["eat", "eats", "ate", "eating"], "먹다", ANIMAL, FRUIT, OUTDOORS).manner(Manner::Speed),
    verb(["drink", "drinks", "drank", "drinking"], "마시다", P, DRINK, EATERY | HOME | FIELD).manner(Manner::Speed),
    verb(["buy", "buys", "bought", "buying"], "사다", P, GOODS, SHOP),
    verb(["sell", "sells", "sold", "selling"], "팔다", P, GOODS, SHOP),
    verb(["find", "finds", "found", "finding"], "찾다", P, GOODS | MONEY, HOME | STUDY).but(FOOD | DRINK).state(),
    verb(["lose", "loses", "lost", "losing"], "잃어버리다", P, GOODS | MONEY, FIELD | STOP).but(FOOD | DRINK | VEHICLE | SURFACE | CLOTHES).state(),
    verb(["choose", "chooses", "chose", "choosing"], "고르다", P, GOODS, SHOP).manner(Manner::Speed),
    verb(["make", "makes", "made", "making"], "만들다", P, COOKED | BAKED, EATERY).manner(Manner::Well),
    verb(["make", "makes", "made", "making"], "만들다", P, CRAFT, HOME).manner(Manner::Well),
    irregular(["bake", "bakes", "baked", "baking"], "굽다", P, BAKED, EATERY).manner(Manner::Well),
    verb(["wash", "washes", "washed", "washing"], "씻다", P, FRUIT | CUTLERY, EATERY).manner(Manner::Speed),
    verb(["cut", "cuts", "cut", "cutting"], "자르다", P, FRUIT | BAKED, EATERY).manner(Manner::Speed).with(KNIFE),
    verb(["see", "sees", "saw", "seeing"], "보다", P, ANIMAL | SKY | PLANT, OUTDOORS).state(),
    verb(["watch", "watches", "watched", "watching"], "보다", P, SHOW, HOME | CULTURE).but(PICTURE | PHOTO),
    irregular(["listen", "listens", "listened", "listening"], "듣다", P, SOUND, HOME | EATERY).to("to").manner(Manner::Quiet),
    verb(["sing", "sings", "sang", "singing"], "부르다", P, SONG, HOME | FIELD | CULTURE).manner(Manner::Well),
    verb(["call", "calls", "called", "calling"], "부르다", P, PERSON | PET, FIELD).but(ELDER),
    verb(["study", "studies", "studied", "studying"], "공부하다", P, SUBJECT, STUDY | HOME | EATERY).manner(Manner::Hard),
    verb(["learn", "learns", "learned", "learning"], "배우다", P, SUBJECT | SPORT, STUDY).manner(Manner::Hard),
    verb(["teach", "teaches", "taught", "teaching"], "가르치다", P, SUBJECT, STUDY).not_by(CHILD).manner(Manner::Well),
    verb(["meet", "meets", "met", "meeting"], "만나다", P, PERSON, STUDY | EATERY | FIELD | STOP).state(),
    irregular(["help", "helps", "helped", "helping"], "돕다", P, PERSON, STUDY | WORK),
    verb(["love", "loves", "loved", "loving"], "사랑하다", P, PERSON | PET, 0).state().lasting(),
    verb(["like", "likes", "liked", "liking"], "좋아하다", P, PERSON | ANIMAL | FOOD | DRINK | CONTENT | SUBJECT | SPORT | PLANT, 0).state().lasting(),
    verb(["wait", "waits", "waited", "waiting"], "기다리다", P, PERSON | COACH, STOP | FIELD).single().to("for").manner(Manner::Quiet),
    verb(["look", "looks", "looked", "looking"], "찾다", P, PET | CHILD, OUTDOORS).to("for").manner(Manner::Hard),
    verb(["play", "plays", "played", "playing"], "하다", P, SPORT, FIELD).single().manner(Manner::Hard),
    verb(["play", "plays", "played", "playing"], "치다", P, PIANO, HOME | CULTURE).single().manner(Manner::Well),
    verb(["play", "plays", "played", "playing"], "켜다", P, VIOLIN, HOME | CULTURE).single().manner(Manner::Well),
    verb(["wear", "wears", "wore", "wearing"], "입다", P, CLOTHES, 0).single(),
    verb(["wear", "wears", "wore", "wearing"], "쓰다", P, HAT, 0).single(),
    verb(["wear", "wears", "wore", "wearing"], "신다", P, SHOES, 0).single(),
    verb(["ride", "rides", "rode", "riding"], "타다", P, RIDE, 0).single(),
    verb(["drive", "drives", "drove", "driving"], "운전하다", P, VEHICLE, CITY).not_by(CHILD).single().manner(Manner::Speed),
    verb(["open", "opens", "opened", "opening"], "열다", P, OPENS, HOME).manner(Manner::Quiet),
    verb(["close", "closes", "closed", "closing"], "닫다", P, OPENS, HOME).but(CONTAINER).manner(Manner::Quiet),
    verb(["throw", "throws", "threw", "throwing"], "던지다", P, BALL, FIELD).manner(Manner::Speed),
    verb(["draw", "draws", "drew", "drawing"], "그리다", P, PICTURE | ANIMAL, STUDY | HOME).manner(Manner::Well).with(PEN | BRUSH),
    verb(["take", "takes", "took", "taking"], "찍다", P, PHOTO, OUTDOORS | CULTURE),
    irregular(["build", "builds", "built", "building"], "짓다", P, BUILDING, 0).not_by(CHILD),
    verb(["clean", "cleans", "cleaned", "cleaning"], "청소하다", P, ROOM, 0).manner(Manner::Hard),
    verb(["raise", "raises", "raised", "raising"], "기르다", P, PET | FARM, LIVING).lasting(),
    verb(["follow", "follows", "followed", "following"], "따라가다", PA, PERSON | PET, FIELD).manner(Manner::Quiet),
    verb(["chase", "chases", "chased", "chasing"], "쫓다", ANIMAL, ANIMAL, OUTDOORS).manner(Manner::Speed),
    verb(["borrow", "borrows", "borrowed", "borrowing"], "빌리다", P, LENT, STUDY),
];

/// Gives: to whom stands beside what.
pub(in super::super) const GIVE: Verb = verb(["give", "gives", "gave", "giving"], "주다", P, GIFT, 0);

/// What one has.
pub(in super::super) const HAVE: Which = Which::any(GOODS | PET | KIN | MONEY).but(FOOD | DRINK);

/// Verbs without an object.
#[rustfmt::skip]
pub(in super::super) const INTRANSITIVE: &[Verb] = &[
    verb(["sleep", "sleeps", "slept", "sleeping"], "자다", PA, 0, HOME).manner(Manner::Quiet),
    verb(["run", "runs", "ran", "running"], "달리다", PA, 0, FIELD).manner(Manner::Speed),
    irregular(["walk", "walks", "walked", "walking"], "걷다", PA, 0, OUTDOORS).manner(Manner::Speed),
    verb(["swim", "swims", "swam", "swimming"], "수영하다", P, 0, WATERS).manner(Manner::Hard),
    verb(["swim", "swims", "swam", "swimming"], "헤엄치다", SWIMMER, 0, WATERS).manner(Manner::Speed),
    verb(["fly", "flies", "flew", "flying"], "날다", BIRD, 0, 0).manner(Manner::Speed),
    verb(["smile", "smiles", "smiled", "smiling"], "웃다", P, 0, FIELD | HOME).manner(Manner::Quiet),
    verb(["cry", "cries", "cried", "crying"], "울다", PA, 0, FIELD | HOME).manner(Manner::Quiet),
    verb(["dance", "dances", "danced", "dancing"], "춤추다", P, 0, FIELD | CULTURE).manner(Manner::Well),
    verb(["work", "works", "worked", "working"], "일하다", P, 0, WORK).not_by(CHILD).manner(Manner::Hard),
    verb(["rest", "rests", "rested", "resting"], "쉬다", PA, 0, HOME | OUTDOORS).manner(Manner::Quiet),
    verb(["play", "plays", "played", "playing"], "놀다", PA, 0, FIELD | HOME),
    verb(["exercise", "exercises", "exercised", "exercising"], "운동하다", P, 0, FIELD).manner(Manner::Hard),
    verb(["cook", "cooks", "cooked", "cooking"], "요리하다", P, 0, EATERY).manner(Manner::Hard),
    verb(["laugh", "laughs", "laughed", "laughing"], "웃다", P, 0, STUDY | EATERY),
    verb(["talk", "talks", "talked", "talking"], "이야기하다", P, 0, EATERY | HOME | STUDY).manner(Manner::Quiet),
    verb(["travel", "travels", "traveled", "traveling"], "여행하다", P, 0, CITY),
    verb(["wait", "waits", "waited", "waiting"], "기다리다", P, 0, STOP | EATERY).manner(Manner::Quiet),
];

/// A verb of going somewhere, or of being there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Motion {
    pub(in super::super) verb: Verb,
    /// "To" the school, or as English says for being there.
    pub(in super::super) preposition: Option<&'static str>,
    pub(in super::super) particle: Particle,
    /// Whether one gets there by bus.
    pub(in super::super) travels: bool,
}

const EVERYWHERE: Kinds = STUDY | SHOP | EATERY | HOME | OUTDOORS | WATERS | WORK | CULTURE | STOP | BUILDING | CITY;

/// Verbs of motion.
#[rustfmt::skip]
pub(in super::super) const MOTIONS: &[Motion] = &[
    Motion { verb: verb(["go", "goes", "went", "going"], "가다", P, 0, EVERYWHERE), preposition: Some("to"), particle: Particle::At, travels: true },
    Motion { verb: verb(["come", "comes", "came", "coming"], "오다", P, 0, EVERYWHERE), preposition: Some("to"), particle: Particle::At, travels: true },
    Motion { verb: verb(["return", "returns", "returned", "returning"], "돌아가다", P, 0, EVERYWHERE), preposition: Some("to"), particle: Particle::By, travels: true },
    Motion { verb: verb(["arrive", "arrives", "arrived", "arriving"], "도착하다", P, 0, STOP | STUDY | CITY | WORK).state(), preposition: Some("at"), particle: Particle::At, travels: false },
    Motion { verb: verb(["live", "lives", "lived", "living"], "살다", P, 0, CITY | LIVING).state().lasting(), preposition: None, particle: Particle::At, travels: false },
    Motion { verb: verb(["go", "goes", "went", "going"], "가다", ANIMAL, 0, OUTDOORS | WATERS), preposition: Some("to"), particle: Particle::At, travels: false },
];

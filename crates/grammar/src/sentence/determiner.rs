//! Which words may stand before which noun: "a" not before water, numbers not before soccer.

use crate::lexicon::{Countable, Noun};

/// What a noun phrase is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It does something.
    Agent,
    /// Something is done to it.
    Object,
    /// Something is said of it.
    Theme,
    /// It is there.
    New,
    /// It is not there.
    Absent,
    /// Something happens there.
    Place,
    /// It comes after another and "and", or is what something is done with.
    Second,
    /// Something is done to it, and it is one.
    Single,
    /// It is liked or hated: apples, all of them.
    Kind,
    /// It is a certain one: the door that is to be opened.
    Known,
}

/// What stands before a noun to say which one is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Determiner {
    None,
    A,
    The,
    This,
    That,
    Owner,
    OwnedBy,
    Number,
    Many,
    /// Some books: 책 몇 권.
    Some,
    /// All the books: 모든 책.
    All,
    /// Every book: 모든 책.
    Every,
    /// Two cups of, a bottle of.
    Measure,
}

/// Korean says 들 where many is not plain from the rest: of people always, of animals if they are certain ones, of things
/// if one points at them.
pub(crate) fn takes_plural(noun: &Noun, determiner: Determiner) -> bool {
    let counted = [Determiner::Number, Determiner::Measure, Determiner::Some, Determiner::Every];
    let loose = [Determiner::None, Determiner::Many, Determiner::A, Determiner::All];
    match () {
        () if noun.is("body") || counted.contains(&determiner) => false,
        () if noun.is("person") => true,
        () if noun.is("animal") => !loose.contains(&determiner),
        () => matches!(determiner, Determiner::This | Determiner::That),
    }
}

/// What may have an owner.
const OWNED: [&str; 22] = [
    "goods",
    "pet",
    "farm",
    "kin",
    "shared",
    "owned",
    "body",
    "reading",
    "container",
    "surface",
    "photo",
    "money",
    "room",
    "drink",
    "dish",
    "meal",
    "vehicle",
    "finish",
    "group",
    "work",
    "event",
    "living",
];

type Choice = (usize, (Determiner, bool));

/// What may stand before a noun, whether it is then in the plural, and how often.
pub(crate) fn determiners(noun: &Noun, role: Use) -> Vec<Choice> {
    use Determiner::{A, All, Every, Many, Measure, None, Number, OwnedBy, Owner, Some, That, The, This};
    let owned = noun.any(&OWNED) && !noun.any(&["sky", "event", "work"]) || noun.any(&["owned", "finish", "kin"]);
    let family = noun.is("shared") && noun.is("person");
    let one = |weight, determiner| (weight, (determiner, false));
    let many = |weight, determiner| (weight, (determiner, true));
    let only_owner =
        family || noun.any(&["body", "owned"]) || noun.is("kin") && matches!(role, Use::Place | Use::Known);
    // Hands and friends, but one mother.
    let unique = [
        "mother", "father", "mom", "dad", "husband", "wife", "head", "face", "nose", "mouth", "neck", "back", "stomach",
    ];
    let several = noun.countable != Countable::Mass
        && noun.countable != Countable::Pair
        && noun.any(&["body", "kin"])
        && !noun.any(&["elder"])
        && !unique.contains(&noun.english);
    let mut all: Vec<Choice> = match noun.countable {
        Countable::Bare => vec![one(1, None)],
        Countable::Unique => vec![one(1, The)],
        _ if only_owner && !matches!(role, Use::New | Use::Absent) => {
            vec![one(6, Owner), one(3, OwnedBy), many(if several { 4 } else { 0 }, Owner)]
        }
        Countable::Mass => {
            let measure = if measures(noun).is_empty() { 0 } else { 4 };
            match role {
                Use::New => vec![one(4, None), one(measure, Measure), one(1, Some)],
                Use::Absent | Use::Second | Use::Place => vec![one(1, None)],
                Use::Theme | Use::Known => vec![one(6, The), one(2, This), one(2, That), one(2, Owner)],
                _ => vec![
                    one(8, None),
                    one(4, The),
                    one(1, This),
                    one(1, That),
                    one(2, Owner),
                    one(measure, Measure),
                    one(1, Some),
                ],
            }
        }
        Countable::Pair => match role {
            Use::New => vec![one(4, None), one(1, Many)],
            Use::Second | Use::Absent => vec![one(1, None)],
            _ => {
                let bare = if matches!(role, Use::Theme | Use::Known) || noun.is("person") { 0 } else { 4 };
                vec![one(bare, None), one(4, The), one(2, This), one(1, That), one(4, Owner)]
            }
        },
        Countable::Each | Countable::Many => match role {
            Use::New => vec![one(6, A), many(2, None), one(8, Number), many(2, Many), many(1, Some)],
            Use::Second => vec![one(1, A)],
            Use::Absent => vec![one(3, A), many(1, None)],
            Use::Known => vec![one(8, The), one(3, Owner), one(2, This), one(2, That), many(1, The)],
            Use::Kind => {
                vec![
                    many(8, None),
                    one(3, The),
                    one(2, Owner),
                    one(1, OwnedBy),
                    one(2, This),
                    one(2, That),
                    many(1, This),
                ]
            }
            Use::Single => {
                vec![one(5, The), one(4, A), one(4, Owner), one(2, OwnedBy), one(2, This), one(1, That)]
            }
            Use::Place => vec![one(12, The), one(3, A), one(2, Owner), one(1, This), one(1, That)],
            Use::Theme => vec![
                one(10, The),
                many(3, The),
                one(4, Owner),
                one(2, OwnedBy),
                one(3, This),
                one(3, That),
                many(1, This),
                many(1, That),
                many(1, All),
            ],
            Use::Agent | Use::Object => vec![
                one(8, The),
                one(6, A),
                many(3, The),
                many(if role == Use::Object { 5 } else { 1 }, None),
                one(4, Owner),
                many(1, Owner),
                one(2, OwnedBy),
                one(2, This),
                one(2, That),
                many(1, This),
                many(1, That),
                one(5, Number),
                many(1, Many),
                many(if role == Use::Object { 1 } else { 0 }, Some),
                many(1, All),
                one(if role == Use::Agent { 1 } else { 0 }, Every),
            ],
        },
    };
    let counted = noun.countable == Countable::Each;
    // Of beds and stations little is said in the plural.
    let placed = !noun.preposition.is_empty() && role != Use::New;
    let plurals = !placed && (role != Use::Theme || noun.any(&["person", "animal", "goods", "plant", "hard"]));
    all.retain(|&(weight, (determiner, plural))| {
        let allowed = match determiner {
            Owner | OwnedBy => owned,
            Number => counted,
            Some => counted || noun.countable == Countable::Mass && noun.any(&["drink", "money", "food"]),
            Every => noun.any(&["person", "study", "shop"]),
            All => noun.any(&["person", "animal", "goods"]),
            _ => true,
        };
        weight > 0 && allowed && (plurals || !plural)
    });
    all
}

/// What a mass is measured in: English for one and for more, and Korean.
pub(crate) type Measures = &'static [(&'static str, &'static str, &'static str)];

/// How a mass is measured; empty if it is not.
pub(crate) fn measures(noun: &Noun) -> Measures {
    match noun.english {
        "water" | "juice" | "milk" | "orange juice" | "apple juice" | "lemonade" => {
            &[("glass of", "glasses of", "잔"), ("bottle of", "bottles of", "병")]
        }
        "beer" | "wine" | "soju" | "cola" | "soda" | "champagne" | "whiskey" => {
            &[("glass of", "glasses of", "잔"), ("bottle of", "bottles of", "병")]
        }
        "paper" => &[("sheet of", "sheets of", "장")],
        "bread" | "toast" => &[("slice of", "slices of", "조각")],
        "cheese" | "meat" | "chocolate" | "pizza" => &[("piece of", "pieces of", "조각")],
        "furniture" | "luggage" | "jewelry" => &[("piece of", "pieces of", "개")],
        _ if noun.is("bowl") => &[("bowl of", "bowls of", "그릇")],
        _ if noun.is("drink") => &[("cup of", "cups of", "잔")],
        _ => &[],
    }
}

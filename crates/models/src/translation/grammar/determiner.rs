//! Which words may stand before which noun: "a" not before water, numbers not before soccer.

use super::lexicon::{Countable, Noun, Which, kind};

/// What a noun phrase is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
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
    /// It comes after another and "and".
    Second,
    /// Something is done to it, and it is one.
    Single,
}

/// What stands before a noun to say which one is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Determiner {
    None,
    A,
    The,
    This,
    That,
    Owner,
    OwnedBy,
    Number,
    Many,
    /// Two cups of.
    Cups,
}

/// Korean says 들 of many where it is not plain from the rest: of people always, of others if they are certain ones.
pub(super) fn takes_plural(noun: &Noun, determiner: Determiner) -> bool {
    match determiner {
        Determiner::Number | Determiner::Cups => false,
        Determiner::None | Determiner::Many | Determiner::A => noun.is(kind::PERSON),
        _ => true,
    }
}

/// What may have an owner.
const OWNED: Which = Which::any(
    kind::GOODS
        | kind::PET
        | kind::FARM
        | kind::KIN
        | kind::SHARED
        | kind::READING
        | kind::CONTAINER
        | kind::SURFACE
        | kind::PHOTO
        | kind::MONEY
        | kind::HOME
        | kind::ROOM
        | kind::DRINK
        | kind::FOOD,
)
.but(kind::SKY);

/// What may stand before a noun, whether it is then in the plural, and how often.
pub(super) fn determiners(noun: &Noun, role: Role) -> Vec<(usize, (Determiner, bool))> {
    use Determiner::{A, Cups, Many, None, Number, OwnedBy, Owner, That, The, This};
    let owned = OWNED.fits(noun);
    let family = noun.is(kind::SHARED) && noun.is(kind::PERSON);
    let mut all: Vec<(usize, (Determiner, bool))> = match noun.countable {
        Countable::Bare => vec![(1, (None, false))],
        Countable::Unique => vec![(1, (The, false))],
        // A friend is somebody's.
        _ if noun.is(kind::KIN) && role == Role::Place => vec![(6, (Owner, false)), (2, (OwnedBy, false))],
        _ if family && !matches!(role, Role::New | Role::Absent) => vec![(6, (Owner, false)), (3, (OwnedBy, false))],
        Countable::Mass => {
            let cups = if noun.is(kind::DRINK) { 6 } else { 0 };
            match role {
                Role::New => vec![(4, (None, false)), (cups, (Cups, false))],
                Role::Absent => vec![(1, (None, false))],
                Role::Theme => vec![(6, (The, false)), (2, (This, false)), (2, (That, false)), (3, (Owner, false))],
                Role::Second | Role::Place => vec![(1, (None, false))],
                _ => vec![
                    (6, (None, false)),
                    (4, (The, false)),
                    (1, (This, false)),
                    (1, (That, false)),
                    (2, (Owner, false)),
                    (cups, (Cups, false)),
                ],
            }
        }
        Countable::Pair => match role {
            Role::New => vec![(4, (None, false)), (1, (Many, false))],
            Role::Second | Role::Absent => vec![(1, (None, false))],
            _ => vec![
                (if role == Role::Theme { 0 } else { 4 }, (None, false)),
                (4, (The, false)),
                (2, (This, false)),
                (1, (That, false)),
                (4, (Owner, false)),
            ],
        },
        Countable::Each { .. } | Countable::Many { .. } => match role {
            Role::New => vec![(6, (A, false)), (2, (None, true)), (8, (Number, false)), (2, (Many, true))],
            Role::Second => vec![(1, (A, false))],
            Role::Absent => vec![(3, (A, false)), (1, (None, true))],
            Role::Single => vec![
                (4, (The, false)),
                (4, (A, false)),
                (4, (Owner, false)),
                (2, (OwnedBy, false)),
                (1, (This, false)),
                (1, (That, false)),
            ],
            Role::Place => vec![(10, (The, false)), (2, (Owner, false)), (1, (This, false)), (1, (That, false))],
            Role::Theme => vec![
                (8, (The, false)),
                (3, (The, true)),
                (4, (Owner, false)),
                (2, (OwnedBy, false)),
                (2, (This, false)),
                (2, (That, false)),
                (1, (This, true)),
                (1, (That, true)),
            ],
            Role::Agent | Role::Object => {
                let object = role == Role::Object;
                vec![
                    (6, (The, false)),
                    (5, (A, false)),
                    (3, (The, true)),
                    (if object { 4 } else { 1 }, (None, true)),
                    (4, (Owner, false)),
                    (1, (Owner, true)),
                    (2, (OwnedBy, false)),
                    (2, (This, false)),
                    (2, (That, false)),
                    (1, (This, true)),
                    (1, (That, true)),
                    (5, (Number, false)),
                    (1, (Many, true)),
                ]
            }
        },
    };
    let counted = matches!(noun.countable, Countable::Each { .. });
    // Of beds and stations little is said in the plural.
    let plurals = role != Role::Theme || noun.is(kind::PERSON | kind::ANIMAL | kind::GOODS | kind::PLANT);
    all.retain(|&(weight, (determiner, plural))| {
        let allowed = match determiner {
            Owner | OwnedBy => owned,
            Number => counted,
            _ => true,
        };
        weight > 0 && allowed && (plurals || !plural)
    });
    all
}

//! The kinds of nouns.

/// A set of kinds.
pub(in super::super) type Kinds = u128;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident)*) => {
        /// One bit for each kind.
        pub(in super::super) mod kind {
            use super::Kinds;
            #[allow(clippy::upper_case_acronyms, non_camel_case_types)]
            enum Place { $($name),* }
            $($(#[$doc])* pub(in super::super::super) const $name: Kinds = 1 << Place::$name as u32;)*
        }
    };
}

kinds! {
    PERSON
    /// What one can be: a doctor.
    JOB
    /// One speaks of giving to them in other words.
    ELDER
    /// "My" is 우리.
    SHARED
    CHILD
    /// One has them.
    KIN
    ANIMAL
    BIRD
    SWIMMER
    PET
    WILD
    FOOD
    FRUIT
    DRINK
    COOKED
    BAKED
    SWEET
    SPICY
    /// May be hot or cold.
    WARM
    READING
    WRITING
    SOUND
    SONG
    SHOW
    SUBJECT
    /// May be interesting or famous.
    CONTENT
    /// May be difficult.
    HARD
    CLOTHES
    HAT
    SHOES
    SPORT
    /// Played with 치다.
    PIANO
    /// Played with 켜다.
    VIOLIN
    VEHICLE
    RIDE
    /// One waits for it.
    COACH
    OPENS
    BALL
    CUTLERY
    PEN
    BRUSH
    KNIFE
    /// May be bought and carried.
    GOODS
    GIFT
    LENT
    CRAFT
    /// Has a top and a space below.
    SURFACE
    CONTAINER
    PLANT
    PICTURE
    PHOTO
    COLOURED
    HEAVY
    LONG
    MONEY
    STUDY
    SHOP
    EATERY
    HOME
    OUTDOORS
    /// Room for games.
    FIELD
    /// One lives there.
    LIVING
    WATERS
    WORK
    CULTURE
    STOP
    BUILDING
    ROOM
    CITY
    SKY
    FARM
}

//! Names that nobody has heard before.

use foveal_grammar::Random;

use crate::Language;

/// The Hangul syllables of KS X 1001.
pub(crate) const SYLLABLES: &str = include_str!("../data/syllables.txt");

const ONSETS: [&str; 30] = [
    "b", "br", "c", "ch", "d", "dr", "f", "fl", "g", "gr", "h", "j", "k", "kr", "l", "m", "n", "p", "pr", "qu", "r",
    "s", "sh", "st", "t", "th", "tr", "v", "w", "z",
];
const VOWELS: [&str; 12] = ["a", "e", "i", "o", "u", "a", "e", "i", "o", "ia", "ea", "oo"];
const CODAS: [&str; 18] = ["", "", "", "", "n", "r", "l", "m", "s", "th", "nd", "rk", "x", "ck", "lt", "ns", "v", "d"];

/// Syllables that Korean given names have.
const GIVEN: &str = "민서지수현우진영호준석희연은경주하윤아선미정태성재동혁규빈혜유나다람솔별찬건도한";
const SURNAMES: &str = "김이박최정강조윤장임한오서신권황안송류홍";

/// Whether a name is for exercises that are held out alone: an eighth of all are.
///
/// ```
/// assert!(foveal_facts::is_held_out("Zoe") && !foveal_facts::is_held_out("Tom"));
/// ```
pub fn is_held_out(name: &str) -> bool {
    // FNV-1a.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (hash ^ (hash >> 29)).is_multiple_of(8)
}

/// A name made of syllables.
pub(crate) fn invent(language: Language, kind: &str, random: &mut Random) -> String {
    match language {
        Language::English => english(random),
        Language::Korean => korean(kind, random),
    }
}

fn english(random: &mut Random) -> String {
    let mut one_of = |from: &[&'static str]| from[random.below(from.len())];
    let mut name = String::new();
    let syllables = if one_of(&["2", "2", "3"]) == "3" { 3 } else { 2 };
    for _ in 0..syllables {
        name.push_str(one_of(&ONSETS));
        name.push_str(one_of(&VOWELS));
    }
    name.push_str(one_of(&CODAS));
    let first = name.remove(0).to_ascii_uppercase();
    name.insert(0, first);
    name
}

fn korean(kind: &str, random: &mut Random) -> String {
    let pick = |from: &str, random: &mut Random| {
        let count = from.chars().filter(|c| !c.is_whitespace()).count();
        from.chars().filter(|c| !c.is_whitespace()).nth(random.below(count)).expect("below the number of them")
    };
    // Any syllable may come in a name, so that each is learned as something to copy.
    let from = if random.below(3) == 0 { SYLLABLES } else { GIVEN };
    let mut name = String::new();
    if kind == "person" && random.below(3) == 0 {
        name.push(pick(SURNAMES, random));
    }
    for _ in 0..2 + usize::from(kind != "person" && random.below(3) == 0) {
        name.push(pick(from, random));
    }
    name
}

//! All words that sentences may have.

use std::collections::BTreeSet;

use super::{
    Countable, Names, Noun, PRONOUNS, VerbForms, adjectives, adverbs, adverbs_of_place, compared, headings, names,
    nouns, phrases, verbs,
};
use crate::sentence::{Over, english_number, ordinal, weather_words};

/// Words of grammar: they are no content words.
const FUNCTION: &str = "a an the this that these those it there and or but because so if when before after to for with by in \
    at on of from into out off up than as who which do does did be am is are was were been being will not going have has had \
    can could must should may please let's let cannot i me my you your he him his she her we us our they them their its \
    what where why how whose all every some many lot very too about just one's";

/// Words that sentences have without a table.
const OTHERS: &str = "today tomorrow yesterday now day time times week month year weather world class old years year half past o'clock \
    won dollars more most much hard glass glasses bottle bottles cup cups piece pieces slice slices sheet sheets bowl bowls \
    teacher everyone professor mom dad grandma sir friend please goodbye bye outside young child children student students \
    college lot days weeks months hours ago think believe say hear hope know like meet see love remember name together";

fn each_word(text: &str, words: &mut BTreeSet<String>) {
    let clean = |word: &str| word.trim_matches([',', '.', '?', '!']).to_lowercase();
    words.extend(text.split_whitespace().map(clean).filter(|word| !word.is_empty()));
}

/// The content words as the dictionary has them: nouns and names, verbs, adjectives, adverbs, numbers.
pub(crate) fn content_words() -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    nouns().iter().for_each(|noun| each_word(noun.english, &mut words));
    for verb in verbs() {
        each_word(&verb.english.base, &mut words);
        verb.tail.iter().for_each(|word| each_word(word, &mut words));
    }
    adjectives().iter().for_each(|adjective| each_word(adjective.english, &mut words));
    for which in [Names::People, Names::Cities, Names::Countries] {
        names(which).iter().for_each(|name| each_word(name.english, &mut words));
    }
    headings().flat_map(adverbs).for_each(|adverb| adverb.english.iter().for_each(|word| each_word(word, &mut words)));
    adverbs_of_place().iter().for_each(|(english, _)| each_word(english, &mut words));
    (1..=20).for_each(|n| each_word(&english_number(n), &mut words));
    weather_words().for_each(|word| each_word(word, &mut words));
    Over::all().iter().for_each(|over| each_word(&over.forms().base, &mut words));
    let function: BTreeSet<&str> = FUNCTION.split_whitespace().collect();
    words.retain(|word| !function.contains(word.as_str()));
    words
}

/// Every English word in all its forms, in lower case.
pub(crate) fn english_vocabulary() -> BTreeSet<String> {
    let mut words = content_words();
    each_word(FUNCTION, &mut words);
    each_word(OTHERS, &mut words);
    let several = |noun: &&Noun| matches!(noun.countable, Countable::Each | Countable::Many);
    nouns().iter().filter(several).for_each(|noun| each_word(&noun.plural, &mut words));
    let over = Over::all().iter().map(|over| over.forms().clone());
    let weather =
        ["rain", "snow", "think", "believe", "say", "hear", "hope", "know", "have"].map(|verb| VerbForms::of(verb, ""));
    // What is neither under way nor done at will has no form in -ing.
    let said = verbs().iter().map(|verb| (verb.english.clone(), verb.progressive || verb.is_willed()));
    for (forms, ing) in said.chain(over.chain(weather).map(|forms| (forms, false))) {
        let VerbForms { base, third, past, participle, ing: going } = forms;
        [base, third, past, participle].iter().for_each(|form| each_word(form, &mut words));
        if ing {
            each_word(&going, &mut words);
        }
    }
    each_word("raining snowing", &mut words);
    for (more, most) in adjectives().iter().filter(|a| a.grades()).filter_map(|adjective| compared(adjective.english)) {
        each_word(&more, &mut words);
        each_word(&most, &mut words);
    }
    for expression in phrases() {
        expression.english.iter().for_each(|word| each_word(word, &mut words));
    }
    PRONOUNS.iter().for_each(|p| [p.subject, p.object, p.owner].iter().for_each(|word| each_word(word, &mut words)));
    (1..=100).for_each(|n| each_word(&english_number(n), &mut words));
    (1..=31).for_each(|n| each_word(&ordinal(n), &mut words));
    each_word("hundred thousand", &mut words);
    let owners: Vec<String> = words.iter().map(|word| format!("{word}'s")).collect();
    let short = "don't doesn't didn't isn't aren't wasn't weren't can't couldn't shouldn't mustn't won't hasn't haven't hadn't \
         i'm he's she's it's that's there's you're we're they're i'll you'll he'll she'll we'll they'll it'll";
    each_word(short, &mut words);
    let nouns: BTreeSet<String> = nouns()
        .iter()
        .flat_map(|noun| noun.english.split(' '))
        .chain(names(Names::People).iter().map(|n| n.english))
        .map(str::to_lowercase)
        .collect();
    words.extend(owners.into_iter().filter(|owner| nouns.contains(owner.trim_end_matches("'s"))));
    words
}

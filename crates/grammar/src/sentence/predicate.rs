//! What is said of the subject: tense, progress, negation, ability, duty, wish.
//!
//! | | present | past | future |
//! |---|---|---|---|
//! | | reads 읽어요 | read 읽었어요 | will read 읽을 거예요 |
//! | under way | is reading 읽고 있어요 | was reading 읽고 있었어요 | |
//! | not | does not read 읽지 않아요 | did not read 읽지 않았어요 | will not read 읽지 않을 거예요 |
//! | can | can read 읽을 수 있어요 | could read 읽을 수 있었어요 | |
//! | must | has to read 읽어야 해요 | had to read 읽어야 했어요 | will have to read 읽어야 할 거예요 |

use super::chain::{Chain, Tense};
use super::over::Over;
use super::writer::{English, Id, Korean, Phrase, Writer, ids};
use crate::korean::{Ending, Stem};
use crate::lexicon::{Agreement, Attribute, Said, VerbForms};
use crate::pair::Part;

/// An auxiliary that says more than tense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Modal {
    Can,
    Must,
    Should,
    May,
}

/// How a predicate is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) tense: Tense,
    pub(crate) progressive: bool,
    /// "Has read", which Korean says as "read".
    pub(crate) perfect: bool,
    /// "Is going to read", the same as "will read".
    pub(crate) going: bool,
    pub(crate) negative: bool,
    /// Whether English puts the auxiliary before the subject.
    pub(crate) inverted: bool,
    pub(crate) agreement: Agreement,
    /// Whether the subject is someone else than I and you.
    pub(crate) third: bool,
    pub(crate) honoured: bool,
    pub(crate) modal: Option<Modal>,
    /// Wants to, likes to, has to.
    pub(crate) over: Option<&'static Over>,
}

impl Shape {
    /// A plain statement of a tense.
    pub(crate) fn plain(tense: Tense) -> Self {
        Shape {
            tense,
            progressive: false,
            perfect: false,
            going: false,
            negative: false,
            inverted: false,
            agreement: Agreement::Singular,
            third: true,
            honoured: false,
            modal: None,
            over: None,
        }
    }
}

/// A predicate; in English the auxiliary stands apart.
#[derive(Clone, Debug)]
pub(crate) struct Predicate {
    pub(crate) auxiliary: Vec<English>,
    pub(crate) not: Vec<English>,
    pub(crate) verb: Vec<English>,
    /// The word that is the verb among them.
    pub(crate) head: Id,
    pub(crate) chain: Chain,
}

const EXIST: Stem = Stem::regular("있다");
const LACK: Stem = Stem::regular("없다");
const BECOME: Stem = Stem::regular("되다");

/// A verb to be said: its forms, the words after it, and its Korean.
#[derive(Clone, Copy)]
pub(crate) struct Action<'a> {
    pub(crate) english: &'a VerbForms,
    pub(crate) tail: &'a [&'static str],
    pub(crate) korean: Said,
    /// "His teeth" or "her teeth", where the tail says "one's".
    pub(crate) owner: &'static str,
}

impl Writer<'_> {
    /// A verb.
    pub(crate) fn verb(&mut self, action: Action<'_>, shape: Shape) -> Predicate {
        let top = shape.over.map_or(action.english, |over| over.forms());
        let (mut auxiliary, finite) = auxiliary(top, shape);
        if shape.going && shape.tense == Tense::Future {
            auxiliary = vec![be(Tense::Present, shape.agreement), "going", "to"];
        }
        let auxiliary = self.words(&auxiliary);
        let not = shape.negative.then(|| self.word("not"));
        let mut verb = Vec::new();
        let mut over = None;
        if let Some(above) = shape.over {
            let word = self.say(&finite, Part::Verb);
            over = Some((above, word.id));
            verb.push(word);
            if !above.ing {
                verb.push(self.word("to"));
            }
            let form = if above.ing { &action.english.ing } else { &action.english.base };
            verb.push(self.say(form, Part::Verb));
        } else {
            verb.push(self.say(&finite, Part::Verb));
        }
        let main = verb.last().map_or(0, |word| word.id);
        let mut stands_for = vec![main];
        for word in action.tail {
            let word = if *word == "one's" { action.owner } else { *word };
            let part =
                if matches!(word, "a" | "to" | "for" | "up" | "on" | "off" | "down" | "out") || word == action.owner {
                    Part::Function
                } else {
                    Part::Noun
                };
            let word = self.say(word, part);
            if word.pieces[0] != "a" && word.pieces[0] != action.owner {
                stands_for.push(word.id);
            }
            verb.push(word);
        }
        let head = over.map_or(main, |(_, id)| id);
        let chain = chain(action.korean, &stands_for, shape, Words { auxiliary: &auxiliary, not: not.as_ref(), over });
        Predicate {
            auxiliary: split_inverted(auxiliary, shape, &mut verb),
            not: not.into_iter().collect(),
            verb,
            head,
            chain,
        }
    }

    /// Is big.
    pub(crate) fn adjective(&mut self, english: &str, degree: Phrase, korean: Attribute, shape: Shape) -> Predicate {
        let (mut predicate, be) = self.be(shape);
        predicate.verb.extend(degree.english);
        let adjective = self.say_all(english, Part::Adjective);
        let stands_for = ids(&adjective);
        predicate.verb.extend(adjective);
        let not = predicate.not.first().map(|word| word.id);
        let mut chain = match korean {
            Attribute::Stem(said) => {
                let mut chain = Chain::adjective(said, &stands_for, shape.honoured);
                if let Some(not) = not {
                    chain = chain.not(not);
                }
                chain.perhaps(&[be])
            }
            Attribute::Before(noun) | Attribute::Colour(noun) => {
                let noun = vec![Korean::new(noun, &stands_for)];
                not.map_or_else(|| Chain::is(noun.clone(), be), |not| Chain::is_not(noun.clone(), be, not))
            }
        };
        chain = chain.before_verb(degree.korean);
        predicate.chain = finish(chain, shape, &predicate.auxiliary);
        predicate
    }

    /// Is a doctor. `noun` has no particle yet.
    pub(crate) fn copula(&mut self, noun: Phrase, shape: Shape) -> Predicate {
        let (mut predicate, be) = self.be(shape);
        predicate.verb.extend(noun.english);
        let not = predicate.not.first().map(|word| word.id);
        let chain = if shape.tense == Tense::Future {
            let noun = super::writer::mark(noun.korean, crate::korean::Particle::Subject, None);
            let becoming = Chain::verb(Said { before: "", stem: BECOME }, &[be], shape.honoured).before_all(noun);
            match not {
                Some(not) => becoming.not(not),
                None => becoming,
            }
        } else if let Some(not) = not {
            Chain::is_not(noun.korean, be, not)
        } else {
            Chain::is(noun.korean, be)
        };
        predicate.chain = finish(chain, shape, &predicate.auxiliary);
        predicate
    }

    /// Is there: 있어요; is not there: 없어요.
    pub(crate) fn exists(&mut self, shape: Shape) -> Predicate {
        let (mut predicate, be) = self.be(shape);
        let not = predicate.not.first().map(|word| word.id);
        predicate.chain = finish(exists(be, not, shape), shape, &predicate.auxiliary).staying();
        predicate
    }

    /// Has, which is "is there" too.
    pub(crate) fn has(&mut self, shape: Shape) -> Predicate {
        let have = VerbForms::of("have", "");
        let korean = Said { before: "", stem: EXIST };
        let mut predicate = self.verb(Action { english: &have, tail: &[], korean, owner: "" }, shape);
        let not = predicate.not.first().map(|word| word.id);
        if let (Some(not), None, None) = (not, shape.modal, shape.over) {
            predicate.chain = finish(exists(predicate.head, Some(not), shape), shape, &predicate.auxiliary);
        }
        predicate
    }

    /// The forms of "be", which needs no "do". In the future it stands after "will".
    pub(crate) fn be(&mut self, shape: Shape) -> (Predicate, Id) {
        let future = shape.tense == Tense::Future;
        let mut auxiliary = Vec::new();
        let mut verb = Vec::new();
        let form = if future { "be" } else { be(shape.tense, shape.agreement) };
        let word = self.say(form, Part::Verb);
        let id = word.id;
        if future {
            let will = self.word("will");
            auxiliary.push(will);
            verb.push(word);
        } else {
            auxiliary.push(word);
        }
        let not = shape.negative.then(|| self.word("not")).into_iter().collect();
        let chain = Chain::verb(Said { before: "", stem: EXIST }, &[id], false);
        (Predicate { auxiliary, not, verb, head: id, chain }, id)
    }
}

/// "Is going to": only the first word goes before the subject.
fn split_inverted(mut auxiliary: Vec<English>, shape: Shape, verb: &mut Vec<English>) -> Vec<English> {
    if shape.going && auxiliary.len() == 3 {
        let rest = auxiliary.split_off(1);
        verb.splice(..0, rest);
    }
    auxiliary
}

/// The English words around a verb that its Korean must stand for.
struct Words<'a> {
    auxiliary: &'a [English],
    not: Option<&'a English>,
    over: Option<(&'static Over, Id)>,
}

fn auxiliary(top: &VerbForms, shape: Shape) -> (Vec<&'static str>, String) {
    let singular = shape.agreement == Agreement::Singular;
    let supported = shape.negative || shape.inverted;
    let base = || top.base.clone();
    let finite = match (shape.modal, shape.tense) {
        (Some(Modal::Can), Tense::Past) => (Some("could"), base()),
        (Some(Modal::Can), _) => (Some("can"), base()),
        (Some(Modal::Must), _) => (Some("must"), base()),
        (Some(Modal::Should), _) => (Some("should"), base()),
        (Some(Modal::May), _) => (Some("may"), base()),
        (None, Tense::Future) => (Some("will"), base()),
        (None, tense) if shape.progressive => (Some(be(tense, shape.agreement)), top.ing.clone()),
        (None, _) if shape.perfect => (Some(if singular { "has" } else { "have" }), top.participle.clone()),
        (None, Tense::Past) if supported => (Some("did"), base()),
        (None, Tense::Present) if supported => (Some(if singular { "does" } else { "do" }), base()),
        (None, Tense::Past) => (None, top.past.clone()),
        (None, Tense::Present) => (None, if singular { top.third.clone() } else { base() }),
    };
    (finite.0.into_iter().collect(), finite.1)
}

/// The Korean of a verb with all that is said by further stems.
fn chain(said: Said, stands_for: &[Id], shape: Shape, words: Words<'_>) -> Chain {
    let not = words.not.map(|word| word.id);
    let first = words.auxiliary.first().map(|word| word.id);
    // 알지 않다 is not said: one does not know, 모르다.
    let unknown = said.stem.dictionary() == "알다" && shape.modal.is_none() && words.over.is_none();
    if let (true, Some(not)) = (unknown, not) {
        let mut stands_for = stands_for.to_vec();
        stands_for.push(not);
        let said = Said { stem: Stem::regular("모르다"), ..said };
        return finish(Chain::verb(said, &stands_for, shape.honoured), shape, words.auxiliary);
    }
    let mut chain = Chain::verb(said, stands_for, shape.honoured);
    let mut negated = false;
    if let Some((over, id)) = words.over {
        (chain, negated) = over.say(chain, id, not, shape.third);
    }
    if let (true, Some(be)) = (shape.progressive, first) {
        chain = chain.under_way(be);
    }
    let modal = first.unwrap_or_default();
    chain = match (shape.modal, not) {
        (Some(Modal::Can), None) => chain.then(Ending::Future, Some(("수", &[modal])), EXIST, &[modal]),
        (Some(Modal::Can), Some(not)) => chain.then(Ending::Future, Some(("수", &[modal])), LACK, &[modal, not]),
        (Some(Modal::Must | Modal::Should), None) => chain.then(Ending::Must, None, Stem::regular("하다"), &[modal]),
        (Some(Modal::Must | Modal::Should | Modal::May), Some(not)) => {
            chain.then(Ending::If, Some(("안", &[not])), BECOME, &[modal])
        }
        (Some(Modal::May), None) => chain.then(Ending::May, None, BECOME, &[modal]),
        (None, Some(not)) if !negated => chain.not(not),
        (None, _) => chain,
    };
    finish(chain, shape, words.auxiliary)
}

/// Tense, and what carries it in English.
fn finish(mut chain: Chain, shape: Shape, auxiliary: &[English]) -> Chain {
    chain.tense = if shape.perfect { Tense::Past } else { shape.tense };
    chain.honoured = shape.honoured;
    let is = |word: &&English, texts: &[&str]| texts.contains(&word.pieces[0].as_str());
    chain.will = auxiliary.iter().filter(|word| is(word, &["will", "going"])).map(|word| word.id).collect();
    let carriers = auxiliary.iter().filter(|word| is(word, &["do", "does", "did", "has", "have"]));
    chain.perhaps(&carriers.map(|word| word.id).collect::<Vec<_>>())
}

pub(crate) fn be(tense: Tense, agreement: Agreement) -> &'static str {
    match (tense, agreement) {
        (Tense::Past, Agreement::Plural) => "were",
        (Tense::Past, _) => "was",
        (_, Agreement::First) => "am",
        (_, Agreement::Singular) => "is",
        (_, Agreement::Plural) => "are",
    }
}

fn exists(be: Id, not: Option<Id>, shape: Shape) -> Chain {
    match not {
        Some(not) => Chain::adjective(Said { before: "", stem: LACK }, &[be, not], shape.honoured),
        None => Chain::adjective(Said { before: "", stem: EXIST }, &[be], shape.honoured),
    }
}

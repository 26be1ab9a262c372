//! Clauses in which something is, is somewhere, or belongs to someone.

use super::act::agree;
use super::chain::Tense;
use super::clause::{Clause, Mood};
use super::determiner::Use;
use super::noun_phrase::{NounPhrase, a_or_an};
use super::predicate::Shape;
use super::writer::{Phrase, Writer, ids};
use crate::Construction;
use crate::lexicon::{Adjective, Agreement, Countable, IT, Noun, adverbs, before, of_kind, predicates};
use crate::pair::{Combination, Part};

impl Writer<'_> {
    /// Tense and negation of what is.
    pub(crate) fn being(&mut self, mood: Mood) -> Shape {
        let tense = self.choices.weighted(&[(4, Tense::Past), (9, Tense::Present), (2, Tense::Future)]);
        let negative = mood == Mood::Statement && self.choices.percent(15);
        Shape { negative, inverted: mood.inverts(), ..Shape::plain(tense.unwrap_or(Tense::Present)) }
    }

    /// A statement, "is she?", or one of some questions by their weights.
    pub(crate) fn mood(&mut self, questions: &[(usize, Mood)]) -> Mood {
        let moods = [&[(28, Mood::Statement), (5, Mood::Whether)], questions].concat();
        self.choices.weighted(&moods).unwrap_or(Mood::Statement)
    }

    /// A clause of a subject and "is".
    pub(crate) fn about(
        &mut self,
        subject: NounPhrase,
        shape: Shape,
        predicate: super::predicate::Predicate,
    ) -> Clause {
        let number = self.new_clause();
        let mut clause = Clause::new(predicate, number);
        clause.subject = Some(subject);
        clause.inverted = shape.inverted;
        self.note(&clause);
        clause
    }

    /// The house is big.
    pub(crate) fn quality(&mut self, wanted: Option<(Tense, Option<NounPhrase>)>) -> Option<(Clause, Mood)> {
        let adjective = self.choices.favoured(predicates(), |adjective| adjective.common)?;
        let simple = wanted.is_some();
        let mood = if simple { Mood::Statement } else { self.mood(&[(2, Mood::Why), (1, Mood::How)]) };
        let mut shape = self.being(mood);
        let mut given = None;
        if let Some((tense, subject)) = wanted {
            shape = Shape::plain(tense);
            given = subject;
            if given.is_some() && !adjective.persons {
                return None;
            }
        }
        let subject = match given {
            Some(subject) => subject,
            None => self.described(adjective)?,
        };
        agree(&mut shape, &subject);
        let heads = subject.heads.clone();
        self.combinations.extend(heads.into_iter().map(|noun| Combination { head: adjective.english, noun }));
        if mood == Mood::How {
            return self.how_is(subject, shape);
        }
        let again = !shape.negative && mood == Mood::Statement && self.choices.percent(8);
        let degree = if again || mood != Mood::Statement || shape.negative {
            Phrase::default()
        } else {
            self.degree(adjective, simple)
        };
        let too = degree.english.first().is_some_and(|word| word.pieces[0] == "too");
        let mut predicate = self.adjective(adjective.english, degree, adjective.korean, shape);
        if adjective.has("verb") {
            predicate.chain = predicate.chain.into_verb();
        }
        predicate.chain.by_past = adjective.has("past");
        if adjective.has("past") && shape.negative {
            return None;
        }
        if again && self.speaker.is_none_or(|speaker| speaker.subject != "it") {
            self.and_another(adjective, &subject, shape, &mut predicate)?;
        }
        let mut clause = self.about(subject, shape, predicate);
        clause.scene = too;
        if mood == Mood::Why {
            clause.time = self.asked(&mut clause, "why", "왜", None);
        } else if adjective.persons && !simple && shape.tense != Tense::Present && self.choices.percent(20) {
            clause.time = self.time(shape.tense, false)?;
        }
        self.construction = Construction::Quality;
        Some((clause, mood))
    }

    /// Who or what an adjective is said of.
    fn described(&mut self, adjective: &'static Adjective) -> Option<NounPhrase> {
        let weather = super::weather::weather_words().any(|word| word == adjective.english);
        if adjective.things
            && !weather
            && self.choices.percent(8)
            && predicates().iter().filter(|a| a.english == adjective.english).count() == 1
        {
            self.speaker = None;
            let this = self.choices.weighted(&[(2, 0), (1, 1), (1, 2)])?;
            let (english, korean) = [("it", "그것"), ("this", "이것"), ("that", "저것")][this];
            let Phrase { english, korean } = self.simple(english, korean, Part::Pronoun);
            let phrase = NounPhrase::new(english, korean, Agreement::Singular);
            return Some(NounPhrase { pronoun: (this == 0).then_some(&IT), ..phrase });
        }
        self.subject(&adjective.fits, adjective.persons, Use::Theme)
    }

    /// He is tall *and kind*: the first adjective goes on in 고.
    fn and_another(
        &mut self,
        first: &'static Adjective,
        subject: &NounPhrase,
        shape: Shape,
        predicate: &mut super::predicate::Predicate,
    ) -> Option<()> {
        let second = self.choices.favoured(predicates(), |adjective| adjective.common)?;
        let fits = match subject.heads.first() {
            Some(head) => second.fits.iter().any(|noun| noun.english == *head),
            None => second.persons,
        };
        let alike =
            second.english == first.english || second.korean == first.korean || second.has("past") || first.has("past");
        if !fits || alike || is_opposite(first.english, second.english) || subject.heads.len() > 1 {
            return None;
        }
        let and = self.word("and");
        let english = self.say_all(second.english, Part::Adjective);
        let said = second.said()?;
        let before = std::mem::replace(
            &mut predicate.chain,
            super::chain::Chain::adjective(said, &ids(&english), shape.honoured),
        );
        let mut first = before.perhaps(&[and.id]);
        first.tense = Tense::Present;
        first.honoured = false;
        let will = std::mem::take(&mut first.will);
        predicate.chain = predicate.chain.clone().before_all(first.end(super::chain::Close::And));
        predicate.chain.tense = shape.tense;
        predicate.chain.will = will;
        predicate.verb.push(and);
        predicate.verb.extend(english);
        Some(())
    }

    /// Very, too, really.
    pub(crate) fn degree(&mut self, adjective: &Adjective, simple: bool) -> Phrase {
        if simple || !adjective.grades() || !self.choices.percent(30) {
            return Phrase::default();
        }
        let all = adverbs("degree");
        let weights: Vec<_> = (0..all.len()).map(|n| (if n < 4 { 4 } else { 1 }, n)).collect();
        match self.choices.weighted(&weights) {
            Some(number) => self.expression(&all[number], Part::Adverb),
            None => Phrase::default(),
        }
    }

    /// How is the soup? 국은 어때요?
    fn how_is(&mut self, subject: NounPhrase, shape: Shape) -> Option<(Clause, Mood)> {
        if shape.tense == Tense::Future || subject.honoured {
            return None;
        }
        let (predicate, be) = self.be(shape);
        let how = self.say("how", Part::Question);
        let said = crate::lexicon::Said { before: "", stem: crate::korean::Stem::irregular("어떻다") };
        let chain = super::chain::Chain::adjective(said, &[how.id], false).perhaps(&[be]);
        let mut predicate = super::predicate::Predicate { chain, ..predicate };
        predicate.chain.tense = shape.tense;
        let mut clause = self.about(subject, shape, predicate);
        clause.front = vec![how];
        self.construction = Construction::Question;
        Some((clause, Mood::How))
    }

    /// My father is a doctor.
    pub(crate) fn identity(&mut self, wanted: Option<(Tense, Option<NounPhrase>)>) -> Option<(Clause, Mood)> {
        let mood = if wanted.is_some() { Mood::Statement } else { self.mood(&[]) };
        let mut shape = self.being(mood);
        let mut given = None;
        if let Some((tense, subject)) = wanted {
            shape = Shape::plain(tense);
            given = subject;
        }
        let people: Vec<_> =
            of_kind("person").iter().copied().filter(|noun| !noun.any(&["job", "honoured", "infant"])).collect();
        let subject = match given {
            Some(subject) => subject,
            None => self.subject(&people, true, Use::Theme)?,
        };
        agree(&mut shape, &subject);
        // You may be many, but are more often one.
        let plural = shape.agreement == Agreement::Plural && subject.pronoun.is_none_or(|p| p.subject != "you");
        let noun = self.noun(of_kind("job"))?;
        if subject.heads.contains(&noun.english) || noun.is("honoured") && shape.tense != Tense::Present {
            return None;
        }
        let phrase = self.a_kind_of(noun, plural)?;
        let predicate = self.copula(phrase, shape);
        let clause = self.about(subject, shape, predicate);
        self.construction = Construction::Identity;
        Some((clause, mood))
    }

    /// A famous singer; famous singers.
    pub(crate) fn a_kind_of(&mut self, noun: &'static Noun, plural: bool) -> Option<Phrase> {
        let fitting: Vec<_> =
            before(noun).iter().copied().filter(|a| !a.has("the") && !a.has("own") && !a.has("ordinal")).collect();
        let adjective = if self.choices.percent(25) { self.choices.one_of(&fitting) } else { None };
        let mut phrase = match adjective {
            Some(adjective) => self.attribute(adjective, false, noun),
            None => Phrase::default(),
        };
        if !plural && matches!(noun.countable, Countable::Each | Countable::Many) {
            let a = a_or_an(self, adjective.map_or(noun.english, |adjective| adjective.english));
            phrase.english.insert(0, a);
        }
        let Phrase { english, korean } =
            self.simple(if plural { &noun.plural } else { noun.english }, noun.korean, Part::Noun);
        phrase.english.extend(english);
        phrase.korean.extend(korean);
        Some(phrase)
    }
}

fn is_opposite(one: &str, other: &str) -> bool {
    const OPPOSITES: [(&str, &str); 26] = [
        ("big", "small"),
        ("tall", "short"),
        ("high", "low"),
        ("long", "short"),
        ("good", "bad"),
        ("kind", "rude"),
        ("nice", "rude"),
        ("diligent", "lazy"),
        ("polite", "rude"),
        ("happy", "sad"),
        ("young", "old"),
        ("strong", "weak"),
        ("rich", "poor"),
        ("pretty", "ugly"),
        ("safe", "dangerous"),
        ("fast", "slow"),
        ("expensive", "cheap"),
        ("heavy", "light"),
        ("thick", "thin"),
        ("wide", "narrow"),
        ("deep", "shallow"),
        ("bright", "dark"),
        ("clean", "dirty"),
        ("quiet", "noisy"),
        ("hot", "cold"),
        ("easy", "difficult"),
    ];
    const SETS: [&[&str]; 6] = [
        &["red", "blue", "yellow", "white", "black", "green", "purple", "pink", "brown", "gray", "orange"],
        &[
            "big", "large", "huge", "tiny", "small", "low", "high", "tall", "short", "long", "wide", "narrow",
            "spacious",
        ],
        &["healthy", "sick", "ill", "lucky", "unlucky", "busy", "free", "lazy", "tired"],
        &["hungry", "full", "thirsty", "cold", "hot", "warm", "cool", "sleepy", "awake", "late"],
        &[
            "happy", "glad", "sad", "upset", "bored", "worried", "nervous", "lonely", "proud", "calm", "curious",
            "dizzy",
        ],
        &[
            "smart",
            "stupid",
            "clever",
            "wise",
            "interesting",
            "boring",
            "fun",
            "funny",
            "exciting",
            "comfortable",
            "uncomfortable",
            "useful",
            "useless",
            "simple",
            "difficult",
            "hard",
            "easy",
            "rude",
            "kind",
            "nice",
            "friendly",
            "polite",
            "generous",
            "gentle",
            "cruel",
            "shy",
            "active",
            "quiet",
        ],
    ];
    OPPOSITES.iter().any(|&(a, b)| (one, other) == (a, b) || (one, other) == (b, a))
        || SETS.iter().any(|set| set.contains(&one) && set.contains(&other))
}

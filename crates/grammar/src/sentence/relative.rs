//! The woman who lives next door; the book that I bought; I think he is right.

use super::act::{Wanted, agree};
use super::chain::{Close, Tense};
use super::clause::{Clause, Mood, Subject};
use super::noun_phrase::NounPhrase;
use super::predicate::{Action, Shape};
use super::writer::{Phrase, Writer, ids};
use crate::Construction;
use crate::korean::Particle;
use crate::lexicon::{Agreement, Frame, Noun, PRONOUNS, Said, VerbForms, of_frame, of_kind, predicates};
use crate::pair::{Combination, Part};

impl Writer<'_> {
    /// Something is said of someone or something that a clause tells apart.
    pub(crate) fn relative(&mut self) -> Option<(Clause, Mood)> {
        let by_subject = self.choices.percent(60);
        let (noun, phrase) = if by_subject { self.who_does()? } else { self.that_one_does()? };
        self.construction = Construction::Relative;
        if by_subject && self.choices.percent(35) {
            return self.known_one(phrase);
        }
        let mut shape = Shape::plain(self.choices.weighted(&[(5, Tense::Present), (2, Tense::Past)])?);
        let mood = self.mood(&[]);
        shape.inverted = mood.inverts();
        shape.negative = mood == Mood::Statement && self.choices.percent(12);
        agree(&mut shape, &phrase);
        shape.honoured = false;
        let job = noun.is("person") && self.choices.percent(40);
        let predicate = if job {
            let job = self.noun(of_kind("job"))?;
            let what = self.a_kind_of(job, false)?;
            self.copula(what, shape)
        } else {
            let fitting: Vec<_> = predicates()
                .iter()
                .copied()
                .filter(|a| a.fits.iter().any(|other| other.english == noun.english) && !a.has("past"))
                .collect();
            let adjective = self.choices.one_of(&fitting)?;
            self.combinations.push(Combination { head: adjective.english, noun: noun.english });
            self.adjective(adjective.english, Phrase::default(), adjective.korean, shape)
        };
        let clause = self.about(phrase, shape, predicate);
        self.construction = Construction::Relative;
        Some((clause, mood))
    }

    /// I know the man who is singing.
    fn known_one(&mut self, phrase: NounPhrase) -> Option<(Clause, Mood)> {
        let verbs = [
            ("know", "알다"),
            ("like", "좋아하다"),
            ("meet", "만나다"),
            ("see", "보다"),
            ("love", "사랑하다"),
            ("remember", "기억하다"),
        ];
        let (english, korean) = self.choices.one_of(&verbs)?;
        let subject = {
            let n = self.choices.one_of(&[0, 0, 1, 2, 3, 4, 5])?;
            self.pronoun(&PRONOUNS[n], false)
        };
        let past = matches!(english, "meet" | "see");
        let mut shape = Shape::plain(if past { Tense::Past } else { Tense::Present });
        let mood = self.mood(&[]);
        shape.inverted = mood.inverts();
        shape.negative = mood == Mood::Statement && self.choices.percent(15);
        agree(&mut shape, &subject);
        let forms = VerbForms::of(english, korean);
        let action = Action { english: &forms, tail: &[], korean: Said::read(korean), owner: "" };
        let predicate = self.verb(action, shape);
        let number = self.new_clause();
        let mut clause = Clause::new(predicate, number);
        clause.inverted = shape.inverted;
        clause.subject = Some(subject);
        clause.object_ids.clone_from(&phrase.head_ids);
        clause.object = phrase.with(Particle::Object, None);
        self.note(&clause);
        Some((clause, mood))
    }

    /// The woman who lives next door.
    fn who_does(&mut self) -> Option<(&'static Noun, NounPhrase)> {
        let people: Vec<_> = of_kind("person")
            .iter()
            .copied()
            .filter(|noun| {
                !noun.any(&["kin", "honoured", "infant"]) && noun.countable == crate::lexicon::Countable::Each
            })
            .collect();
        // Most often a plain one: the man, the woman, the girl.
        let plain: Vec<_> = people.iter().copied().filter(|noun| !noun.is("job")).collect();
        let noun = if self.choices.percent(60) { self.noun(&plain)? } else { self.noun(&people)? };
        let the = self.word("the");
        let named = self.simple(noun.english, noun.korean, Part::Noun);
        let who = self.word("who");
        let mut subject = NounPhrase::new(vec![who], Vec::new(), Agreement::Singular);
        subject.head_ids.clear();
        self.speaker = None;
        let tense = self.choices.weighted(&[(4, Tense::Present), (3, Tense::Past)])?;
        let progressive = tense == Tense::Present && self.choices.percent(40);
        let wanted = Wanted { subject: Some(subject), simple: !progressive, ..Wanted::simple(tense) };
        let (clause, _) = self.act(wanted)?;
        if clause.dropped || clause.never {
            return None;
        }
        let english = [vec![the], named.english.clone(), clause.english()].concat();
        let korean = [clause.korean(Subject::Dropped, Close::Who), named.korean].concat();
        let mut phrase = NounPhrase::new(english, korean, Agreement::Singular);
        phrase.head_ids = ids(&named.english);
        phrase.heads = vec![noun.english];
        Some((noun, phrase))
    }

    /// The book that I bought: 제가 산 책.
    fn that_one_does(&mut self) -> Option<(&'static Noun, NounPhrase)> {
        let verb = self.choices.favoured(of_frame(Frame::Transitive), |verb| verb.common)?;
        if !verb.persons
            || verb.particle != Particle::Object
            || verb.has("own")
            || verb.past_is_base()
            || !verb.tail.is_empty()
        {
            return None;
        }
        let noun = self.noun(&verb.what)?;
        if noun.any(&["person", "kin", "body", "owned"])
            || matches!(noun.countable, crate::lexicon::Countable::Bare | crate::lexicon::Countable::Unique)
        {
            return None;
        }
        self.combinations.push(Combination { head: verb.dictionary(), noun: noun.english });
        let the = self.word("the");
        let plural = noun.countable == crate::lexicon::Countable::Pair;
        let named = self.simple(noun.english, noun.korean, Part::Noun);
        let that = self.choices.percent(60).then(|| self.word("that"));
        let subject = match self.choices.percent(70) {
            true => {
                let n = self.choices.one_of(&[0, 0, 1, 2, 3, 4, 5])?;
                self.pronoun(&PRONOUNS[n], false)
            }
            false => self.name()?,
        };
        let tense = match verb.has("lasting") || verb.has("state") && verb.has("nov") {
            true => Tense::Present,
            false => self.choices.weighted(&[(5, Tense::Past), (1, Tense::Future)])?,
        };
        let mut shape = Shape::plain(tense);
        agree(&mut shape, &subject);
        let action = Action { english: &verb.english, tail: &[], korean: verb.korean, owner: "" };
        let predicate = self.verb(action, shape);
        let number = self.new_clause();
        let mut clause = Clause::new(predicate, number);
        clause.subject = Some(subject);
        self.note(&clause);
        let preposition = self.words(&verb.preposition);
        let english =
            [vec![the], named.english.clone(), that.into_iter().collect(), clause.english(), preposition].concat();
        let will = clause.predicate.chain.will.clone();
        let mut korean = clause.korean(Subject::Within, Close::Who);
        if let Some(last) = korean.pop() {
            korean.push(last.perhaps(will.first().copied()));
        }
        korean.extend(named.korean);
        let mut phrase = NounPhrase::new(english, korean, if plural { Agreement::Plural } else { Agreement::Singular });
        phrase.head_ids = ids(&named.english);
        phrase.heads = vec![noun.english];
        Some((noun, phrase))
    }

    /// I think he is right: 저는 그가 맞다고 생각해요. She said that it was cold: 그녀는 춥다고 말했어요.
    pub(crate) fn thought(&mut self) -> Option<(Clause, Mood)> {
        let verbs = [
            ("think", "생각하다"),
            ("think", "생각하다"),
            ("believe", "믿다"),
            ("say", "말하다"),
            ("hear", "!듣다"),
            ("hope", "바라다"),
        ];
        let (english, korean) = self.choices.one_of(&verbs)?;
        let subject = {
            let n = self.choices.one_of(&[0, 0, 0, 1, 2, 3, 4, 5])?;
            self.pronoun(&PRONOUNS[n], false)
        };
        let past = match english {
            "say" | "hear" => true,
            "hope" | "believe" => false,
            _ => self.choices.percent(25),
        };
        let mood = if english == "think" { self.mood(&[]) } else { Mood::Statement };
        let mut shape = Shape::plain(if past { Tense::Past } else { Tense::Present });
        shape.inverted = mood.inverts();
        shape.negative = mood == Mood::Statement && english == "think" && self.choices.percent(15);
        agree(&mut shape, &subject);
        let forms = VerbForms::of(english, korean);
        let action = Action { english: &forms, tail: &[], korean: Said::read(korean), owner: "" };
        let predicate = self.verb(action, shape);
        let number = self.new_clause();
        let mut main = Clause::new(predicate, number);
        main.inverted = shape.inverted;
        // What was thought then is said in the past in English, in the present in Korean.
        let tense = match (past, english) {
            (true, _) => Tense::Past,
            (_, "hope") => Tense::Present,
            _ => self.choices.weighted(&[(5, Tense::Present), (2, Tense::Past), (2, Tense::Future)])?,
        };
        self.speaks_of(&subject);
        let mut thought = self.content(&subject, tense, english)?;
        if thought.dropped || !thought.time.is_empty() || !thought.clock.is_empty() {
            return None;
        }
        if past {
            thought.predicate.chain.tense = Tense::Present;
        }
        let that = self.choices.percent(35).then(|| self.word("that"));
        main.subject = Some(subject);
        self.note(&main);
        let close = if english == "hope" { Close::Hoped } else { Close::That };
        let english: Vec<_> = that.into_iter().chain(thought.english()).collect();
        main.object = Phrase { english, korean: thought.korean(Subject::Within, close) };
        self.construction = Construction::Thought;
        Some((main, mood))
    }

    /// What is thought: someone else is kind, does something, is a teacher; it is cold.
    fn content(&mut self, by: &NounPhrase, tense: Tense, verb: &str) -> Option<Clause> {
        let kind = self.choices.weighted(&[(5, 0), (3, 1), (2, 2), (if verb == "hope" { 0 } else { 2 }, 3)])?;
        if kind == 2 {
            return match self.choices.percent(60) {
                true => Some(self.falling(Some(tense))?.0),
                false if verb != "hope" => Some(self.weather_is(Some(tense))?.0),
                false => None,
            };
        }
        let subject = match self.choices.percent(60) {
            true => {
                let others: Vec<_> = PRONOUNS
                    .iter()
                    .filter(|p| by.pronoun.is_none_or(|by| by.subject != p.subject && !by.is_third() || !p.is_third()))
                    .collect();
                let pronoun = self.choices.one_of(&others)?;
                if by.pronoun.is_some_and(|by| by.subject == pronoun.subject) {
                    return None;
                }
                self.pronoun(pronoun, false)
            }
            false => self.name()?,
        };
        self.speaks_of(&subject);
        match kind {
            0 => Some(self.quality(Some((tense, Some(subject))))?.0),
            1 => Some(self.act(Wanted { subject: Some(subject), ..Wanted::simple(tense) })?.0),
            _ => Some(self.identity(Some((tense, Some(subject))))?.0),
        }
    }
}

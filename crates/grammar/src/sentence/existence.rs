//! There are three cats in the garden; the cat is on the chair; I have two dogs.

use super::act::agree;
use super::chain::Tense;
use super::clause::{Clause, Mood};
use super::determiner::Use;
use super::noun_phrase::NounPhrase;
use super::writer::{Korean, Phrase, Writer, ids, korean_words};
use crate::Construction;
use crate::korean::Particle;
use crate::lexicon::{Agreement, Countable, Noun, adverbs, nouns, of_kind};
use crate::pair::{Combination, Part};

impl Writer<'_> {
    /// There are three cats in the garden.
    pub(crate) fn existence(&mut self) -> Option<(Clause, Mood)> {
        let mood = self.mood(&[(2, Mood::HowMany)]);
        let mut shape = self.being(mood);
        shape.negative = false;
        self.speaker = None;
        let there = self.word("there");
        let (what, place) = self.whereabouts()?;
        // "There is a daughter" asks whose.
        let fitting: Vec<_> = what.into_iter().filter(|noun| !noun.is("kin")).collect();
        let noun = self.noun(&fitting)?;
        let mut front = Vec::new();
        let object = if mood == Mood::HowMany {
            let (asking, named) = (self.say_all("how many", Part::Question), self.say_all(&noun.plural, Part::Noun));
            let mut korean = super::writer::mark(korean_words(noun.korean, &ids(&named)), Particle::Subject, None);
            if noun.countable != Countable::Each {
                return None;
            }
            korean.push(Korean::new("몇", &ids(&asking)));
            korean.push(Korean::new(noun.counter, &ids(&named)));
            shape.agreement = Agreement::Plural;
            front = [asking, named].concat();
            Phrase { english: Vec::new(), korean }
        } else {
            let thing = self.noun_phrase(noun, Use::New)?;
            shape.agreement = thing.agreement;
            thing.into_existing()
        };
        let predicate = self.exists(shape);
        let number = self.new_clause();
        let mut clause = Clause::new(predicate, number);
        clause.asked.english.push(there);
        clause.front = front;
        clause.inverted = shape.inverted;
        clause.object = object;
        clause.place = place;
        self.note(&clause);
        self.construction = Construction::Existence;
        Some((clause, mood))
    }

    /// The cat is on the chair.
    pub(crate) fn location(&mut self) -> Option<(Clause, Mood)> {
        let mood = self.mood(&[(6, Mood::Where)]);
        let mut shape = self.being(mood);
        let (what, place) = self.whereabouts()?;
        let people = what.iter().any(|noun| noun.is("person"));
        let (subject, mood) = if mood == Mood::Where && self.choices.percent(45) {
            let places: Vec<_> =
                nouns().iter().filter(|noun| !noun.preposition.is_empty() && !noun.any(&["city", "sky"])).collect();
            shape.tense = Tense::Present;
            (self.subject(&places, false, Use::Place)?, mood)
        } else {
            (self.subject(&what, people, Use::Theme)?, mood)
        };
        agree(&mut shape, &subject);
        let predicate = self.exists(shape);
        let mut clause = self.about(subject, shape, predicate);
        clause.place = match mood {
            Mood::Where => self.asked(&mut clause, "where", "어디", Some(Particle::At)),
            _ => place,
        };
        self.construction = Construction::Location;
        Some((clause, mood))
    }

    /// I have two dogs; she has two sisters and a brother.
    pub(crate) fn possession(&mut self, given: Option<NounPhrase>) -> Option<(Clause, Mood)> {
        let mood = if given.is_some() { Mood::Statement } else { self.mood(&[(2, Mood::Who), (2, Mood::HowMany)]) };
        let mut shape = self.being(mood);
        let people = of_kind("person");
        let owner = match (given, mood) {
            (Some(subject), _) => Some(subject),
            (None, Mood::Who) => None,
            _ => Some(self.subject(people, true, Use::Theme)?),
        };
        if let Some(owner) = &owner {
            agree(&mut shape, owner);
        } else {
            self.speaker = None;
            self.woman = false;
        }
        let what = ["goods", "pet", "sibling", "kin", "money", "owned1", "appointment1"];
        let kind = self.choices.weighted(&[(10, what[0]), (4, what[1]), (5, what[2]), (3, what[3]), (1, what[4])])?;
        let fitting: Vec<_> =
            of_kind(kind).iter().copied().filter(|noun| !noun.any(&["food", "ingredient", "elder"])).collect();
        let number = self.new_clause();
        let mut clause = Clause::new(self.has(shape), number);
        if mood == Mood::HowMany {
            let noun = self.noun(&fitting).filter(|noun| noun.countable == Countable::Each)?;
            let (asking, named) = (self.say_all("how many", Part::Question), self.say_all(&noun.plural, Part::Noun));
            let korean = noun.womans.filter(|_| self.woman).unwrap_or(noun.korean);
            clause.object.korean = super::writer::mark(korean_words(korean, &ids(&named)), Particle::Subject, None);
            clause.object.korean.push(Korean::new("몇", &ids(&asking)));
            clause.object.korean.push(Korean::new(noun.counter, &ids(&named)));
            clause.front = [asking, named].concat();
        } else {
            let role = if shape.negative { Use::Absent } else { Use::New };
            let mut thing = self.object(&fitting, false, role)?;
            if kind == "sibling" && thing.heads.len() == 1 && !shape.negative && self.choices.percent(50) {
                let other = self.noun(&fitting)?;
                let other = self.noun_phrase(other, Use::New)?;
                if thing.counted.is_empty() || other.counted.is_empty() && other.agreement != Agreement::Singular {
                    return None;
                }
                let mut other = other;
                if other.counted.is_empty() {
                    // 언니 두 명과 오빠 한 명: one is counted if the other is.
                    other.counted = vec![Korean::new("한", &other.head_ids), Korean::new("명", &other.head_ids)];
                }
                thing = thing.and(other, self);
            }
            let heads = thing.heads.clone();
            self.combinations.extend(heads.into_iter().map(|noun| Combination { head: "have", noun }));
            clause.object_ids.clone_from(&thing.head_ids);
            clause.object = thing.into_existing();
        }
        clause.inverted = shape.inverted;
        match owner {
            Some(owner) => clause.subject = Some(owner),
            None => clause.asked = self.simple("who", "누가", Part::Question),
        }
        self.note(&clause);
        self.construction = Construction::Possession;
        Some((clause, mood))
    }

    /// Where something may be, and what: people and animals in places, things on furniture and in bags.
    fn whereabouts(&mut self) -> Option<(Vec<&'static Noun>, Phrase)> {
        let small = |noun: &&&'static Noun| {
            noun.any(&["goods", "ball", "cutlery"])
                && !noun.any(&[
                    "surface",
                    "vehicle",
                    "container",
                    "ride",
                    "heavy",
                    "ingredient",
                    "hot",
                    "violin",
                    "wind",
                    "piano",
                ])
        };
        let fitting: Vec<_> = of_kind("goods").iter().filter(small).copied().collect();
        match self.choices.weighted(&[(4, 0), (5, 1), (2, 2)])? {
            0 => {
                let kind =
                    self.choices.one_of(&["study", "home", "outdoors", "eatery", "stop", "shop", "culture", "room"])?;
                let place = self.place(of_kind(kind), false, "", Particle::At)?;
                let outside = ["outdoors", "home", "room"].contains(&kind);
                let who =
                    self.choices.weighted(&[(8, "person"), (4, "pet"), (if outside { 3 } else { 0 }, "structure")])?;
                Some((of_kind(who).to_vec(), place))
            }
            1 => {
                let all = adverbs("beside");
                let number = self.choices.one_of(&(0..all.len()).collect::<Vec<_>>())?;
                let pets = self.choices.percent(25);
                let what = if pets { of_kind("pet").to_vec() } else { fitting };
                let english = all[number].english.join(" ");
                Some((what, self.beside("surface", &english, all[number].korean[0].text)?))
            }
            _ => {
                let dry = |noun: &&'static Noun| !noun.any(&["food", "clothes", "cloth"]);
                Some((fitting.into_iter().filter(dry).collect(), self.beside("container", "in", "안")?))
            }
        }
    }

    /// On the chair: 의자 위에.
    pub(crate) fn beside(&mut self, kind: &str, english: &str, korean: &str) -> Option<Phrase> {
        let before = self.say_all(english, Part::Adverb);
        let noun = self.noun(of_kind(kind))?;
        let mut phrase = self.noun_phrase(noun, Use::Place)?.bare();
        phrase.korean.push(Korean::new(korean, &ids(&before)).particle(Particle::At));
        phrase.english.splice(..0, before);
        Some(phrase)
    }
}

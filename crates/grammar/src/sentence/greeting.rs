//! What people say to each other: hello, thank you, see you tomorrow.

use super::clause::Mood;
use super::writer::{Korean, Phrase, Writer};
use crate::Construction;
use crate::lexicon::{adverbs, phrases};
use crate::pair::Part;

impl Writer<'_> {
    pub(crate) fn greeting(&mut self) -> Option<(Phrase, &'static str)> {
        let all = phrases();
        let number = self.choices.one_of(&(0..all.len()).collect::<Vec<_>>())?;
        let said = &all[number];
        let has = |flag: &str| said.flags.contains(&flag);
        let asks = said.korean.last().is_some_and(|word| word.mark == "?");
        let mut phrase = self.expression(said, Part::Noun);
        let mut mark = if asks { "?" } else { self.choices.weighted(&[(8, "."), (1, "!")])? };
        if has("time") {
            let times: Vec<_> = adverbs("future")
                .iter()
                .chain(adverbs("day"))
                .filter(|t| !matches!(t.english[0], "later" | "soon" | "someday" | "after"))
                .collect();
            let time = self.choices.one_of(&times)?;
            let day = time.korean[0].particle.is_empty() && time.korean[0].text.ends_with("요일");
            let on = day.then(|| self.word("on"));
            let mut when = self.expression(time, Part::Adverb);
            if let Some(on) = &on
                && let Some(last) = when.korean.pop()
            {
                when.korean.push(last.and("에").perhaps(Some(on.id)));
            }
            phrase.english.extend(on.into_iter().chain(when.english));
            phrase.korean.splice(..0, when.korean);
            if self.choices.percent(40) {
                let (goodbye, korean): (&str, &[&str]) =
                    self.choices.one_of(&[("Goodbye", &["안녕히", "가세요"][..]), ("Bye", &["잘", "가요"][..])])?;
                let word = self.say(goodbye, Part::Noun);
                let before: Vec<_> = korean.iter().map(|text| Korean::cut(text, &[word.id])).collect();
                let before = Phrase { english: vec![word], korean: before }.comma();
                lower_first(&mut phrase);
                phrase = before.and(phrase);
            }
        } else if has("more") && self.choices.percent(50) {
            return self.and_more(phrase);
        } else if has("name") && self.choices.percent(60) {
            phrase = phrase.comma().and(self.addressed()?);
        }
        if mark == "." && asks {
            mark = "?";
        }
        self.construction = Construction::Greeting;
        Some((phrase, mark))
    }

    /// Who is spoken to: Mina, Mr. Kim's "teacher", everyone.
    fn addressed(&mut self) -> Option<Phrase> {
        let others = [
            ("teacher", "선생님"),
            ("everyone", "여러분"),
            ("professor", "교수님"),
            ("Mom", "엄마"),
            ("Dad", "아빠"),
            ("Grandma", "할머니"),
            ("sir", "선생님"),
            ("my friend", "친구"),
        ];
        if self.choices.percent(75) {
            return Some(self.name()?.bare());
        }
        let (english, korean) = self.choices.one_of(&others)?;
        Some(self.simple(english, korean, Part::Noun))
    }

    /// Hello, my name is Anna. Yes, I like it. No, she is not a doctor.
    fn and_more(&mut self, phrase: Phrase) -> Option<(Phrase, &'static str)> {
        let introduces = phrase.english.first().is_some_and(|word| word.pieces[0].starts_with('H'));
        let (clause, mood) = if introduces { self.introduction()? } else { self.act(super::act::Wanted::default())? };
        let no = phrase.english.first().is_some_and(|word| word.pieces[0] == "No");
        let negative = !clause.predicate.not.is_empty();
        if mood != Mood::Statement || !introduces && no != negative {
            return None;
        }
        self.construction = Construction::Greeting;
        Some((phrase.comma().and(clause.phrase()), "."))
    }
}

/// "Goodbye, see you": what stood first no longer does.
fn lower_first(phrase: &mut Phrase) {
    if let Some(first) = phrase.english.first_mut() {
        first.pieces[0] = first.pieces[0].to_lowercase();
    }
}

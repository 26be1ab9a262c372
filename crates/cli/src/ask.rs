//! `foveal ask`: the answer to a question from passages, and the attention over them.

mod documents;
mod pictures;

use anyhow::{Result, bail};
use foveal_models::reading::{Answered, Asker, Limits, ask_language_model, refusal};
use foveal_models::retrieval::{Bm25, Ranked, rank_by_meaning};
use foveal_models::{Model, OpenModel};
use serde_json::{Value, json};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use self::documents::{Documents, Passage};
use crate::arguments::Ask;
use crate::language::Language;
use crate::model;
use crate::output::Output;
use crate::report::Report;
use crate::table::Table;

/// Passages that are embedded at most: of more, those that share most words with the question.
const EMBEDDED: usize = 1000;
/// Characters of a question at most.
const QUESTION: usize = 500;
/// Words that are named as those looked at most.
const WORDS: usize = 6;

pub fn run(ask: &Ask, output: Output) -> Result<()> {
    output.check_file()?;
    let question = ask.question.trim();
    if question.is_empty() {
        bail!("the question is empty; ask something, as in foveal ask \"Where does Anna live?\" --passages notes.txt");
    }
    let length = question.chars().count();
    if length > QUESTION {
        bail!("the question has {length} characters; ask in at most {QUESTION}, and put the rest into the passages");
    }
    let documents = Documents::read(&ask.passages)?;
    let passages = documents.passages();
    if passages.is_empty() {
        bail!("there is no text in {}; give files with some sentences", documents.names());
    }
    let mut ranked = rank(ask, question, &passages)?;
    ranked.truncate(ask.top.into());
    let read: Vec<&str> = ranked.iter().map(|ranked| passages[ranked.passage].text).collect();
    let open = model::open(&ask.model, "reader")?;
    let (answered, count) = match &open.model {
        Model::Reader(_) => (Asker::new(&open, Limits::default())?.ask(question, &read)?, read.len()),
        _ => ask_language_model(&open, question, &read, Limits::default())?,
    };
    let found = Found { question, open: &open, ranked: &ranked[..count], passages: &passages, answered: &answered };
    output.show(&found.report(&output)?)
}

/// All passages, best first.
fn rank(ask: &Ask, question: &str, passages: &[Passage]) -> Result<Vec<Ranked>> {
    let by_words = Bm25::new(passages).rank(question);
    let Some(name) = &ask.embed else { return Ok(by_words) };
    let open = OpenModel::open(name)?;
    let chosen: Vec<usize> = by_words.iter().take(EMBEDDED).map(|ranked| ranked.passage).collect();
    let texts: Vec<&str> = chosen.iter().map(|passage| passages[*passage].text).collect();
    let ranked = rank_by_meaning(&open, question, &texts)?;
    Ok(ranked.into_iter().map(|ranked| Ranked { passage: chosen[ranked.passage], ..ranked }).collect())
}

/// An answer with all that it came from.
struct Found<'a> {
    question: &'a str,
    open: &'a OpenModel,
    ranked: &'a [Ranked],
    passages: &'a [Passage<'a>],
    answered: &'a Answered,
}

impl Found<'_> {
    fn passage(&self, n: usize) -> &Passage<'_> {
        &self.passages[self.ranked[n].passage]
    }

    fn report(&self, output: &Output) -> Result<Report> {
        let language = output.language;
        let tr = |english, korean| language.of(english, korean);
        let Answered { text, probability, .. } = self.answered;
        let best = self.answered.passage();
        let said = text.clone().unwrap_or_else(|| refusal(self.question).to_owned());
        let mut notes = vec![format!("{} {probability:.2}", tr("probability", "확률"))];
        if let Some(best) = best {
            notes.push(self.words(best, language));
        }
        let weights = self.answered.weights();
        let columns =
            ["", tr("attention", "어텐션"), tr("score", "순위 점수"), tr("from", "출처"), tr("passage", "글")];
        let sources = (0..weights.len()).map(|n| self.passage(n).source.width()).max().unwrap_or(0);
        let room = output.width().saturating_sub(sources + 33).max(20);
        let mut table = Table::new(columns).text_columns([3, 4]);
        for (n, weight) in weights.iter().enumerate() {
            let passage = self.passage(n);
            let mark = if best == Some(n) { "→" } else { " " };
            let beginning = shortened(passage.text, room);
            let score = format!("{:.2}", self.ranked[n].score);
            table.row([
                format!("{mark} {}", n + 1),
                format!("{weight:.3}"),
                score,
                passage.source.to_owned(),
                beginning,
            ]);
        }
        Ok(Report {
            title: said.clone(),
            notes,
            tables: vec![table],
            scenes: self.scenes(&said, language)?,
            figures: self.figures(),
            ..Report::default()
        })
    }

    /// The words of a passage that were looked at most.
    fn words(&self, passage: usize, language: Language) -> String {
        let text = self.passage(passage).text;
        let mut words = self.answered.words(passage, text);
        words.sort_by(|a, b| b.1.total_cmp(&a.1));
        let named: Vec<String> =
            words.iter().take(WORDS).map(|(word, weight)| format!("{} {weight:.2}", &text[word.clone()])).collect();
        format!("{} {}: {}", language.of("passage", "글"), passage + 1, named.join(" · "))
    }

    fn figures(&self) -> Value {
        let weights = self.answered.weights();
        let passages: Vec<Value> = (0..weights.len())
            .map(|n| {
                let passage = self.passage(n);
                let words = self.answered.words(n, passage.text);
                let words: Vec<Value> =
                    words.into_iter().map(|(word, weight)| json!([&passage.text[word], weight])).collect();
                json!({ "source": passage.source, "text": passage.text, "score": self.ranked[n].score,
                        "weight": weights[n], "words": words })
            })
            .collect();
        json!({
            "question": self.question, "answer": self.answered.text, "probability": self.answered.probability,
            "passage": self.answered.passage(), "weights": weights, "passages": passages, "model": self.open.name,
            "written": self.answered.written,
        })
    }
}

/// The beginning of a text, in one line of so many columns.
fn shortened(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut width = 0;
    let end = line.char_indices().find(|(_, c)| {
        width += c.width().unwrap_or(0);
        width > most
    });
    match end {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

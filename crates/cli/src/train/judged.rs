//! How good a translator is that was trained on the grammar: right or wrong, sure or unsure, and what it looks at.

use std::collections::HashSet;

use anyhow::Result;
use foveal_grammar::{Certainty, Corpus, Pair, Part, Random, Role, tokens};
use foveal_models::model::Transformer;
use foveal_models::train::Example;
use foveal_models::translation::attention::{Aligner, Reading};
use foveal_models::translation::{Evaluation, Languages, LinkedPair, Translation};
use serde_json::{Value, json};

use super::pairs::BLEU;
use crate::output::Output;
use crate::table::Table;

/// Sentences that alignments are scored on.
const ALIGNED: usize = 500;
/// From here on a translator counts as sure.
pub const SURE: f32 = 0.9;

/// What was found.
pub struct Judgement {
    sentences: Evaluation,
    combinations: Evaluation,
    calibration: Calibration,
    aligners: Vec<Aligner>,
    verbs: f64,
}

/// How far confidence can be trusted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// The share of held-out sentences that it is sure of.
    pub sure: f64,
    /// The share of these that are right.
    pub right: f64,
    /// The share of shuffled sentences that it is sure of all the same.
    pub shuffled: f64,
}

impl Judgement {
    pub fn of(languages: &Languages, model: &Transformer, corpus: &Corpus, aligners: Vec<Aligner>) -> Result<Self> {
        Ok(Judgement {
            sentences: evaluate(languages, model, &corpus.sentences)?,
            combinations: evaluate(languages, model, &corpus.combinations)?,
            calibration: Calibration::of(languages, model, &corpus.sentences)?,
            verbs: verbs(languages, model, &corpus.sentences[..ALIGNED], &aligners[0])?,
            aligners,
        })
    }

    pub fn tables(&self, output: &Output) -> Vec<Table> {
        let tr = |english, korean| output.language.of(english, korean);
        let mut table = Table::new([tr("held out", "검증"), tr("exact", "정확"), "BLEU", "chrF"]);
        for (name, translated) in
            [(tr("sentences", "문장"), &self.sentences), (tr("combinations", "단어 조합"), &self.combinations)]
        {
            table.row([
                name.to_owned(),
                percent(translated.exact_match() / 100.0),
                format!("{:.1}", translated.bleu(BLEU)),
                format!("{:.1}", translated.chrf()),
            ]);
        }
        let Calibration { sure, right, shuffled } = self.calibration;
        let mut sureness = Table::new([tr("at least 0.9 sure", "확신 0.9 이상"), ""]);
        sureness.row([tr("of held-out sentences", "검증 문장 가운데").to_owned(), percent(sure)]);
        sureness.row([tr("of these, right", "그중 맞은 것").to_owned(), percent(right)]);
        sureness.row([tr("of shuffled sentences", "뒤섞은 문장 가운데").to_owned(), percent(shuffled)]);
        let mut alignments = Table::new([tr("alignment read from", "정렬을 읽은 곳"), "AER"]);
        for aligner in self.aligners.iter().take(5) {
            alignments.row([describe(aligner), percent(aligner.score.error_rate())]);
        }
        alignments.row([tr("verbs right", "맞은 동사").to_owned(), percent(self.verbs)]);
        vec![table, sureness, alignments]
    }

    pub fn figures(&self, parameters: usize, steps: usize) -> Value {
        let both = |of: &dyn Fn(&Evaluation) -> f64| json!({ "sentences": of(&self.sentences), "combinations": of(&self.combinations) });
        let Calibration { sure, right, shuffled } = self.calibration;
        json!({
            "parameters": parameters, "steps": steps,
            "exact": both(&|evaluation| evaluation.exact_match() / 100.0),
            "bleu": both(&|evaluation| evaluation.bleu(BLEU)),
            "chrf": both(&|evaluation| evaluation.chrf()),
            "confidence": { "sure": sure, "right_of_sure": right, "sure_of_shuffled": shuffled },
            "verbs": self.verbs,
            "alignment": self.aligners.iter().map(|aligner| json!({
                "layer": aligner.layer, "head": aligner.head, "reading": format!("{:?}", aligner.reading).to_lowercase(),
                "error_rate": aligner.score.error_rate() })).collect::<Vec<_>>(),
        })
    }
}

impl Calibration {
    /// On sentences of the grammar, and on the same with their words in another order.
    pub fn of(languages: &Languages, model: &Transformer, pairs: &[Pair]) -> Result<Self> {
        let texts: Vec<String> = pairs.iter().map(Pair::english_text).collect();
        let shuffled: Vec<String> = pairs.iter().enumerate().filter_map(|(n, pair)| shuffled(pair, n as u64)).collect();
        let sure = |translation: &&Translation| translation.confidence >= SURE;
        let translated = languages.translations(model, texts.iter().map(String::as_str))?;
        let right =
            translated.iter().zip(pairs).filter(|(one, pair)| sure(one) && one.text == pair.korean_text()).count();
        let held_out = translated.iter().filter(sure).count();
        let outside = languages.translations(model, shuffled.iter().map(String::as_str))?.iter().filter(sure).count();
        let share = |part: usize, of: usize| part as f64 / of.max(1) as f64;
        Ok(Calibration {
            sure: share(held_out, pairs.len()),
            right: share(right, held_out),
            shuffled: share(outside, shuffled.len()),
        })
    }
}

/// The words of a sentence of at least four in another order; none if that changes nothing.
fn shuffled(pair: &Pair, seed: u64) -> Option<String> {
    let text = pair.english_text();
    let mut words: Vec<&str> = text.trim_end_matches(['.', '?', '!']).split_whitespace().collect();
    let mut random = Random::stream(seed, 6);
    for i in (1..words.len()).rev() {
        words.swap(i, random.below(i + 1));
    }
    let mixed = format!("{}.", words.join(" "));
    (words.len() >= 4 && mixed != text).then_some(mixed)
}

pub fn evaluate(languages: &Languages, model: &Transformer, pairs: &[Pair]) -> Result<Evaluation> {
    let texts: Vec<(String, String)> = pairs.iter().map(|pair| (pair.english_text(), pair.korean_text())).collect();
    Ok(Evaluation::of(languages, model, texts.iter().map(|(a, b)| (a.as_str(), b.as_str())))?)
}

/// A pair of the grammar as tokens; pieces that are not learned are unknown.
pub fn example(languages: &Languages, pair: &Pair) -> Result<Example> {
    let source = languages.source.encode_bare(&pair.english_text())?.ids().to_vec();
    let unknown = languages.target.special().unk.unwrap_or_default();
    let target = tokens(&pair.korean).iter().map(|piece| languages.target.id(piece).unwrap_or(unknown)).collect();
    Ok(Example::new(source, target))
}

/// The heads of cross-attention by how well they find what content words are made from, best first.
pub fn align(languages: &Languages, model: &Transformer, corpus: &Corpus) -> Result<Vec<Aligner>> {
    let linked: Vec<LinkedPair> = corpus.sentences[..ALIGNED].iter().map(linked).collect();
    Ok(languages.align(model, &linked)?)
}

/// Links of content words must be found, others may be.
fn linked(pair: &Pair) -> LinkedPair {
    let content = |link: &(usize, usize)| pair.tags[link.0].part != Part::Function;
    LinkedPair {
        source: pair.english_text(),
        target: pair.korean_text(),
        sure: pair.word_links(Certainty::Sure).into_iter().filter(content).collect(),
        possible: pair.word_links(Certainty::Possible),
    }
}

/// The share of sentences in which each verb is found beside its Korean verb.
fn verbs(languages: &Languages, model: &Transformer, pairs: &[Pair], aligner: &Aligner) -> Result<f64> {
    let (mut right, mut all) = (0, 0);
    for pair in pairs {
        let verbs: HashSet<usize> = (0..pair.tags.len()).filter(|&word| is_verb(pair, word)).collect();
        let gold: Vec<_> =
            pair.word_links(Certainty::Sure).into_iter().filter(|link| verbs.contains(&link.0)).collect();
        if gold.is_empty() {
            continue;
        }
        let found = languages.links(model, &linked(pair), aligner)?;
        let beside = |verb: &usize| gold.iter().any(|link| link.0 == *verb && found.contains(link));
        let linked: HashSet<usize> = gold.iter().map(|link| link.0).collect();
        right += usize::from(linked.iter().all(beside));
        all += 1;
    }
    Ok(f64::from(u32::try_from(right)?) / f64::from(u32::try_from(all.max(1))?))
}

fn is_verb(pair: &Pair, word: usize) -> bool {
    pair.tags[word].part == Part::Verb && pair.tags[word].role == Some(Role::Verb)
}

fn describe(aligner: &Aligner) -> String {
    let head = aligner.head.map_or_else(|| "mean of heads".to_owned(), |head| format!("head {head}"));
    let reading = match aligner.reading {
        Reading::Predicting => "predicting",
        Reading::Having => "having",
    };
    format!("layer {}, {head}, {reading} the word", aligner.layer)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

//! `foveal train pairs`: a translator, on the grammar's sentences or a user's own.

use std::path::Path;

use anyhow::{Result, bail};
use foveal_models::Tokenizer;
use foveal_models::analysis::words::groups;
use foveal_models::generate::beam::{Frame, greedy, watch};
use foveal_models::layer::{Parameters, Random};
use foveal_models::model::transformer::Alignment;
use foveal_models::model::{Transformer, TransformerConfig};
use foveal_models::trace::{Capture, Kind};
use foveal_models::train::{Example, Pairs as Task, Plan, Schedule, Snapshots};
use foveal_models::translation::attention::{Aligner, Gold, score};
use foveal_models::translation::score::{Tokens, bleu, chrf, exact_match};
use foveal_models::translation::{Case, Certainty, Corpus, Grammar, Pair, Pairs, Sizes, Vocabulary, tokens};
use serde_json::json;

use super::progress::Progress;
use super::{curve, ending};
use crate::arguments::{Run, TrainPairs};
use crate::output::Output;
use crate::report::Report;
use crate::table::Table;

/// Sentences of the grammar.
const SIZES: Sizes = Sizes { train: 60_000, sentences: 1000, combinations: 1000 };
/// Sentences that alignments are scored on.
const ALIGNED: usize = 500;
/// Lines of a file that are told to be wrong, at most.
const TOLD: usize = 10;

pub fn run(arguments: &TrainPairs, output: Output) -> Result<()> {
    output.check_file()?;
    match &arguments.path {
        Some(path) => own(arguments, path, output),
        None => grammar(arguments, output),
    }
}

/// Two languages.
struct Languages {
    source: Tokenizer,
    target: Tokenizer,
}

impl Languages {
    fn example(&self, source: &str, target: &str) -> Result<Example> {
        let ids = |tokenizer: &Tokenizer, text| Ok::<_, anyhow::Error>(tokenizer.encode_bare(text)?.ids().to_vec());
        Ok(Example { source: ids(&self.source, source)?, target: ids(&self.target, target)? })
    }

    fn frame(&self) -> Frame {
        let special = self.target.special();
        Frame { begin: special.bos.unwrap_or(1), end: special.eos.unwrap_or(2) }
    }

    fn model(&self, run: &Run, context: usize) -> Result<Transformer> {
        let base = TransformerConfig::small();
        let (width, layers) = (run.dims.unwrap_or(base.width), run.layers.unwrap_or(base.encoder_layers));
        let sizes = TransformerConfig {
            source_vocabulary: self.source.vocabulary(),
            target_vocabulary: self.target.vocabulary(),
            context,
            width,
            hidden: 4 * width,
            heads: run.heads.unwrap_or(base.heads),
            encoder_layers: layers,
            decoder_layers: layers,
            attention: run.attention,
            ..base
        };
        Ok(Transformer::new(&sizes, &mut Random::new(run.seed))?)
    }

    fn save(&self, model: &Transformer, run: &Run) -> Result<()> {
        model.save(&run.folder, run.dtype())?;
        self.source.save(&run.folder.join("source"))?;
        Ok(self.target.save(&run.folder.join("target"))?)
    }

    /// What the model makes of these sentences, each beside what it should be.
    fn translate<'a>(
        &self,
        model: &Transformer,
        pairs: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Vec<(String, String)>> {
        let (mut sources, mut expected) = (Vec::new(), Vec::new());
        for (source, target) in pairs {
            sources.push(self.source.encode_bare(source)?.ids().to_vec());
            expected.push(target.to_owned());
        }
        let written = greedy(model, &sources, self.frame(), model.config().context)?;
        let texts = written.iter().map(|tokens| Ok::<_, anyhow::Error>(self.target.decode(tokens)?.trim().to_owned()));
        texts.zip(expected).map(|(text, expected)| Ok((text?, expected))).collect()
    }
}

fn plan() -> Plan {
    let plan =
        Plan { steps: 3000, peak: 2e-3, floor: 5e-5, warmup: 200, schedule: Schedule::Cosine, ..Plan::default() };
    Plan { weight_decay: 0.01, dropout: 0.05, label_smoothing: 0.1, betas: (0.9, 0.98), evaluate_every: 500, ..plan }
}

fn grammar(arguments: &TrainPairs, output: Output) -> Result<()> {
    let run = &arguments.run;
    if arguments.vocabulary.is_some() {
        bail!("the grammar has its own pieces of words; --vocabulary is for a file of pairs");
    }
    let corpus = Grammar::new().corpus(run.seed, SIZES);
    let pieces = |side: fn(&Pair) -> Vec<String>, case| Vocabulary::pieces(corpus.train.iter().flat_map(side), case);
    let languages = Languages {
        source: pieces(|pair| tokens(&pair.english), Case::Lower)?,
        target: pieces(|pair| tokens(&pair.korean), Case::Keep)?,
    };
    let text = |pair: &Pair| (pair.english_text(), pair.korean_text());
    let examples = |pairs: &[Pair]| -> Result<Vec<Example>> {
        pairs.iter().map(|pair| languages.example(&text(pair).0, &text(pair).1)).collect()
    };
    let (learned, held_out) = (examples(&corpus.train)?, examples(&corpus.sentences)?);
    let frame = languages.frame();
    let task = Task::new(learned, held_out, run.batch.unwrap_or(64), (frame.begin, frame.end))?;
    let model = languages.model(run, TransformerConfig::small().context)?;
    let parameters = model.parameter_count();
    let mut filmed =
        arguments.snapshot.as_deref().map(|sentence| Filmed::new(&languages, &corpus, sentence)).transpose()?;
    let mut trainer = run.trainer(&task, model, run.plan(plan()))?;
    if let Some(filmed) = &mut filmed {
        filmed.keep(trainer.records().len(), trainer.model(), frame)?;
    }
    let ended = run.train(&mut trainer, &mut |trainer, progress| {
        if let Some(filmed) = &mut filmed {
            filmed.keep(trainer.records().len(), trainer.model(), frame)?;
        }
        let sample: Vec<(String, String)> = corpus.sentences.iter().take(200).map(text).collect();
        let translated = languages.translate(trainer.model(), borrowed(&sample))?;
        progress.line(&format!("  {:.1} % of 200 held-out sentences exactly right", 100.0 * exact(&translated)));
        Ok(())
    })?;
    if let Some(filmed) = &filmed {
        filmed.snapshots.save(&run.folder.join("snapshots.safetensors"))?;
    }
    let aligners = align(&languages, trainer.best(), &corpus.sentences[..ALIGNED])?;
    let best = Alignment { layer: aligners[0].layer, head: aligners[0].head };
    languages.save(&trainer.best().clone().with_alignment(best), run)?;
    let scores = |pairs: &[Pair]| -> Result<Vec<(String, String)>> {
        let texts: Vec<(String, String)> = pairs.iter().map(text).collect();
        languages.translate(trainer.best(), borrowed(&texts))
    };
    let (sentences, combinations) = (scores(&corpus.sentences)?, scores(&corpus.combinations)?);
    let ko = |english, korean| output.language.of(english, korean);
    let mut table = Table::new([ko("held out", "검증"), ko("exact", "정확"), "BLEU", "chrF"]);
    for (name, translated) in [(ko("sentences", "문장"), &sentences), (ko("combinations", "단어 조합"), &combinations)]
    {
        table.row([
            name.to_owned(),
            format!("{:.1} %", 100.0 * exact(translated)),
            format!("{:.1}", bleu_of(translated)),
            format!("{:.1}", chrf(borrowed(translated))),
        ]);
    }
    let mut alignments = Table::new([ko("alignment read from", "정렬을 읽은 곳"), "AER"]);
    for aligner in aligners.iter().take(5) {
        alignments.row([describe(aligner), format!("{:.1} %", 100.0 * aligner.score.error_rate())]);
    }
    let figures = json!({
        "parameters": parameters, "steps": trainer.records().len(),
        "exact": { "sentences": exact(&sentences), "combinations": exact(&combinations) },
        "bleu": { "sentences": bleu_of(&sentences), "combinations": bleu_of(&combinations) },
        "chrf": { "sentences": chrf(borrowed(&sentences)), "combinations": chrf(borrowed(&combinations)) },
        "alignment": aligners.iter().map(|aligner| json!({
            "layer": aligner.layer, "head": aligner.head, "reading": format!("{:?}", aligner.reading).to_lowercase(),
            "error_rate": aligner.score.error_rate() })).collect::<Vec<_>>(),
    });
    output.show(&Report {
        title: format!("{}: {parameters} parameters", run.folder.display()),
        about: vec![ending(ended, run, &output)],
        tables: vec![table, alignments],
        scenes: vec![curve(&trainer, &output)],
        figures,
        ..Report::default()
    })
}

fn describe(aligner: &Aligner) -> String {
    let head = aligner.head.map_or_else(|| "mean of heads".to_owned(), |head| format!("head {head}"));
    format!("layer {}, {head}, {} the word", aligner.layer, format!("{:?}", aligner.reading).to_lowercase())
}

fn exact(translated: &[(String, String)]) -> f64 {
    exact_match(borrowed(translated)) / 100.0
}

/// Korean counts by characters: its words are too long to be told right or wrong as a whole.
fn bleu_of(translated: &[(String, String)]) -> f64 {
    bleu(borrowed(translated), Tokens::Characters).score
}

fn borrowed(pairs: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    pairs.iter().map(|(a, b)| (a.as_str(), b.as_str()))
}

/// How well each head's cross-attention tells what each word was made from, on the right translations.
fn align(languages: &Languages, model: &Transformer, pairs: &[Pair]) -> Result<Vec<Aligner>> {
    let mut watched = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let source = languages.source.encode_bare(&pair.english_text())?;
        let target = languages.target.encode_bare(&pair.korean_text())?;
        let trace = watch(model, source.ids(), target.ids(), languages.frame(), Capture::All)?;
        let gold = Gold {
            source: groups(&source),
            target: groups(&target),
            sure: pair.word_links(Certainty::Sure),
            possible: pair.word_links(Certainty::Possible),
        };
        watched.push((trace, gold));
    }
    Ok(score(watched.iter().map(|(trace, gold)| (trace, gold)))?)
}

/// A sentence whose cross-attention is kept.
struct Filmed {
    source: Vec<u32>,
    target: Vec<u32>,
    snapshots: Snapshots,
}

impl Filmed {
    /// A sentence of the grammar, whose translation is known.
    fn new(languages: &Languages, corpus: &Corpus, sentence: &str) -> Result<Self> {
        let all = corpus.sentences.iter().chain(&corpus.combinations).chain(&corpus.train);
        let Some(pair) = all.into_iter().find(|pair| pair.english_text().eq_ignore_ascii_case(sentence)) else {
            let known = corpus.sentences[0].english_text();
            bail!("the grammar's corpus does not have {sentence:?}; take one it has, such as {known:?}")
        };
        let source = languages.source.encode_bare(&pair.english_text())?;
        let target = languages.target.encode_bare(&pair.korean_text())?;
        let queries = target.labels().iter().cloned().chain(["</s>".to_owned()]).collect();
        let snapshots = Snapshots::new(queries, source.labels().to_vec());
        Ok(Filmed { source: source.ids().to_vec(), target: target.ids().to_vec(), snapshots })
    }

    fn keep(&mut self, step: usize, model: &Transformer, frame: Frame) -> Result<()> {
        let trace = watch(model, &self.source, &self.target, frame, Capture::All)?;
        Ok(self.snapshots.keep(step, &trace, Kind::Cross)?)
    }
}

fn own(arguments: &TrainPairs, path: &Path, output: Output) -> Result<()> {
    let run = &arguments.run;
    if arguments.snapshot.is_some() {
        bail!("--snapshot needs a sentence with a known translation, and those are the grammar's; leave out the file");
    }
    let Pairs { pairs, problems } = Pairs::read(path)?;
    for problem in problems.iter().take(TOLD) {
        eprintln!("foveal: {}: {problem}", path.display());
    }
    if problems.len() > TOLD {
        eprintln!("foveal: {}: {} more such lines", path.display(), problems.len() - TOLD);
    }
    let vocabulary = arguments.vocabulary.map_or_else(Vocabulary::words, Vocabulary::byte_pairs);
    let languages = Languages {
        source: vocabulary.train(pairs.iter().map(|pair| pair.source.as_str()))?,
        target: vocabulary.train(pairs.iter().map(|pair| pair.target.as_str()))?,
    };
    let context = TransformerConfig::small().context;
    let mut examples = Vec::with_capacity(pairs.len());
    for (n, pair) in pairs.iter().enumerate() {
        let example = languages.example(&pair.source, &pair.target)?;
        if example.source.len().max(example.target.len() + 1) <= context
            && !example.target.is_empty()
            && !example.source.is_empty()
        {
            examples.push((n, example));
        }
    }
    if examples.len() < pairs.len() {
        eprintln!("foveal: {} pairs are longer than {context} tokens and left out", pairs.len() - examples.len());
    }
    // A twentieth, at most a thousand, chosen by chance.
    let mut random = Random::new(run.seed);
    for i in (1..examples.len()).rev() {
        examples.swap(i, random.below(i + 1));
    }
    let held = (examples.len() / 20).clamp(1, 1000).min(examples.len().saturating_sub(1));
    let learned = examples.split_off(held);
    let frame = languages.frame();
    let strip = |examples: &[(usize, Example)]| examples.iter().map(|(_, example)| example.clone()).collect();
    let task = Task::new(strip(&learned), strip(&examples), run.batch.unwrap_or(64), (frame.begin, frame.end))?;
    let model = languages.model(run, context)?;
    let parameters = model.parameter_count();
    let mut trainer = run.trainer(&task, model, run.plan(Plan { dropout: 0.2, ..plan() }))?;
    let ended = run.train(&mut trainer, &mut |_, _: &Progress| Ok(()))?;
    languages.save(trainer.best(), run)?;
    let texts = examples.iter().map(|(n, _)| (pairs[*n].source.as_str(), pairs[*n].target.as_str()));
    let translated = languages.translate(trainer.best(), texts.clone())?;
    let mut table = Table::new(["source", "translation", "expected"]).text_columns([1, 2]);
    for ((source, _), (text, expected)) in texts.zip(&translated).take(5) {
        table.row([source, text, expected]);
    }
    let (exact, bleu, chrf) = (exact(&translated), bleu_of(&translated), chrf(borrowed(&translated)));
    output.show(&Report {
        title: format!("{}: {parameters} parameters, {} pairs", run.folder.display(), pairs.len()),
        about: vec![
            format!(
                "{held} held-out pairs: {:.1} % exactly right, BLEU (characters) {bleu:.1}, chrF {chrf:.1}",
                100.0 * exact
            ),
            ending(ended, run, &output),
        ],
        tables: vec![table],
        scenes: vec![curve(&trainer, &output)],
        figures: json!({ "parameters": parameters, "pairs": pairs.len(), "problems": problems.len(), "held_out": held,
                         "exact": exact, "bleu": bleu, "chrf": chrf }),
        ..Report::default()
    })
}

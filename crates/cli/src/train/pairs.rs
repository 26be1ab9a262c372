//! `foveal train pairs`: a translator, on the grammar's sentences or a user's own.

use std::path::Path;

use anyhow::{Result, bail};
use foveal_grammar::{Certainty, Corpus, Grammar, Pair, Sizes, tokens};
use foveal_models::layer::{Parameters, Random};
use foveal_models::model::transformer::Alignment;
use foveal_models::model::{Transformer, TransformerConfig};
use foveal_models::trace::Kind;
use foveal_models::train::{Example, Pairs as Task, Plan, Schedule, Snapshots};
use foveal_models::translation::attention::Aligner;
use foveal_models::translation::score::Tokens;
use foveal_models::translation::{Case, PairFile, Vocabulary};
use foveal_models::translation::{Evaluation, Languages, LinkedPair, Split};
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
/// Korean counts by characters: its words are too long to be told right or wrong as a whole.
const BLEU: Tokens = Tokens::Characters;
/// Lines of a file that are told to be wrong, at most.
const TOLD: usize = 10;

pub fn run(arguments: &TrainPairs, output: Output) -> Result<()> {
    output.check_file()?;
    match &arguments.path {
        Some(path) => own(arguments, path, output),
        None => grammar(arguments, output),
    }
}

fn model_of(languages: &Languages, run: &Run, context: usize) -> Result<Transformer> {
    let base = TransformerConfig::small();
    let (width, layers) = (run.dims.unwrap_or(base.width), run.layers.unwrap_or(base.encoder_layers));
    let sizes = TransformerConfig {
        source_vocabulary: languages.source.vocabulary(),
        target_vocabulary: languages.target.vocabulary(),
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

fn save(languages: &Languages, model: &Transformer, run: &Run) -> Result<()> {
    model.save(&run.folder, run.dtype())?;
    Ok(languages.save(&run.folder)?)
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
        pairs.iter().map(|pair| Ok(languages.example(&text(pair).0, &text(pair).1)?)).collect()
    };
    let (learned, held_out) = (examples(&corpus.train)?, examples(&corpus.sentences)?);
    let bos_eos = languages.bos_eos()?;
    let task = Task::new(learned, held_out, run.batch.unwrap_or(64), (bos_eos.begin, bos_eos.end))?
        .with_vocabularies(&languages);
    let model = model_of(&languages, run, TransformerConfig::small().context)?;
    let parameters = model.parameter_count();
    let mut filmed =
        arguments.snapshot.as_deref().map(|sentence| Filmed::new(&languages, &corpus, sentence)).transpose()?;
    let mut trainer = run.trainer(&task, model, run.plan(plan()))?;
    if let Some(filmed) = &mut filmed {
        filmed.keep(trainer.records().len(), trainer.model(), &languages)?;
    }
    let ended = run.train(&mut trainer, &mut |trainer, progress| {
        if let Some(filmed) = &mut filmed {
            filmed.keep(trainer.records().len(), trainer.model(), &languages)?;
        }
        let sample = evaluate(&languages, trainer.model(), &corpus.sentences[..200])?;
        progress.line(&format!("  {:.1} % of 200 held-out sentences exactly right", sample.exact_match()));
        Ok(())
    })?;
    if let Some(filmed) = &filmed {
        filmed.snapshots.save(&run.folder.join("snapshots.safetensors"))?;
    }
    let linked: Vec<LinkedPair> = corpus.sentences[..ALIGNED].iter().map(linked).collect();
    let aligners = languages.align(trainer.best(), &linked)?;
    let best = Alignment { layer: aligners[0].layer, head: aligners[0].head };
    save(&languages, &trainer.best().clone().with_alignment(best), run)?;
    let scores = |pairs: &[Pair]| evaluate(&languages, trainer.best(), pairs);
    let (sentences, combinations) = (scores(&corpus.sentences)?, scores(&corpus.combinations)?);
    let tr = |english, korean| output.language.of(english, korean);
    let mut table = Table::new([tr("held out", "검증"), tr("exact", "정확"), "BLEU", "chrF"]);
    for (name, translated) in [(tr("sentences", "문장"), &sentences), (tr("combinations", "단어 조합"), &combinations)]
    {
        table.row([
            name.to_owned(),
            format!("{:.1} %", translated.exact_match()),
            format!("{:.1}", translated.bleu(BLEU)),
            format!("{:.1}", translated.chrf()),
        ]);
    }
    let mut alignments = Table::new([tr("alignment read from", "정렬을 읽은 곳"), "AER"]);
    for aligner in aligners.iter().take(5) {
        alignments.row([describe(aligner), format!("{:.1} %", 100.0 * aligner.score.error_rate())]);
    }
    let figures = json!({
        "parameters": parameters, "steps": trainer.records().len(),
        "exact": { "sentences": sentences.exact_match() / 100.0, "combinations": combinations.exact_match() / 100.0 },
        "bleu": { "sentences": sentences.bleu(BLEU), "combinations": combinations.bleu(BLEU) },
        "chrf": { "sentences": sentences.chrf(), "combinations": combinations.chrf() },
        "alignment": aligners.iter().map(|aligner| json!({
            "layer": aligner.layer, "head": aligner.head, "reading": format!("{:?}", aligner.reading).to_lowercase(),
            "error_rate": aligner.score.error_rate() })).collect::<Vec<_>>(),
    });
    output.show(&Report {
        title: format!("{}: {parameters} parameters", run.folder.display()),
        notes: vec![ending(ended, run, &output)],
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

fn evaluate(languages: &Languages, model: &Transformer, pairs: &[Pair]) -> Result<Evaluation> {
    let texts: Vec<(String, String)> = pairs.iter().map(|pair| (pair.english_text(), pair.korean_text())).collect();
    Ok(Evaluation::of(languages, model, texts.iter().map(|(a, b)| (a.as_str(), b.as_str())))?)
}

fn linked(pair: &Pair) -> LinkedPair {
    LinkedPair {
        source: pair.english_text(),
        target: pair.korean_text(),
        sure: pair.word_links(Certainty::Sure),
        possible: pair.word_links(Certainty::Possible),
    }
}

/// A sentence whose cross-attention is kept.
struct Filmed {
    pair: Example,
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
        Ok(Filmed { pair: Example { source: source.ids().to_vec(), target: target.ids().to_vec() }, snapshots })
    }

    fn keep(&mut self, step: usize, model: &Transformer, languages: &Languages) -> Result<()> {
        Ok(self.snapshots.keep(step, &languages.watch(model, &self.pair)?, Kind::Cross)?)
    }
}

fn own(arguments: &TrainPairs, path: &Path, output: Output) -> Result<()> {
    let run = &arguments.run;
    if arguments.snapshot.is_some() {
        bail!("--snapshot needs a sentence with a known translation, and those are the grammar's; leave out the file");
    }
    let PairFile { pairs, problems } = PairFile::read(path)?;
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
    let Split { learned, held_out } = Split::at_random(examples, run.seed);
    let bos_eos = languages.bos_eos()?;
    let strip = |examples: &[(usize, Example)]| examples.iter().map(|(_, example)| example.clone()).collect();
    let task = Task::new(strip(&learned), strip(&held_out), run.batch.unwrap_or(64), (bos_eos.begin, bos_eos.end))?
        .with_vocabularies(&languages);
    let model = model_of(&languages, run, context)?;
    let parameters = model.parameter_count();
    let mut trainer = run.trainer(&task, model, run.plan(Plan { dropout: 0.2, ..plan() }))?;
    let ended = run.train(&mut trainer, &mut |_, _: &Progress| Ok(()))?;
    save(&languages, trainer.best(), run)?;
    let texts = held_out.iter().map(|(n, _)| (pairs[*n].source.as_str(), pairs[*n].target.as_str()));
    let evaluation = Evaluation::of(&languages, trainer.best(), texts)?;
    let mut table = Table::new(["source", "translation", "expected"]).text_columns([1, 2]);
    for judged in evaluation.judged.iter().take(5) {
        table.row([&judged.source, &judged.translation, &judged.expected]);
    }
    let held = held_out.len();
    let (exact, bleu, chrf) = (evaluation.exact_match(), evaluation.bleu(BLEU), evaluation.chrf());
    output.show(&Report {
        title: format!("{}: {parameters} parameters, {} pairs", run.folder.display(), pairs.len()),
        notes: vec![
            format!("{held} held-out pairs: {exact:.1} % exactly right, BLEU (characters) {bleu:.1}, chrF {chrf:.1}"),
            ending(ended, run, &output),
        ],
        tables: vec![table],
        scenes: vec![curve(&trainer, &output)],
        figures: json!({ "parameters": parameters, "pairs": pairs.len(), "problems": problems.len(), "held_out": held,
                         "exact": exact / 100.0, "bleu": bleu, "chrf": chrf }),
        ..Report::default()
    })
}

//! `foveal train pairs`: a translator, on the grammar's sentences or a user's own.

use std::path::Path;

use anyhow::{Result, bail};
use foveal_models::layer::{Parameters, Random};
use foveal_models::model::{Transformer, TransformerConfig};
use foveal_models::train::{Example, Pairs as Task, Plan, Schedule};
use foveal_models::translation::score::Tokens;
use foveal_models::translation::{Evaluation, Languages, PairFile, Split, Vocabulary};
use serde_json::json;

use super::progress::Progress;
use super::{curve, ending, grammar};
use crate::arguments::{Run, TrainPairs};
use crate::output::Output;
use crate::report::Report;
use crate::table::Table;

/// Korean counts by characters: its words are too long to be told right or wrong as a whole.
pub(super) const BLEU: Tokens = Tokens::Characters;
/// Lines of a file that are told to be wrong, at most.
const TOLD: usize = 10;

pub fn run(arguments: &TrainPairs, output: Output) -> Result<()> {
    output.check_file()?;
    match &arguments.path {
        Some(path) => own(arguments, path, output),
        None => grammar::run(arguments, output),
    }
}

/// A new model for these languages: of the sizes of `base`, where the user wants no others.
pub(super) fn model_of(languages: &Languages, run: &Run, base: TransformerConfig) -> Result<Transformer> {
    let (width, layers) = (run.dims.unwrap_or(base.width), run.layers.unwrap_or(base.encoder_layers));
    let sizes = TransformerConfig {
        source_vocabulary: languages.source.vocabulary(),
        target_vocabulary: languages.target.vocabulary(),
        width,
        hidden: width * base.hidden / base.width,
        heads: run.heads.unwrap_or(base.heads),
        encoder_layers: layers,
        decoder_layers: layers,
        attention: run.attention,
        ..base
    };
    Ok(Transformer::new(&sizes, &mut Random::new(run.seed))?)
}

pub(super) fn save(languages: &Languages, model: &Transformer, run: &Run) -> Result<()> {
    model.save(&run.folder, run.dtype())?;
    Ok(languages.save(&run.folder)?)
}

pub(super) fn plan() -> Plan {
    let plan =
        Plan { steps: 3000, peak: 2e-3, floor: 5e-5, warmup: 200, schedule: Schedule::Cosine, ..Plan::default() };
    Plan { weight_decay: 0.01, dropout: 0.05, label_smoothing: 0.1, betas: (0.9, 0.98), evaluate_every: 500, ..plan }
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
    let model = model_of(&languages, run, TransformerConfig::small())?;
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

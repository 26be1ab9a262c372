//! `foveal train pairs` without a file: the translator inside, on the grammar's sentences.

use anyhow::{Result, bail};
use foveal_grammar::{Corpus, Grammar, Sizes};
use foveal_models::layer::Parameters;
use foveal_models::model::transformer::Alignment;
use foveal_models::model::{Transformer, TransformerConfig};
use foveal_models::trace::Kind;
use foveal_models::train::{Example, GuidedHead, Pairs as Task, Plan, Snapshots};
use foveal_models::translation::Languages;

use super::judged::{Judgement, align, evaluate, example};
use super::material::Material;
use super::pairs::{model_of, plan, save};
use super::{curve, ending};
use crate::arguments::TrainPairs;
use crate::output::Output;
use crate::report::Report;

/// Sentences that are held out; those to learn from never end.
const SIZES: Sizes = Sizes { train: 0, sentences: 1000, combinations: 1000 };
/// Pairs of a step.
const BATCH: usize = 64;
/// How much the links count that one head learns.
const GUIDED: f32 = 0.2;

pub fn run(arguments: &TrainPairs, output: Output) -> Result<()> {
    let run = &arguments.run;
    if arguments.vocabulary.is_some() {
        bail!("the grammar has its own pieces of words; --vocabulary is for a file of pairs");
    }
    let plan = run.plan(Plan { steps: 6000, dropout: 0.0, label_smoothing: 0.0, ..plan() });
    let batch = run.batch.unwrap_or(BATCH);
    let grammar = Grammar::new();
    let corpus = grammar.corpus(run.seed, SIZES);
    let material = Material::new(&grammar, &corpus, plan.steps * batch, run.seed);
    let languages = material.languages(plan.steps * batch, run.seed)?;
    let held_out = corpus.sentences.iter().map(|pair| example(&languages, pair)).collect::<Result<_>>()?;
    let model = model_of(&languages, run, TransformerConfig { hidden: 384, ..TransformerConfig::small() })?;
    let parameters = model.parameter_count();
    let bos_eos = languages.bos_eos()?;
    let draw = |random: &mut foveal_models::layer::Random| material.draw(&languages, random);
    let guided = GuidedHead { layer: model.config().decoder_layers - 1, head: 0, factor: GUIDED };
    let task =
        Task::drawn(draw, held_out, batch, (bos_eos.begin, bos_eos.end))?.with_vocabularies(&languages).guided(guided);
    let mut filmed =
        arguments.snapshot.as_deref().map(|sentence| Filmed::new(&languages, &corpus, sentence)).transpose()?;
    let mut trainer = run.trainer(&task, model, plan)?;
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
    let best = trainer.best();
    let aligners = align(&languages, best, &corpus)?;
    let (layer, head) = (aligners[0].layer, aligners[0].head);
    let alignment = Alignment { layer, head, guided: (layer, head) == (guided.layer, Some(guided.head)) };
    save(&languages, &best.clone().with_alignment(alignment), run)?;
    let judgement = Judgement::of(&languages, best, &corpus, aligners)?;
    output.show(&Report {
        title: format!("{}: {parameters} parameters", run.folder.display()),
        notes: vec![ending(ended, run, &output)],
        tables: judgement.tables(&output),
        scenes: vec![curve(&trainer, &output)],
        figures: judgement.figures(parameters, trainer.records().len()),
        ..Report::default()
    })
}

/// A sentence whose cross-attention is kept.
struct Filmed {
    pair: Example,
    snapshots: Snapshots,
}

impl Filmed {
    /// A sentence of the grammar, whose translation is known.
    fn new(languages: &Languages, corpus: &Corpus, sentence: &str) -> Result<Self> {
        let all = corpus.sentences.iter().chain(&corpus.combinations);
        let Some(pair) = all.into_iter().find(|pair| pair.english_text().eq_ignore_ascii_case(sentence)) else {
            let known = corpus.sentences[0].english_text();
            bail!("the held-out sentences do not have {sentence:?}; take one it has, such as {known:?}")
        };
        let source = languages.source.encode_bare(&pair.english_text())?;
        let target = languages.target.encode_bare(&pair.korean_text())?;
        let queries = target.labels().iter().cloned().chain(["</s>".to_owned()]).collect();
        let snapshots = Snapshots::new(queries, source.labels().to_vec());
        Ok(Filmed { pair: Example::new(source.ids().to_vec(), target.ids().to_vec()), snapshots })
    }

    fn keep(&mut self, step: usize, model: &Transformer, languages: &Languages) -> Result<()> {
        Ok(self.snapshots.keep(step, &languages.watch(model, &self.pair)?, Kind::Cross)?)
    }
}

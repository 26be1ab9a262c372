//! `foveal train repeats`: a model of two layers that learns to go on with what came before.

use anyhow::Result;
use foveal_models::Tokenizer;
use foveal_models::analysis::{Repeated, report as scores_of};
use foveal_models::layer::{Parameters, Random};
use foveal_models::model::{Llama, LlamaConfig};
use foveal_models::train::{Plan, Repeats};
use serde_json::json;

use super::{curve, ending};
use crate::arguments::TrainRepeats;
use crate::output::Output;
use crate::report::Report;

pub fn run(arguments: &TrainRepeats, output: Output) -> Result<()> {
    output.check_file()?;
    let run = &arguments.run;
    let printable: String = ('\n'..='\n').chain(' '..='~').collect();
    let tokenizer = Tokenizer::of_characters(&printable)?;
    let (width, heads) = (run.dims.unwrap_or(64), run.heads.unwrap_or(2));
    // Rotary positions: one step back is the same turn everywhere, while a table of positions would have to learn each of them.
    let sizes = LlamaConfig {
        vocabulary: tokenizer.vocabulary(),
        context: arguments.context,
        width,
        layers: run.layers.unwrap_or(2),
        heads,
        key_heads: heads,
        head_dim: width / heads.max(1),
        hidden: 2 * width,
        attention: run.attention,
        ..LlamaConfig::nano()
    };
    let model = Llama::new(&sizes, &mut Random::new(run.seed))?;
    let task = Repeats::new(sizes.vocabulary, sizes.context, run.batch.unwrap_or(64))?;
    let plan = Plan { steps: 1000, peak: 3e-3, weight_decay: 0.01, evaluate_every: 500, ..Plan::default() };
    let parameters = model.parameter_count();
    let mut trainer = run.trainer(&task, model, run.plan(plan))?;
    let repeated = Repeated { period: sizes.context / 2, ..Repeated::default() };
    // The plainest head of each kind.
    let plainest = |model: &Llama| -> Result<(f32, f32)> {
        let scores = scores_of(model, &repeated.tokens(sizes.vocabulary), repeated)?;
        let induction = scores.iter().filter_map(|scores| scores.induction).fold(0.0, f32::max);
        Ok((scores.iter().map(|scores| scores.previous).fold(0.0, f32::max), induction))
    };
    let ended = run.train(&mut trainer, &mut |trainer, progress| {
        let (previous, induction) = plainest(trainer.model())?;
        progress.line(&format!("  previous token {previous:.3}, induction {induction:.3}"));
        Ok(())
    })?;
    trainer.best().save(&run.folder, run.dtype())?;
    tokenizer.save(&run.folder)?;
    let ((previous, induction), held_out) = (
        plainest(trainer.best())?,
        trainer.records().iter().filter_map(|record| record.held_out).fold(f32::INFINITY, f32::min),
    );
    output.show(&Report {
        title: format!("{}: {parameters} parameters", run.folder.display()),
        notes: vec![
            format!("held-out loss {held_out:.4}; previous token {previous:.3}, induction {induction:.3}"),
            ending(ended, run, &output),
        ],
        scenes: vec![curve(&trainer, &output)],
        figures: json!({ "parameters": parameters, "steps": trainer.records().len(), "held_out_loss": held_out,
                         "previous": previous, "induction": induction }),
        ..Report::default()
    })
}

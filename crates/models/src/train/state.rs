//! The state of a run on disk: one safetensors file with the model, the optimiser's m and v, the best model so far, and the
//! records, written whole or not at all.

use std::fmt::Write as _;
use std::path::Path;

use ndarray::ArrayViewD;

use super::trainer::{Record, Trainer};
use super::{Fingerprint, Plan, Task};
use crate::checkpoint::{Checkpoint, save_tensors};
use crate::layer::{Parameters, join};
use crate::{Error, Result};

/// The first line of the records.
const HEADER: &str = "step,learning_rate,loss,held_out_loss,gradient_norm,tokens";

pub(super) fn save<T: Task>(trainer: &Trainer<T>, path: &Path) -> Result<()> {
    let mut tensors: Vec<(String, ArrayViewD<f32>)> = Vec::new();
    let best = trainer.best.as_ref().map(|(_, model)| ("best", model));
    let parts = [("model", &trainer.model), ("m", &trainer.optimiser.m), ("v", &trainer.optimiser.v)];
    for (prefix, part) in parts.into_iter().chain(best) {
        part.visit(prefix, &mut |name, parameter| tensors.push((name.to_owned(), parameter)));
    }
    let mut metadata = vec![
        ("task".into(), serde_json::to_string(&trainer.task.fingerprint(&trainer.model)).expect("names and texts")),
        ("plan".into(), serde_json::to_string(trainer.plan()).expect("a plan is plain numbers")),
        ("records".into(), csv(trainer.records())),
        ("worse".into(), trainer.worse.to_string()),
    ];
    // As bits: a decimal could round.
    metadata.extend(trainer.best.as_ref().map(|(loss, _)| ("best".into(), loss.to_bits().to_string())));
    save_tensors(path, tensors, &metadata)
}

pub(super) fn load<T: Task>(trainer: &mut Trainer<T>, path: &Path) -> Result<()> {
    let file = Checkpoint::of_tensors(path)?;
    let wrong = |at: &str, problem: String| Error::Format { path: path.to_path_buf(), at: at.into(), problem };
    let stated =
        |key: &str| file.metadata(key).ok_or_else(|| wrong(key, "absent; this is not the state of a run".into()));
    let plan: Plan = serde_json::from_str(stated("plan")?).map_err(|error| wrong("plan", error.to_string()))?;
    let task: Fingerprint = serde_json::from_str(stated("task")?).map_err(|error| wrong("task", error.to_string()))?;
    let others = task.differences(&trainer.task.fingerprint(&trainer.model));
    if !others.is_empty() {
        return Err(Error::OtherTask { path: path.to_path_buf(), differences: others });
    }
    let differences = differences(&plan, trainer.plan());
    if !differences.is_empty() {
        return Err(Error::OtherPlan { path: path.to_path_buf(), differences });
    }
    trainer.records =
        read_csv(stated("records")?).ok_or_else(|| wrong("records", "not the records of a run".into()))?;
    trainer.worse = stated("worse")?.parse().map_err(|_| wrong("worse", "not a number".into()))?;
    let best =
        file.metadata("best").map(str::parse::<u32>).transpose().map_err(|_| wrong("best", "not a number".into()))?;
    fill(&file, "model", &mut trainer.model)?;
    fill(&file, "m", &mut trainer.optimiser.m)?;
    fill(&file, "v", &mut trainer.optimiser.v)?;
    trainer.optimiser.t = trainer.records.len() as u64;
    if let Some(bits) = best {
        let mut model = trainer.model.clone();
        fill(&file, "best", &mut model)?;
        trainer.best = Some((f32::from_bits(bits), model));
    }
    Ok(())
}

/// Where two plans differ, as "name: one, other". More steps than were planned at first, and a warm-up that follows from
/// them, are what one resumes for.
fn differences(saved: &Plan, wanted: &Plan) -> Vec<String> {
    let values = |plan| serde_json::to_value(plan).expect("a plan is plain numbers");
    let (saved, wanted) = (values(saved), values(wanted));
    let all = saved.as_object().into_iter().flatten();
    let others =
        all.filter(|(name, value)| !["steps", "warmup"].contains(&name.as_str()) && **value != wanted[name.as_str()]);
    others.map(|(name, value)| format!("{name}: {value}, now {}", wanted[name.as_str()])).collect()
}

fn fill(file: &Checkpoint, prefix: &str, model: &mut impl Parameters) -> Result<()> {
    let mut outcome = Ok(());
    model.visit_mut("", &mut |name, parameter| {
        if outcome.is_ok() {
            outcome = file.read_into(&join(prefix, name), parameter);
        }
    });
    outcome
}

/// The records as a table: a line for each step.
pub fn csv(records: &[Record]) -> String {
    let mut text = format!("{HEADER}\n");
    for record in records {
        let held_out = record.held_out.map_or_else(String::new, |loss| loss.to_string());
        let Record { step, loss, learning_rate, gradient, tokens, .. } = record;
        writeln!(text, "{step},{learning_rate},{loss},{held_out},{gradient},{tokens}").expect("writing to memory");
    }
    text
}

/// What [`csv`] wrote. Rust prints floats with as many digits as it takes to read the same number again.
fn read_csv(text: &str) -> Option<Vec<Record>> {
    let mut lines = text.lines();
    let read = |line: &str| {
        let mut fields = line.split(',');
        let mut next = || fields.next();
        let (step, learning_rate, loss) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
        let held_out = match next()? {
            "" => None,
            loss => Some(loss.parse().ok()?),
        };
        let (gradient, tokens) = (next()?.parse().ok()?, next()?.parse().ok()?);
        Some(Record { step, loss, held_out, learning_rate, gradient, tokens })
    };
    (lines.next()? == HEADER).then(|| lines.map(read).collect())?
}

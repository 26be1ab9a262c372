//! The engine as a worker: one JSON object a line on stdin, each answered by one on stdout, so that a coordinator can
//! measure several programs in alternating rounds.
//!
//! ```text
//! {"load": work}           reads the inputs; writes the answers if it names a folder for them → {"answers": {name: path}, …}
//! {"time": n, "warm": w}   repeats the loaded work w + n times                                → {"ns": of one of the n}
//! {"memory": 1}            does it once                                 → {"bytes": the peak above inputs and outputs}
//! ```
//!
//! Whatever goes wrong is answered with `{"error": text}`. The worker ends when its input does.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::time::Instant;

use serde_json::{Value, json};

use crate::memory;
use crate::spec::{Result, Spec, answer_path};
use crate::works::{Source, Work};

pub fn serve() -> Result<()> {
    let mut loaded = None;
    for line in std::io::stdin().lock().lines() {
        let reply = serde_json::from_str(&line?)
            .map_err(Into::into)
            .and_then(|request| answer(&request, &mut loaded))
            .unwrap_or_else(|error| json!({"error": error.to_string()}));
        println!("{reply}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn answer(request: &Value, loaded: &mut Option<(Spec, Work)>) -> Result<Value> {
    if let Some(request) = request.get("load") {
        *loaded = None;
        let spec = Spec::parse(request)?;
        let mut work = Work::load(&spec, &Source::Files(request["inputs"].clone()))?;
        let answers = if request["answers"].is_string() { write_answers(request, &mut work)? } else { BTreeMap::new() };
        *loaded = Some((spec, work));
        return Ok(json!({"answers": answers, "flops": spec.flops(), "bytes": spec.bytes(), "tiles": spec.tiles()}));
    }
    let (spec, work) = loaded.as_mut().ok_or("nothing is loaded")?;
    if let Some(n) = request["time"].as_u64() {
        return Ok(json!({"ns": nanoseconds(work, n, request["warm"].as_u64().unwrap_or(0))?}));
    }
    if request.get("memory").is_some() {
        return Ok(json!({"bytes": extra_memory(spec, work)?}));
    }
    Err(format!("expected load, time or memory, got {request}").into())
}

fn write_answers(request: &Value, work: &mut Work) -> Result<BTreeMap<&'static str, String>> {
    let mut paths = BTreeMap::new();
    for (name, array) in work.answers()? {
        let path = answer_path(request, name)?;
        std::fs::write(&path, array.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())?;
        paths.insert(name, path.display().to_string());
    }
    Ok(paths)
}

/// The mean time of one of `n` runs, after `warm` that do not count.
pub fn nanoseconds(work: &mut Work, n: u64, warm: u64) -> Result<f64> {
    (0..warm).try_for_each(|_| work.run())?;
    let start = Instant::now();
    (0..n).try_for_each(|_| work.run())?;
    Ok(start.elapsed().as_nanos() as f64 / n as f64)
}

/// The most memory that one run holds at a time, without inputs and outputs.
pub fn extra_memory(spec: &Spec, work: &mut Work) -> Result<usize> {
    // In a thread of its own, which has no working memory left over from an earlier run.
    let run = || memory::peak(|| work.run().map_err(|error| error.to_string()));
    let (result, peak) = std::thread::scope(|scope| scope.spawn(run).join()).map_err(|_| "the run panicked")?;
    result?;
    Ok(peak.saturating_sub(spec.output_bytes()))
}

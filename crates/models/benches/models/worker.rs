//! The line protocol of the engine's worker: one JSON object a line on stdin, each answered by one on stdout.
//!
//! ```text
//! {"load": work}           loads model and inputs; writes the answers to the folder it names   → {"answers": {name: path}}
//! {"time": n, "warm": w}   repeats the loaded work w + n times                                 → {"ns": of one of the n}
//! ```
//!
//! Whatever goes wrong is answered with `{"error": text}`. The worker ends when its input does.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::works::{self, Result, Work};

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

fn answer(request: &Value, loaded: &mut Option<Box<dyn Work>>) -> Result<Value> {
    if let Some(request) = request.get("load") {
        *loaded = None;
        let work = loaded.insert(works::load(request)?);
        let folder = request["answers"].as_str().ok_or("there is no folder for the answers")?;
        let mut paths = BTreeMap::new();
        for (name, values) in work.answers()? {
            let path = Path::new(folder).join(format!("{name}.f32"));
            std::fs::write(&path, values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())?;
            paths.insert(name, path.display().to_string());
        }
        return Ok(json!({"answers": paths}));
    }
    let work = loaded.as_mut().ok_or("nothing is loaded")?;
    let n = request["time"].as_u64().ok_or_else(|| format!("expected load or time, got {request}"))?;
    let warm = request["warm"].as_u64().unwrap_or(0);
    // Within the pool, so that no step has to be handed over to it.
    rayon::scope(|_| {
        (0..warm).try_for_each(|_| work.run())?;
        let start = Instant::now();
        (0..n).try_for_each(|_| work.run())?;
        Ok(json!({"ns": start.elapsed().as_nanos() as f64 / n as f64}))
    })
}

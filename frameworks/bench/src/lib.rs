//! The line protocol of `bench/compare.py`, for attention inside a framework.
//!
//! One JSON object a line is read, and answered with one. `{"load": work}` reads the inputs, computes the answers once and writes
//! them to files; `{"time": n, "warm": w}` repeats the work w + n times and tells the nanoseconds of one of the n.
#![forbid(unsafe_code)]

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use foveal_candle::foveal::{Attention, Mask};
use serde_json::{Map, Value, json};

/// Anything that goes wrong ends up as a text in the reply.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Who attends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Who {
    /// Foveal, called through the framework.
    Foveal,
    /// The framework's own operations.
    Framework,
}

/// What a request asks for.
pub struct Work<'a> {
    spec: &'a Value,
    /// [B, H, T, D], of every input.
    pub shape: [usize; 4],
    /// Whether a mask hides later keys.
    pub causal: bool,
    /// Forward and backward, or forward alone.
    pub trains: bool,
}

impl<'a> Work<'a> {
    fn new(spec: &'a Value) -> Result<Self> {
        let causal = match (text(spec, "mask")?, text(spec, "bias")?) {
            ("none", "none") => false,
            ("causal", "none") => true,
            (mask, bias) => return Err(format!("no mask {mask} with bias {bias} here").into()),
        };
        let trains = match text(spec, "work")? {
            "forward" => false,
            "backward" => true,
            work => return Err(format!("no {work} here").into()),
        };
        Ok(Work { spec, shape: serde_json::from_value(spec["shape"].clone())?, causal, trains })
    }

    /// The numbers of an input.
    pub fn input(&self, name: &str) -> Result<Vec<f32>> {
        let bytes = std::fs::read(text(&self.spec["inputs"], name)?)?;
        Ok(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }

    /// The engine's options.
    pub fn attention(&self) -> Attention {
        Attention::new().mask(if self.causal { Mask::causal() } else { Mask::none() })
    }

    /// 0 where a key is visible, −∞ where it is not: [T, S].
    pub fn hidden(&self) -> Vec<f32> {
        let n = self.shape[2];
        (0..n * n).map(|at| if self.causal && at % n > at / n { f32::NEG_INFINITY } else { 0.0 }).collect()
    }
}

/// A result by its name. Reading its numbers out is not part of the work.
pub type Answer = (&'static str, Box<dyn FnOnce() -> Result<Vec<f32>>>);

/// What a run has computed: the output, or dq, dk and dv.
pub type Answers = Vec<Answer>;

/// One way to do a work.
pub struct Way {
    /// What it is called.
    pub name: &'static str,
    /// Does it once.
    pub run: Box<dyn Fn() -> Result<Answers>>,
}

impl Way {
    /// A way and its name.
    pub fn new(name: &'static str, run: impl Fn() -> Result<Answers> + 'static) -> Self {
        Way { name, run: Box::new(run) }
    }

    fn time(&self, warm: u64, n: u64) -> Result<f64> {
        for _ in 0..warm {
            (self.run)()?;
        }
        let start = Instant::now();
        for _ in 0..n {
            (self.run)()?;
        }
        Ok(start.elapsed().as_nanos() as f64 / n as f64)
    }
}

/// Answers requests until there are none. Of the ways that `ways` knows to do a work, the fastest is taken.
///
/// # Errors
/// If a request is not JSON, or nobody reads the replies.
pub fn serve(library: &str, ways: impl Fn(&Work, Who) -> Result<Vec<Way>>) -> Result<()> {
    let who = match std::env::args().nth(1).as_deref() {
        Some("foveal") => Who::Foveal,
        None => Who::Framework,
        Some(other) => return Err(format!("unknown argument {other:?}: foveal, or none").into()),
    };
    // A setting of the process, as in the engine's own program: results are freed and asked for again at every call.
    foveal_compute::keep_memory();
    let mut chosen = None;
    for line in std::io::stdin().lock().lines() {
        let request = serde_json::from_str(&line?)?;
        let reply = answer(&request, library, &mut chosen, &|work: &Work| ways(work, who))
            .unwrap_or_else(|error| json!({"error": error.to_string()}));
        println!("{reply}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn answer(
    request: &Value,
    library: &str,
    chosen: &mut Option<Way>,
    ways: &dyn Fn(&Work) -> Result<Vec<Way>>,
) -> Result<Value> {
    if let Some(spec) = request.get("load") {
        *chosen = None;
        let mut fastest = f64::INFINITY;
        for way in ways(&Work::new(spec)?)? {
            let time = way.time(1, 1)?;
            if time < fastest {
                (fastest, *chosen) = (time, Some(way));
            }
        }
        let way = chosen.as_ref().ok_or("there is no way to do this")?;
        let mut answers = Map::new();
        for (name, values) in (way.run)()? {
            let path = Path::new(text(spec, "answers")?).join(format!("{name}.f32"));
            std::fs::write(&path, values()?.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())?;
            answers.insert(name.into(), json!(path));
        }
        return Ok(json!({"answers": answers, "way": way.name, "library": library}));
    }
    if let Some(n) = request.get("time").and_then(Value::as_u64) {
        let way = chosen.as_ref().ok_or("nothing is loaded")?;
        let warm = request.get("warm").and_then(Value::as_u64).unwrap_or(0);
        return Ok(json!({"ns": way.time(warm, n)?}));
    }
    Err(format!("expected load or time, got {request}").into())
}

fn text<'a>(object: &'a Value, field: &str) -> Result<&'a str> {
    object[field].as_str().ok_or_else(|| format!("{field} is missing in {object}").into())
}

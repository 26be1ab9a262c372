//! candle's CPU flash attention as a worker of `bench/compare.py`.
//!
//! Reads one JSON object a line and answers each with one. `{"load": work}` reads the inputs, computes the answer once and
//! writes it to a file; `{"time": n, "warm": w}` repeats the work w + n times and tells the nanoseconds of one of the n.

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use candle_core::{Device, Tensor};
use candle_nn::attention::{AttnMask, flash_attn};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// One forward pass. candle takes [B, T, H, D] with any strides, so the same numbers can lie in two ways.
struct Work {
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: f32,
    mask: AttnMask,
}

impl Work {
    fn run(&self) -> Result<Tensor> {
        Ok(flash_attn::<f32>(&self.q, &self.k, &self.v, self.scale, self.mask.clone(), None, None)?)
    }

    fn time(&self, warm: u64, n: u64) -> Result<f64> {
        for _ in 0..warm {
            black_box(self.run()?);
        }
        let start = Instant::now();
        for _ in 0..n {
            black_box(self.run()?);
        }
        Ok(start.elapsed().as_nanos() as f64 / n as f64)
    }
}

fn main() -> Result<()> {
    let mut work = None;
    for line in std::io::stdin().lock().lines() {
        let reply = answer(&serde_json::from_str(&line?)?, &mut work)
            .unwrap_or_else(|error| json!({"error": error.to_string()}));
        println!("{reply}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn answer(request: &Value, work: &mut Option<Work>) -> Result<Value> {
    if let Some(spec) = request.get("load") {
        *work = None;
        let (loaded, way) = load(spec)?;
        let out = Path::new(text(spec, "answers")?).join("out.f32");
        let numbers = loaded.run()?.flatten_all()?.to_vec1::<f32>()?;
        std::fs::write(&out, numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())?;
        *work = Some(loaded);
        return Ok(json!({"answers": {"out": out}, "way": way, "library": "candle 0.11.1"}));
    }
    if let Some(n) = request.get("time").and_then(Value::as_u64) {
        let work = work.as_ref().ok_or("nothing is loaded")?;
        let warm = request.get("warm").and_then(Value::as_u64).unwrap_or(0);
        return Ok(json!({"ns": work.time(warm, n)?}));
    }
    Err(format!("expected load or time, got {request}").into())
}

/// The work in whichever of the two layouts is the faster one here.
fn load(spec: &Value) -> Result<(Work, &'static str)> {
    let mask = match (text(spec, "work")?, text(spec, "mask")?, text(spec, "bias")?) {
        ("forward", "none", "none") => AttnMask::None,
        ("forward", "causal", "none") => AttnMask::causal(),
        (work, mask, bias) => return Err(format!("no {work} with mask {mask} and bias {bias} here").into()),
    };
    let heads_first = |name: &str| -> Result<Tensor> {
        let shape: Vec<usize> = serde_json::from_value(spec["shape"].clone())?;
        let bytes = std::fs::read(text(&spec["inputs"], name)?)?;
        let numbers = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        Ok(Tensor::from_vec(numbers, shape, &Device::Cpu)?.transpose(1, 2)?)
    };
    let (q, k, v) = (heads_first("q")?, heads_first("k")?, heads_first("v")?);
    let scale = 1.0 / (q.dim(3)? as f32).sqrt();
    let tokens_first = Work { q: q.contiguous()?, k: k.contiguous()?, v: v.contiguous()?, scale, mask: mask.clone() };
    let heads_first = Work { q, k, v, scale, mask };
    Ok(if heads_first.time(0, 1)? < tokens_first.time(0, 1)? {
        (heads_first, "flash_attn, [B, H, T, D] in memory")
    } else {
        (tokens_first, "flash_attn, [B, T, H, D] in memory")
    })
}

fn text<'a>(object: &'a Value, field: &str) -> Result<&'a str> {
    object[field].as_str().ok_or_else(|| format!("{field} is missing in {object}").into())
}

//! `foveal bench`: how fast attention is here.

use std::time::Instant;

use anyhow::{Result, bail};
use foveal::{Attention, KvCache, Mask};
use foveal_models::layer::Random;
use foveal_view::Bars;
use ndarray::Array4;
use serde_json::json;

use crate::arguments::Bench;
use crate::output::Output;
use crate::report::Report;
use crate::table::Table;

/// Rounds of each work; the median counts.
const ROUNDS: usize = 7;

pub fn run(bench: &Bench, output: Output) -> Result<()> {
    output.check_file()?;
    let &Bench { tokens, heads, dims } = bench;
    if [tokens, heads, dims].contains(&0) || tokens * heads * dims > 1 << 28 {
        bail!("tokens, heads and dims must be at least 1, and their product at most {}", 1 << 28);
    }
    let mut random = Random::new(1);
    let mut array = |tokens| random.normal((1, heads, tokens, dims), 1.0);
    let (q, k, v, dout, newest): (Array4<f32>, _, _, _, _) =
        (array(tokens), array(tokens), array(tokens), array(tokens), array(1));
    let mut cache = KvCache::new(1, heads, dims, dims);
    cache.append(&k, &v)?;
    let (full, causal) = (Attention::new(), Attention::new().mask(Mask::causal()));
    let (fwd_full, fwd_causal) = (full.forward(&q, &k, &v)?, causal.forward(&q, &k, &v)?);
    // Multiplications and additions of q·k and p·v; backward has five such products instead of two.
    let pairs = (tokens * tokens * heads * dims * 2) as f64;
    type Work<'a> = (&'a str, f64, Box<dyn FnMut() -> Result<()> + 'a>);
    let mut works: Vec<Work> = vec![
        ("forward", 2.0 * pairs, Box::new(|| done(full.forward(&q, &k, &v)))),
        ("forward, causal", pairs, Box::new(|| done(causal.forward(&q, &k, &v)))),
        ("backward", 5.0 * pairs, Box::new(|| done(full.backward(&q, &k, &v, &fwd_full, &dout)))),
        ("backward, causal", 2.5 * pairs, Box::new(|| done(causal.backward(&q, &k, &v, &fwd_causal, &dout)))),
        ("decode", 2.0 * pairs / tokens as f64, Box::new(|| done(causal.decode(&newest, &cache)))),
    ];
    let tr = |english, korean| output.language.of(english, korean);
    let mut table = Table::new([tr("work", "작업"), "ms", "GFLOP/s"]);
    let (mut names, mut rates, mut figures) = (Vec::new(), Vec::new(), Vec::new());
    for (name, operations, work) in &mut works {
        let mut times = Vec::with_capacity(ROUNDS);
        for _ in 0..=ROUNDS {
            let start = Instant::now();
            work()?;
            times.push(start.elapsed().as_secs_f64());
        }
        times.remove(0);
        times.sort_by(f64::total_cmp);
        let (time, rate) = (times[ROUNDS / 2], *operations / times[ROUNDS / 2] / 1e9);
        table.row([(*name).to_owned(), format!("{:.3}", 1e3 * time), format!("{rate:.0}")]);
        figures.push(json!({ "work": name, "milliseconds": 1e3 * time, "gflops": rate }));
        names.push(*name);
        rates.push(rate as f32);
    }
    let title = format!(
        "1×{heads}×{tokens}×{dims}, f32, {} {}, {}",
        rayon::current_num_threads(),
        tr("threads", "스레드"),
        foveal::Isa::best()
    );
    let scene = Bars::new(rates, names)?.measure("GFLOP/s").title(title.clone()).language(output.language.into());
    let figures =
        json!({ "shape": [1, heads, tokens, dims], "threads": rayon::current_num_threads(), "works": figures });
    output.show(&Report { title, tables: vec![table], scenes: vec![scene.into()], figures, ..Report::default() })
}

/// The work is done; what came of it is not looked at.
fn done<T>(result: Result<T, foveal::Error>) -> Result<()> {
    result?;
    Ok(())
}

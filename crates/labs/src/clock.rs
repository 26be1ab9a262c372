//! How long works take.

use std::time::{Duration, Instant};

use crate::Result;

/// Rounds of the works; the fastest of each counts, since whatever else the machine does only adds.
const ROUNDS: usize = 9;
/// Time after which no new round begins.
const ENOUGH: Duration = Duration::from_secs(4);

/// Something to be timed.
pub type Work<'a> = Box<dyn FnMut() -> Result<()> + 'a>;

/// The shortest time of each work, in seconds. The works take turns, so that a busy moment of the machine hits all of them.
pub fn fastest(works: &mut [Work]) -> Result<Vec<f64>> {
    let begin = Instant::now();
    let mut best = vec![f64::INFINITY; works.len()];
    for work in &mut *works {
        work()?;
    }
    for round in 0..ROUNDS {
        if round > 1 && begin.elapsed() > ENOUGH {
            break;
        }
        for (work, best) in works.iter_mut().zip(&mut best) {
            let start = Instant::now();
            work()?;
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
    Ok(best)
}

/// The slope of time over length where both axes are logarithms, by least squares.
pub fn exponent(lengths: &[usize], times: &[f64]) -> f64 {
    let points: Vec<(f64, f64)> = lengths.iter().zip(times).map(|(n, t)| ((*n as f64).ln(), t.ln())).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let product: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    product / points.iter().map(|p| (p.0 - x) * (p.0 - x)).sum::<f64>()
}

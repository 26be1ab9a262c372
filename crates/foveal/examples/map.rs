//! A 16,384 × 16,384 weight matrix, looked at without ever storing it: a map of all of it, then closer and closer.
//!
//! `cargo run --release --example map`

use std::ops::Range;
use std::time::Instant;

use foveal::{Attention, Error, Mask, Pool};
use ndarray::{Array2, Array4};

fn draw(map: &Array2<f32>) {
    let brightest = map.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    for row in map.rows() {
        let shade = |x: &f32| [' ', '░', '▒', '▓', '█'][((x / brightest).sqrt() * 4.0).round() as usize];
        println!("  {}", row.iter().map(shade).collect::<String>());
    }
}

fn main() -> Result<(), Error> {
    // Every token looks for the one 3,000 before it, by an angle that turns as positions go on.
    let (tokens, dim) = (16_384, 64);
    let turn = |back: usize| {
        Array4::from_shape_fn((1, 1, tokens, dim), |(_, _, i, d)| {
            let angle = (i as f32 - back as f32) / 1.6f32.powi(d as i32 / 2 % 16);
            1.8 * if d % 2 == 0 { angle.cos() } else { angle.sin() }
        })
    };
    let (q, k, v) = (turn(3_000), turn(0), turn(0));
    let attention = Attention::new().mask(Mask::causal());

    let start = Instant::now();
    let fwd = attention.forward(&q, &k, &v)?;
    println!("forward of {tokens} tokens: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);

    let views: [(&str, Range<usize>, Range<usize>); 3] = [
        ("all of it", 0..tokens, 0..tokens),
        ("closer", 10_000..12_000, 7_000..9_000),
        ("closer still", 11_000..11_040, 7_980..8_060),
    ];
    let head = attention.head(&q, &k, &fwd.lse, (0, 0))?;
    for (what, rows, cols) in views {
        let start = Instant::now();
        let map = head.map(rows.clone(), cols.clone(), (20, 72), Pool::Max)?;
        println!("{what}: queries {rows:?}, keys {cols:?}, in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
        draw(&map);
    }
    let cell = head.tile(11_000..11_001, 8_000..8_001)?;
    println!("the weight of query 11000 on key 8000: {:.4}", cell[[0, 0]]);
    Ok(())
}

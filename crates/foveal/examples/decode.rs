//! One token after the other with a cache of keys and values: the same rows as all tokens at once.
//!
//! `cargo run --release --example decode`

use foveal::{Attention, Error, KvCache, Mask};
use ndarray::{Array4, s};

fn main() -> Result<(), Error> {
    // Eight query heads share two key heads.
    let (heads, kv_heads, tokens, dim) = (8, 2, 200, 64);
    let wave = |h, n, seed: f32| {
        Array4::from_shape_fn((1, h, n, dim), |(_, h, i, d)| {
            (seed * (h + 1) as f32 + (i * dim + d) as f32 * 0.37).sin()
        })
    };
    let (q, k, v) = (wave(heads, tokens, 1.0), wave(kv_heads, tokens, 2.0), wave(kv_heads, tokens, 3.0));

    let attention = Attention::new().mask(Mask::causal());
    let whole = attention.forward(&q, &k, &v)?;

    let mut cache = KvCache::new(1, kv_heads, dim, dim);
    let mut worst = 0f32;
    for i in 0..tokens {
        let new = s![.., .., i..i + 1, ..];
        cache.append(k.slice(new), v.slice(new))?;
        let step = attention.decode(q.slice(new), &cache)?;
        worst = (&step.out - &whole.out.slice(new)).iter().fold(worst, |worst, x| worst.max(x.abs()));
    }
    println!("{} tokens decoded one by one; largest difference from the forward pass: {worst:.1e}", cache.len());
    Ok(())
}

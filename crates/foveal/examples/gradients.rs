//! Learning by gradient descent: turn a query until it looks at the key it should.
//!
//! `cargo run --example gradients`

use foveal::{Attention, Error};
use ndarray::{Array4, s};

fn main() -> Result<(), Error> {
    let (keys, dim, wanted) = (6, 8, 4);
    let wave = |j: usize, d: usize| ((3 * j + 1) as f32 * (d + 1) as f32).sin();
    let k = Array4::from_shape_fn((1, 1, keys, dim), |(_, _, j, d)| wave(j, d));
    // The value of key j is the j-th unit vector: the output is then the weights themselves.
    let v = Array4::from_shape_fn((1, 1, keys, keys), |(_, _, j, d)| f32::from(u8::from(j == d)));
    let mut q = Array4::zeros((1, 1, 1, dim));

    let attention = Attention::new();
    for step in 0..=60 {
        let fwd = attention.forward(&q, &k, &v)?;
        let out = fwd.out.slice(s![0, 0, 0, ..]);
        if step % 20 == 0 {
            println!("step {step:2}: weights {out:.3}, loss {:.4}", -out[wanted].ln());
        }
        // loss = −ln out[wanted]
        let dout = Array4::from_shape_fn((1, 1, 1, keys), |(.., d)| if d == wanted { -1.0 / out[d] } else { 0.0 });
        let dq = attention.backward(&q, &k, &v, &fwd, &dout)?.dq;
        q -= &dq;
    }
    Ok(())
}

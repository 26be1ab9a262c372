use foveal::*;
use ndarray::*;
use std::time::Instant;
fn rnd(s: [usize; 4], mut x: u64) -> Array4<f32> {
    Array4::from_shape_fn(s, |_| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        ((x >> 40) as f32 / (1u64 << 24) as f32 - 0.5) * 3.4
    })
}
fn main() {
    for (h, t, d) in [(12, 1024, 64), (8, 4096, 64), (8, 4096, 128)] {
        for c in [false, true] {
            let (q, k, v) = (rnd([1, h, t, d], 1), rnd([1, h, t, d], 2), rnd([1, h, t, d], 3));
            let mut o = Array4::zeros((1, h, t, d));
            let mut l = Array3::zeros((1, h, t));
            let mut s = Scratch::new();
            let a = Attention::new().mask(if c { Mask::causal() } else { Mask::none() });
            let mut ts = vec![];
            for _ in 0..9 {
                let i = Instant::now();
                a.forward_into(&q, &k, &v, o.view_mut(), l.view_mut(), &mut s).unwrap();
                ts.push(i.elapsed().as_secs_f64());
            }
            ts.sort_by(f64::total_cmp);
            let f = 4.0 * (h * t * t * d) as f64 * if c { 0.5 } else { 1.0 };
            // check a row
            let (hh, i) = (h - 1, t / 2 + 3);
            let n = if c { i + 1 } else { t };
            let sc: Vec<f64> = (0..n)
                .map(|j| {
                    (0..d).map(|x| q[[0, hh, i, x]] as f64 * k[[0, hh, j, x]] as f64).sum::<f64>() / (d as f64).sqrt()
                })
                .collect();
            let m = sc.iter().cloned().fold(f64::MIN, f64::max);
            let z: f64 = sc.iter().map(|s| (s - m).exp()).sum();
            let err = (0..d)
                .map(|x| {
                    let w: f64 = (0..n).map(|j| (sc[j] - m).exp() / z * v[[0, hh, j, x]] as f64).sum();
                    (w - o[[0, hh, i, x]] as f64).abs()
                })
                .fold(0.0, f64::max);
            println!(
                "{h} {t} {d} {c}: {:.2} ms (best {:.2}) {:.0} GF  err {err:.1e}",
                ts[4] * 1e3,
                ts[0] * 1e3,
                f / ts[4] / 1e9
            );
            if std::env::args().nth(1).as_deref() == Some("b") {
                let fw = a.forward(&q, &k, &v).unwrap();
                let g = rnd([1, h, t, d], 4);
                let mut ts = vec![];
                for _ in 0..5 {
                    let i = Instant::now();
                    std::hint::black_box(a.backward(&q, &k, &v, &fw, &g).unwrap());
                    ts.push(i.elapsed().as_secs_f64());
                }
                ts.sort_by(f64::total_cmp);
                println!("   backward {:.2} ms {:.0} GF", ts[2] * 1e3, f * 2.5 / ts[2] / 1e9);
            }
        }
    }
    let (q, k, v) = (rnd([1, 4, 16, 32], 1), rnd([1, 4, 16, 32], 2), rnd([1, 4, 16, 32], 3));
    let a = Attention::new();
    for _ in 0..3 {
        let i = Instant::now();
        for _ in 0..10000 {
            std::hint::black_box(a.forward(&q, &k, &v).unwrap());
        }
        println!("small {:.2} us", i.elapsed().as_secs_f64() * 1e6 / 1e4);
    }
    let (q, k, v) = (rnd([1, 12, 1, 64], 1), rnd([1, 12, 32768, 64], 2), rnd([1, 12, 32768, 64], 3));
    let mut ts = vec![];
    for _ in 0..15 {
        let i = Instant::now();
        std::hint::black_box(a.forward(&q, &k, &v).unwrap());
        ts.push(i.elapsed().as_secs_f64());
    }
    ts.sort_by(f64::total_cmp);
    println!("decode {:.2} ms {:.1} GB/s", ts[7] * 1e3, 201.3e-3 / ts[7]);
}

//! Sizes at which kernels go wrong: head dimensions and token counts around vectors and tiles, on every instruction set.
#![allow(missing_docs)]

mod support;

use foveal::{Attention, Isa, Mask, reference};
use ndarray::{Array4, Axis, concatenate, s};
use support::{assert_close, dynamic, randn4, widen};

/// Forward and backward of one shape against the f64 reference.
fn check(attention: &Attention, q: &Array4<f32>, k: &Array4<f32>, v: &Array4<f32>) {
    let dout = randn4(9, [q.dim().0, q.dim().1, q.dim().2, v.dim().3]);
    let (q64, k64, v64) = (widen(q), widen(k), widen(v));
    let want = reference::forward(attention, &q64, &k64, &v64).unwrap();
    let grads = reference::backward(attention, &q64, &k64, &v64, &widen(&dout)).unwrap();
    let abs = 1e-5 * (1.0 + (v.dim().3 as f64 * q.dim().2.max(k.dim().2) as f64).sqrt() / 16.0);
    for isa in Isa::available() {
        let attention = attention.clone().isa(isa);
        let what = |part: &str| format!("{isa} {part} of q {:?} k {:?} v {:?}", q.dim(), k.dim(), v.dim());
        let fwd = attention.forward(q, k, v).unwrap();
        assert_close(&what("out"), dynamic(&fwd.out), dynamic(&want.out), 1e-5, 5e-6);
        assert_close(&what("lse"), dynamic(&fwd.lse), dynamic(&want.lse), 1e-5, 5e-6);
        let got = attention.backward(q, k, v, &fwd, &dout).unwrap();
        assert_close(&what("dq"), dynamic(&got.dq), dynamic(&grads.dq), abs, 5e-6);
        assert_close(&what("dk"), dynamic(&got.dk), dynamic(&grads.dk), abs, 5e-6);
        assert_close(&what("dv"), dynamic(&got.dv), dynamic(&grads.dv), abs, 5e-6);
    }
}

const DIMS: [usize; 9] = [1, 8, 40, 59, 64, 80, 111, 128, 256];
const TOKENS: [usize; 8] = [0, 1, 2, 5, 17, 97, 257, 1025];

#[test]
fn head_dimensions() {
    for (n, dim) in DIMS.into_iter().enumerate() {
        let value_dim = DIMS[(n + 4) % DIMS.len()];
        for (dim, value_dim) in [(dim, dim), (dim, value_dim)] {
            let (q, k, v) = (randn4(1, [1, 2, 37, dim]), randn4(2, [1, 2, 70, dim]), randn4(3, [1, 2, 70, value_dim]));
            check(&Attention::new(), &q, &k, &v);
            check(&Attention::new().mask(Mask::causal()), &q, &k, &v);
        }
    }
}

#[test]
fn token_counts() {
    for tokens in TOKENS {
        for keys in [tokens, 33, 300] {
            let (q, k, v) = (randn4(4, [1, 1, tokens, 16]), randn4(5, [1, 1, keys, 16]), randn4(6, [1, 1, keys, 16]));
            for mask in [Mask::none(), Mask::causal(), Mask::window(20, 3)] {
                check(&Attention::new().mask(mask), &q, &k, &v);
            }
        }
    }
}

#[test]
fn tile_borders() {
    // One more and one less than the lanes, the register tile, and the tiles of forward and backward.
    for n in [
        3, 4, 7, 8, 9, 11, 12, 13, 15, 16, 23, 24, 25, 31, 32, 63, 64, 65, 191, 192, 193, 255, 256, 383, 384, 479, 480,
        481, 511, 513,
    ] {
        let (q, k, v) = (randn4(4, [1, 1, n, 8]), randn4(5, [1, 1, n, 8]), randn4(6, [1, 1, n, 8]));
        check(&Attention::new().mask(Mask::causal()), &q, &k, &v);
    }
}

/// Heads that are worked on as a whole, and those just too large for it: queries and keys of different numbers, padding,
/// windows that some rows see nothing through, key heads that are shared, dropout.
#[test]
fn short_sequences() {
    let sizes = [(5, 16), (16, 5), (16, 16), (64, 64), (64, 33), (17, 64), (64, 65), (66, 64)];
    for (n, (queries, keys)) in sizes.into_iter().enumerate() {
        for (dim, value_dim) in [(32, 32), (DIMS[n], DIMS[DIMS.len() - 2 - n])] {
            let q = randn4(1, [2, 4, queries, dim]);
            for kv_heads in [4, 2] {
                let (k, v) = (randn4(2, [2, kv_heads, keys, dim]), randn4(3, [2, kv_heads, keys, value_dim]));
                let padding = || Mask::padding([keys - 2, keys / 3]);
                let masks = [
                    Mask::none(),
                    Mask::causal(),
                    padding(),
                    Mask::causal().and(padding()),
                    Mask::window(3, 1),
                    Mask::window(2, 2).and(padding()),
                ];
                for mask in masks {
                    let attention = Attention::new().mask(mask);
                    check(&attention, &q, &k, &v);
                    check(&attention.dropout(0.3, 7), &q, &k, &v);
                }
            }
        }
    }
}

#[test]
fn several_stretches_of_rows() {
    // Enough rows that dQ is collected in more than one stretch, by several chunks.
    let (q, k, v) = (randn4(4, [1, 1, 1700, 24]), randn4(5, [1, 1, 900, 24]), randn4(6, [1, 1, 900, 24]));
    check(&Attention::new().mask(Mask::causal()), &q, &k, &v);
}

#[test]
fn other_layouts() {
    // [B, T, H, D] seen as [B, H, T, D]; reversed axes; every second row; one row for all (stride 0).
    for tokens in [50, 140] {
        layouts_of(tokens);
    }
}

fn layouts_of(tokens: usize) {
    let base = randn4(7, [2, tokens, 3, 32]);
    let heads_last = base.view().permuted_axes([0, 2, 1, 3]);
    let flipped = base.slice(s![.., ..;-1, .., ..;-1]).permuted_axes([0, 2, 1, 3]);
    let strided = base.slice(s![.., ..;2, .., ..;2]).permuted_axes([0, 2, 1, 3]);
    let row = base.slice(s![..1, ..1, ..1, ..]);
    let repeated = row.broadcast((2, 3, tokens, 32)).unwrap();
    let attention = Attention::new().mask(Mask::causal());
    for view in [heads_last, flipped, strided, repeated] {
        let copy = view.as_standard_layout().into_owned();
        let dout = randn4(8, [2, 3, view.dim().2, view.dim().3]);
        let (fwd, same) =
            (attention.forward(view, view, view).unwrap(), attention.forward(&copy, &copy, &copy).unwrap());
        assert_eq!(fwd, same);
        let dout_view = dout.view();
        let got = attention.backward(view, view, view, &fwd, dout_view).unwrap();
        let want = attention.backward(&copy, &copy, &copy, &same, &dout).unwrap();
        assert_eq!(got, want);
        check(&attention, &copy, &copy, &copy);
        // Outputs in another layout, too.
        let (b, h, t, d) = view.dim();
        let mut out = Array4::<f32>::zeros((b, t, h, d));
        let mut lse = ndarray::Array3::<f64>::zeros((b, t, h));
        let (out_view, lse_view) =
            (out.view_mut().permuted_axes([0, 2, 1, 3]), lse.view_mut().permuted_axes([0, 2, 1]));
        attention.forward_into(view, view, view, out_view, lse_view, &mut foveal::Scratch::new()).unwrap();
        assert_eq!(out.permuted_axes([0, 2, 1, 3]), fwd.out);
        assert_eq!(lse.permuted_axes([0, 2, 1]), fwd.lse);
        // Gradients as columns of one array.
        let mut all = Array4::from_elem((b, t, 3 * h, d), f32::NAN);
        let (dq, dkv) = all.view_mut().permuted_axes([0, 2, 1, 3]).split_at(Axis(1), h);
        let (dk, dv) = dkv.split_at(Axis(1), h);
        let targets = foveal::GradientsMut::set(dq, dk, dv);
        attention.backward_into(view, view, view, &fwd, dout_view, targets, &mut foveal::Scratch::new()).unwrap();
        let side_by_side = concatenate(Axis(1), &[got.dq.view(), got.dk.view(), got.dv.view()]).unwrap();
        assert_eq!(all.permuted_axes([0, 2, 1, 3]), side_by_side);
    }
}

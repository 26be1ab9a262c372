//! Sparse patterns: every pattern and every entry point, on every instruction set, equals dense attention under the same mask,
//! which is written out here cell by cell from the papers' definitions.
#![allow(missing_docs)]

mod support;

use foveal::{Align, Attention, Bias, BigBird, Error, Isa, KvCache, Mask, Pattern, Pool, Threads, reference};
use ndarray::{Array2, Array4, s};
use support::{assert_close, dynamic, narrow, randn, randn4, widen};

/// A pattern, and whether position p sees key j.
type Named = (&'static str, Pattern, Box<dyn Fn(usize, usize) -> bool>);

/// Patterns for 225 tokens, with the definitions.
fn patterns() -> Vec<Named> {
    const N: usize = 225;
    let global = [0, 3, 4, 100, 224];
    let sizes = BigBird { block: 16, window: 3, global_start: 1, global_end: 2, random: 0, seed: 0 };
    let window_of = |p: usize, shift: usize| {
        // As Swin does it: roll by −shift, cut into windows of 5, and number the regions that the roll has torn apart.
        let along = |x: usize| {
            let rolled = (x + 15 - shift) % 15;
            (rolled / 5, if shift > 0 && rolled >= 15 - shift { 2 } else { usize::from(shift > 0 && rolled >= 10) })
        };
        (along(p / 15), along(p % 15))
    };
    vec![
        (
            "Longformer",
            Pattern::longformer(20, 1, &global).unwrap(),
            Box::new(move |p, j| p.abs_diff(j) <= 20 || global.contains(&p) || global.contains(&j)),
        ),
        (
            "dilated Longformer",
            Pattern::longformer(9, 7, &[50]).unwrap(),
            Box::new(|p, j| (p.abs_diff(j) <= 63 && p.abs_diff(j) % 7 == 0) || p == 50 || j == 50),
        ),
        (
            "documents",
            Pattern::documents(&[70, 1, 0, 13, 64, 2, 75]).unwrap(),
            Box::new(|p, j| {
                let of = |token: usize| [70, 71, 71, 84, 148, 150, 225].iter().filter(|end| **end <= token).count();
                of(p) == of(j)
            }),
        ),
        ("strided", Pattern::strided(15).unwrap(), Box::new(|p, j| p.abs_diff(j) <= 15 || p.abs_diff(j) % 15 == 0)),
        ("fixed", Pattern::fixed(15, 2).unwrap(), Box::new(|p, j| p / 15 == j / 15 || j % 15 >= 13)),
        (
            "BigBird without chance",
            Pattern::big_bird(N, sizes).unwrap(),
            Box::new(|p, j| {
                let global = |block: usize| block == 0 || block >= 13;
                (p / 16).abs_diff(j / 16) <= 1 || global(p / 16) || global(j / 16)
            }),
        ),
        (
            "Swin",
            Pattern::swin((15, 15), (5, 5), (0, 0)).unwrap(),
            Box::new(move |p, j| window_of(p, 0) == window_of(j, 0)),
        ),
        (
            "shifted Swin",
            Pattern::swin((15, 15), (5, 5), (2, 2)).unwrap(),
            Box::new(move |p, j| window_of(p, 2) == window_of(j, 2)),
        ),
        (
            "blocks",
            Pattern::blocks(10, (0..23).map(|r| (0..23).filter(|c| (r * r + c) % 5 == 0).collect())).unwrap(),
            Box::new(|p, j| ((p / 10) * (p / 10) + j / 10) % 5 == 0),
        ),
        (
            "either of two",
            Pattern::longformer(3, 1, &[]).unwrap().or(Pattern::fixed(40, 1).unwrap()).unwrap(),
            Box::new(|p, j| p.abs_diff(j) <= 3 || p / 40 == j / 40 || j % 40 == 39),
        ),
    ]
}

#[test]
fn every_entry_point_equals_dense_attention() {
    for (name, pattern, sees) in patterns() {
        // As many queries as keys; the last queries alone, as in decoding; the first alone.
        for (queries, align) in [(225, Align::Last), (30, Align::Last), (1, Align::Last), (70, Align::First)] {
            let q = randn4(1, [2, 4, queries, 24]);
            let (k, v) = (randn4(2, [2, 2, 225, 24]), randn4(3, [2, 2, 225, 20]));
            let dout = randn4(4, [2, 4, queries, 20]);
            let offset = if align == Align::Last { 225 - queries } else { 0 };
            let keep = Array4::from_shape_fn((1, 1, queries, 225), |(_, _, i, j)| sees(i + offset, j));
            let dense = Attention::new().mask(Mask::dense(keep)).align(align.clone());
            let want = reference::forward(&dense, &widen(&q), &widen(&k), &widen(&v)).unwrap();
            let grads = reference::backward(&dense, &widen(&q), &widen(&k), &widen(&v), &widen(&dout)).unwrap();
            for isa in Isa::available() {
                let what = |part: &str| format!("{name}, {queries} queries, {isa}: {part}");
                let sparse = Attention::new().mask(Mask::pattern(pattern.clone())).align(align.clone()).isa(isa);
                let fwd = sparse.forward(&q, &k, &v).unwrap();
                assert_close(&what("out"), dynamic(&fwd.out), dynamic(&want.out), 1e-5, 5e-6);
                assert_close(&what("lse"), dynamic(&fwd.lse), dynamic(&want.lse), 1e-5, 5e-6);
                let got = sparse.backward(&q, &k, &v, &fwd, &dout).unwrap();
                assert_close(&what("dq"), dynamic(&got.dq), dynamic(&grads.dq), 5e-5, 5e-6);
                assert_close(&what("dk"), dynamic(&got.dk), dynamic(&grads.dk), 5e-5, 5e-6);
                assert_close(&what("dv"), dynamic(&got.dv), dynamic(&grads.dv), 5e-5, 5e-6);
                let weights = sparse.weights(&q, &k).unwrap();
                assert_close(&what("weights"), dynamic(&weights), dynamic(&want.weights), 1e-5, 5e-6);
                let rows = queries / 3..queries;
                let tile = sparse.head(&q, &k, &fwd.lse, (1, 3)).unwrap().tile(rows.clone(), 13..211).unwrap();
                let part = want.weights.slice(s![1, 3, rows.clone(), 13..211]);
                assert_close(&what("tile"), dynamic(&tile), part.into_dyn(), 1e-5, 5e-6);
                let head = sparse.head(&q, &k, &fwd.lse, (1, 3)).unwrap();
                let map = head.map(rows.clone(), 13..211, (1, 11), Pool::Sum).unwrap();
                let sums = Array2::from_shape_fn((1, 11), |(_, x)| part.slice(s![.., 18 * x..18 * (x + 1)]).sum());
                assert_close(&what("map"), dynamic(&map), dynamic(&sums), 1e-4, 5e-6);
                if align == Align::Last {
                    let mut cache = KvCache::new(2, 2, 24, 20);
                    cache.append(&k, &v).unwrap();
                    assert_eq!(sparse.decode(&q, &cache).unwrap(), fwd, "{}", what("decode"));
                }
            }
        }
    }
}

#[test]
fn each_head_may_have_its_own() {
    let x = randn4(1, [1, 10, 225, 16]);
    let heads = patterns();
    let keep = Array4::from_shape_fn((1, 10, 225, 225), |(_, h, i, j)| heads[h].2(i, j) && j <= i);
    let want =
        reference::forward(&Attention::new().mask(Mask::dense(keep)), &widen(&x), &widen(&x), &widen(&x)).unwrap();
    let patterns = heads.into_iter().map(|(_, pattern, _)| pattern).collect::<Vec<_>>();
    let sparse = Attention::new().mask(Mask::causal().and(Mask::patterns(patterns.clone())));
    assert_close("out", dynamic(&sparse.forward(&x, &x, &x).unwrap().out), dynamic(&want.out), 1e-5, 5e-6);
    let wrong = Attention::new().mask(Mask::patterns(patterns[..4].to_vec())).forward(&x, &x, &x);
    assert!(wrong.unwrap_err().to_string().contains("list of patterns has shape [4], expected [10]"));
}

/// Long enough for many tiles, stretches and chunks; what is global lies in the middle of a tile.
#[test]
fn long_sequences() {
    let n = 3000;
    let (q, k, v) = (randn4(1, [1, 1, n, 16]), randn4(2, [1, 1, n, 16]), randn4(3, [1, 1, n, 16]));
    let patterns = [
        Pattern::longformer(100, 1, &[0, 1, 1500]).unwrap(),
        Pattern::big_bird(n, BigBird { block: 40, seed: 5, ..BigBird::default() }).unwrap(),
        Pattern::strided(55).unwrap(),
    ];
    for pattern in patterns {
        let keep = Array4::from_shape_fn((1, 1, n, n), |(_, _, i, j)| pattern.visible(i, j));
        let (dense, sparse) = (Attention::new().mask(Mask::dense(keep)), Attention::new().mask(Mask::pattern(pattern)));
        let (want, got) = (dense.forward(&q, &k, &v).unwrap(), sparse.forward(&q, &k, &v).unwrap());
        assert_close("out", dynamic(&got.out), dynamic(&widen(&want.out)), 1e-5, 1e-5);
        assert_close("lse", dynamic(&got.lse), dynamic(&widen(&want.lse)), 1e-5, 1e-5);
        let want = dense.backward(&q, &k, &v, &want, &q).unwrap();
        let got = sparse.backward(&q, &k, &v, &got, &q).unwrap();
        assert_close("dq", dynamic(&got.dq), dynamic(&widen(&want.dq)), 1e-4, 1e-5);
        assert_close("dk", dynamic(&got.dk), dynamic(&widen(&want.dk)), 1e-4, 1e-5);
        assert_close("dv", dynamic(&got.dv), dynamic(&widen(&want.dv)), 1e-4, 1e-5);
    }
}

#[test]
fn big_bird_sees_what_it_should() {
    let sizes = BigBird { block: 8, window: 3, global_start: 1, global_end: 1, random: 3, seed: 7 };
    let pattern = Pattern::big_bird(400, sizes).unwrap();
    let mut drawn = [0; 50];
    for row in 1..49 {
        let seen: Vec<usize> = (0..50).filter(|block| pattern.visible(row * 8 + 3, block * 8 + 5)).collect();
        let must = [0, row - 1, row, row + 1, 49];
        assert!(must.iter().all(|block| seen.contains(block)));
        let random: Vec<usize> = seen.into_iter().filter(|block| !must.contains(block)).collect();
        assert_eq!(random.len(), 3, "block {row}");
        random.iter().for_each(|block| drawn[*block] += 1);
    }
    // 144 draws over 48 blocks.
    assert!(drawn[1..49].iter().all(|n| *n < 12), "{drawn:?}");
    let same = Pattern::big_bird(400, sizes).unwrap();
    assert_eq!(same.picture(400), pattern.picture(400));
    let other = Pattern::big_bird(400, BigBird { seed: 8, ..sizes }).unwrap();
    assert_ne!(other.picture(400), pattern.picture(400));
}

/// Swin as its authors compute it: roll, cut into windows, dense attention with bias and mask, and all the way back.
#[test]
fn swin_equals_rolled_windows() {
    let (height, width, window, shift, heads, dim) = (8usize, 12usize, 4usize, 2usize, 3, 8);
    let tokens = height * width;
    let (q, k, v) =
        (randn4(1, [1, heads, tokens, dim]), randn4(2, [1, heads, tokens, dim]), randn4(3, [1, heads, tokens, dim]));
    let table = narrow(&randn(4, ((2 * window - 1) * (2 * window - 1), heads)));
    let ours = Attention::new()
        .mask(Mask::pattern(Pattern::swin((height, width), (window, window), (shift, shift)).unwrap()))
        .bias(Bias::swin(table.clone(), (window, window), (height, width)).unwrap());
    let fwd = ours.forward(&q, &k, &v).unwrap();

    let region = |x: usize, side: usize| {
        if x < side - window {
            0
        } else if x < side - shift {
            1
        } else {
            2
        }
    };
    for top in (0..height).step_by(window) {
        for left in (0..width).step_by(window) {
            // Rolled coordinates of the window's tokens, and the tokens they come from.
            let places: Vec<(usize, usize)> =
                (0..window * window).map(|n| (top + n / window, left + n % window)).collect();
            let from: Vec<usize> =
                places.iter().map(|(y, x)| (y + shift) % height * width + (x + shift) % width).collect();
            let pick = |array: &Array4<f32>| array.select(ndarray::Axis(2), &from);
            let bias = Array4::from_shape_fn((1, heads, 16, 16), |(_, h, i, j)| {
                let ((yi, xi), (yj, xj)) = (places[i], places[j]);
                let hidden = (region(yi, height), region(xi, width)) != (region(yj, height), region(xj, width));
                let entry = (yi + window - 1 - yj) * (2 * window - 1) + xi + window - 1 - xj;
                table[[entry, h]] + if hidden { f32::NEG_INFINITY } else { 0.0 }
            });
            let dense = Attention::new().bias(Bias::dense(bias));
            let want = dense.forward(&pick(&q), &pick(&k), &pick(&v)).unwrap();
            assert_close("window", dynamic(&pick(&fwd.out)), dynamic(&widen(&want.out)), 1e-5, 5e-6);
        }
    }
}

/// The bias table's gradient by finite differences of the f64 reference.
#[test]
fn swin_gradients_by_finite_differences() {
    let (q, k, v) = (randn(1, (2, 2, 24, 4)), randn(2, (2, 2, 24, 4)), randn(3, (2, 2, 24, 4)));
    let dout = randn(4, (2, 2, 24, 4));
    let table = narrow(&randn(5, (15, 2)));
    let attention = |table: &Array2<f32>| {
        Attention::new()
            .mask(Mask::pattern(Pattern::swin((4, 6), (2, 3), (1, 1)).unwrap()))
            .bias(Bias::swin(table.clone(), (2, 3), (4, 6)).unwrap())
    };
    let loss = |table: &Array2<f32>| (reference::forward(&attention(table), &q, &k, &v).unwrap().out * &dout).sum();
    let exact = reference::backward(&attention(&table), &q, &k, &v, &dout).unwrap().dbias.unwrap();
    let (q32, k32, v32) = (narrow(&q), narrow(&k), narrow(&v));
    let fwd = attention(&table).forward(&q32, &k32, &v32).unwrap();
    let fast = attention(&table).backward(&q32, &k32, &v32, &fwd, &narrow(&dout)).unwrap().dbias.unwrap();
    assert_close("dbias", dynamic(&fast), dynamic(&exact), 2e-5, 1e-5);
    for (at, _) in table.indexed_iter() {
        let step = 1.0 / 1024.0;
        let moved = |by: f32| {
            let mut table = table.clone();
            table[at] += by;
            (loss(&table), f64::from(table[at]))
        };
        let ((up, high), (down, low)) = (moved(step), moved(-step));
        let slope = (up - down) / (high - low);
        assert!((slope - exact[[at.0, at.1]]).abs() < 1e-5, "{at:?}: {slope} and {}", exact[[at.0, at.1]]);
    }
}

#[test]
fn bit_identical_over_threads() {
    let (q, k, v) = (randn4(1, [1, 2, 1500, 16]), randn4(2, [1, 1, 1500, 16]), randn4(3, [1, 1, 1500, 16]));
    for pattern in [
        Pattern::longformer(60, 1, &[0, 40, 700]).unwrap(),
        Pattern::strided(33).unwrap(),
        Pattern::big_bird(1500, BigBird { block: 25, ..BigBird::default() }).unwrap(),
        Pattern::swin((30, 50), (5, 5), (2, 2)).unwrap(),
    ] {
        let attention = Attention::new().mask(Mask::pattern(pattern));
        let run = |attention: &Attention| {
            let fwd = attention.forward(&q, &k, &v).unwrap();
            let grads = attention.backward(&q, &k, &v, &fwd, &q).unwrap();
            (fwd, grads)
        };
        let once = run(&attention.clone().threads(Threads::Sequential));
        for threads in [1, 2, 3, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert!(pool.install(|| run(&attention)) == once, "{threads} threads");
        }
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let expect = |result: Result<(), Error>, part: &str| {
        let message = result.expect_err(part).to_string();
        assert!(message.contains(part), "{message:?} does not say {part:?}");
    };
    let made = |pattern: Result<Pattern, Error>| pattern.map(|_| ());
    let bird = |tokens, sizes| made(Pattern::big_bird(tokens, sizes));
    let sizes = BigBird::default();
    expect(made(Pattern::longformer(4, 0, &[])), "dilation is 0; what fits: 1 or more");
    expect(made(Pattern::strided(0)), "stride is 0; what fits: 1 or more");
    expect(made(Pattern::fixed(0, 0)), "stride is 0");
    expect(made(Pattern::fixed(8, 9)), "summary is 9; what fits: 0 to 8");
    expect(bird(4096, BigBird { block: 0, ..sizes }), "block size is 0");
    expect(bird(4096, BigBird { window: 4, ..sizes }), "window is 4; what fits: odd, such as 5");
    expect(bird(256, sizes), "sees is 8; what fits: at most 4");
    expect(bird(256, BigBird { random: usize::MAX, ..sizes }), "what fits: at most 4");
    expect(made(Pattern::documents(&[7, usize::MAX])), "so that all together can be counted");
    expect(made(Pattern::blocks(0, [])), "block size is 0");
    expect(made(Pattern::blocks(4, [vec![0], vec![2]])), "a block of the list is 2; what fits: 0 to 1");
    expect(
        made(Pattern::swin((50, 56), (7, 7), (0, 0))),
        "grid is 50; what fits: a multiple of the window's 7: 49 or 56",
    );
    expect(made(Pattern::swin((56, 56), (7, 0), (0, 0))), "a window of 1 or more");
    expect(made(Pattern::swin((56, 56), (7, 7), (3, 7))), "shift is 7; what fits: 0 to 6");
    expect(made(Pattern::swin((5, 56), (7, 7), (0, 0))), "a multiple of the window's 7, or a window of at most 5");
    expect(bird(usize::MAX, BigBird { block: 64, ..sizes }), "number of BigBird's blocks");
    // Parts of a union that no number of tokens fits.
    let square = |side: usize, window: usize| Pattern::swin((side, side), (window, window), (0, 0)).unwrap();
    let documents = |tokens: usize| Pattern::documents(&[tokens]).unwrap();
    expect(made(square(3, 3).or(square(2, 2))), "joined patterns is made for is 4; what fits: 9, which the other");
    expect(made(square(3, 3).or(documents(7))), "joined patterns is made for is 9; what fits: up to 7");
    expect(made(documents(7).or(square(3, 3))), "joined patterns is made for is 9; what fits: up to 7");
    let swin_first = square(3, 3).or(Pattern::strided(2).unwrap()).unwrap();
    expect(made(swin_first.or(square(2, 2))), "joined patterns");
    assert!(square(4, 2).or(square(4, 4)).is_ok() && square(3, 3).or(documents(9)).is_ok());
    assert!(documents(7).or(documents(3)).is_ok());
    expect(Bias::swin(Array2::zeros((12, 3)), (2, 3), (4, 6)).map(|_| ()), "table has shape [12, 3], expected [15, 3]");
    expect(Bias::swin(Array2::zeros((12, 3)), (0, 3), (4, 6)).map(|_| ()), "window is 0");

    let x = randn4(1, [1, 2, 24, 8]);
    let forward = |q: &Array4<f32>, attention: Attention| attention.forward(q, &x, &x).map(|_| ());
    let swin = |grid| Attention::new().mask(Mask::pattern(Pattern::swin(grid, (2, 2), (1, 1)).unwrap()));
    expect(forward(&x, swin((4, 4))), "the number of keys is 24; what fits: 16");
    expect(forward(&x, swin((6, 6))), "the number of keys is 24; what fits: 36");
    let blocks = |size| Attention::new().mask(Mask::pattern(Pattern::blocks(size, [vec![0], vec![1]]).unwrap()));
    expect(forward(&x, blocks(11)), "the number of keys is 24; what fits: up to 22");
    assert!(forward(&x, blocks(12)).is_ok());
    let long = randn4(1, [1, 2, 30, 8]);
    expect(forward(&long, blocks(20)), "the number of queries is 30; what fits: up to 24");
    assert!(forward(&long, blocks(20).align(Align::First)).is_ok());
    expect(
        forward(&x, blocks(20).align(Align::Offsets([20].into()))),
        "position of the last query is 43; what fits: up to 39",
    );
    expect(forward(&x, blocks(20).align(Align::Offsets([isize::MAX].into()))), "position of the last query");
    let bias = |heads, grid| Attention::new().bias(Bias::swin(Array2::zeros((9, heads)), (2, 2), grid).unwrap());
    expect(forward(&x, bias(3, (4, 6))), "Swin's table has shape [9, 3], expected [9, 2]");
    expect(forward(&x, bias(2, (4, 5))), "the number of keys is 24; what fits: 20");
    assert!(forward(&x, bias(2, (4, 6))).is_ok());
    // Sizes beyond any array are not worth an error.
    assert!(
        forward(
            &x,
            Attention::new().mask(Mask::pattern(Pattern::longformer(usize::MAX, usize::MAX, &[usize::MAX]).unwrap()))
        )
        .is_ok()
    );
}

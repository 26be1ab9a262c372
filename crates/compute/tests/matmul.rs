//! The matrix product against f64, over sizes, layouts and thread counts.

mod support;

use foveal_compute::{Error, Operand, Threads, affine, affine_side_by_side, bf16, f16, matmul};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};
use support::randn;

/// Sizes around the thin limit, vectors, and the tiles of `gemm`.
const SIZES: [usize; 11] = [0, 1, 2, 3, 4, 5, 15, 17, 48, 65, 130];

/// The ways in which a matrix of any shape may lie in memory.
#[derive(Clone, Copy, Debug)]
enum Layout {
    Rows,
    Columns,
    Backwards,
    Gaps,
}

const LAYOUTS: [Layout; 4] = [Layout::Rows, Layout::Columns, Layout::Backwards, Layout::Gaps];

/// Room for a matrix, and the matrix in it.
fn room((m, n): (usize, usize), layout: Layout, seed: u64) -> Array2<f32> {
    let shape = match layout {
        Layout::Columns => (n, m),
        Layout::Gaps => (3 * m, 2 * n),
        _ => (m, n),
    };
    randn(seed, shape).mapv(|x| x as f32)
}

fn view<E>(room: &Array2<E>, layout: Layout) -> ArrayView2<'_, E> {
    match layout {
        Layout::Rows => room.view(),
        Layout::Columns => room.t(),
        Layout::Backwards => room.slice(s![..;-1, ..;-1]),
        Layout::Gaps => room.slice(s![..;3, ..;2]),
    }
}

fn view_mut(room: &mut Array2<f32>, layout: Layout) -> ArrayViewMut2<'_, f32> {
    match layout {
        Layout::Rows => room.view_mut(),
        Layout::Columns => room.view_mut().reversed_axes(),
        Layout::Backwards => room.slice_mut(s![..;-1, ..;-1]),
        Layout::Gaps => room.slice_mut(s![..;3, ..;2]),
    }
}

/// alpha·a·b + beta·c within what f32 allows: k roundings of the sum of absolute products.
fn check(alpha: f32, a: &ArrayView2<f32>, b: &ArrayView2<f32>, beta: f32, old: &Array2<f32>, got: &ArrayView2<f32>) {
    let (a, b) = (a.mapv(f64::from), b.mapv(f64::from));
    let (product, size) = (a.dot(&b), a.mapv(f64::abs).dot(&b.mapv(f64::abs)));
    for ((at, got), product) in got.indexed_iter().zip(&product) {
        // Not 0·old: with beta = 0 a NaN in C must not show.
        let kept = if beta == 0.0 { 0.0 } else { f64::from(beta) * f64::from(old[at]) };
        let expected = f64::from(alpha) * product + kept;
        let error = (f64::from(*got) - expected).abs();
        assert!(error <= 1e-6 * (2.0 + size[at] + kept.abs()), "{at:?}: {got} instead of {expected}");
    }
}

#[test]
fn all_sizes() {
    for m in SIZES {
        for k in SIZES {
            for n in SIZES {
                let (a, b) = (room((m, k), Layout::Rows, 1), room((k, n), Layout::Rows, 2));
                let mut c = Array2::from_elem((m, n), f32::NAN);
                matmul(1.0, &a, &b, 0.0, &mut c, Threads::Rayon).unwrap();
                check(1.0, &a.view(), &b.view(), 0.0, &c, &c.view());
            }
        }
    }
}

#[test]
fn all_layouts() {
    for (m, k, n) in
        [(1, 70, 90), (3, 33, 65), (40, 29, 70), (70, 19, 2), (129, 300, 65), (11, 290, 77), (100, 700, 96)]
    {
        for (la, lb, lc) in LAYOUTS.iter().flat_map(|a| LAYOUTS.map(|b| LAYOUTS.map(|c| (*a, b, c)))).flatten() {
            for (alpha, beta) in [(1.0, 0.0), (1.0, 1.0), (-0.5, 2.0)] {
                let (a, b, mut c) = (room((m, k), la, 1), room((k, n), lb, 2), room((m, n), lc, 3));
                let (a, b, before) = (view(&a, la), view(&b, lb), c.clone());
                let old = view(&before, lc).to_owned();
                matmul(alpha, a, b, beta, view_mut(&mut c, lc), Threads::Rayon).unwrap();
                check(alpha, &a, &b, beta, &old, &view(&c, lc));
                if matches!(lc, Layout::Gaps) {
                    assert!(c.indexed_iter().all(|((i, j), x)| (i % 3 == 0 && j % 2 == 0) || *x == before[[i, j]]));
                }
            }
        }
    }
}

#[test]
fn with_a_bias_or_without() {
    let shapes = SIZES.iter().flat_map(|m| SIZES.map(|k| SIZES.map(|n| (*m, k, n)))).flatten();
    for (m, k, n) in shapes.chain([(1, 70, 900), (600, 33, 200), (40, 300, 2000)]) {
        for layout in [Layout::Rows, Layout::Columns] {
            let (a, b, bias) = (room((m, k), Layout::Rows, 1), room((k, n), layout, 2), room((1, n), Layout::Rows, 3));
            let b = view(&b, layout);
            for (bias, beta) in [(None, 0.0), (Some(bias.row(0)), 1.0)] {
                let mut expected = bias.map_or_else(
                    || Array2::from_elem((m, n), f32::NAN),
                    |bias| bias.broadcast((m, n)).unwrap().to_owned(),
                );
                matmul(1.0, &a, b, beta, &mut expected, Threads::Sequential).unwrap();
                let got = affine(&a, b, bias, Threads::Rayon).unwrap();
                assert!(got == expected, "{m} × {k} × {n}, {layout:?}, bias: {}", bias.is_some());
            }
        }
    }
}

#[test]
fn layers_side_by_side() {
    // Thin; few columns in all; many, of very different layers, one of them empty.
    for (m, k, widths) in
        [(3, 70, [40, 7, 90]), (200, 300, [64, 30, 128]), (90, 520, [500, 0, 33]), (130, 40, [576, 192, 192])]
    {
        let a = room((m, k), Layout::Rows, 1);
        let layouts = [Layout::Rows, Layout::Columns, Layout::Gaps];
        let rooms: Vec<_> = (0..3).map(|n| room((k, widths[n]), layouts[n], 2 + n as u64)).collect();
        let biases: Vec<_> = widths.map(|n| room((1, n), Layout::Rows, 9)).into();
        for with_bias in [[false; 3], [true, false, true]] {
            let layer = |n: usize| (view(&rooms[n], layouts[n]), with_bias[n].then(|| biases[n].row(0)));
            let layers = [0, 1, 2].map(|n| (layer(n).0.into(), layer(n).1));
            for threads in [Threads::Sequential, Threads::Rayon] {
                let got = affine_side_by_side(&a, &layers, threads).unwrap();
                assert_eq!(got.dim(), (m, widths.iter().sum()));
                let mut first = 0;
                for n in 0..3 {
                    let (b, bias) = layer(n);
                    let old = bias.map_or_else(
                        || Array2::zeros((m, widths[n])),
                        |bias| bias.broadcast((m, widths[n])).unwrap().to_owned(),
                    );
                    check(1.0, &a.view(), &b, 1.0, &old, &got.slice(s![.., first..first + widths[n]]));
                    first += widths[n];
                }
            }
        }
    }
    assert_eq!(affine_side_by_side(&Array2::zeros((2, 3)), &[], Threads::Rayon).unwrap().dim(), (2, 0));
    let (a, b, c) = (Array2::zeros((2, 3)), Array2::<f32>::zeros((3, 4)), Array2::<f32>::zeros((5, 4)));
    let misfit = affine_side_by_side(&a, &[((&b).into(), None), ((&c).into(), None)], Threads::Rayon);
    assert!(matches!(misfit, Err(Error::Shape { .. })));
}

/// Stored in fewer bits, the numbers are the same, and so is every sum of products of them.
#[test]
fn stored_in_fewer_bits() {
    let sizes = [0, 1, 3, 5, 17, 65];
    let shapes = sizes.iter().flat_map(|m| sizes.map(|k| sizes.map(|n| (*m, k, n)))).flatten();
    // Thin, in stretches and in columns; large, by rows and by columns; few columns.
    let large = [(1, 700, 900), (1, 20, 70_000), (20, 300, 70), (200, 33, 90), (40, 300, 500), (300, 90, 9)];
    for (m, k, n) in shapes.chain(large) {
        for layout in LAYOUTS {
            let (a, b, bias) = (room((m, k), Layout::Rows, 1), room((k, n), layout, 2), room((1, n), Layout::Rows, 3));
            let (brain, half) = (b.mapv(bf16::from_f32), b.mapv(f16::from_f32));
            let (brain_wide, half_wide) = (brain.mapv(bf16::to_f32), half.mapv(f16::to_f32));
            let codes = b.mapv(|x| (x * 60.0) as i8);
            let codes_wide = codes.mapv(f32::from);
            let cases: [(Operand, _); 3] = [
                (view(&codes, layout).into(), view(&codes_wide, layout)),
                (view(&brain, layout).into(), view(&brain_wide, layout)),
                (view(&half, layout).into(), view(&half_wide, layout)),
            ];
            for (stored, wide) in cases {
                assert_eq!((stored.dim(), stored.t().dim(), stored.widened().view()), ((k, n), (n, k), wide));
                for bias in [None, Some(bias.row(0))] {
                    let got = affine(&a, stored, bias, Threads::Rayon).unwrap();
                    assert_eq!(got, affine(&a, wide, bias, Threads::Rayon).unwrap(), "{m} × {k} × {n}, {layout:?}");
                    let back = affine(&a, stored.t(), None, Threads::Rayon);
                    assert_eq!(back.is_ok(), k == n);
                }
            }
        }
    }
    let stored = room((8, 5), Layout::Rows, 1).mapv(bf16::from_f32);
    let (rows, x) = (Operand::from(&stored).rows(2..6), room((3, 4), Layout::Rows, 2));
    let expected = affine(&x, stored.slice(s![2..6, ..]), None, Threads::Rayon).unwrap();
    assert_eq!(affine(&x, rows, None, Threads::Rayon).unwrap(), expected);
}

/// Every value of 16 and of 8 bits, in vectors and after the last whole one, is widened to what it stands for.
#[test]
fn every_value_of_fewer_bits() {
    let one = Array2::<f32>::ones((1, 1));
    let bits = Array2::from_shape_vec((1, 65_536), (0..=u16::MAX).collect()).unwrap();
    for count in [65_536, 65_535, 4] {
        let bits = bits.slice(s![.., ..count]);
        let (brain, half) = (bits.mapv(bf16::from_bits), bits.mapv(f16::from_bits));
        let from_brain = affine(&one, &brain, None, Threads::Rayon).unwrap();
        let from_half = affine(&one, &half, None, Threads::Rayon).unwrap();
        let same = |x: f32, y: f32| x == y || (x.is_nan() && y.is_nan());
        assert!(from_brain.iter().zip(&brain).all(|(x, y)| same(*x, y.to_f32())));
        assert!(from_half.iter().zip(&half).all(|(x, y)| same(*x, y.to_f32())));
        let codes = bits.mapv(|bits| bits as i8);
        assert_eq!(affine(&one, &codes, None, Threads::Rayon).unwrap(), codes.mapv(f32::from));
    }
}

#[test]
fn shared_values() {
    // A row or a column that is broadcast has stride 0.
    let (row, b) = (room((1, 40), Layout::Rows, 1), room((40, 50), Layout::Rows, 2));
    for m in [1, 3, 20] {
        let a = row.broadcast((m, 40)).unwrap();
        let mut c = Array2::zeros((m, 50));
        matmul(1.0, a, &b, 0.0, &mut c, Threads::Rayon).unwrap();
        check(1.0, &a, &b.view(), 0.0, &c, &c.view());
        let one = Array2::from_elem((1, 1), 1.0);
        let ones = one.broadcast((m, 40)).unwrap();
        matmul(1.0, ones, &b, 0.0, &mut c, Threads::Rayon).unwrap();
        check(1.0, &ones, &b.view(), 0.0, &c, &c.view());
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    // Thin, in both directions and layouts, and large, with sums over k long enough to be cut.
    for (m, k, n) in [
        (1, 770, 1003),
        (4, 515, 2001),
        (1003, 770, 1),
        (200, 1500, 170),
        (170, 90, 1100),
        (33, 700, 1030),
        (30, 770, 1003),
        // More rows, and more terms, than are copied at a time.
        (3200, 40, 500),
        (250, 2300, 700),
        (250, 2300, 704),
    ] {
        for layout in [Layout::Rows, Layout::Columns] {
            let (a, b) = (room((m, k), Layout::Rows, 1), room((k, n), layout, 2));
            let run = |threads: Threads| {
                let mut c = Array2::zeros((m, n));
                matmul(1.0, &a, view(&b, layout), 0.0, &mut c, threads).unwrap();
                c.mapv(f32::to_bits)
            };
            let one = run(Threads::Sequential);
            check(1.0, &a.view(), &view(&b, layout), 0.0, &Array2::zeros((m, n)), &one.mapv(f32::from_bits).view());
            for threads in 1..=5 {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                assert!(pool.install(|| run(Threads::Rayon)) == one, "{threads} threads, {m} × {k} × {n}, {layout:?}");
            }
        }
    }
}

#[test]
fn on_every_instruction_set() {
    // It is chosen once per process.
    for isa in ["scalar", "avx2"] {
        let mut tests = vec!["all_layouts", "the_number_of_threads_does_not_matter"];
        tests.extend(["stored_in_fewer_bits", "every_value_of_fewer_bits", "--exact"]);
        let run =
            std::process::Command::new(std::env::current_exe().unwrap()).args(tests).env("FOVEAL_ISA", isa).output();
        let run = run.unwrap();
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && said.contains("4 passed"), "{isa}: {said}");
    }
}

#[test]
fn shapes_must_fit() {
    let (a, b, mut c) = (Array2::zeros((2, 3)), Array2::zeros((4, 5)), Array2::ones((2, 5)));
    let error = matmul(1.0, &a, &b, 0.0, &mut c, Threads::Rayon).unwrap_err();
    assert!(matches!(error, Error::Shape { ref expected, ref got, .. } if *expected == [3, 5] && *got == [4, 5]));
    assert!(matmul(1.0, &a, b.slice(s![..3, ..4]), 0.0, &mut c, Threads::Rayon).is_err());
    assert!(c.iter().all(|x| *x == 1.0));
}

#[test]
fn not_a_number_spreads_as_it_should() {
    let mut a = Array2::<f32>::ones((2, 40));
    a[[1, 39]] = f32::NAN;
    for n in [1, 3, 50] {
        let mut c = Array2::zeros((2, n));
        matmul(1.0, &a, &Array2::zeros((40, n)), 0.0, &mut c, Threads::Rayon).unwrap();
        assert!(c.row(0).iter().all(|x| *x == 0.0) && c.row(1).iter().all(|x| x.is_nan()));
    }
}

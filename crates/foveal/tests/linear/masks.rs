//! Every mask and alignment that linear attention takes, against the formula.

use foveal::{Align, Favor, FeatureMap, LinearAttention, Mask, Threads};
use ndarray::{Array2, s};

use crate::formula::{Formula, Phi};
use crate::support::{Random, assert_close, chance, dynamic, randn4, widen};

#[test]
fn masks_and_alignments_in_any_combination() {
    let mut random = Random::new(5);
    for case in 0..120 {
        let (queries, keys) = (random.below(300), 1 + random.below(300));
        let dim = [1, 5, 8][random.below(3)];
        let favor = Favor::new(dim, 11, case).unwrap();
        let (map, phi) = match random.below(2) {
            0 => (FeatureMap::Elu, Phi::Elu),
            _ => (FeatureMap::Favor(favor.clone()), Phi::Favor(favor.projection().mapv(f64::from))),
        };
        let mut formula = Formula::new(phi);
        let mut linear = LinearAttention::new(map);
        if random.below(3) > 0 {
            let right = [0, 0, 3, 200][random.below(4)];
            formula.right = Some(right);
            linear = linear.and_mask(Mask::window(None, right));
        }
        if random.below(2) == 0 {
            let lengths = vec![random.below(keys + 1), keys];
            formula.lengths = Some(lengths.clone());
            linear = linear.and_mask(Mask::padding(lengths));
        }
        if random.below(2) == 0 {
            let keep: Array2<bool> = chance(case, 0.6, (2, keys));
            formula.keep = Some(keep.clone());
            linear = linear.and_mask(Mask::keys(keep));
        }
        match random.below(4) {
            0 => {
                formula.offsets = Some(vec![0, 0]);
                linear = linear.align(Align::First);
            }
            1 => {
                let offsets = [random.below(2 * keys), random.below(50)];
                formula.offsets = Some(offsets.iter().map(|offset| *offset as isize).collect());
                linear = linear.align(Align::Offsets(offsets.map(|offset| offset as isize).into()));
            }
            _ => {}
        }
        let (q, k) = (randn4(1, [2, 2, queries, dim]), randn4(2, [2, 1, keys, dim]));
        let (v, dout) = (randn4(3, [2, 1, keys, 3]), randn4(4, [2, 2, queries, 3]));
        let want = formula.forward(&widen(&q), &widen(&k), &widen(&v));
        let grads = formula.backward(&widen(&q), &widen(&k), &widen(&v), &widen(&dout));
        let fwd = linear.forward(&q, &k, &v).unwrap();
        let got = linear.backward(&q, &k, &v, &fwd, &dout).unwrap();
        let what = |part: &str| format!("case {case}, {queries} on {keys}: {part}");
        assert_close(&what("out"), dynamic(&fwd.out), dynamic(&want.out), 2e-5, 1e-5);
        assert_close(&what("lse"), dynamic(&fwd.lse), dynamic(&want.lse), 2e-5, 1e-5);
        assert_close(&what("dq"), dynamic(&got.dq), dynamic(&grads[0]), 1e-4, 5e-5);
        assert_close(&what("dk"), dynamic(&got.dk), dynamic(&grads[1]), 1e-4, 5e-5);
        assert_close(&what("dv"), dynamic(&got.dv), dynamic(&grads[2]), 1e-4, 5e-5);
        let (rows, cols) = (queries / 2..queries, keys / 3..keys);
        let tile = linear.head(&q, &k, &fwd.lse, (1, 1)).unwrap().tile(rows.clone(), cols.clone()).unwrap();
        assert_close(&what("tile"), dynamic(&tile), want.weights.slice(s![1, 1, rows, cols]).into_dyn(), 1e-5, 1e-5);
        let once = linear.threads(Threads::Sequential);
        assert!(once.forward(&q, &k, &v).unwrap() == fwd);
        assert!(once.backward(&q, &k, &v, &fwd, &dout).unwrap() == got);
    }
}

/// A hidden key may hold anything.
#[test]
fn nan_in_hidden_keys_goes_nowhere() {
    let (q, dout) = (randn4(1, [1, 1, 150, 4]), randn4(4, [1, 1, 150, 4]));
    let (mut k, mut v) = (randn4(2, [1, 1, 150, 4]), randn4(3, [1, 1, 150, 4]));
    let keep = Array2::from_shape_fn((1, 150), |(_, j)| j % 7 != 3);
    for j in (3..150).step_by(7) {
        k[[0, 0, j, 1]] = f32::NAN;
        v[[0, 0, j, 2]] = f32::INFINITY;
    }
    for map in [FeatureMap::Elu, FeatureMap::favor(4, 9, 1).unwrap()] {
        for mask in [Mask::none(), Mask::causal()] {
            let linear = LinearAttention::new(map.clone()).mask(mask.and(Mask::keys(keep.clone())));
            let fwd = linear.forward(&q, &k, &v).unwrap();
            let grads = linear.backward(&q, &k, &v, &fwd, &dout).unwrap();
            let all = fwd.out.iter().chain(&grads.dq).chain(&grads.dk).chain(&grads.dv);
            assert!(all.chain(&linear.weights(&q, &k).unwrap()).all(|x| x.is_finite()), "{map:?}");
            assert!(grads.dk.slice(s![0, 0, 3..;7, ..]).iter().all(|x| *x == 0.0));
        }
    }
}

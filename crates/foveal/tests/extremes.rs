//! Every public function beside attention itself, with the smallest and largest arguments there are: a result or an error, and
//! never a panic. Tests run with overflow checks.
#![allow(missing_docs)]

mod support;

use foveal::{
    AdditiveAttention, Align, Attention, Bias, BigBird, Direction, Dropout, Favor, FeatureMap, LinearAttention,
    LuongAttention, Mask, Pattern, Pool, Rope, RopeLayout, RopeScaling, RopeTable, Threads, add_positional_encoding,
    alibi_slopes, causal_mask, fourier_mix, fourier_mix_backward, padding_mask, positional_encoding,
    scaled_dot_product_attention, t5_bucket,
};
use ndarray::{Array2, Array3, Array4, Ix4};
use support::randn4;

/// Numbers at which sums and products overflow, and their neighbours.
const SIZES: [usize; 12] = [
    0,
    1,
    2,
    3,
    7,
    1 << 32,
    isize::MAX as usize / 4,
    isize::MAX as usize - 1,
    isize::MAX as usize,
    isize::MAX as usize + 1,
    usize::MAX - 2,
    usize::MAX,
];

/// The same where a size is also a number of values to be computed: nothing between a handful and more than there can be.
const COUNTS: [usize; 8] = [0, 1, 2, 3, 7, isize::MAX as usize, usize::MAX - 2, usize::MAX];

#[test]
fn rotary_positions() {
    let mut x = randn4(1, [1, 2, 3, 8]);
    let before = x.clone();
    for dim in SIZES {
        let Ok(rope) = Rope::new(dim) else { continue };
        let table = RopeTable::new(rope);
        for start in SIZES {
            let _ = (rope.rotate(&mut x, start), rope.rotate_back(&mut x, start));
            let _ = (table.rotate(&mut x, start), table.rotate_back(&mut x, start));
            let positions = Array2::from_elem((1, 3), start);
            let _ = (rope.rotate_at(&mut x, &positions), rope.rotate_back_at(&mut x, &positions));
        }
    }
    assert!(x.iter().zip(&before).all(|(x, y)| (x - y).abs() < 1e-3), "turned and turned back");
    for number in [0.0, -1.0, 1e-300, 1e300, f64::MAX, f64::INFINITY, f64::NAN] {
        for scaling in [
            RopeScaling::None,
            RopeScaling::Linear(number),
            RopeScaling::Ntk(number),
            RopeScaling::Llama3 { factor: number, low: 1.0, high: 4.0, trained: usize::MAX },
            RopeScaling::Llama3 { factor: 8.0, low: number, high: number, trained: 0 },
        ] {
            for layout in [RopeLayout::Halves, RopeLayout::Interleaved] {
                let rope = Rope::new(2).unwrap().base(number).scaling(scaling).layout(layout);
                let _ = (rope.frequencies(), rope.rotate(&mut randn4(1, [1, 1, 2, 4]), usize::MAX));
            }
        }
    }
}

#[test]
fn encodings() {
    for tokens in COUNTS {
        for dim in COUNTS {
            let _ = positional_encoding(tokens, dim);
        }
    }
    for start in SIZES {
        let mut x = Array2::zeros((3, 5));
        add_positional_encoding(&mut x, start).unwrap();
        assert!(x.iter().all(|x| (-1.0..=1.0).contains(x)));
    }
    assert!(add_positional_encoding(&mut ndarray::Array0::zeros(()), 0).is_err());
}

#[test]
fn biases() {
    for buckets in SIZES {
        for max_distance in SIZES {
            for distance in [isize::MIN, isize::MIN + 1, -129, -1, 0, 1, 129, isize::MAX - 1, isize::MAX] {
                for direction in [Direction::Both, Direction::Backward] {
                    if let Ok(bucket) = t5_bucket(distance, direction, buckets, max_distance) {
                        assert!(bucket < buckets, "{distance} in {buckets} buckets up to {max_distance}");
                    }
                }
            }
        }
    }
    assert!(t5_bucket(5, Direction::Backward, 0, 8).is_err() && t5_bucket(5, Direction::Backward, 1, 8).is_err());
    for heads in COUNTS {
        let _ = (alibi_slopes(heads).map(|slopes| slopes.len()), Bias::alibi(heads).map(|_| ()));
    }
    for size in SIZES {
        for buckets in [0, 1, 2, 3, 8] {
            for direction in [Direction::Both, Direction::Backward] {
                let _ = Bias::t5(Array2::zeros((buckets, 2)), direction, size);
            }
        }
        for grid in SIZES {
            let _ = Bias::swin(Array2::zeros((9, 2)), (2, 2), (size, grid));
            let _ = Bias::swin(Array2::zeros((9, 2)), (size, grid), (2, 2));
        }
    }
    let x = randn4(1, [1, 2, 4, 8]);
    for grid in SIZES {
        let bias = Bias::swin(Array2::zeros((9, 2)), (2, 2), (grid, 2)).unwrap();
        let _ = Attention::new().bias(bias).forward(&x, &x, &x);
    }
    for distances in [0, 1, 2, 3] {
        let _ = Bias::shaw(Array3::zeros((1, distances, 0)));
    }
    for dim in [(0, 0), (0, 4), (4, 0), (2, 2)] {
        let bias = Bias::alibi_per_sequence(Array2::zeros(dim));
        let _ = Attention::new().bias(bias).forward(&x, &x, &x);
    }
}

#[test]
fn patterns_and_masks() {
    let x = randn4(1, [1, 2, 4, 8]);
    let try_pattern = |pattern: Pattern| {
        for position in SIZES {
            for key in SIZES {
                let _ = pattern.visible(position, key);
            }
        }
        let _ = pattern.picture(5);
        let attention = Attention::new().mask(Mask::pattern(pattern));
        let _ = attention.forward(&x, &x, &x);
        for offset in SIZES {
            let _ = attention.clone().align(Align::Offsets([offset as isize].into())).forward(&x, &x, &x);
        }
    };
    for one in SIZES {
        Pattern::strided(one).into_iter().for_each(try_pattern);
        for two in SIZES {
            Pattern::longformer(one, two, &[0, one, two]).into_iter().for_each(try_pattern);
            Pattern::fixed(one, two).into_iter().for_each(try_pattern);
            Pattern::documents(&[one, two, 3]).into_iter().for_each(try_pattern);
            Pattern::blocks(one, [vec![two], vec![]]).into_iter().for_each(try_pattern);
            Pattern::blocks(one, [vec![1], vec![0]]).into_iter().for_each(try_pattern);
            for three in SIZES {
                Pattern::swin((one, two), (three, 1), (0, 0)).into_iter().for_each(try_pattern);
                Pattern::swin((one, 4), (two, 2), (three, 1)).into_iter().for_each(try_pattern);
                Pattern::swin((4, one), (2, two), (1, three)).into_iter().for_each(try_pattern);
            }
            let joined =
                Pattern::swin((one, two), (1, 1), (0, 0)).and_then(|swin| swin.or(Pattern::documents(&[one])?));
            joined.into_iter().for_each(try_pattern);
            let mask = Mask::window(one, two).and(Mask::window(two, None));
            let _ = Attention::new().mask(mask).forward(&x, &x, &x);
            let _ = Attention::new().mask(Mask::padding([one])).forward(&x, &x, &x);
        }
    }
    for tokens in SIZES {
        for block in SIZES {
            for size in COUNTS {
                let default = BigBird { block, ..BigBird::default() };
                let _ = Pattern::big_bird(tokens, BigBird { window: size, ..default });
                let _ = Pattern::big_bird(tokens, BigBird { global_start: size, random: size, ..default });
                let _ = Pattern::big_bird(tokens, BigBird { global_end: size, seed: u64::MAX, ..default });
            }
        }
    }
    // Far apart, and still a multiple of three.
    let strided = Pattern::strided(3).unwrap();
    let far = isize::MAX as usize;
    assert!(strided.visible(far, far) && strided.visible(far, far - 3) && strided.visible(far, far % 3));
    assert!(!strided.visible(far, far % 3 + 1) && strided.visible(usize::MAX, usize::MAX - 2));
}

#[test]
fn textbook_masks() {
    for queries in COUNTS {
        for keys in COUNTS {
            for align in [Align::Last, Align::First, Align::Offsets([].into()), Align::Offsets([isize::MAX].into())] {
                let _ = causal_mask(queries, keys, &align);
            }
            let _ = padding_mask(&[0, keys, queries], keys);
        }
    }
    let x = randn4(1, [1, 2, 4, 8]);
    for shape in [&[][..], &[0], &[4, 4], &[1, 1, 1, 4], &[0, 0, 0, 0], &[9, 9, 9]] {
        let mask = ndarray::ArrayD::from_elem(shape, true);
        let _ = scaled_dot_product_attention::<Ix4>(&x, &x, &x, Some(mask.view()));
    }
}

#[test]
fn dropout() {
    for probability in [0.0, -1.0, 0.5, 1.0, 2.0, f32::MIN_POSITIVE, 1.0 - f32::EPSILON, f32::INFINITY, f32::NAN] {
        let dropout = Dropout { probability, seed: u64::MAX, first: usize::MAX };
        let _ = dropout.check();
        for i in SIZES {
            for j in SIZES {
                dropout.apply(i, j, &mut [1.0; 5]);
                let _ = dropout.drops(i, j, j, i);
            }
        }
    }
}

#[test]
fn linear_attention() {
    for dim in COUNTS {
        for features in COUNTS {
            for seed in [0, u64::MAX] {
                let _ = (Favor::new(dim, features, seed), FeatureMap::favor(dim, features, seed));
            }
        }
    }
    let linear = LinearAttention::new(FeatureMap::Elu);
    for one in COUNTS {
        for two in COUNTS {
            for [batch, heads, dim, value_dim] in
                [[one, two, 2, 2], [2, 2, one, two], [one, 2, 2, two], [2, one, two, 2]]
            {
                let _ = linear.state(batch, heads, dim, value_dim);
            }
        }
    }
    let x = randn4(1, [1, 2, 4, 8]);
    let fwd = linear.forward(&x, &x, &x).unwrap();
    for one in SIZES {
        for two in SIZES {
            let _ = linear
                .clone()
                .mask(Mask::window(None, one))
                .align(Align::Offsets([two as isize].into()))
                .forward(&x, &x, &x);
            let _ = linear.head(&x, &x, &fwd.lse, (one, two)).and_then(|head| head.tile(0..1, 0..1));
            let _ = linear.head(&x, &x, &fwd.lse, (0, 0)).and_then(|head| head.tile(one..two, 0..1));
            let _ = linear.head(&x, &x, &fwd.lse, (0, 0)).and_then(|head| head.map(0..4, one..two, (1, 1), Pool::Max));
            let _ = linear.head(&x, &x, &fwd.lse, (0, 0)).and_then(|head| head.map(0..4, 0..4, (one, two), Pool::Sum));
        }
    }
    for value in [f32::MAX, f32::MIN, 1e20, -1e20, f32::MIN_POSITIVE, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let x = Array4::from_elem((1, 1, 3, 2), value);
        for map in [FeatureMap::Elu, FeatureMap::favor(2, 3, 1).unwrap()] {
            for mask in [Mask::none(), Mask::causal()] {
                let linear = LinearAttention::new(map.clone()).mask(mask);
                let fwd = linear.forward(&x, &x, &x).unwrap();
                let _ = (linear.backward(&x, &x, &x, &fwd, &x), linear.weights(&x, &x));
            }
        }
    }
}

#[test]
fn additive_and_multiplicative_attention() {
    let x = randn4(1, [1, 2, 4, 8]);
    let additive = AdditiveAttention::new(Array2::ones((1, 8))).unwrap();
    let luong = LuongAttention::general(Array3::ones((1, 8, 8))).unwrap();
    let (fwd, of_luong) = (additive.forward(&x, &x, &x).unwrap(), luong.forward(&x, &x, &x).unwrap());
    for one in SIZES {
        for two in SIZES {
            let align = Align::Offsets([two as isize].into());
            let _ = additive.clone().mask(Mask::window(one, two)).align(align.clone()).forward(&x, &x, &x);
            let _ = additive.head(&x, &x, &fwd.lse, (one, two)).and_then(|head| head.tile(0..1, 0..1));
            let _ =
                additive.head(&x, &x, &fwd.lse, (0, 0)).and_then(|head| head.map(one..two, 0..4, (1, 1), Pool::Mean));
            let _ =
                additive.head(&x, &x, &fwd.lse, (0, 0)).and_then(|head| head.map(0..4, 0..4, (one, two), Pool::Mean));
            let _ = luong.clone().mask(Mask::window(one, two)).align(align).forward(&x, &x, &x);
            let _ = luong.head(&x, &x, &of_luong.lse, (one, two)).and_then(|head| head.tile(0..1, one..two));
        }
    }
    for value in [f32::MAX, f32::MIN, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let x = Array4::from_elem((1, 2, 3, 8), value);
        let _ = additive.forward(&x, &x, &x).map(|fwd| additive.backward(&x, &x, &x, &fwd, &x));
        let _ = luong.forward(&x, &x, &x).map(|fwd| luong.backward(&x, &x, &x, &fwd, &x));
    }
    let lse = Array3::from_elem((1, 2, 4), -1e30);
    let tile = additive.head(&x, &x, &lse, (0, 0)).unwrap().tile(0..4, 0..4).unwrap();
    assert!(tile.iter().all(|w| (0.0..=1.0).contains(w)));
}

#[test]
fn fourier_mixing() {
    for value in [f32::MAX, f32::NAN, f32::INFINITY, 0.0] {
        for shape in [(0, 0, 0), (1, 1, 1), (1, 0, 3), (2, 3, 0), (1, 3, 5)] {
            let x = Array3::from_elem(shape, value);
            assert_eq!(fourier_mix(&x, Threads::Rayon).dim(), fourier_mix_backward(&x, Threads::Sequential).dim());
        }
    }
}

//! Random calls of attention, and how their results are judged: the same for every framework.
#![forbid(unsafe_code)]

use foveal::ndarray::Array4;
use foveal::{Attention, Bias, Mask};

/// SplitMix64.
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from 0 to below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    /// One of these.
    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Even in ±√3: variance 1.
    fn value(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1 << 24) as f32 * 12f32.sqrt() - 3f32.sqrt()
    }

    /// As many values as a shape has, in ±√3.
    pub fn values(&mut self, dim: [usize; 4]) -> Vec<f32> {
        (0..dim.iter().product()).map(|_| self.value()).collect()
    }
}

/// In which type a call's tensors are.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Precision {
    F32,
    F16,
    Bf16,
}

/// How the tensors [B, H, T, D] of a call lie in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// As their shape says.
    HeadsFirst,
    /// [B, T, H, D]: the last axis is dense.
    TokensFirst,
    /// [B, H, D, T]: it is not.
    DimFirst,
}

impl Order {
    /// The two axes that were swapped.
    pub fn swapped(self) -> Option<(usize, usize)> {
        match self {
            Order::HeadsFirst => None,
            Order::TokensFirst => Some((1, 2)),
            Order::DimFirst => Some((2, 3)),
        }
    }
}

/// A call: its shapes, its options, and the same options spelt out for whoever computes attention naively.
pub struct Case {
    /// Of q.
    pub q: [usize; 4],
    /// Of k.
    pub k: [usize; 4],
    /// Of v.
    pub v: [usize; 4],
    /// Of the output.
    pub out: [usize; 4],
    /// The options.
    pub attention: Attention,
    /// What is visible: [B, 1, T, S].
    pub visible: Array4<bool>,
    /// What is added to the scores: [1, H, T, S].
    pub bias: Option<Array4<f32>>,
    /// c of c·tanh(s / c), before the bias is added.
    pub softcap: Option<f64>,
    /// Whether weights are dropped, which naive attention cannot repeat.
    pub drops: bool,
    /// The type of its tensors.
    pub precision: Precision,
    /// How these lie.
    pub order: Order,
}

impl Case {
    /// Any call.
    pub fn draw(random: &mut Random) -> Self {
        let kv_heads = random.of(&[1, 2]);
        let (batch, heads) = (1 + random.below(2), kv_heads * random.of(&[1, 2, 3]));
        let (queries, keys) = (1 + random.below(80), 1 + random.below(80));
        let (dim, value_dim) = (random.of(&[1, 8, 16, 24, 64]), random.of(&[8, 16, 40]));
        // How far a key lies before a query: the last query stands at the last key.
        let distance = |i: usize, j: usize| (i + keys) as isize - (queries + j) as isize;
        let shape = (batch, 1, queries, keys);
        let (mask, visible) = match random.below(5) {
            0 => (Mask::none(), Array4::from_elem(shape, true)),
            1 => (Mask::causal(), Array4::from_shape_fn(shape, |(_, _, i, j)| distance(i, j) >= 0)),
            2 => {
                let (left, right) = (random.below(20), random.below(20));
                let near = -(right as isize)..=left as isize;
                let visible = Array4::from_shape_fn(shape, |(_, _, i, j)| near.contains(&distance(i, j)));
                (Mask::window(left, right), visible)
            }
            3 => {
                let lengths: Vec<usize> = (0..batch).map(|_| random.below(keys + 1)).collect();
                let visible = Array4::from_shape_fn(shape, |(b, _, _, j)| j < lengths[b]);
                (Mask::padding(lengths), visible)
            }
            _ => {
                let visible = Array4::from_shape_fn(shape, |_| random.below(3) > 0);
                (Mask::dense(visible.clone()), visible)
            }
        };
        let mut attention = Attention::new().mask(mask);
        let softcap = (random.below(4) == 0).then_some(5.0);
        if let Some(cap) = softcap {
            attention = attention.softcap(cap as f32);
        }
        let mut bias = None;
        if random.below(4) == 0 {
            let slopes: Vec<f32> = (1..=heads).map(|h| 0.1 / h as f32).collect();
            let values = |(_, h, i, j): (usize, usize, usize, usize)| -slopes[h] * distance(i, j).abs() as f32;
            bias = Some(Array4::from_shape_fn((1, heads, queries, keys), values));
            attention = attention.bias(Bias::alibi_with(slopes).constant());
        }
        let drops = random.below(6) == 0;
        if drops {
            attention = attention.dropout(0.2, random.bits());
        }
        let precisions = [Precision::F32, Precision::F32, Precision::F16, Precision::Bf16];
        Case {
            q: [batch, heads, queries, dim],
            k: [batch, kv_heads, keys, dim],
            v: [batch, kv_heads, keys, value_dim],
            out: [batch, heads, queries, value_dim],
            attention,
            visible,
            bias,
            softcap,
            drops,
            // What 16 bits are judged by is naive attention.
            precision: if drops { Precision::F32 } else { random.of(&precisions) },
            order: random.of(&[Order::HeadsFirst, Order::TokensFirst, Order::DimFirst]),
        }
    }
}

/// One result of a call in three versions.
pub struct Verdict<'a> {
    /// What was called.
    pub given: &'a Array4<f64>,
    /// In f64.
    pub exact: &'a Array4<f64>,
    /// By the framework's own operations, in the type of the call.
    pub naive: Option<&'a Array4<f64>>,
    /// The type of the call.
    pub precision: Precision,
    /// How often the largest error of naive attention a result of 16 bits may be off.
    pub times: f64,
}

impl Verdict<'_> {
    /// In f32, no number is off by more than the engine's own tolerance, PyTorch's; naive attention, which has errors of its
    /// own, is as near. In 16 bits, the largest error is within that of naive attention, `times` over.
    ///
    /// # Panics
    /// If that does not hold.
    pub fn expect(&self, what: &str) {
        let Verdict { given, exact, naive, precision, times } = *self;
        if precision == Precision::F32 {
            expect_close(what, given, exact);
            if let Some(naive) = naive {
                for ((at, exact), naive) in exact.indexed_iter().zip(naive) {
                    let error = (given[at] - naive).abs();
                    assert!(error <= 2.0 * tolerance(*exact), "{what} at {at:?}: {}, naively {naive}", given[at]);
                }
            }
            return;
        }
        let largest = |values: &Array4<f64>| {
            assert_eq!(values.dim(), exact.dim(), "{what}");
            assert!(values.iter().all(|x| x.is_finite()), "{what} is not finite");
            values.iter().zip(exact).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        let (error, allowed) = (largest(given), times * largest(naive.expect("16 bits are judged by naive attention")));
        assert!(error <= 1e-5 + allowed, "{what}: off by {error}, where {allowed} is allowed");
    }
}

fn tolerance(exact: f64) -> f64 {
    1e-5 + 5e-6 * exact.abs()
}

/// Within the engine's tolerance for f32 everywhere.
///
/// # Panics
/// If that does not hold.
pub fn expect_close(what: &str, given: &Array4<f64>, exact: &Array4<f64>) {
    assert_eq!(given.dim(), exact.dim(), "{what}");
    for (at, exact) in exact.indexed_iter() {
        let error = (given[at] - exact).abs();
        assert!(error <= tolerance(*exact), "{what} at {at:?}: {} instead of {exact}", given[at]);
    }
}

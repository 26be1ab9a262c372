//! Sizes of calls and a list of options for them, shared by the tests that go over all options.

use foveal::{Attention, Bias, Direction, Mask, Pattern};
use ndarray::{Array4, ArrayD};

use super::{assert_close, chance, dynamic, narrow, randn, randn4};

/// The sizes of a call.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub batch: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub queries: usize,
    pub keys: usize,
    pub dim: usize,
    pub value_dim: usize,
}

impl Size {
    /// The shapes of q, k, v and dout.
    pub fn shapes(&self) -> [[usize; 4]; 4] {
        let Size { batch, heads, kv_heads, queries, keys, dim, value_dim } = *self;
        [
            [batch, heads, queries, dim],
            [batch, kv_heads, keys, dim],
            [batch, kv_heads, keys, value_dim],
            [batch, heads, queries, value_dim],
        ]
    }

    /// Random q, k, v and dout.
    pub fn inputs(&self, seed: u64) -> [Array4<f32>; 4] {
        let mut seed = 4 * seed;
        self.shapes().map(|shape| {
            seed += 1;
            randn4(seed, shape)
        })
    }

    /// What a gradient may be off by: it is a sum of as many terms, of size √Dv, most of which cancel.
    pub fn gradient_tolerance(&self) -> f64 {
        1e-5 * (1.0 + ((self.queries.max(self.keys) * self.value_dim) as f64).sqrt() / 16.0)
    }

    /// The same for what is learned beside: slopes and tables collect from all rows, slopes times the distance.
    pub fn learned_tolerance(&self) -> f64 {
        1e-5 * (1.0 + ((self.batch * self.heads * self.queries) as f64).sqrt() * self.keys as f64 / 4.0)
    }
}

/// Masks of every kind, for a call of this size.
pub fn masks(size: &Size) -> Vec<(&'static str, Mask)> {
    let Size { batch, heads, queries, keys, .. } = *size;
    let lengths: Vec<usize> = (0..batch).map(|b| keys - (keys / 3 * (b + 1)).min(keys)).collect();
    let mut masks = vec![
        ("no mask", Mask::none()),
        ("causal", Mask::causal()),
        ("window", Mask::window(keys / 5, 3)),
        ("padding", Mask::padding(lengths)),
        ("keys", Mask::keys(chance(91, 0.7, (batch, keys)))),
        ("dense", Mask::dense(chance(92, 0.6, (1, heads, queries, keys)))),
        ("longformer", Mask::pattern(Pattern::longformer(4, 1, &[0, keys / 2]).unwrap())),
        ("strided", Mask::pattern(Pattern::strided(5).unwrap()).and(Mask::causal())),
    ];
    if queries <= keys {
        let third = keys / 3;
        let documents = Pattern::documents(&[third, 1, keys - third]).unwrap();
        masks.push(("documents", Mask::pattern(documents).and(Mask::causal())));
    }
    masks
}

/// Biases of every kind, for a call of this size.
pub fn biases(size: &Size) -> Vec<(&'static str, Bias)> {
    let Size { heads, queries, keys, dim, .. } = *size;
    let dense = narrow(&randn(83, [1, heads, queries, keys])).mapv(|x| if x < -1.5 { f32::NEG_INFINITY } else { x });
    let slopes: Vec<f32> = (0..heads).map(|h| 0.05 + 0.1 * h as f32).collect();
    vec![
        ("ALiBi", Bias::alibi_with(slopes)),
        ("T5", Bias::t5(narrow(&randn(81, (8, heads))), Direction::Both, 20).unwrap()),
        ("Shaw", Bias::shaw(narrow(&randn(82, (heads, 13, dim)))).unwrap()),
        ("dense bias", Bias::dense(dense)),
        ("bias of keys", Bias::dense(narrow(&randn(84, [1, 1, 1, keys])))),
    ]
}

/// Every mask, every bias, and the other options, some of them together.
pub fn sweep(size: &Size) -> Vec<(String, Attention)> {
    let mut sweep: Vec<(String, Attention)> =
        masks(size).into_iter().map(|(name, mask)| (name.to_owned(), Attention::new().mask(mask))).collect();
    for (n, (name, bias)) in biases(size).into_iter().enumerate() {
        let mask = if n % 2 == 0 { Mask::causal() } else { Mask::window(size.keys / 3, size.keys / 4) };
        sweep.push((name.to_owned(), Attention::new().mask(mask).bias(bias)));
    }
    let sinks: Vec<f32> = (0..size.heads).map(|h| 0.7 * h as f32 - 1.0).collect();
    let softcap = Attention::new().mask(Mask::causal()).softcap(1.5);
    let bias = Bias::dense(narrow(&randn(85, [1, 1, size.queries, size.keys])));
    sweep.extend([
        ("softcap".to_owned(), softcap.clone().scale(0.4)),
        ("softcap and bias".to_owned(), softcap.bias(bias)),
        ("dropout".to_owned(), Attention::new().mask(Mask::causal()).dropout(0.3, 7)),
        ("sinks".to_owned(), Attention::new().mask(Mask::causal()).sinks(sinks)),
    ]);
    sweep
}

/// Where both are there, they are close; and neither is there without the other.
#[track_caller]
pub fn assert_learned(what: &str, got: Option<&ArrayD<f32>>, want: Option<&ArrayD<f64>>, abs: f64) {
    assert_eq!(got.is_some(), want.is_some(), "{what}");
    if let (Some(got), Some(want)) = (got, want) {
        assert_close(what, dynamic(got), dynamic(want), abs, 5e-5);
    }
}

//! Random calls, and how their results are compared.

#![allow(dead_code, reason = "each test takes a part of it")]

use candle_core::{DType, Device, Result, Tensor};
use foveal_candle::foveal::ndarray::Array4;
use foveal_candle::foveal::{Attention, Bias, Mask};

/// SplitMix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Even in ±√3: variance 1.
    pub fn value(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 24) as f32 * 12f32.sqrt() - 3f32.sqrt()
    }

    pub fn tensor(&mut self, dim: [usize; 4]) -> Result<Tensor> {
        let values: Vec<f32> = (0..dim.iter().product()).map(|_| self.value()).collect();
        Tensor::from_vec(values, &dim, &Device::Cpu)
    }
}

/// The shape of a call, and its options.
pub struct Case {
    batch: usize,
    heads: usize,
    kv_heads: usize,
    queries: usize,
    keys: usize,
    dim: usize,
    value_dim: usize,
    pub attention: Attention,
}

impl Case {
    pub fn draw(random: &mut Random) -> Self {
        let kv_heads = [1, 2][random.below(2)];
        let (batch, heads) = (1 + random.below(2), kv_heads * [1, 2, 3][random.below(3)]);
        let (queries, keys) = (1 + random.below(80), 1 + random.below(80));
        let (dim, value_dim) = ([1, 8, 16, 24, 64][random.below(5)], [8, 16, 40][random.below(3)]);
        let mask = match random.below(5) {
            0 => Mask::none(),
            1 => Mask::causal(),
            2 => Mask::window(random.below(20), random.below(20)),
            3 => Mask::padding((0..batch).map(|_| random.below(keys + 1)).collect::<Vec<_>>()),
            _ => Mask::dense(Array4::from_shape_fn((batch, 1, queries, keys), |_| random.below(3) > 0)),
        };
        let mut attention = Attention::new().mask(mask);
        if random.below(4) == 0 {
            attention = attention.bias(Bias::alibi(vec![0.1; heads]).constant());
        }
        if random.below(4) == 0 {
            attention = attention.softcap(5.0);
        }
        if random.below(4) == 0 {
            attention = attention.dropout(0.2, random.next());
        }
        Case { batch, heads, kv_heads, queries, keys, dim, value_dim, attention }
    }

    pub fn q(&self) -> [usize; 4] {
        [self.batch, self.heads, self.queries, self.dim]
    }

    pub fn k(&self) -> [usize; 4] {
        [self.batch, self.kv_heads, self.keys, self.dim]
    }

    pub fn v(&self) -> [usize; 4] {
        [self.batch, self.kv_heads, self.keys, self.value_dim]
    }

    pub fn out(&self) -> [usize; 4] {
        [self.batch, self.heads, self.queries, self.value_dim]
    }
}

/// How a tensor [B, H, T, D] may lie in memory: as it is, tokens before heads, or dimensions before tokens.
pub fn laid_out(tensor: &Tensor, layout: usize) -> Result<Tensor> {
    match layout {
        0 => Ok(tensor.clone()),
        1 => tensor.transpose(1, 2)?.contiguous(),
        _ => tensor.transpose(2, 3)?.contiguous(),
    }
}

/// [B, H, T, D] again, without a copy.
pub fn as_given(tensor: &Tensor, layout: usize) -> Result<Tensor> {
    match layout {
        0 => Ok(tensor.clone()),
        1 => tensor.transpose(1, 2),
        _ => tensor.transpose(2, 3),
    }
}

/// The values of a tensor.
pub fn array(tensor: &Tensor) -> Array4<f64> {
    let values = tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap();
    Array4::from_shape_vec(tensor.dims4().unwrap(), values).unwrap()
}

/// The engine's own tolerance: PyTorch's for f32, and for 16 bits the last place.
pub fn expect_close(what: &str, dtype: DType, given: &Array4<f64>, exact: &Array4<f64>) {
    let relative = match dtype {
        DType::F16 => 1.0 / 2048.0,
        DType::BF16 => 1.0 / 256.0,
        _ => 5e-6,
    };
    assert_eq!(given.dim(), exact.dim(), "{what}");
    for (at, exact) in exact.indexed_iter() {
        let error = (given[at] - exact).abs();
        assert!(error <= 1e-5 + relative * exact.abs(), "{what} at {at:?}: {} instead of {exact}", given[at]);
    }
}

//! The scaling of rotary positions that a GGUF file keeps as a tensor.
//!
//! Llama 3.1 and its successors stretch their positions. llama.cpp's converter does not write down how, only what comes of
//! it: `rope_freqs.weight` [Dh/2], by whose numbers r the frequencies are divided.
//!
//! $$ \theta_m = \text{base}^{-2m/D_h} / r_m $$
//!
//! The rule behind the numbers is found again here, by trying those there are: angles then come from f64 instead of the
//! file's f32, and a model that is saved says its scaling as Hugging Face does.

use foveal::{Rope, RopeScaling};

use super::LlamaConfig;
use crate::Result;
use crate::checkpoint::Checkpoint;

const TENSOR: &str = "rope_freqs.weight";

/// `low_freq_factor` and `high_freq_factor` of every Llama from 3.1 on.
const LOW: f64 = 1.0;
const HIGH: f64 = 4.0;

/// The length that they were trained on first.
const TRAINED: usize = 8192;

/// The factors of Llama 3.1 and of 3.2, for a head so short that none of its pairs is slowed by all of it.
const FACTORS: [f64; 2] = [8.0, 32.0];

/// How far a factor may lie from the rule. The converter computes them in f32, and is off by 1e-6 at most.
const NEAR: f64 = 1e-4;

/// What the configuration and the factors beside it make together: the configuration's own scaling if there are no factors,
/// or all of them are 1.
pub(super) fn scaling(checkpoint: &Checkpoint, config: &LlamaConfig) -> Result<RopeScaling> {
    if checkpoint.get(TENSOR).is_none() {
        return Ok(config.rope_scaling);
    }
    let factors = checkpoint.array1(TENSOR, config.head_dim / 2)?;
    if let Some((pair, factor)) = factors.indexed_iter().find(|(_, factor)| !(factor.is_finite() && **factor > 0.0)) {
        let got = format!("{factor} for pair {pair}");
        return Err(checkpoint.config().error(TENSOR, "finite factors above 0", got));
    }
    let rope = Rope::new(config.head_dim)?.base(config.rope_base);
    let frequencies = |scaling| rope.scaling(scaling).frequencies().into_iter();
    let divided: Vec<f64> = frequencies(config.rope_scaling).zip(&factors).map(|(f, r)| f / f64::from(*r)).collect();
    let fits = |scaling: &RopeScaling| frequencies(*scaling).zip(&divided).all(|(f, d)| (f / d - 1.0).abs() <= NEAR);

    let [least, largest] = [f32::min, f32::max].map(|of| factors.iter().copied().reduce(of).unwrap_or(1.0));
    let trained = checkpoint.config().size_or("original_max_position_embeddings", TRAINED)?;
    let llama3 = [trained, TRAINED].into_iter().flat_map(|trained| {
        let factors = [f64::from(largest)].into_iter().chain(FACTORS);
        factors.map(move |factor| RopeScaling::Llama3 { factor, low: LOW, high: HIGH, trained })
    });
    [config.rope_scaling].into_iter().chain(llama3).find(fits).ok_or_else(|| {
        let expected = format!(
            "all 1, or Llama 3's factors for the base {} (low_freq_factor {LOW}, high_freq_factor {HIGH}, \
             original_max_position_embeddings {trained}); take the model as a Hugging Face folder, whose config.json names \
             its scaling",
            config.rope_base
        );
        let got = format!("{} factors from {least} to {largest} that follow another rule", factors.len());
        checkpoint.config().error(TENSOR, expected, got)
    })
}

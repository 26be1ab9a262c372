//! The family of attention, by name: what a configuration or a command line says about how the tokens of a model look at
//! each other. [`Mechanism`](super::Mechanism) is what becomes of it in one layer.

use std::fmt;
use std::str::FromStr;

use foveal::{BigBird, FeatureMap, Pattern};

use super::mechanism::{Built, Mechanism};
use super::{Mixer, MultiHeadAttention, Random};
use crate::Error;

/// How tokens attend to each other.
///
/// As text a name, and its sizes where the defaults will not do:
///
/// ```
/// use foveal_models::layer::Family;
///
/// let family: Family = "longformer:window=64,globals=1".parse()?;
/// assert_eq!(family, Family::Longformer { window: 64, dilation: 1, globals: 1 });
/// assert_eq!(family.to_string(), "longformer:window=64,dilation=1,globals=1");
/// assert_eq!("linear".parse::<Family>()?, Family::Linear);
/// # Ok::<(), foveal_models::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// Softmax over all keys that may be seen (Vaswani 2017).
    #[default]
    Softmax,
    /// The same without 1/√d (Luong 2015). His matrix between query and key is the product of W_q and W_k here.
    Dot,
    /// a·tanh(q + k) with a learned a for each head (Bahdanau 2014).
    Additive,
    /// A window to each side, and tokens at the start that see all and are seen by all (Beltagy 2020).
    Longformer {
        /// Keys to each side.
        window: usize,
        /// How far apart they are.
        dilation: usize,
        /// Tokens at the start that see all and are seen by all.
        globals: usize,
    },
    /// Blocks near each other, at the start, and at random, drawn anew for each layer (Zaheer 2020).
    BigBird {
        /// Tokens of a block.
        block: usize,
        /// Blocks of a window, an odd number.
        window: usize,
        /// Blocks at the start that see all and are seen by all.
        globals: usize,
        /// Blocks at random.
        random: usize,
        /// What they follow from.
        seed: u64,
    },
    /// The last tokens, and every so many before them (Child 2019).
    Strided {
        /// How many.
        stride: usize,
    },
    /// The block a token stands in, and the last tokens of every block (Child 2019).
    Fixed {
        /// Tokens of a block.
        stride: usize,
        /// How many of the last.
        summary: usize,
    },
    /// Windows on an image, shifted in every other layer, with a learned bias for each distance (Liu 2021).
    Swin {
        /// Height and width of a window, in patches.
        window: usize,
    },
    /// Features ELU + 1 in place of the softmax (Katharopoulos 2020).
    Linear,
    /// Positive orthogonal random features, an estimate of the softmax, drawn anew for each layer (Choromanski 2020).
    Favor {
        /// How many.
        features: usize,
        /// What they follow from.
        seed: u64,
    },
    /// No attention: a Fourier transform over tokens and features (Lee-Thorp 2021).
    Fourier,
}

/// Names and, where there are sizes, their defaults.
const FAMILY: [Family; 11] = [
    Family::Softmax,
    Family::Dot,
    Family::Additive,
    Family::Longformer { window: 32, dilation: 1, globals: 1 },
    Family::BigBird { block: 8, window: 3, globals: 1, random: 1, seed: 1 },
    Family::Strided { stride: 8 },
    Family::Fixed { stride: 8, summary: 1 },
    Family::Swin { window: 7 },
    Family::Linear,
    Family::Favor { features: 64, seed: 1 },
    Family::Fourier,
];

/// Where a layer stands, and its sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The number of the layer.
    pub layer: usize,
    /// Whether tokens may see only those before them.
    pub causal: bool,
    /// The most tokens there will be.
    pub tokens: usize,
    /// Patches of a row, and of a column, if the tokens are an image and nothing else.
    pub grid: Option<usize>,
}

impl Family {
    /// All there are, with their default sizes.
    pub fn all() -> [Family; 11] {
        FAMILY
    }

    /// Its name, without sizes.
    pub fn name(&self) -> &'static str {
        match self {
            Family::Softmax => "softmax",
            Family::Dot => "dot",
            Family::Additive => "additive",
            Family::Longformer { .. } => "longformer",
            Family::BigBird { .. } => "bigbird",
            Family::Strided { .. } => "strided",
            Family::Fixed { .. } => "fixed",
            Family::Swin { .. } => "swin",
            Family::Linear => "linear",
            Family::Favor { .. } => "favor",
            Family::Fourier => "fourier",
        }
    }

    /// The sizes that may be said, by name.
    fn sizes(&self) -> Vec<(&'static str, u64)> {
        let size = |x: usize| x as u64;
        match *self {
            Family::Longformer { window, dilation, globals } => {
                vec![("window", size(window)), ("dilation", size(dilation)), ("globals", size(globals))]
            }
            Family::BigBird { block, window, globals, random, seed } => {
                let [block, window, globals, random] = [block, window, globals, random].map(size);
                vec![("block", block), ("window", window), ("globals", globals), ("random", random), ("seed", seed)]
            }
            Family::Strided { stride } => vec![("stride", size(stride))],
            Family::Fixed { stride, summary } => vec![("stride", size(stride)), ("summary", size(summary))],
            Family::Swin { window } => vec![("window", size(window))],
            Family::Favor { features, seed } => vec![("features", size(features)), ("seed", seed)],
            _ => vec![],
        }
    }

    fn set(&mut self, key: &str, value: u64) -> bool {
        let target = match (self, key) {
            (Family::BigBird { seed, .. } | Family::Favor { seed, .. }, "seed") => {
                *seed = value;
                return true;
            }
            (
                Family::Longformer { window, .. } | Family::BigBird { window, .. } | Family::Swin { window },
                "window",
            ) => window,
            (Family::Longformer { dilation, .. }, "dilation") => dilation,
            (Family::Longformer { globals, .. } | Family::BigBird { globals, .. }, "globals") => globals,
            (Family::BigBird { block, .. }, "block") => block,
            (Family::BigBird { random, .. }, "random") => random,
            (Family::Strided { stride } | Family::Fixed { stride, .. }, "stride") => stride,
            (Family::Fixed { summary, .. }, "summary") => summary,
            (Family::Favor { features, .. }, "features") => features,
            _ => return false,
        };
        match usize::try_from(value) {
            Ok(value) if value <= MOST => *target = value,
            _ => return false,
        }
        true
    }

    /// How many numbers a layer learns whose projections have `projections`.
    pub(crate) fn parameters(&self, projections: u128, heads: usize, head_dim: usize) -> u128 {
        let [h, dim] = [heads, head_dim].map(|x| x as u128);
        match *self {
            Family::Additive => projections + h * dim,
            Family::Swin { window } => projections + (2 * window as u128).saturating_sub(1).pow(2) * h,
            Family::Fourier => 0,
            _ => projections,
        }
    }

    /// How it is in a decoder: what mixes all tokens cannot leave out those to come.
    pub(crate) fn of_decoder(self) -> Family {
        if self == Family::Fourier { Family::Softmax } else { self }
    }

    /// How it is in attention from one sequence to another, where there are no distances between tokens.
    pub(crate) fn across(self) -> Family {
        match self {
            Family::Dot | Family::Additive | Family::Linear | Family::Favor { .. } => self,
            _ => Family::Softmax,
        }
    }

    /// The token mixer of a block: `attention` of this kind, or what takes its place.
    ///
    /// # Errors
    /// If its sizes do not fit the place.
    pub(crate) fn mixer(
        self,
        attention: MultiHeadAttention,
        place: Place,
        random: &mut Random,
    ) -> Result<Mixer, Error> {
        match self {
            Family::Fourier if place.causal => Err(self.misplaced("where all tokens may see each other: an encoder")),
            Family::Fourier => Ok(Mixer::Fourier),
            _ => Ok(self.attention(attention, place, random)?.into()),
        }
    }

    /// `attention` of this kind.
    ///
    /// # Errors
    /// If its sizes do not fit the place.
    pub(crate) fn attention(
        self,
        attention: MultiHeadAttention,
        place: Place,
        random: &mut Random,
    ) -> Result<MultiHeadAttention, Error> {
        let (heads, dim) = (attention.heads(), attention.head_dim());
        let learned = match self {
            Family::Additive => Some(random.normal((heads, dim), 1.0 / (dim as f32).sqrt())),
            Family::Swin { window } if window > 0 => Some(random.normal(((2 * window - 1).pow(2), heads), 0.02)),
            _ => None,
        };
        let built = self.build(dim, place)?;
        Ok(attention.with_mechanism(Mechanism { family: self, layer: place.layer, learned, built }))
    }

    fn build(self, head_dim: usize, Place { layer, tokens, grid, .. }: Place) -> Result<Built, Error> {
        Ok(match self {
            Family::Softmax => Built::default(),
            Family::Dot => Built::Softmax { scale: Some(1.0), pattern: None },
            Family::Additive => Built::Additive,
            Family::Longformer { window, dilation, globals } => {
                let globals: Vec<usize> = (0..globals.min(tokens)).collect();
                Built::pattern(Pattern::longformer(window, dilation, &globals)?)
            }
            Family::BigBird { block, window, globals, random, seed } => {
                if block > 0 && tokens / block > MOST {
                    let fits = format!("{} or more for {tokens} tokens", tokens.div_ceil(MOST));
                    return Err(foveal::Error::Fit { what: "BigBird's block", got: block, fits }.into());
                }
                let seed = seed.wrapping_add(layer as u64);
                let sizes = BigBird { block, window, global_start: globals, global_end: 0, random, seed };
                Built::pattern(Pattern::big_bird(tokens, sizes)?)
            }
            Family::Strided { stride } => Built::pattern(Pattern::strided(stride)?),
            Family::Fixed { stride, summary } => Built::pattern(Pattern::fixed(stride, summary)?),
            Family::Swin { window } => {
                let side = grid.ok_or_else(|| self.misplaced("an image in patches, without a class token"))?;
                let (grid, size) = ((side, side), (window, window));
                let shift = if layer.is_multiple_of(2) || window >= side { 0 } else { window / 2 };
                Built::Swin { pattern: Pattern::swin(grid, size, (shift, shift))?, window: size, grid }
            }
            Family::Linear => Built::Linear(FeatureMap::Elu),
            Family::Favor { features, seed } => {
                Built::Linear(FeatureMap::favor(head_dim, features, seed.wrapping_add(layer as u64))?)
            }
            Family::Fourier => return Err(self.misplaced("the place of self-attention in an encoder")),
        })
    }

    /// The error for a place that the mathematics does not allow.
    pub(crate) fn misplaced(self, fits: &'static str) -> Error {
        Error::Family { family: self.name(), fits }
    }
}

/// No size needs to be larger than this.
const MOST: usize = 1 << 16;

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        for (n, (key, value)) in self.sizes().into_iter().enumerate() {
            write!(f, "{}{key}={value}", if n == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl FromStr for Family {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown =
            || Error::FamilyName { got: text.to_owned(), known: FAMILY.map(|family| family.to_string()).to_vec() };
        let (name, sizes) = text.split_once(':').unwrap_or((text, ""));
        let mut family = FAMILY.into_iter().find(|family| family.name() == name).ok_or_else(unknown)?;
        for size in sizes.split(',').filter(|size| !size.is_empty()) {
            let (key, value) = size.split_once('=').ok_or_else(unknown)?;
            let value = value.trim().parse().map_err(|_| unknown())?;
            if !family.set(key.trim(), value) {
                return Err(unknown());
            }
        }
        Ok(family)
    }
}

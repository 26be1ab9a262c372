//! The options of an attention whose tokens are spread over ranks.
//!
//! They are those of [`foveal::Attention`] as plain data, so that they can be cut to some heads or tokens, and compared between
//! ranks before anybody starts to work.

use std::ops::Range;
use std::sync::Arc;

use foveal::{Align, Attention, Bias, Direction, Dropout, Mask, Part, Pattern, ScoreFunction, Threads};
use foveal_models::train::Fingerprint;
use ndarray::{Array2, Array3, Array4, ArrayView4, Axis, s};

use crate::error::{Error, Result};

/// What a query sees, and what is added to the scores. Positions and lengths are those of the whole sequence.
///
/// ```
/// use foveal_cluster::Options;
///
/// let mistral = Options { left: Some(4095), ..Options::causal() };
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What q·k is multiplied with; 1/√D if none is given.
    pub scale: Option<f32>,
    /// Keys before a query's own position that it sees; without end if none is given.
    pub left: Option<usize>,
    /// Keys after it.
    pub right: Option<usize>,
    /// The keys of each sequence of the batch that are not padding.
    pub lengths: Option<Vec<usize>>,
    /// Patterns, each for all heads, or one a head.
    pub patterns: Vec<Vec<Pattern>>,
    /// Keep-masks: the rows of this rank's queries, [1 or B, 1 or H, 1 or T of the rank, S].
    pub keep: Vec<Array4<bool>>,
    /// Where the queries stand among the keys.
    pub align: Align,
    /// What is added to the scores.
    pub bias: BiasOptions,
    /// Whether the gradient of the bias is wanted.
    pub learns_bias: bool,
    /// ±cap of the scaled scores.
    pub softcap: Option<f32>,
    /// A function on the scores, which has to be the same on all ranks.
    pub function: Option<Arc<dyn ScoreFunction>>,
    /// A logit for each query head that takes weight and gives no value.
    pub sinks: Option<Vec<f32>>,
    /// Drops weights at random.
    pub dropout: Option<Dropout>,
    /// Who does the work of this rank.
    pub threads: Threads,
}

/// What is added to the scores; see [`Bias`].
#[derive(Clone, Debug, Default)]
pub enum BiasOptions {
    /// Nothing.
    #[default]
    None,
    /// ALiBi's slopes: [1 or B, H].
    Alibi(Array2<f32>),
    /// T5's table, by distance.
    T5 {
        /// [buckets, H]
        table: Array2<f32>,
        /// Whether keys after the query have buckets of their own.
        direction: Direction,
        /// From where on all distances are one.
        max_distance: usize,
    },
    /// Swin's table, by distance on an image.
    Swin {
        /// [(2·height − 1)·(2·width − 1), H]
        table: Array2<f32>,
        /// Height and width of a window.
        window: (usize, usize),
        /// Height and width of the image, in tokens.
        grid: (usize, usize),
    },
    /// Shaw's vectors: [1 or H, 2·radius + 1, D].
    Shaw(Array3<f32>),
    /// Any numbers: the rows of this rank's queries, [1 or B, 1 or H, T of the rank, S].
    Dense(Array4<f32>),
    /// Any numbers, shared by all queries: [1 or B, 1 or H, 1, S].
    Keys(Array4<f32>),
}

/// A rectangle of scores: some queries of this rank against some keys of any.
#[derive(Clone, Debug)]
pub(crate) struct Rectangle {
    /// The place of the first query in the sequence.
    pub query: usize,
    /// The same queries among those of this rank.
    pub rows: Range<usize>,
    /// The places of the keys in the sequence.
    pub keys: Range<usize>,
}

/// The rows of an array that has one for each query, or one for all.
pub(crate) fn shared_rows(length: usize, rows: &Range<usize>) -> Range<usize> {
    if length == 1 { 0..1 } else { rows.clone() }
}

impl Options {
    /// No query sees a key after its own position.
    pub fn causal() -> Self {
        Options { right: Some(0), ..Options::default() }
    }

    /// The options of an attention for T queries on S keys of `dim` dimensions, \[T, S, D\], where they are a matter of a few
    /// numbers a head.
    ///
    /// # Errors
    /// If they are more than that: patterns, keep-masks, tables and functions cannot be taken out of an attention.
    pub fn of(attention: &Attention, (batch, heads): (usize, usize), [queries, keys, dim]: [usize; 3]) -> Result<Self> {
        let too_much = || Error::Way {
            way: "an attention over many ranks",
            what: "patterns, keep-masks, biases from tables or functions of a model".into(),
            instead: "make its `Options` yourself",
        };
        let of = |b: usize, h: usize| attention.head_options((b, h), (queries, keys, dim))?.ok_or_else(too_much);
        let mut options = Options { learns_bias: false, ..Options::default() };
        let (mut slopes, mut sinks) = (Array2::zeros((batch, heads)), Vec::new());
        let (mut offsets, mut lengths) = (Vec::new(), Vec::new());
        for b in 0..batch {
            for h in 0..heads {
                let head = of(b, h)?;
                slopes[[b, h]] = head.slope;
                (options.scale, options.softcap) = (Some(head.scale), head.softcap);
                (options.left, options.right) = (head.left, head.right);
                if h == 0 {
                    offsets.push(head.offset);
                    lengths.push(head.length);
                }
                if b == 0 {
                    sinks.extend(head.sink);
                }
            }
        }
        options.align = Align::Offsets(offsets.into());
        options.lengths = lengths.iter().any(|length| *length < keys).then_some(lengths);
        options.sinks = (!sinks.is_empty()).then_some(sinks);
        if slopes.iter().any(|slope| *slope != 0.0) {
            options.bias = BiasOptions::Alibi(slopes);
        }
        Ok(options)
    }

    /// Whether some query may see some key; false only if none does. What a rank alone knows (keep-masks, dense biases) is left
    /// out, as all ranks have to come to the same answer.
    pub(crate) fn sees(&self, queries: &Range<usize>, keys: &Range<usize>, [batch, t, s]: [usize; 3]) -> bool {
        if queries.is_empty() || keys.is_empty() {
            return false;
        }
        let sees = |b: usize| {
            let offset = match &self.align {
                Align::First => 0,
                Align::Offsets(offsets) => offsets.get(b).copied().unwrap_or(0) as i128,
                _ => s as i128 - t as i128,
            };
            let (first, last) = (queries.start as i128 + offset, queries.end as i128 - 1 + offset);
            let near = self.left.is_none_or(|left| keys.end as i128 > first - left as i128);
            let far = self.right.is_none_or(|right| keys.start as i128 <= last + right as i128);
            let real = self.lengths.as_ref().is_none_or(|lengths| lengths.get(b).is_none_or(|end| keys.start < *end));
            near && far && real
        };
        (0..batch).any(sees)
    }

    /// The attention of these query heads, without what is cut by tokens, and without sinks, which belong to the end of a row.
    pub(crate) fn of_heads(&self, heads: &Range<usize>) -> Result<Attention> {
        let mut mask = Mask::window(self.left, self.right);
        if let Some(lengths) = &self.lengths {
            mask = mask.and(Mask::padding(lengths.clone()));
        }
        for patterns in &self.patterns {
            let own = if patterns.len() == 1 { 0..1 } else { heads.start..heads.end.min(patterns.len()) };
            mask = mask.and(Mask::patterns(patterns.get(own).unwrap_or_default().to_vec()));
        }
        let columns = |table: &Array2<f32>| {
            let end = heads.end.min(table.ncols());
            table.slice(s![.., heads.start.min(end)..end]).to_owned()
        };
        let bias = match &self.bias {
            BiasOptions::None | BiasOptions::Dense(_) | BiasOptions::Keys(_) => Bias::none(),
            BiasOptions::Alibi(slopes) => Bias::alibi_per_sequence(columns(slopes)),
            BiasOptions::T5 { table, direction, max_distance } => Bias::t5(columns(table), *direction, *max_distance)?,
            BiasOptions::Swin { table, window, grid } => Bias::swin(columns(table), *window, *grid)?,
            BiasOptions::Shaw(table) => {
                let end = heads.end.min(table.dim().0);
                let own = if table.dim().0 == 1 { 0..1 } else { heads.start.min(end)..end };
                Bias::shaw(table.slice(s![own, .., ..]).to_owned())?
            }
        };
        let bias = if self.learns_bias { bias } else { bias.constant() };
        let mut attention = Attention::new().mask(mask).align(self.align.clone()).bias(bias).threads(self.threads);
        attention = self.scale.iter().fold(attention, |attention, scale| attention.scale(*scale));
        attention = self.softcap.iter().fold(attention, |attention, cap| attention.softcap(*cap));
        attention = self.function.iter().fold(attention, |attention, function| attention.score(function.clone()));
        Ok(self.dropout.iter().fold(attention, |attention, dropout| attention.with_dropout(*dropout)))
    }

    /// The attention of one rectangle of scores.
    pub(crate) fn cut(&self, of_heads: &Attention, at: &Rectangle, part: Part) -> Attention {
        let place = Part { queries: at.query as isize, keys: at.keys.start as isize, ..part };
        let mut attention = of_heads.clone().part(place);
        for keep in &self.keep {
            let rows = shared_rows(keep.dim().2, &at.rows);
            attention = attention.and_mask(Mask::dense(keep.slice(s![.., .., rows, at.keys.clone()]).to_owned()));
        }
        if let BiasOptions::Dense(bias) | BiasOptions::Keys(bias) = &self.bias {
            let rows = shared_rows(bias.dim().2, &at.rows);
            let bias = Bias::dense(bias.slice(s![.., .., rows, at.keys.clone()]).to_owned());
            attention = attention.bias(if self.learns_bias { bias } else { bias.constant() });
        }
        attention
    }

    /// Whether some option has numbers for single scores, of which each rank has its own rows.
    pub(crate) fn has_rows(&self) -> bool {
        !self.keep.is_empty() || matches!(self.bias, BiasOptions::Dense(_) | BiasOptions::Keys(_))
    }

    /// Checks that arrays over the scores have the rows of this rank.
    pub(crate) fn check_rows(&self, rank: usize, [batch, heads, rows, keys]: [usize; 4]) -> Result<()> {
        let check = |what: &'static str, got: &[usize], rows: usize| {
            let fits = |n: usize, of: usize| if n == 1 { 1 } else { of };
            let expected = vec![fits(got[0], batch), fits(got[1], heads), rows, keys];
            if got == expected { Ok(()) } else { Err(Error::Shape { what, rank, got: got.to_vec(), expected }) }
        };
        let rows_of = |n: usize| if n == 1 { 1 } else { rows };
        self.keep.iter().try_for_each(|keep| check("a keep-mask", keep.shape(), rows_of(keep.dim().2)))?;
        match &self.bias {
            BiasOptions::Dense(bias) => check("the dense bias", bias.shape(), rows),
            BiasOptions::Keys(bias) => check("the bias of the keys", bias.shape(), 1),
            _ => Ok(()),
        }
    }

    /// Adds what has to be the same on all ranks.
    pub(crate) fn facts(&self, others: Fingerprint) -> Fingerprint {
        let floats = |x: &f32| u64::from(x.to_bits());
        let rows_of = |shape: &[usize]| format!("{}, {}, _, {}", shape[0], shape[1], shape[3]);
        let mut facts = others
            .fact("scale", format!("{:?}", self.scale))
            .fact("window", format!("{:?} to {:?}", self.left, self.right))
            .fact("lengths", format!("{:?}", self.lengths))
            .data("patterns", format!("{:?}", self.patterns).into_bytes().into_iter())
            .fact("keep-masks", format!("{:?}", self.keep.iter().map(|k| rows_of(k.shape())).collect::<Vec<_>>()))
            .fact("alignment", format!("{:?}", self.align))
            .fact("softcap", format!("{:?}", self.softcap))
            .fact("score function", format!("{:?}", self.function))
            .fact("sinks", format!("{:?}", self.sinks))
            .fact("dropout", format!("{:?}", self.dropout))
            .fact("learned bias", self.learns_bias);
        let (name, table) = match &self.bias {
            BiasOptions::None => return facts.fact("bias", "none"),
            BiasOptions::Dense(bias) => return facts.fact("bias", format!("dense, {}", rows_of(bias.shape()))),
            BiasOptions::Keys(bias) => (format!("of the keys, {:?}", bias.shape()), bias.view().into_dyn()),
            BiasOptions::Alibi(slopes) => (format!("ALiBi, {:?}", slopes.shape()), slopes.view().into_dyn()),
            BiasOptions::T5 { table, direction, max_distance } => {
                (format!("T5, {:?} {direction:?} {max_distance}", table.shape()), table.view().into_dyn())
            }
            BiasOptions::Swin { table, window, grid } => {
                (format!("Swin, {:?} {window:?} {grid:?}", table.shape()), table.view().into_dyn())
            }
            BiasOptions::Shaw(table) => (format!("Shaw, {:?}", table.shape()), table.view().into_dyn()),
        };
        facts = facts.fact("bias", name);
        facts.data("table of the bias", table.iter().map(floats).collect::<Vec<_>>().into_iter())
    }
}

/// Some rows of an array [B, H, T, D].
pub(crate) fn rows<'a, A>(array: &'a ArrayView4<'_, A>, rows: &Range<usize>) -> ArrayView4<'a, A> {
    array.slice_axis(Axis(2), (rows.start..rows.end).into())
}

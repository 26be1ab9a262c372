//! The options of one head as plain numbers, for those who compute its weights in another place.

use crate::bias::{Bias, Kind};
use crate::mask::{Align, Mask};
use crate::{Attention, Error};

/// What turns q·k of one head into scores, where that is a matter of a few numbers: enough, with q, k and the log-sum-exp, to
/// compute any weight elsewhere, such as in a browser.
///
/// $$ s_{ij} = \mathrm{softcap}(\text{scale} \cdot q_i \cdot k_j) - \text{slope} \cdot |i + \text{offset} - j| $$
///
/// ```
/// use foveal::{Attention, Mask};
///
/// let attention = Attention::new().mask(Mask::window(4, 0)).softcap(50.0);
/// let options = attention.head_options((0, 0), (10, 10, 64))?.expect("nothing here needs a table");
/// assert_eq!((options.scale, options.left, options.right), (0.125, Some(4), Some(0)));
/// let same = options.attention(); // of a call with this head alone
/// # Ok::<(), foveal::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadOptions {
    /// What q·k is multiplied with.
    pub scale: f32,
    /// ±cap of the scaled scores.
    pub softcap: Option<f32>,
    /// Keys before a query's own position that it sees; without end if none.
    pub left: Option<usize>,
    /// Keys after it.
    pub right: Option<usize>,
    /// Query i stands at key i + offset.
    pub offset: isize,
    /// Keys that are not padding.
    pub length: usize,
    /// ALiBi's slope; 0 without.
    pub slope: f32,
    /// The logit that takes weight and gives no value.
    pub sink: Option<f32>,
}

impl HeadOptions {
    /// An attention of one sequence and one head with these options.
    pub fn attention(&self) -> Attention {
        let mask = Mask::window(self.left, self.right).and(Mask::padding([self.length]));
        let plain = Attention::new().scale(self.scale).mask(mask).align(Align::Offsets([self.offset].into()));
        let capped = self.softcap.iter().fold(plain, |plain, cap| plain.softcap(*cap));
        let sunk = self.sink.iter().fold(capped, |capped, sink| capped.sinks([*sink]));
        if self.slope == 0.0 { sunk } else { sunk.bias(Bias::alibi_with([self.slope]).constant()) }
    }
}

impl Attention {
    /// The options of head h in sequence b, `at` = (b, h), of a call with `(queries, keys, dim)`; none if they are more than a
    /// few numbers: patterns, keep-arrays, biases from tables, functions, parts and packed sequences.
    ///
    /// # Errors
    /// If there is no such sequence or head among the lists that the options hold.
    pub fn head_options(
        &self,
        (b, h): (usize, usize),
        (queries, keys, dim): (usize, usize, usize),
    ) -> Result<Option<HeadOptions>, Error> {
        let Mask { left, right, keep, patterns, .. } = &self.mask;
        let slope = match &self.bias.kind {
            Kind::None => 0.0,
            Kind::Alibi(alibi) => alibi.slope_at(b, h)?,
            _ => return Ok(None),
        };
        let whole = self.part.is_none() && self.packed.is_none();
        if !(keep.is_empty() && patterns.is_empty() && self.function.is_none() && whole) {
            return Ok(None);
        }
        let missing = |what| Error::Range { what, start: b, end: b.saturating_add(1), limit: b };
        let length = match self.lengths() {
            Some(lengths) => *lengths.get(b).ok_or_else(|| missing("lengths"))?,
            None => keys,
        };
        let offset = match &self.align {
            Align::Offsets(offsets) if b >= offsets.len() => return Err(missing("offsets")),
            align => align.offset(b, queries, keys),
        };
        let sink = match &self.sinks {
            Some(sinks) => Some(*sinks.get(h).ok_or_else(|| missing("sinks"))?),
            None => None,
        };
        let (left, right) = (*left, *right);
        let scale = self.scale_for(dim);
        Ok(Some(HeadOptions { scale, softcap: self.softcap, left, right, offset, length, slope, sink }))
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array4, s};

    use super::*;
    use crate::Pattern;

    /// Numbers between −1 and 1 from a counter.
    fn numbers(shape: (usize, usize, usize, usize)) -> Array4<f32> {
        let mut state = 7u32;
        Array4::from_shape_simple_fn(shape, || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 2f32.powi(23) - 1.0
        })
    }

    #[test]
    fn a_head_alone_has_the_weights_it_has_among_others() {
        let (q, k) = (numbers((2, 3, 9, 8)), numbers((2, 3, 12, 8)));
        let all = [
            Attention::new(),
            Attention::new().mask(Mask::causal()).scale(0.7),
            Attention::new().mask(Mask::window(3, 1).and(Mask::padding([12, 7]))).softcap(2.0),
            Attention::new().bias(Bias::alibi(3).unwrap()).align(Align::First).sinks([0.5, -1.0, 2.0]),
            Attention::new().mask(Mask::causal()).align(Align::Offsets([1, 4].into())),
        ];
        for attention in all {
            let weights = attention.weights(&q, &k).unwrap();
            for (b, h) in [(0, 0), (1, 2), (1, 0)] {
                let options = attention.head_options((b, h), (9, 12, 8)).unwrap().unwrap();
                let one = |x: &Array4<f32>| x.slice(s![b..=b, h..=h, .., ..]).to_owned();
                let alone = options.attention().weights(&one(&q), &one(&k)).unwrap();
                assert_eq!(alone, one(&weights), "{options:?}");
            }
        }
    }

    #[test]
    fn what_is_more_than_a_few_numbers_is_none() {
        let strided = Attention::new().mask(Mask::pattern(Pattern::strided(4).unwrap()));
        assert_eq!(strided.head_options((0, 0), (9, 9, 8)).unwrap(), None);
        let dense = Attention::new().bias(Bias::dense(Array4::zeros((1, 1, 1, 9))));
        assert_eq!(dense.head_options((0, 0), (9, 9, 8)).unwrap(), None);
        assert!(Attention::new().mask(Mask::padding([3])).head_options((1, 0), (9, 9, 8)).is_err());
        assert!(Attention::new().bias(Bias::alibi(2).unwrap()).head_options((0, 2), (9, 9, 8)).is_err());
    }
}

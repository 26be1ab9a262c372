//! A head that is told where to look.
//!
//! With a gold distribution $a_t$ over the keys for some of the queries, the head's weights w are learned by
//!
//! $$ \mathcal{L} = -\sum_t \sum_j a_{tj} \ln w_{tj}, \qquad
//!    \frac{\partial \mathcal{L}}{\partial s_{tj}} = w_{tj} - a_{tj} \ \text{ where } a_t \text{ is given, else } 0. $$
//!
//! From the scores $s = q k^\top / \sqrt{D_h}$ it goes on to queries and keys. The sequences are short, so the weights of the
//! one head are simply computed again, whole.

use ndarray::{Array3, ArrayView3, ArrayViewMut4, Axis, s};

use super::multi_head::Saved;
use super::shape::expect;
use super::{AttentionRecord, BoundAttention};
use crate::Error;

/// Where one head of a layer should look.
#[derive(Clone, Copy, Debug)]
pub struct Guide<'a> {
    /// The head.
    pub head: usize,
    /// a: [B, T, S]. Each row sums up to 1, or to 0 for a query that may look anywhere.
    pub gold: ArrayView3<'a, f32>,
    /// What the loss is multiplied with.
    pub factor: f32,
}

impl Guide<'_> {
    /// The loss, times its factor.
    ///
    /// # Errors
    /// If the gold weights are not shaped like those of the head, or it is no head of softmax attention.
    pub fn loss(&self, saved: &Saved) -> Result<f32, Error> {
        let weights = self.weights(&saved.record)?;
        let given = weights.iter().zip(self.gold).filter(|(_, gold)| **gold > 0.0);
        let sum: f64 = given.map(|(w, gold)| f64::from(-gold * w.max(f32::MIN_POSITIVE).ln())).sum();
        Ok(self.factor * sum as f32)
    }

    /// Adds the gradients of this loss to those of the queries, [B, H, T, Dh], and of the keys, [B, G, S, Dh].
    pub(super) fn backward(
        &self,
        record: &AttentionRecord,
        mut dq: ArrayViewMut4<f32>,
        mut dk: ArrayViewMut4<f32>,
    ) -> Result<(), Error> {
        let mut ds = self.weights(record)?;
        for (mut ds, gold) in ds.lanes_mut(Axis(2)).into_iter().zip(self.gold.lanes(Axis(2))) {
            let given = gold.sum();
            ds.iter_mut().zip(gold).for_each(|(ds, gold)| *ds = self.factor * (*ds * given - gold));
        }
        let key_head = self.key_head(record);
        let scale = 1.0 / (record.q.dim().3 as f32).sqrt();
        for (b, ds) in ds.outer_iter().enumerate() {
            let (q, k) = (record.q.slice(s![b, self.head, .., ..]), record.k.slice(s![b, key_head, .., ..]));
            dq.slice_mut(s![b, self.head, .., ..]).scaled_add(scale, &ds.dot(&k));
            dk.slice_mut(s![b, key_head, .., ..]).scaled_add(scale, &ds.t().dot(&q));
        }
        Ok(())
    }

    /// w: [B, T, S]
    fn weights(&self, record: &AttentionRecord) -> Result<Array3<f32>, Error> {
        let ((b, heads, t, _), keys) = (record.q.dim(), record.k.dim().2);
        expect("the weights to learn", &[b, t, keys], self.gold.shape())?;
        let limit = heads;
        if self.head >= limit {
            let (start, end) = (self.head, self.head + 1);
            return Err(foveal::Error::Range { what: "head", start, end, limit }.into());
        }
        let BoundAttention::Softmax(attention) = &record.attention else {
            let expected = "softmax attention";
            return Err(foveal::Error::Value { what: "the head to guide", expected, got: self.head as f64 }.into());
        };
        let key_head = self.key_head(record);
        let q = record.q.slice(s![.., self.head..=self.head, .., ..]);
        let k = record.k.slice(s![.., key_head..=key_head, .., ..]);
        Ok(attention.weights(q, k)?.index_axis_move(Axis(1), 0))
    }

    fn key_head(&self, record: &AttentionRecord) -> usize {
        self.head / (record.q.dim().1 / record.k.dim().1.max(1)).max(1)
    }
}

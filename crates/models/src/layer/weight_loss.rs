//! A loss that looks at the weights of one head themselves, not only at what is made of them.

use ndarray::ArrayViewMut4;

use super::{AttentionRecord, Guide, PointerGradient};
use crate::Error;

/// What is done with the weights of one head beside mixing values.
#[derive(Clone, Copy, Debug)]
pub enum WeightLoss<'a> {
    /// They are taught where to look.
    Guided(Guide<'a>),
    /// They choose what is copied.
    Pointer(PointerGradient<'a>),
}

impl<'a> From<Guide<'a>> for WeightLoss<'a> {
    fn from(guide: Guide<'a>) -> Self {
        WeightLoss::Guided(guide)
    }
}

impl<'a> From<PointerGradient<'a>> for WeightLoss<'a> {
    fn from(pointer: PointerGradient<'a>) -> Self {
        WeightLoss::Pointer(pointer)
    }
}

impl WeightLoss<'_> {
    /// Adds the gradients of this loss to those of the queries, [B, H, T, Dh], and of the keys, [B, G, S, Dh].
    pub(super) fn backward(
        &self,
        record: &AttentionRecord,
        dq: ArrayViewMut4<f32>,
        dk: ArrayViewMut4<f32>,
    ) -> Result<(), Error> {
        match self {
            WeightLoss::Guided(guide) => guide.backward(record, dq, dk),
            WeightLoss::Pointer(pointer) => pointer.backward(record, dq, dk),
        }
    }
}

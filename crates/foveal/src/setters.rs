//! What every kind of attention has beside its own options, written once: mask, alignment, threads and instruction set.
//!
//! [`Attention`] holds these options itself. The other kinds hold an [`Attention`] for them, made by
//! [`plain`](Attention::plain), which refuses the options that mean nothing without a scaled product of query and key.

use crate::bias::Kind;
use crate::{Attention, Error};

/// The setters of these options, for a type that is an [`Attention`] or has one in the field that is named.
macro_rules! setters {
    ($($field:ident)?) => {
        /// Which keys a query may see.
        #[must_use]
        pub fn mask(mut self, mask: $crate::Mask) -> Self {
            self.$($field.)?mask = mask;
            self
        }

        /// Also this mask: a key is visible if both say so.
        #[must_use]
        pub fn and_mask(mut self, mask: $crate::Mask) -> Self {
            self.$($field.)?mask = self.$($field.)?mask.and(mask);
            self
        }

        /// Where the queries stand among the keys if T ≠ S. Default: the last query at the last key.
        #[must_use]
        pub fn align(mut self, align: $crate::Align) -> Self {
            self.$($field.)?align = align;
            self
        }

        /// Who does the work.
        #[must_use]
        pub fn threads(mut self, threads: $crate::Threads) -> Self {
            self.$($field.)?threads = threads;
            self
        }

        /// Forces an instruction set, for tests and comparisons.
        #[must_use]
        pub fn isa(mut self, isa: $crate::Isa) -> Self {
            self.$($field.)?isa = Some(isa);
            self
        }
    };
}

pub(crate) use setters;

impl Attention {
    /// Mask, alignment, threads and instruction set alone, for a kind of attention in which the other options mean nothing.
    /// Dropout is left out: it may be chosen for a whole model.
    pub(crate) fn plain(&self, what: &'static str) -> Result<Attention, Error> {
        let fits = "masks, and no scale, bias or softcap";
        let unfit = |option| Err(Error::Unfit { what, option, fits });
        match self {
            Attention { scale: Some(_), .. } => unfit("scale"),
            Attention { softcap: Some(_), .. } => unfit("softcap"),
            Attention { function: Some(_), .. } => unfit("score function"),
            Attention { sinks: Some(_), .. } => unfit("sinks"),
            Attention { part: Some(_), .. } => unfit("part of a larger call"),
            Attention { packed: Some(_), .. } => unfit("packed sequences"),
            Attention { bias, .. } if !matches!(bias.kind, Kind::None) => unfit("bias"),
            _ => Ok(Attention { dropout: None, ..self.clone() }),
        }
    }
}

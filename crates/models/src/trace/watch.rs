//! Attention that runs elsewhere, in another framework's model, as a [`Trace`].
//!
//! A framework's operation calls [`record`] where it attends; whoever wants to look wraps the model's run in [`watch`].
//!
//! ```
//! use foveal::{Attention, Mask};
//! use foveal_models::trace::{Kind, LayerTrace, record, watch};
//! use ndarray::Array4;
//!
//! let layer = |x: &Array4<f32>| -> foveal_models::Result<Array4<f32>> {
//!     let attention = Attention::new().mask(Mask::causal());
//!     let forward = attention.forward(x, x, x)?;
//!     record(|| LayerTrace::builder(attention, x, x).lse(forward.lse).values(x).build())?;
//!     Ok(forward.out)
//! };
//! let x = Array4::ones((1, 2, 5, 8));
//! let (out, trace) = watch(Kind::Decoder, || layer(&layer(&x)?));
//! assert_eq!(out?.dim(), (1, 2, 5, 8));
//! assert!((trace.layer(Kind::Decoder, 1)?.weights(0, 0)?[[4, 0]] - 0.2).abs() < 1e-6);
//! # Ok::<(), foveal_models::Error>(())
//! ```

use std::cell::RefCell;

use super::{Kind, LayerTrace, Site, Trace};
use crate::Result;

thread_local! {
    /// What the innermost [`watch`] of this thread has seen so far.
    static SEEN: RefCell<Option<Vec<LayerTrace>>> = const { RefCell::new(None) };
}

/// Puts back what an outer [`watch`] has seen, also after a panic.
struct Outer(Option<Vec<LayerTrace>>);

impl Drop for Outer {
    fn drop(&mut self) {
        SEEN.set(self.0.take());
    }
}

/// Runs `work` and returns its result with a trace of what was [recorded](record) meanwhile on this thread: the first call is
/// layer 0, the next one layer 1.
pub fn watch<T>(kind: Kind, work: impl FnOnce() -> T) -> (T, Trace) {
    let outer = Outer(SEEN.replace(Some(Vec::new())));
    let result = work();
    let layers = SEEN.take().unwrap_or_default();
    drop(outer);
    let sites = (0..).map(|layer| Site { kind, layer });
    (result, sites.zip(layers).collect())
}

/// Adds a layer to the trace of the [`watch`] around this call. Without one, nothing is made and nothing happens.
///
/// # Errors
/// Those of `layer`.
pub fn record(layer: impl FnOnce() -> Result<LayerTrace>) -> Result<()> {
    if SEEN.with_borrow(Option::is_none) {
        return Ok(());
    }
    let layer = layer()?;
    SEEN.with_borrow_mut(|seen| {
        if let Some(seen) = seen {
            seen.push(layer);
        }
    });
    Ok(())
}

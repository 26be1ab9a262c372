//! Working memory, reused from call to call.

use foveal_compute::scratch::{Kept, Reusable, Scratch as Memories};

use crate::kernel::plan::Plan;

/// What one thread works with.
pub(crate) type Slot = foveal_compute::scratch::Slot<Plan>;

/// Working memory for [`Attention::forward_into`](crate::Attention::forward_into) and
/// [`backward_into`](crate::Attention::backward_into). It grows to what the largest call so far
/// needed (a few hundred KiB for each thread) and is then reused without allocating.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) memories: Memories<Plan>,
    /// The log-sum-exp of rows over parts of the keys.
    pub(crate) lse: Vec<f64>,
}

impl Reusable for Scratch {
    fn values(&self) -> usize {
        self.memories.values() + 2 * self.lse.len()
    }
}

impl Scratch {
    /// Empty: it grows when used.
    pub fn new() -> Self {
        Scratch::default()
    }

    /// Lends a scratch that is not in use, as the calls that bring none do. What is kept for that, by the whole process, is at
    /// most 64 MiB.
    ///
    /// ```
    /// use foveal::{Attention, Scratch};
    /// use ndarray::{Array3, Array4};
    ///
    /// let x = Array4::<f32>::ones((1, 2, 3, 4));
    /// let (mut out, mut lse) = (Array4::<f32>::zeros((1, 2, 3, 4)), Array3::zeros((1, 2, 3)));
    /// Scratch::lend(|scratch| Attention::new().forward_into(&x, &x, &x, &mut out, lse.view_mut(), scratch))?;
    /// assert_eq!(out, x);
    /// # Ok::<(), foveal::Error>(())
    /// ```
    pub fn lend<R>(work: impl FnOnce(&mut Scratch) -> R) -> R {
        static KEPT: Kept<Scratch> = Kept::new();
        KEPT.lend(work)
    }
}

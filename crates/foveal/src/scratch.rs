//! Working memory, reused from call to call.

use std::cell::Cell;
use std::marker::PhantomData;

use crate::kernel::plan::Plan;

/// Working memory for [`Attention::forward_into`](crate::Attention::forward_into) and
/// [`backward_into`](crate::Attention::backward_into). It grows to what the largest call so far
/// needed (a few hundred KiB for each thread) and is then reused without allocating.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) slots: Vec<Slot>,
    pub(crate) parts: Memory,
}

impl Scratch {
    /// Empty: it grows when used.
    pub fn new() -> Self {
        Scratch::default()
    }

    /// Lends the calling thread's own scratch, as the calls that bring none do. Fresh memory would cost more than small calls
    /// take: the system hands it out page by page, and zeroed.
    ///
    /// ```
    /// use foveal::{Attention, Scratch};
    /// use ndarray::{Array3, Array4};
    ///
    /// let (x, mut out, mut lse) = (Array4::ones((1, 2, 3, 4)), Array4::zeros((1, 2, 3, 4)), Array3::zeros((1, 2, 3)));
    /// Scratch::lend(|scratch| Attention::new().forward_into(&x, &x, &x, out.view_mut(), lse.view_mut(), scratch))?;
    /// assert_eq!(out, x);
    /// # Ok::<(), foveal::Error>(())
    /// ```
    pub fn lend<R>(work: impl FnOnce(&mut Scratch) -> R) -> R {
        thread_local!(static KEPT: Cell<Option<Scratch>> = const { Cell::new(None) });
        // Taken out for the call: should this thread be given another one meanwhile, that one makes its own.
        let mut scratch = KEPT.take().unwrap_or_default();
        let result = work(&mut scratch);
        let kept = scratch.slots.iter().map(|slot| &slot.memory).chain([&scratch.parts]);
        if kept.map(|memory| memory.0.len()).sum::<usize>() <= KEEP {
            KEPT.set(Some(scratch));
        }
        result
    }
}

/// Values that a thread keeps from one call to the next at most: 32 MiB.
const KEEP: usize = 8 << 20;

/// What one thread works with.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub memory: Memory,
    pub plan: Plan,
}

/// Memory for a few arrays.
#[derive(Debug, Default)]
pub(crate) struct Memory(Vec<f32>);

/// Values per cache line. Every part starts on a line of its own: vectors that straddle two lines load at half speed.
pub const LINE: usize = 16;

impl Memory {
    /// Makes room for parts of these lengths.
    pub fn reserve(&mut self, parts: &[usize]) {
        let need = LINE + parts.iter().map(|n| n.next_multiple_of(LINE)).sum::<usize>();
        if self.0.len() < need {
            self.0 = vec![0.0; need];
        }
    }

    /// The memory cut into parts, aligned, with whatever they held before.
    pub fn cut<const N: usize>(&mut self, parts: [usize; N]) -> [&mut [f32]; N] {
        self.reserve(&parts);
        let offset = self.0.as_ptr().align_offset(LINE * size_of::<f32>());
        let mut rest = &mut self.0[offset..];
        parts.map(|n| {
            let (part, after) = std::mem::take(&mut rest).split_at_mut(n.next_multiple_of(LINE));
            rest = after;
            &mut part[..n]
        })
    }
}

/// Memory whose parts of equal length are written by different threads, and then read by all.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    ptr: *mut f32,
    len: usize,
    part: usize,
    memory: PhantomData<&'a mut [f32]>,
}

// SAFETY: a `Parts` is an exclusive borrow, and its methods leave it to the caller that no part is written by one thread and
// accessed by another at the same time.
unsafe impl Send for Parts<'_> {}
// SAFETY: as above.
unsafe impl Sync for Parts<'_> {}

impl<'a> Parts<'a> {
    pub fn new(memory: &'a mut [f32], part: usize) -> Self {
        Parts { ptr: memory.as_mut_ptr(), len: memory.len(), part, memory: PhantomData }
    }

    /// Part n.
    ///
    /// # Safety
    /// While it is in use, no one else accesses this part.
    pub unsafe fn write(&self, n: usize) -> &'a mut [f32] {
        assert!((n + 1) * self.part <= self.len);
        // SAFETY: the part lies within the memory (asserted), which is borrowed for 'a, and is the caller's alone.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(n * self.part), self.part) }
    }

    /// All of it.
    ///
    /// # Safety
    /// While it is in use, no one writes.
    pub unsafe fn read(&self) -> &'a [f32] {
        // SAFETY: this is the memory, borrowed for 'a, which no one writes.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

/// The first `n` slots, made where there are fewer.
pub(crate) fn slots<'a>(all: &'a mut Vec<Slot>, n: usize, parts: &[usize]) -> &'a mut [Slot] {
    if all.len() < n {
        all.resize_with(n, Slot::default);
    }
    all[..n].iter_mut().for_each(|slot| slot.memory.reserve(parts));
    &mut all[..n]
}

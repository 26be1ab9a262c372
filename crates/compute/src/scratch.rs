//! Working memory, reused from call to call.

use std::marker::PhantomData;
use std::sync::Mutex;

/// Values per cache line. Every part of a memory starts on a line of its own: vectors that straddle two lines load at half
/// speed.
pub const LINE: usize = 16;

/// The working memory of a call: some for each thread, with what else `P` it reuses, and some for all of them.
#[derive(Debug, Default)]
pub struct Scratch<P = ()> {
    pub slots: Vec<Slot<P>>,
    pub shared: Memory,
}

/// What one thread works with.
#[derive(Debug, Default)]
pub struct Slot<P = ()> {
    pub memory: Memory,
    pub plan: P,
}

impl<P: Default> Scratch<P> {
    /// The first `n` slots, made where there are fewer, with room for parts of these lengths; and the shared memory.
    pub fn slots(&mut self, n: usize, parts: &[usize]) -> (&mut [Slot<P>], &mut Memory) {
        let n = n.max(1);
        if self.slots.len() < n {
            self.slots.resize_with(n, Slot::default);
        }
        self.slots[..n].iter_mut().for_each(|slot| slot.memory.reserve(parts));
        (&mut self.slots[..n], &mut self.shared)
    }
}

/// What can be kept for the next call.
pub trait Reusable: Default {
    /// How many values it has room for.
    fn values(&self) -> usize;
}

impl<P: Default> Reusable for Scratch<P> {
    fn values(&self) -> usize {
        self.slots.iter().map(|slot| slot.memory.0.len()).sum::<usize>() + self.shared.0.len()
    }
}

/// Scratches that are not in use, for whichever thread calls next. Fresh memory would cost more than small calls take: the
/// system hands it out page by page, and zeroed.
#[derive(Debug)]
pub struct Kept<T>(Mutex<Vec<T>>);

/// Values that are kept from one call to the next at most, by the whole process: 64 MiB.
const KEEP: usize = 16 << 20;

impl<T: Reusable> Default for Kept<T> {
    fn default() -> Self {
        Kept::new()
    }
}

impl<T: Reusable> Kept<T> {
    pub const fn new() -> Self {
        Kept(Mutex::new(Vec::new()))
    }

    /// Runs `work` with a scratch that was used before, if there is one.
    pub fn lend<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        // Nobody waits: where the lock is taken (or was, by a thread that a fork left behind), fresh memory does as well.
        let mut scratch = self.0.try_lock().ok().and_then(|mut kept| kept.pop()).unwrap_or_default();
        let result = work(&mut scratch);
        if let Ok(mut kept) = self.0.try_lock()
            && kept.iter().map(T::values).sum::<usize>() + scratch.values() <= KEEP
        {
            kept.push(scratch);
        }
        result
    }
}

/// The scratch of matrix products.
pub(crate) static PRODUCTS: Kept<Scratch> = Kept::new();

/// Memory for a few arrays.
#[derive(Debug, Default)]
pub struct Memory(Vec<f32>);

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
pub struct Parts<'a> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_for_the_whole_process() {
        static SOME: Kept<Scratch> = Kept::new();
        // Threads that call at once each need memory of their own; afterwards little of it is left.
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| SOME.lend(|scratch: &mut Scratch| scratch.shared.reserve(&[KEEP / 3])));
            }
        });
        let kept = SOME.0.lock().unwrap();
        assert!(kept.iter().map(Scratch::values).sum::<usize>() <= KEEP);
        assert!(!kept.is_empty(), "small calls find memory that was used before");
    }
}

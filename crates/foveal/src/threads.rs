//! Sharing tasks out over threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

/// Who does the work. Results are the same to the bit, whatever the choice and the number of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// The rayon pool that the call is made from: the global one, or the caller's if called within `pool.install`.
    /// Work too small to be worth waking a thread is done by the caller. A caller from outside the pool sleeps until it is
    /// done; programs that make many small calls, such as training, begin within it: `rayon::scope(|_| train())`.
    #[default]
    Rayon,
    /// The calling thread alone.
    Sequential,
}

/// Floating-point operations below which the caller works alone: about 20 µs, some times what it takes to wake a thread.
const WORTH_WAKING: f64 = 4e6;

impl Threads {
    /// How many threads to use for this many operations.
    pub(crate) fn count(self, flops: f64) -> usize {
        match self {
            Threads::Rayon if flops >= WORTH_WAKING => rayon::current_num_threads(),
            _ => 1,
        }
    }
}

/// Runs the tasks 0..n, each with the exclusive use of one of the slots. Free threads take the next task in order.
pub(crate) fn for_each_task<T: Send>(slots: &mut [T], n: usize, work: impl Fn(&mut T, usize) + Sync) {
    if let [slot] = slots {
        (0..n).for_each(|task| work(slot, task));
        return;
    }
    let next = AtomicUsize::new(0);
    slots.par_iter_mut().with_max_len(1).for_each(|slot| {
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= n {
                break;
            }
            work(slot, task);
        }
    });
}

/// Runs the tasks 0..before, and when all are done the tasks 0..n as [`for_each_task`] does, without waking threads twice.
pub(crate) fn for_each_after<T: Send>(
    slots: &mut [T],
    before: usize,
    prepare: impl Fn(usize) + Sync,
    n: usize,
    work: impl Fn(&mut T, usize) + Sync,
) {
    /// Counts a task as done even if it panics, so that no one waits for it for ever.
    struct Done<'a>(&'a AtomicUsize);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Release);
        }
    }
    if let [slot] = slots {
        (0..before).for_each(prepare);
        (0..n).for_each(|task| work(slot, task));
        return;
    }
    let (begun, done, next) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    slots.par_iter_mut().with_max_len(1).for_each(|slot| {
        loop {
            let task = begun.fetch_add(1, Ordering::Relaxed);
            if task >= before {
                break;
            }
            let _done = Done(&done);
            prepare(task);
        }
        // What is not done is being done by a thread that has begun it: the wait is short.
        while done.load(Ordering::Acquire) < before {
            std::hint::spin_loop();
        }
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= n {
                break;
            }
            work(slot, task);
        }
    });
}

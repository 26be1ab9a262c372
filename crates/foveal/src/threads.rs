//! Sharing tasks out over threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;

/// Who does the work. Results are the same to the bit, whatever the choice and the number of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// The rayon pool that the call is made from: the global one, or the caller's if called within `pool.install`.
    /// Work too small to be worth waking a thread is done by the caller. A caller from outside the pool sleeps until it is
    /// done; programs that make many calls one after the other, such as training, make them within [`awake`].
    #[default]
    Rayon,
    /// The calling thread alone.
    Sequential,
}

/// Floating-point operations below which the caller works alone: about 20 µs, some times what it takes to wake a thread.
const WORTH_WAKING: f64 = 4e6;

impl Threads {
    /// How many threads to use for reading this many values that are not in the nearest caches, each for a few operations.
    pub(crate) fn count_reading(self, values: f64) -> usize {
        /// What reading one value takes, as floating-point operations in the same time.
        const FLOPS_PER_VALUE: f64 = 50.0;
        self.count(FLOPS_PER_VALUE * values)
    }

    /// How many threads to use for this many operations.
    pub(crate) fn count(self, flops: f64) -> usize {
        match self {
            Threads::Rayon if flops >= WORTH_WAKING => self.available(),
            _ => 1,
        }
    }

    /// How many threads a call may use: all of the pool, or those that fall to [`one_of`] several.
    pub fn available(self) -> usize {
        match self {
            Threads::Rayon => (rayon::current_num_threads() / SHARED_BY.get()).max(1),
            Threads::Sequential => 1,
        }
    }
}

thread_local! {
    /// How many run side by side, see [`one_of`].
    static SHARED_BY: Cell<usize> = const { Cell::new(1) };
}

/// Runs `work`, one of `parts` that run side by side, with its share of the pool's threads: calls within it are not cut up for
/// threads that are busy with the other parts. With as many parts as threads, each is done by one.
///
/// ```
/// use foveal::{Threads, one_of};
///
/// let all = Threads::Rayon.available();
/// assert_eq!(one_of(2, || Threads::Rayon.available()), (all / 2).max(1));
/// assert_eq!(Threads::Rayon.available(), all);
/// ```
pub fn one_of<R>(parts: usize, work: impl FnOnce() -> R) -> R {
    /// Sets it back, also after a panic.
    struct Before(usize);
    impl Drop for Before {
        fn drop(&mut self) {
            SHARED_BY.set(self.0);
        }
    }
    let before = SHARED_BY.get();
    let _before = Before(before);
    SHARED_BY.set(before.saturating_mul(parts.max(1)));
    work()
}

/// Runs `work` within the rayon pool, and keeps the pool's other threads awake until it is done.
///
/// A thread of the pool that finds nothing to do goes to sleep within microseconds, and takes tens of them to wake. Work that
/// is shared out, done alone for a moment, and shared out again, some hundred times in all, such as reading a token or
/// a step of training, otherwise waits that long each time: 2 to 5 % of it. A thread that finds nothing for a millisecond sleeps
/// all the same. If someone is kept awake already, `work` just runs.
///
/// ```
/// use foveal::{Threads, affine, awake};
/// use ndarray::Array2;
///
/// let (x, weight) = (Array2::<f32>::ones((1, 64)), Array2::<f32>::ones((64, 64)));
/// let y = awake(|| (0..10).try_fold(x, |x, _| affine(&x, &weight, None, Threads::Rayon)))?;
/// assert_eq!(y[[0, 0]], 64f32.powi(10));
/// # Ok::<(), foveal::Error>(())
/// ```
pub fn awake<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    /// Whether someone keeps threads awake.
    static KEPT: AtomicBool = AtomicBool::new(false);
    /// Lets them sleep again, also after a panic.
    struct Kept<'a>(&'a AtomicBool);
    impl Drop for Kept<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
            KEPT.store(false, Ordering::Relaxed);
        }
    }
    let done = AtomicBool::new(false);
    rayon::scope(|scope| {
        if KEPT.swap(true, Ordering::Relaxed) {
            return work();
        }
        let _kept = Kept(&done);
        for _ in 1..rayon::current_num_threads() {
            scope.spawn(|_| help_until(&done));
        }
        work()
    })
}

/// Does what there is to do in the pool until `done`, or until there has been nothing for long.
fn help_until(done: &AtomicBool) {
    /// For which it is worth keeping a processor from others.
    const LONG: Duration = Duration::from_millis(1);
    /// Pauses between two looks.
    const PAUSES: usize = 8;
    let mut idle = Instant::now();
    while !done.load(Ordering::Relaxed) {
        if rayon::yield_now() == Some(rayon::Yield::Executed) {
            idle = Instant::now();
        } else if idle.elapsed() > LONG {
            return;
        } else {
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
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

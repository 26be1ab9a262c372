//! Sharing tasks out over threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::threads::{Share, in_pool};

/// Runs the tasks 0..n, each with the exclusive use of one of the slots. Free threads take the next task in order.
pub fn for_each_task<T: Send>(slots: &mut [T], n: usize, work: impl Fn(&mut T, usize) + Sync) {
    if let [slot] = slots {
        (0..n).for_each(|task| work(slot, task));
        return;
    }
    let (next, share) = (AtomicUsize::new(0), Share::here());
    in_pool(|| {
        slots
            .par_iter_mut()
            .with_max_len(1)
            .for_each(|slot| share.run(|| take_tasks(&next, n, |task| work(slot, task))));
    });
}

/// Runs the tasks 0..before, and when all are done the tasks 0..n as [`for_each_task`] does, without waking threads twice.
pub fn for_each_after<T: Send>(
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
    let share = Share::here();
    let run = |slot: &mut T| {
        take_tasks(&begun, before, |task| {
            let _done = Done(&done);
            prepare(task);
        });
        // What is not done is being done by a thread that has begun it.
        wait_until(|| done.load(Ordering::Acquire) >= before);
        take_tasks(&next, n, |task| work(slot, task));
    };
    in_pool(|| slots.par_iter_mut().with_max_len(1).for_each(|slot| share.run(|| run(slot))));
}

/// Takes one task after the other until there are no more.
fn take_tasks(next: &AtomicUsize, n: usize, mut work: impl FnMut(usize)) {
    loop {
        let task = next.fetch_add(1, Ordering::Relaxed);
        if task >= n {
            break;
        }
        work(task);
    }
}

/// Waits for what another thread is about to finish. The wait is short, unless that thread has no processor because others
/// use it: then this one gives up its own.
fn wait_until(done: impl Fn() -> bool) {
    const SPINS: usize = 1000;
    let mut spins = 0;
    while !done() {
        if spins < SPINS {
            spins += 1;
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

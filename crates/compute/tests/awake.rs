//! Keeping the pool awake: it changes nothing but the time.

use std::sync::atomic::{AtomicUsize, Ordering};

use foveal_compute::awake;
use rayon::prelude::*;

/// Some hundred small pieces of shared work, with pauses between them in which others find nothing to do.
fn work() -> usize {
    let done = AtomicUsize::new(0);
    for round in 0..300 {
        (0..8).into_par_iter().with_max_len(1).for_each(|_| _ = done.fetch_add(1, Ordering::Relaxed));
        if round % 100 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    done.into_inner()
}

#[test]
fn all_is_done() {
    assert_eq!(awake(work), 2400);
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(|| awake(work)), 2400);
        assert_eq!(pool.install(|| awake(|| awake(work) + awake(work))), 4800, "one within another");
        let side_by_side: usize = pool.install(|| (0..6).into_par_iter().map(|_| awake(work)).sum());
        assert_eq!(side_by_side, 6 * 2400);
    }
    let from_many: usize =
        std::thread::scope(|scope| (0..4).map(|_| scope.spawn(|| awake(work))).map(|run| run.join().unwrap()).sum());
    assert_eq!(from_many, 4 * 2400);
}

#[test]
fn a_panic_comes_through_and_leaves_nothing_behind() {
    for _ in 0..3 {
        let panicked = std::panic::catch_unwind(|| awake(|| panic!("on purpose")));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"on purpose"));
        assert_eq!(awake(work), 2400);
    }
}

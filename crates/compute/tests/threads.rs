//! Who does the work: nobody waits for strangers, a share goes where the work goes, and too many threads get there as well.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use foveal_compute::tasks::{for_each_after, for_each_task};
use foveal_compute::{Threads, affine, awake, join, one_of};
use ndarray::Array2;
use rayon::{ThreadPool, ThreadPoolBuilder};

mod support;

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// Work of others on the pool.
const STRANGER: Duration = Duration::from_millis(1500);

/// What `awake` takes, with a job of others in the same pool: begun before, or found by the threads that it keeps awake.
#[test]
fn awake_does_not_wait_for_strangers() {
    let stranger = || rayon::spawn(|| thread::sleep(STRANGER));
    for (threads, before) in [(2, false), (2, true), (4, false), (4, true)] {
        let took = pool(threads).install(|| {
            let began = Instant::now();
            if before {
                stranger();
            }
            awake(|| {
                if !before {
                    stranger();
                }
                // Long enough for another thread to begin the job.
                thread::sleep(Duration::from_millis(50));
            });
            began.elapsed()
        });
        assert!(took < STRANGER / 2, "{threads} threads, a job from before: {before}; took {took:?}");
    }
    // Called from outside, onto a thread of the pool that is free.
    let (pool, began) = (pool(3), Instant::now());
    pool.spawn(|| thread::sleep(STRANGER));
    let answer = pool.install(|| awake(|| join(|| 20, || 22)));
    assert_eq!(answer, (20, 22));
    assert!(began.elapsed() < STRANGER / 2, "called from outside: {:?}", began.elapsed());
}

/// Half of the pool's threads, wherever the half moves.
#[test]
fn a_share_goes_where_the_work_goes() {
    let available = || Threads::Rayon.available();
    let pool = pool(4);
    pool.install(|| {
        assert_eq!(available(), 4);
        one_of(2, || {
            assert_eq!(available(), 2);
            assert_eq!(awake(available), 2, "awake");
            assert_eq!(join(available, available), (2, 2), "join");
            assert_eq!(awake(|| one_of(2, available)), 1, "a share of a share");
            let nested = join(|| join(available, || awake(available)), || one_of(4, available));
            assert_eq!(nested, ((2, 2), 1));
        });
        assert_eq!(available(), 4, "and no further");
    });
    // Tasks run on all threads of the pool; each has the share of the caller.
    for _ in 0..20 {
        let (wrong, count) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let look = || {
            count.fetch_add(1, Ordering::Relaxed);
            wrong.fetch_add(usize::from(available() != 2), Ordering::Relaxed);
            thread::yield_now();
        };
        let mut slots = [(); 4];
        pool.install(|| one_of(2, || for_each_task(&mut slots, 64, |(), _| look())));
        pool.install(|| one_of(2, || for_each_after(&mut slots, 64, |_| look(), 64, |(), _| look())));
        assert_eq!((wrong.into_inner(), count.into_inner()), (0, 3 * 64));
    }
    assert_eq!(pool.install(available), 4);
}

/// The share comes back, also after a panic.
#[test]
fn a_panic_does_not_keep_a_share() {
    let pool = pool(4);
    pool.install(|| {
        let panicked = std::panic::catch_unwind(|| one_of(4, || panic!("on purpose")));
        assert!(panicked.is_err());
        assert_eq!(Threads::Rayon.available(), 4);
    });
}

/// Runs `work`, which must not take for ever.
fn within(limit: Duration, work: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let run = thread::spawn(move || {
        work();
        done.send(()).unwrap();
    });
    match wait.recv_timeout(limit) {
        Ok(()) => run.join().unwrap(),
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("still not done after {limit:?}"),
        Err(mpsc::RecvTimeoutError::Disconnected) => run.join().unwrap(),
    }
}

/// Many times more threads than processors wait for each other: whoever is waited for gets a processor.
#[test]
fn the_barrier_holds_with_too_many_threads() {
    within(Duration::from_secs(120), || {
        let pool = pool(24);
        pool.install(|| {
            for _ in 0..30 {
                let (before, after, early) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
                let mut slots = [(); 24];
                for_each_after(
                    &mut slots,
                    48,
                    |task| {
                        // Some are slower than others.
                        thread::sleep(Duration::from_micros(50 * (task % 3) as u64));
                        before.fetch_add(1, Ordering::Relaxed);
                    },
                    48,
                    |(), _| {
                        early.fetch_add(usize::from(before.load(Ordering::Relaxed) < 48), Ordering::Relaxed);
                        after.fetch_add(1, Ordering::Relaxed);
                    },
                );
                let counts = (before.into_inner(), after.into_inner(), early.into_inner());
                assert_eq!(counts, (48, 48, 0), "all done, and none too early");
            }
        });
    });
}

/// Products on too many threads, several at a time, are what one thread makes of them.
#[test]
fn products_on_too_many_threads() {
    within(Duration::from_secs(120), || {
        let narrow = |seed, shape: (usize, usize)| support::randn(seed, shape).mapv(|x| x as f32);
        let (a, b): (Array2<f32>, Array2<f32>) = (narrow(1, (150, 200)), narrow(2, (200, 300)));
        let alone = affine(&a, &b, None, Threads::Sequential).unwrap();
        let pool = pool(16);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        let product = pool.install(|| affine(&a, &b, None, Threads::Rayon).unwrap());
                        assert!(product == alone);
                    }
                });
            }
        });
    });
}

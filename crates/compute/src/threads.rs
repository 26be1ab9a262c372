//! Who does the work.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Who does the work. Results are the same to the bit, whatever the choice and the number of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Threads {
    /// The rayon pool that the call is made from: the global one, or the caller's if called within `pool.install`.
    /// Work too small to be worth waking a thread is done by the caller. In a process made by `fork`, which has none of the
    /// pool's threads, a new pool takes its place.
    #[default]
    Rayon,
    /// The calling thread alone.
    Sequential,
}

/// Floating-point operations below which the caller works alone: about 20 µs, some times what it takes to wake a thread.
const WORTH_WAKING: f64 = 4e6;

impl Threads {
    /// How many threads to use for reading this many values that are not in the nearest caches, each for a few operations.
    #[doc(hidden)]
    pub fn count_reading(self, values: f64) -> usize {
        /// What reading one value takes, as floating-point operations in the same time.
        const FLOPS_PER_VALUE: f64 = 50.0;
        self.count(FLOPS_PER_VALUE * values)
    }

    /// How many threads to use for this many operations.
    #[doc(hidden)]
    pub fn count(self, flops: f64) -> usize {
        match self {
            Threads::Rayon if flops >= WORTH_WAKING => self.available(),
            _ => 1,
        }
    }

    /// How many threads a call may use: all of the pool, or those that fall to [`one_of`] several.
    pub fn available(self) -> usize {
        match self {
            Threads::Rayon => (fork::pool_size() / SHARED_BY.get()).max(1),
            Threads::Sequential => 1,
        }
    }
}

thread_local! {
    /// How many run side by side, see [`one_of`].
    static SHARED_BY: Cell<usize> = const { Cell::new(1) };
}

/// The share of the pool's threads that the present work has, see [`one_of`]. Work that moves to another thread takes it along:
/// [`awake`], [`join`] and everything in this crate do; around rayon's own `join` or `install`, [`run`](Share::run) does.
///
/// ```
/// use foveal_compute::{Share, Threads, one_of};
///
/// one_of(2, || {
///     let (share, half) = (Share::here(), Threads::Rayon.available());
///     let other = std::thread::scope(|s| s.spawn(|| share.run(|| Threads::Rayon.available())).join().unwrap());
///     assert_eq!(other, half);
/// });
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Share(usize);

impl Share {
    /// That of the calling thread.
    pub fn here() -> Self {
        Share(SHARED_BY.get())
    }

    /// Runs `work` with this share.
    pub fn run<R>(self, work: impl FnOnce() -> R) -> R {
        /// Sets it back, also after a panic.
        struct Before(usize);
        impl Drop for Before {
            fn drop(&mut self) {
                SHARED_BY.set(self.0);
            }
        }
        let _before = Before(SHARED_BY.replace(self.0));
        work()
    }
}

/// Runs `work`, one of `parts` that run side by side, with its share of the pool's threads: calls within it are not cut up for
/// threads that are busy with the other parts. With as many parts as threads, each is done by one.
///
/// ```
/// use foveal_compute::{Threads, one_of};
///
/// let all = Threads::Rayon.available();
/// assert_eq!(one_of(2, || Threads::Rayon.available()), (all / 2).max(1));
/// assert_eq!(Threads::Rayon.available(), all);
/// ```
pub fn one_of<R>(parts: usize, work: impl FnOnce() -> R) -> R {
    Share(SHARED_BY.get().saturating_mul(parts.max(1))).run(work)
}

/// Runs both, side by side if a thread is free, each with the share of the caller.
pub fn join<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    let share = Share::here();
    in_pool(|| rayon::join(|| share.run(a), || share.run(b)))
}

/// Runs `work` where rayon's calls find living threads: as it is, or in the new pool of a process made by `fork`.
pub fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    fork::in_pool(work)
}

/// Runs `work` within the rayon pool, and keeps the pool's other threads awake until it is done.
///
/// A thread of the pool that finds nothing to do goes to sleep within microseconds, and takes tens of them to wake. Work that
/// is shared out, done alone for a moment, and shared out again, some hundred times in all, such as reading a token or
/// a step of training, otherwise waits that long each time: 2 to 5 % of it. A thread that finds nothing for a millisecond sleeps
/// all the same. If someone is kept awake already, `work` just runs. What the other threads find to do meanwhile, they finish;
/// nobody waits for that.
///
/// ```
/// use foveal_compute::{Threads, affine, awake};
/// use ndarray::Array2;
///
/// let (x, weight) = (Array2::<f32>::ones((1, 64)), Array2::<f32>::ones((64, 64)));
/// let y = awake(|| (0..10).try_fold(x, |x, _| affine(&x, &weight, None, Threads::Rayon)))?;
/// assert_eq!(y[[0, 0]], 64f32.powi(10));
/// # Ok::<(), foveal_compute::Error>(())
/// ```
pub fn awake<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    /// Whether someone keeps threads awake.
    static KEPT: AtomicBool = AtomicBool::new(false);
    /// Lets them sleep again, also after a panic.
    struct Kept(Arc<AtomicBool>);
    impl Drop for Kept {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
            KEPT.store(false, Ordering::Relaxed);
        }
    }
    let share = Share::here();
    in_pool(|| {
        rayon::scope(|_| {
            if KEPT.swap(true, Ordering::Relaxed) {
                return share.run(work);
            }
            let kept = Kept(Arc::default());
            for _ in 1..rayon::current_num_threads() {
                // Not spawned in the scope, which would wait for whatever they find to do.
                let done = kept.0.clone();
                rayon::spawn(move || help_until(&done));
            }
            share.run(work)
        })
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

/// A process made by `fork` has the memory of its parent, but of its threads only the one that called it. Rayon's pool is then
/// a pool of nobody, and whoever waits for it waits for ever. So forks are counted, and after one a pool of this process's own
/// does the work.
#[cfg(unix)]
mod fork {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Mutex, Once};

    use rayon::{ThreadPool, ThreadPoolBuilder};

    /// How many forks lie between the process in which this crate was first used and this one.
    static FORKS: AtomicUsize = AtomicUsize::new(0);

    thread_local! {
        /// The fork after which the pool of this thread was made; 0 for threads of any other pool, or of none.
        static POOL_OF: Cell<usize> = const { Cell::new(0) };
    }

    fn forks() -> usize {
        static WATCH: Once = Once::new();
        WATCH.call_once(|| {
            extern "C" fn child() {
                FORKS.fetch_add(1, Ordering::Relaxed);
            }
            // SAFETY: the handler touches nothing but an atomic number.
            unsafe { libc::pthread_atfork(None, None, Some(child)) };
        });
        FORKS.load(Ordering::Relaxed)
    }

    /// The pool of this process, made after `fork` forks. Pools of forks before it are left alone: their threads are gone.
    fn pool(fork: usize) -> &'static ThreadPool {
        static POOL: Mutex<Option<(usize, &'static ThreadPool)>> = Mutex::new(None);
        let mut pool = POOL.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match *pool {
            Some((made, living)) if made == fork => living,
            _ => {
                let new = ThreadPoolBuilder::new().start_handler(move |_| POOL_OF.set(fork)).build();
                let new = Box::leak(Box::new(new.expect("threads can be made, as in the parent")));
                *pool = Some((fork, new));
                new
            }
        }
    }

    /// The pool to go to, unless this thread is in a living one.
    fn elsewhere() -> Option<&'static ThreadPool> {
        match forks() {
            0 => None,
            fork if POOL_OF.get() == fork => None,
            fork => Some(pool(fork)),
        }
    }

    pub fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> R {
        match elsewhere() {
            None => work(),
            Some(pool) => pool.install(work),
        }
    }

    pub fn pool_size() -> usize {
        elsewhere().map_or_else(rayon::current_num_threads, ThreadPool::current_num_threads)
    }
}

#[cfg(not(unix))]
mod fork {
    pub fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> R {
        work()
    }

    pub fn pool_size() -> usize {
        rayon::current_num_threads()
    }
}

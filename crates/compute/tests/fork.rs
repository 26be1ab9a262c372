//! A process made by `fork` has none of its parent's threads. What used a pool there makes a new one here.
#![cfg(unix)]

use std::time::{Duration, Instant};

use foveal_compute::{Threads, affine, awake, join};
use ndarray::Array2;
use rayon::prelude::*;

mod support;

/// Large enough for threads to be woken for.
fn product() -> Array2<f32> {
    let narrow = |seed, shape: (usize, usize)| support::randn(seed, shape).mapv(|x| x as f32);
    let (a, b): (Array2<f32>, Array2<f32>) = (narrow(1, (200, 300)), narrow(2, (300, 400)));
    let few = affine(a.slice(ndarray::s![..2, ..]), &b, None, Threads::Rayon).unwrap();
    let all = affine(&a, &b, None, Threads::Rayon).unwrap();
    let worst = few.iter().zip(&all).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
    assert!(worst < 1e-3);
    all
}

/// Runs `work` in a process of its own: whether it came to its end within a minute, and said yes.
fn in_child(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs `work` alone, on its only thread, and leaves without running anything of the parent's; memory is
    // handed out by glibc, whose locks a fork leaves free.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        let said = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(false);
        // SAFETY: this process ends here.
        unsafe { libc::_exit(i32::from(!said)) };
    }
    let began = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: the child is ours, and nobody else waits for it.
        let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
        if ended == child {
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        }
        if began.elapsed() > Duration::from_secs(60) {
            // SAFETY: as above.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, &raw mut status, 0);
            }
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// One test: a fork copies whatever the other tests of this process are doing.
#[test]
fn a_child_computes_what_its_parent_does() {
    // More than one thread, whatever the machine has.
    rayon::ThreadPoolBuilder::new().num_threads(4).build_global().unwrap();
    assert_eq!(Threads::Rayon.available(), 4);
    let want = product();
    assert!(in_child(|| product() == want), "after its parent has used the pool");
    assert!(in_child(|| Threads::Rayon.available() >= 1 && awake(product) == want), "awake");
    assert!(in_child(|| join(product, product) == (want.clone(), want.clone())), "side by side");
    assert!(in_child(|| product() == want && in_child(|| product() == want) && product() == want), "a child's child");
    assert!(rayon::join(|| in_child(|| product() == want), || true).0, "a child of a thread of the pool");
    let own = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    assert!(own.install(|| in_child(|| product() == want)), "a child of a thread of another pool");
    let several: Vec<bool> = (0..3).map(|_| in_child(|| awake(|| product() == want))).collect();
    assert_eq!(several, [true; 3], "one after the other");
    // The parent has its threads as before.
    assert_eq!(Threads::Rayon.available(), 4);
    assert!(product() == want);
    assert_eq!((0..1000).into_par_iter().sum::<usize>(), 499_500);
}

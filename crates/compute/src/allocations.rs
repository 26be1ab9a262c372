//! How much memory a piece of work takes: an allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};

/// The system's allocator, which counts while [`peak_allocation`] asks it to. Otherwise it costs one load of a flag.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: foveal_compute::CountingAllocator = foveal_compute::CountingAllocator;
///
/// let (rows, bytes) = foveal_compute::peak_allocation(|| vec![0u8; 1000]);
/// assert_eq!((rows.len(), bytes), (1000, Some(1000)));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

static COUNTING: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);
/// One count at a time.
static TURN: Mutex<()> = Mutex::new(());

/// What `work` gives back, and the most bytes that were in use during it beyond those before it: of all threads together, so
/// nothing else should be going on. `None` where the program has not made [`CountingAllocator`] its allocator.
pub fn peak_allocation<T>(work: impl FnOnce() -> T) -> (T, Option<u64>) {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    LIVE.store(0, Relaxed);
    PEAK.store(0, Relaxed);
    COUNTING.store(true, Relaxed);
    // Seen if anyone counts.
    drop(std::hint::black_box(Box::new(0u8)));
    let installed = PEAK.swap(0, Relaxed) > 0;
    let result = work();
    COUNTING.store(false, Relaxed);
    (result, installed.then(|| PEAK.load(Relaxed).max(0) as u64))
}

fn count(bytes: isize) {
    if COUNTING.load(Relaxed) {
        let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
        PEAK.fetch_max(live, Relaxed);
    }
}

// SAFETY: every method hands its arguments on to the system's allocator, unchanged, and only counts beside that.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new may exist side by side while the contents move.
        count(size as isize);
        // SAFETY: the caller keeps the contract of `realloc`.
        let moved = unsafe { System.realloc(pointer, layout, size) };
        count(-(layout.size() as isize));
        moved
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

//! Counts what a thread has allocated, so that a test can say how much memory a call took at its peak.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // Threads that are going down have no counters any more, and are not measured.
    let _ = NOW.try_with(|now| {
        now.set(now.get() + bytes);
        PEAK.with(|peak| peak.set(peak.get().max(now.get())));
    });
}

// SAFETY: every call goes on to the system's allocator as it came; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new: usize) -> *mut u8 {
        count(new as isize - layout.size() as isize);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.realloc(at, layout, new) }
    }
}

/// The most memory that `f` held at once, beyond what was held before.
pub fn peak<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let result = f();
    (result, (PEAK.get() - before).max(0) as usize)
}

/// What a file of so many bytes may take: parsed JSON is some thirty times its text, and a path, an error or a buffer for
/// reading has its fixed size.
pub fn allowed(file: usize) -> usize {
    40 * file + 64 * 1024
}

#[test]
fn the_peak_is_seen() {
    let (length, bytes) = peak(|| vec![0u8; 1 << 20].len());
    assert_eq!(length, 1 << 20);
    assert!((1 << 20..(1 << 20) + 1000).contains(&bytes), "{bytes}");
}

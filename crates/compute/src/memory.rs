//! Where large arrays lie, and what becomes of memory that is freed.

use std::sync::atomic::{AtomicBool, Ordering};

use ndarray::Array4;

/// Whether large arrays are put on large pages.
static LARGE_PAGES: AtomicBool = AtomicBool::new(false);

/// Tells the system's allocator to keep freed memory for what comes next, for the whole process, and to take it from large
/// pages. Programs that make and drop large arrays all the time, such as training, call it once at their start: by default glibc
/// gives arrays above 128 KiB back to the system, which hands the next one out page by page and zeroed. Worth 10 to 20 % of
/// a small model's training step. Does nothing on other systems. Libraries never call it.
pub fn keep_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// The most that glibc takes.
        const LARGEST: i32 = 32 << 20;
        /// What is made room for: nothing of it is in memory until it is used.
        const ROOM: usize = 512 << 20;
        const PIECE: usize = LARGEST as usize - (64 << 10);
        // SAFETY: `mallopt` changes parameters of the allocator under its own lock, and touches no memory in use. What is
        // allocated is freed here, and never read or written. Between two ends of the heap lies the heap, and the advice changes
        // nothing of what it holds.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST);
            libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
            libc::mallopt(libc::M_TOP_PAD, LARGEST);
            // One heap for all threads, which grows at one end, and stays.
            libc::mallopt(libc::M_ARENA_MAX, 1);
            let start = libc::sbrk(0).addr();
            let pieces = [(); ROOM / PIECE].map(|()| libc::malloc(PIECE));
            advise(start..libc::sbrk(0).addr());
            pieces.into_iter().for_each(|piece| libc::free(piece));
        }
    }
}

/// From now on, large arrays that are read from memory over and over (weights, caches) and very large results are put on large
/// pages, for the whole process: they are then read without a pause at every 4 KiB. Programs call it once at their start. Does
/// nothing on other systems than Linux, and nothing where that is switched off.
pub fn large_pages() {
    LARGE_PAGES.store(true, Ordering::Relaxed);
}

/// Puts an array on large pages, before it is filled, if the program has asked for [`large_pages`]. Small arrays are left where
/// they are.
pub fn advise_large_pages<T>(array: &[T]) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if LARGE_PAGES.load(Ordering::Relaxed) {
        let start = array.as_ptr().addr();
        // SAFETY: this is the array, and the advice changes nothing of what it holds.
        unsafe { advise(start..start + size_of_val(array)) };
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = array;
}

/// Asks for large pages between two addresses, as far as there are whole ones.
///
/// # Safety
/// What lies between them is memory of this process.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
unsafe fn advise(range: std::ops::Range<usize>) {
    const PAGE: usize = 2 << 20;
    let (start, end) = (range.start.next_multiple_of(PAGE), range.end / PAGE * PAGE);
    if start < end {
        // SAFETY: passed on; the advice changes nothing of what the pages hold.
        unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(start), end - start, libc::MADV_HUGEPAGE) };
    }
}

/// Bytes from which the allocator hands a freed array back to the system, and a new one comes in fresh pages.
const FRESH: usize = 16 << 20;

/// A result to be filled. A very large one lies on large pages: those of the usual size, handed out one by one while the
/// kernels write, took a fifth of a backward pass. Smaller ones come from memory that was used before, which large pages
/// would keep from happening.
pub fn zeros(dim: (usize, usize, usize, usize)) -> Array4<f32> {
    let array = Array4::zeros(dim);
    array.as_slice().into_iter().filter(|values| size_of_val(*values) >= FRESH).for_each(advise_large_pages);
    array
}

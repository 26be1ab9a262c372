//! What one way of doing something takes in memory.

use foveal_compute::peak_allocation;

use crate::Result;

/// The most bytes that are in use during `work` beyond those before it, if the program counts its allocations
/// ([`foveal_compute::CountingAllocator`]). Threads of its own do it, since those of others may have working memory from before,
/// which would not be counted.
pub fn peak<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<Option<u64>> {
    let Ok(pool) = rayon::ThreadPoolBuilder::new().num_threads(rayon::current_num_threads()).build() else {
        return Ok(None);
    };
    // Whatever a pool needs to hand out its first tasks is there before the count.
    pool.broadcast(|_| ());
    pool.install(|| {
        let (done, bytes) = peak_allocation(work);
        done.map(|_| bytes)
    })
}

/// Bytes that can be had without pushing others out, where the system tells.
pub fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| 1024 * kilobytes)
}

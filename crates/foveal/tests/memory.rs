//! Memory: no n × n anywhere, and no allocation at all where none is promised. One test, because the counter is shared.
#![allow(missing_docs)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use foveal::{
    Attention, Bias, BigBird, Direction, FeatureMap, LinearAttention, Mask, Pattern, Pool, Scratch, Threads,
    fourier_mix,
};
use ndarray::{Array2, Array3, Array4, Axis};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all work is passed on to the system's allocator; the counters are atomics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, SeqCst);
        let live = LIVE.fetch_add(layout.size(), SeqCst) + layout.size();
        PEAK.fetch_max(live, SeqCst);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), SeqCst);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The most bytes alive during the call above those before it.
fn peak<R>(work: impl FnOnce() -> R) -> (usize, R) {
    let before = LIVE.load(SeqCst);
    PEAK.store(before, SeqCst);
    let result = work();
    (PEAK.load(SeqCst) - before, result)
}

fn wave(shape: [usize; 4], seed: f32) -> Array4<f32> {
    Array4::from_shape_fn(shape, |(b, h, i, d)| (seed + (b + 3 * h + 7 * i) as f32 * 0.1 + d as f32).sin())
}

const MIB: usize = 1 << 20;

#[test]
fn memory_is_linear_and_reused() {
    // An n × n array of f32 at these lengths has 64 and 256 MiB.
    let sparse = |pattern: Pattern| Attention::new().mask(Mask::pattern(pattern));
    let options: [(&str, Attention); 8] = [
        ("plain", Attention::new()),
        ("causal", Attention::new().mask(Mask::causal()).dropout(0.1, 1)),
        ("ALiBi in a window", Attention::new().mask(Mask::window(300, 0)).bias(Bias::alibi(1).unwrap()).softcap(20.0)),
        ("T5", Attention::new().bias(Bias::t5(Array2::zeros((32, 1)), Direction::Both, 128).unwrap())),
        ("Shaw", Attention::new().bias(Bias::shaw(Array3::zeros((1, 33, 16))).unwrap())),
        ("Longformer", sparse(Pattern::longformer(200, 1, &[0, 5]).unwrap())),
        ("BigBird", sparse(Pattern::big_bird(8192, BigBird::default()).unwrap())),
        ("strided", sparse(Pattern::strided(64).unwrap())),
    ];
    for (name, attention) in options {
        for n in [4096, 8192] {
            let (q, k, v) = (wave([1, 1, n, 16], 0.0), wave([1, 1, n, 16], 1.0), wave([1, 1, n, 16], 2.0));
            let array = n * 16 * size_of::<f32>();
            let (forward, fwd) = peak(|| attention.forward(&q, &k, &v).unwrap());
            let (backward, _) = peak(|| attention.backward(&q, &k, &v, &fwd, &v).unwrap());
            let (map, _) = peak(|| {
                attention.head(&q, &k, &fwd.lse, (0, 0)).unwrap().map(0..n, 0..n, (64, 64), Pool::Max).unwrap()
            });
            assert!(forward <= 2 * array + 4 * MIB, "{name}, {n} tokens: forward took {forward} bytes");
            assert!(backward <= 4 * array + 12 * MIB, "{name}, {n} tokens: backward took {backward} bytes");
            assert!(map <= 4 * MIB, "{name}, {n} tokens: map took {map} bytes");
        }
    }

    for (name, linear) in [
        ("ELU + 1", LinearAttention::new(FeatureMap::Elu)),
        ("causal ELU + 1", LinearAttention::new(FeatureMap::Elu).mask(Mask::causal())),
        ("causal FAVOR+", LinearAttention::new(FeatureMap::favor(16, 32, 1).unwrap()).mask(Mask::causal())),
    ] {
        for n in [4096, 16384] {
            let (q, k, v) = (wave([1, 1, n, 16], 0.0), wave([1, 1, n, 16], 1.0), wave([1, 1, n, 16], 2.0));
            let array = n * 16 * size_of::<f32>();
            let (forward, fwd) = peak(|| linear.forward(&q, &k, &v).unwrap());
            let (backward, _) = peak(|| linear.backward(&q, &k, &v, &fwd, &v).unwrap());
            let (map, _) =
                peak(|| linear.head(&q, &k, &fwd.lse, (0, 0)).unwrap().map(0..n, 0..n, (64, 64), Pool::Max).unwrap());
            assert!(forward <= 2 * array + 4 * MIB, "{name}, {n} tokens: forward took {forward} bytes");
            assert!(backward <= 6 * array + 4 * MIB, "{name}, {n} tokens: backward took {backward} bytes");
            // Each thread's products have working memory of their own.
            assert!(map <= 8 * MIB, "{name}, {n} tokens: map took {map} bytes");
        }
    }
    let x = wave([1, 1, 16384, 16], 0.0);
    let (mixing, _) = peak(|| fourier_mix(x.index_axis(Axis(0), 0), Threads::Rayon));
    assert!(mixing <= 4 * x.len() * size_of::<f32>() + 4 * MIB, "mixing took {mixing} bytes");

    // A few new tokens against a long cache, and a small call: after the first time, nothing is allocated.
    for (queries, keys) in [(1, 5000), (16, 16), (500, 500)] {
        let (q, k, v) = (wave([1, 4, queries, 32], 0.0), wave([1, 2, keys, 32], 1.0), wave([1, 2, keys, 32], 2.0));
        let (mut out, mut lse) = (Array4::<f32>::zeros((1, 4, queries, 32)), Array3::zeros((1, 4, queries)));
        for mask in [Mask::causal(), Mask::pattern(Pattern::longformer(20, 1, &[0, 7]).unwrap())] {
            let attention = Attention::new().mask(mask).bias(Bias::alibi(4).unwrap()).threads(Threads::Sequential);
            let mut scratch = Scratch::new();
            for first in [true, false] {
                let before = CALLS.load(SeqCst);
                attention.forward_into(&q, &k, &v, out.view_mut(), lse.view_mut(), &mut scratch).unwrap();
                let allocations = CALLS.load(SeqCst) - before;
                assert!(first || allocations == 0, "{queries} × {keys}: {allocations} allocations");
            }
        }
    }
}

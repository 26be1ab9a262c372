//! What the machine can do at most: multiply-adds in registers, and bytes read from memory.
//!
//! Both run on every thread of the rayon pool at once and are timed like any other work, in the same rounds, because the
//! clock and the memory of a virtual machine change from minute to minute.

use std::hint::black_box;

/// Fused multiply-adds on registers alone.
pub struct FmaPeak {
    /// Steps of each thread: about 5 ms.
    steps: usize,
}

impl FmaPeak {
    pub fn new() -> Self {
        FmaPeak { steps: 1 << 20 }
    }

    pub fn run(&self) {
        rayon::broadcast(|_| black_box(fma(self.steps)));
    }

    /// Floating-point operations of one run: two a multiply-add.
    pub fn flops(&self) -> f64 {
        (2 * rayon::current_num_threads() * self.steps * chains() * lanes()) as f64
    }
}

/// The sum of a buffer.
pub struct ReadBandwidth {
    buffer: Vec<f32>,
}

impl ReadBandwidth {
    pub fn new(bytes: usize) -> Self {
        let mut buffer = vec![0.0; bytes / size_of::<f32>()];
        foveal_compute::advise_large_pages(&buffer);
        // Written to, as all pages of zeros from the system would be the one page of zeros.
        buffer.fill(1.0);
        ReadBandwidth { buffer }
    }

    pub fn run(&self) {
        let share = self.buffer.len().div_ceil(rayon::current_num_threads());
        rayon::broadcast(|thread| {
            let start = (thread.index() * share).min(self.buffer.len());
            let end = (start + share).min(self.buffer.len());
            black_box(sum(&self.buffer[start..end]))
        });
    }
}

/// The instruction set, by its lanes of f32.
fn lanes() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        // VL too: without it the compiler leaves half of the registers unused and the chains go through memory.
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
            return 16;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return 8;
        }
    }
    4
}

/// Independent chains of multiply-adds: more than two units of latency 4 or 5 can have in flight, and no more than there
/// are registers beside the two factors.
fn chains() -> usize {
    if lanes() == 16 { 24 } else { 12 }
}

fn fma(steps: usize) -> f32 {
    match lanes() {
        // SAFETY: `lanes` has found AVX-512 F and VL.
        #[cfg(target_arch = "x86_64")]
        16 => unsafe { x86::fma_512(steps) },
        // SAFETY: `lanes` has found AVX2 and FMA.
        #[cfg(target_arch = "x86_64")]
        8 => unsafe { x86::fma_256(steps) },
        _ => {
            let (factor, term) = (black_box(0.999_f32), black_box(0.001_f32));
            let mut chains = [[1.0f32; 4]; 12];
            for _ in 0..steps {
                chains.iter_mut().flatten().for_each(|x| *x = *x * factor + term);
            }
            chains.iter().flatten().sum()
        }
    }
}

fn sum(x: &[f32]) -> f32 {
    match lanes() {
        // SAFETY: `lanes` has found AVX-512 F and VL.
        #[cfg(target_arch = "x86_64")]
        16 => unsafe { x86::sum_512(x) },
        // SAFETY: `lanes` has found AVX2.
        #[cfg(target_arch = "x86_64")]
        8 => unsafe { x86::sum_256(x) },
        _ => sum_of_streams(x),
    }
}

/// Streams that are read side by side: one alone leaves the memory waiting whenever its prefetcher meets a page's end.
const STREAMS: usize = 4;
/// Values that a stream reads in turn: four cache lines.
const TURN: usize = 64;
/// Values that each stream asks for in advance.
const AHEAD: usize = 16 * TURN;

/// Plain additions, which the compiler makes into vectors of whatever function this is inlined into.
#[inline(always)]
fn sum_of_streams(x: &[f32]) -> f32 {
    let length = x.len() / STREAMS / TURN * TURN;
    let streams: [&[f32]; STREAMS] = std::array::from_fn(|stream| &x[stream * length..(stream + 1) * length]);
    let mut sums = [[0.0f32; TURN]; STREAMS];
    for at in (0..length).step_by(TURN) {
        for (stream, sums) in streams.iter().zip(&mut sums) {
            let turn = &stream[at..at + TURN];
            #[cfg(target_arch = "x86_64")]
            for line in turn.chunks_exact(16) {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                // SAFETY: a prefetch reads nothing; beyond the buffer's end it does nothing.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().wrapping_add(AHEAD).cast()) };
            }
            sums.iter_mut().zip(turn).for_each(|(sum, x)| *sum += x);
        }
    }
    sums.iter().flatten().sum()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::hint::black_box;

    #[target_feature(enable = "avx512f,avx512vl")]
    pub fn fma_512(steps: usize) -> f32 {
        let (factor, term) = (_mm512_set1_ps(black_box(0.999)), _mm512_set1_ps(black_box(0.001)));
        let mut chains = [_mm512_set1_ps(1.0); 24];
        for _ in 0..steps {
            for x in &mut chains {
                *x = _mm512_fmadd_ps(*x, factor, term);
            }
        }
        chains.iter().map(|x| _mm512_reduce_add_ps(*x)).sum()
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn fma_256(steps: usize) -> f32 {
        let (factor, term) = (_mm256_set1_ps(black_box(0.999)), _mm256_set1_ps(black_box(0.001)));
        let mut chains = [_mm256_set1_ps(1.0); 12];
        for _ in 0..steps {
            for x in &mut chains {
                *x = _mm256_fmadd_ps(*x, factor, term);
            }
        }
        let sum = chains.into_iter().reduce(|a, b| _mm256_add_ps(a, b));
        _mm256_cvtss_f32(sum.unwrap_or(term))
    }

    #[target_feature(enable = "avx512f,avx512vl")]
    pub fn sum_512(x: &[f32]) -> f32 {
        super::sum_of_streams(x)
    }

    #[target_feature(enable = "avx2")]
    pub fn sum_256(x: &[f32]) -> f32 {
        super::sum_of_streams(x)
    }
}

//! The kernels: each algorithm written once over the [`simd::Simd`] trait, compiled for each instruction set, and
//! chosen at run time in [`dispatch`]. Threads are outside: every task dispatches for itself.

pub mod additive;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod backward;
pub mod element;
pub mod features;
pub mod forward;
pub mod gemm;
mod gradient;
mod isa;
pub mod matrix;
pub mod options;
pub mod pack;
pub mod plan;
pub mod product;
pub mod rows;
mod scalar;
pub mod simd;
pub mod small;
pub mod softmax;
pub mod thin;
pub mod weights;

pub use isa::Isa;
use simd::Simd;

/// A piece of work that can be compiled for any instruction set.
pub trait Kernel {
    type Output;
    /// Implementations are `#[inline(always)]`, so that they take on the instruction set of [`dispatch`].
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Runs `kernel` with the instruction set `isa`, which [`Isa::resolve`] has found on this machine.
pub fn dispatch<K: Kernel>(isa: Isa, kernel: K) -> K::Output {
    debug_assert!(isa <= Isa::best());
    match isa {
        Isa::Scalar => kernel.run(scalar::Scalar),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => {
            #[target_feature(enable = "avx2,fma,f16c")]
            fn with_avx2<K: Kernel>(kernel: K, simd: avx2::Avx2) -> K::Output {
                kernel.run(simd)
            }
            // SAFETY: `Isa::resolve` hands out Avx2 only where the processor has avx2, fma and f16c.
            unsafe { with_avx2(kernel, avx2::Avx2::new_unchecked()) }
        }
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => {
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")]
            fn with_avx512<K: Kernel>(kernel: K, simd: avx512::Avx512) -> K::Output {
                kernel.run(simd)
            }
            // SAFETY: `Isa::resolve` hands out Avx512 only where the processor has these features.
            unsafe { with_avx512(kernel, avx512::Avx512::new_unchecked()) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Isa::Avx2 | Isa::Avx512 => unreachable!("Isa::resolve refuses what the machine lacks"),
    }
}

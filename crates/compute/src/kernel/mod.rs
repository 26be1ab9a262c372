//! Each kernel is written once over the [`simd::Simd`] trait, compiled for each instruction set, and chosen at run time by
//! [`dispatch`]. Threads are outside: every task dispatches for itself.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod element;
pub mod gemm;
pub mod matrix;
pub mod pack;
pub(crate) mod product;
mod scalar;
pub mod simd;
pub mod thin;

use simd::Simd;

use crate::isa::{Isa, Supported};

/// A piece of work that can be compiled for any instruction set.
pub trait Kernel {
    type Output;
    /// Implementations are `#[inline(always)]`, so that they take on the instruction set of [`dispatch`].
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Runs `kernel` with an instruction set that this machine has.
pub fn dispatch<K: Kernel>(isa: Supported, kernel: K) -> K::Output {
    match isa.isa() {
        Isa::Scalar => kernel.run(scalar::Scalar),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => {
            #[target_feature(enable = "avx2,fma,f16c")]
            fn with_avx2<K: Kernel>(kernel: K, simd: avx2::Avx2) -> K::Output {
                kernel.run(simd)
            }
            // SAFETY: `isa` proves that the processor has avx2, fma and f16c.
            unsafe { with_avx2(kernel, avx2::Avx2::new_unchecked()) }
        }
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => {
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")]
            fn with_avx512<K: Kernel>(kernel: K, simd: avx512::Avx512) -> K::Output {
                kernel.run(simd)
            }
            // SAFETY: `isa` proves that the processor has these features.
            unsafe { with_avx512(kernel, avx512::Avx512::new_unchecked()) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Isa::Avx2 | Isa::Avx512 => unreachable!("nobody can prove that this machine has it"),
    }
}

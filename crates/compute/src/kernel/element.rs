//! Numbers as they are stored.
//!
//! A weight is often kept in 16 bits. Widening it to an f32 is exact, so a kernel that reads it as it lies, and widens it on
//! its way into a register, computes what it would from the f32, to the bit, and reads half as much. A small integer is one,
//! too.

use half::{bf16, f16};

use super::simd::Simd;

/// A number as it is stored: an f32, or fewer bits that stand for one.
pub trait Element: Copy + Send + Sync + 'static {
    /// The f32, exactly.
    fn widen(self) -> f32;

    /// The nearest of these numbers.
    fn narrow(x: f32) -> Self;

    /// A vector of them.
    ///
    /// # Safety
    /// `p` must be valid for reading `S::LANES` values.
    unsafe fn load<S: Simd>(simd: S, p: *const Self) -> S::V;
}

impl Element for f32 {
    #[inline(always)]
    fn narrow(x: f32) -> Self {
        x
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }

    #[inline(always)]
    unsafe fn load<S: Simd>(simd: S, p: *const f32) -> S::V {
        // SAFETY: passed on.
        unsafe { simd.load(p) }
    }
}

impl Element for bf16 {
    #[inline(always)]
    fn narrow(x: f32) -> Self {
        bf16::from_f32(x)
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        // The upper half of an f32.
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline(always)]
    unsafe fn load<S: Simd>(simd: S, p: *const bf16) -> S::V {
        // SAFETY: passed on.
        unsafe { simd.load_bf16(p) }
    }
}

impl Element for f16 {
    #[inline(always)]
    fn narrow(x: f32) -> Self {
        f16::from_f32(x)
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }

    #[inline(always)]
    unsafe fn load<S: Simd>(simd: S, p: *const f16) -> S::V {
        // SAFETY: passed on.
        unsafe { simd.load_f16(p) }
    }
}

impl Element for i8 {
    #[inline(always)]
    fn narrow(x: f32) -> Self {
        x as i8
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        self.into()
    }

    #[inline(always)]
    unsafe fn load<S: Simd>(simd: S, p: *const i8) -> S::V {
        // SAFETY: passed on.
        unsafe { simd.load_i8(p) }
    }
}

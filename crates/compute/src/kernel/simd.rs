//! The one vector trait: just the operations that the kernels use.
//!
//! Another instruction set is another file with an implementation. What differs is said by constants (`LANES`, `ROWS`) and by the
//! products at the end, which an implementation may replace as a whole: a matrix unit that takes pairs of bf16 would do so in
//! [`gemm_in_place`](Simd::gemm_in_place) for `E = bf16`.

use half::{bf16, f16};

use super::element::Element;
use super::gemm::{Groups, Left, Out, Place, Right, Store};
use super::matrix::Strided;

/// Vectors of `LANES` f32 values of one instruction set.
///
/// A value of an implementing type is the proof that the machine has that instruction set: [`super::dispatch`]
/// makes one only after it has asked the processor. That is what makes the methods safe to call.
pub trait Simd: Copy + Send + Sync + 'static {
    /// A vector.
    type V: Copy;
    /// Values per vector.
    const LANES: usize;
    /// Rows of the register tile of the matrix product, at most [`super::gemm::MAX_ROWS`].
    const ROWS: usize;

    fn splat(self, x: f32) -> Self::V;
    /// # Safety
    /// `p` must be valid for reading `LANES` values.
    unsafe fn load(self, p: *const f32) -> Self::V;
    /// [`load`](Simd::load), widened.
    ///
    /// # Safety
    /// `p` must be valid for reading `LANES` values.
    unsafe fn load_bf16(self, p: *const bf16) -> Self::V;
    /// [`load`](Simd::load), widened.
    ///
    /// # Safety
    /// `p` must be valid for reading `LANES` values.
    unsafe fn load_f16(self, p: *const f16) -> Self::V;
    /// [`load`](Simd::load), widened.
    ///
    /// # Safety
    /// `p` must be valid for reading `LANES` values.
    unsafe fn load_i8(self, p: *const i8) -> Self::V;
    /// # Safety
    /// `p` must be valid for writing `LANES` values.
    unsafe fn store(self, p: *mut f32, v: Self::V);
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a·b + c`
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// What rounding has left of a product: `a·b − product`.
    fn residue(self, a: Self::V, b: Self::V, product: Self::V) -> Self::V;
    /// The larger; `b` where either is NaN.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// The smaller; `b` where either is NaN.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// `yes` where x ≤ bound, `no` elsewhere and for NaN.
    fn pick(self, x: Self::V, bound: Self::V, yes: Self::V, no: Self::V) -> Self::V;
    /// `yes` where `keep` is true, `no` elsewhere.
    ///
    /// # Safety
    /// `keep` must be valid for reading `LANES` values.
    unsafe fn keep(self, keep: *const bool, yes: Self::V, no: Self::V) -> Self::V;
    /// 2ˣ for x ≤ 127: relative error below 3e-7, 0 for x < [`TINY`], NaN for NaN.
    fn exp2(self, x: Self::V) -> Self::V;
    fn sum(self, v: Self::V) -> f32;
    /// The sums of four vectors, in half the steps of four [`sum`](Simd::sum)s; each is the same to the bit whatever the others are.
    fn sums(self, v: [Self::V; 4]) -> [f32; 4];
    fn largest(self, v: Self::V) -> f32;
    /// Transposes the `LANES` × `LANES` block whose row i starts at `src.0[i·src.1]`, scales it, and writes row i to
    /// `dst.0[i·dst.1]`. Of its rows there are `rows`; the others are zeros.
    ///
    /// # Safety
    /// The rows of `src` must be valid for reading `LANES` values, every one of the `LANES` rows of `dst` for writing as many.
    unsafe fn transpose<E: Element>(self, src: (*const E, usize), rows: usize, scale: f32, dst: (*mut f32, usize));
    /// Asks for the cache line at `p`, which may be any address.
    fn prefetch<E>(self, p: *const E);
    /// The same, into the second cache only.
    fn prefetch_l2(self, p: *const f32);
    /// [`super::gemm::gemm`], compiled once for this instruction set.
    fn gemm(self, size: (usize, usize, usize), a: Left, b: Right, c: Out, store: Store);
    /// [`super::gemm::gemm_groups`], compiled once for this instruction set.
    fn gemm_groups(self, size: (usize, usize, usize), a: (Groups, &[f32]), b: Right, c: Out, place: Option<Place>);
    /// [`super::gemm::gemm_in_place`], compiled once for this instruction set and element type.
    fn gemm_in_place<E: Element>(self, rows: usize, a: Left, b: Strided<E>, c: Out);
}

/// The exponent below which a power counts as 0. Beside a sum that is at least 1 it could be lost eighty times over; but a
/// product with it might be subnormal, and each of these costs the processor a hundred cycles.
pub const TINY: f32 = -100.0;

/// 2ᶠ ≈ Σ cᵢ fⁱ on [0, 1): the degree-5 minimax polynomial of the relative error with c₀ = 1, so that 2⁰ is exactly 1; 8.3e-8
/// before rounding.
pub const EXP2: [f32; 6] = [1.0, 0.693_151_3, 0.240_164_44, 0.055_799_913, 0.009_017_031, 0.001_867_13];

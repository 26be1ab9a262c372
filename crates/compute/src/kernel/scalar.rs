//! Four lanes of plain f32: runs everywhere, and the compiler turns it into whatever baseline the target has.

use half::{bf16, f16};

use super::element::Element;
use super::gemm::{self, Groups, Left, Out, Place, Right, Store};
use super::matrix::Strided;
use super::simd::{EXP2, Simd, TINY};

#[derive(Clone, Copy)]
pub struct Scalar;

#[inline(always)]
fn zip(a: [f32; 4], b: [f32; 4], f: impl Fn(f32, f32) -> f32) -> [f32; 4] {
    [f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])]
}

/// 2ˣ, branch-free so that loops over it vectorise.
#[inline(always)]
fn exp2(x: f32) -> f32 {
    // −127 gives the bit pattern of zero. NaN is not less than anything.
    let x = if x < TINY { -127.0 } else { x };
    let floor = x.floor();
    let f = x - floor;
    let p = EXP2[1] + f * (EXP2[2] + f * (EXP2[3] + f * (EXP2[4] + f * EXP2[5])));
    // `as` saturates and takes NaN to 0; the product with a NaN polynomial is NaN all the same.
    (EXP2[0] + f * p) * f32::from_bits((floor as i32).wrapping_add(127).cast_unsigned() << 23)
}

impl Simd for Scalar {
    type V = [f32; 4];
    const LANES: usize = 4;
    const ROWS: usize = 4;

    #[inline(always)]
    fn splat(self, x: f32) -> [f32; 4] {
        [x; 4]
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> [f32; 4] {
        // SAFETY: the caller vouches for four readable values.
        unsafe { p.cast::<[f32; 4]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, p: *const bf16) -> [f32; 4] {
        // SAFETY: the caller vouches for four readable values.
        unsafe { p.cast::<[bf16; 4]>().read_unaligned() }.map(Element::widen)
    }
    #[inline(always)]
    unsafe fn load_f16(self, p: *const f16) -> [f32; 4] {
        // SAFETY: the caller vouches for four readable values.
        unsafe { p.cast::<[f16; 4]>().read_unaligned() }.map(Element::widen)
    }
    #[inline(always)]
    unsafe fn load_i8(self, p: *const i8) -> [f32; 4] {
        // SAFETY: the caller vouches for four readable values.
        unsafe { p.cast::<[i8; 4]>().read() }.map(Element::widen)
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: [f32; 4]) {
        // SAFETY: the caller vouches for four writable values.
        unsafe { p.cast::<[f32; 4]>().write_unaligned(v) }
    }
    #[inline(always)]
    fn add(self, a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        zip(a, b, |x, y| x + y)
    }
    #[inline(always)]
    fn sub(self, a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        zip(a, b, |x, y| x - y)
    }
    #[inline(always)]
    fn mul(self, a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        zip(a, b, |x, y| x * y)
    }
    #[inline(always)]
    fn div(self, a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        zip(a, b, |x, y| x / y)
    }
    #[inline(always)]
    fn fma(self, a: [f32; 4], b: [f32; 4], c: [f32; 4]) -> [f32; 4] {
        // Not `mul_add`: without the instruction that is a library call per lane.
        self.add(self.mul(a, b), c)
    }
    #[inline(always)]
    fn residue(self, a: [f32; 4], b: [f32; 4], product: [f32; 4]) -> [f32; 4] {
        // A product of two f32 is exact in f64.
        std::array::from_fn(|i| (f64::from(a[i]) * f64::from(b[i]) - f64::from(product[i])) as f32)
    }
    #[inline(always)]
    fn max(self, a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        zip(a, b, |x, y| if x > y { x } else { y })
    }
    #[inline(always)]
    fn min(self, a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        zip(a, b, |x, y| if x < y { x } else { y })
    }
    #[inline(always)]
    fn pick(self, x: [f32; 4], bound: [f32; 4], yes: [f32; 4], no: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| if x[i] <= bound[i] { yes[i] } else { no[i] })
    }
    #[inline(always)]
    unsafe fn keep(self, keep: *const bool, yes: [f32; 4], no: [f32; 4]) -> [f32; 4] {
        // SAFETY: the caller vouches for four readable values.
        let keep = unsafe { keep.cast::<[bool; 4]>().read() };
        std::array::from_fn(|i| if keep[i] { yes[i] } else { no[i] })
    }
    #[inline(always)]
    fn exp2(self, x: [f32; 4]) -> [f32; 4] {
        x.map(exp2)
    }
    #[inline(always)]
    fn sum(self, v: [f32; 4]) -> f32 {
        (v[0] + v[1]) + (v[2] + v[3])
    }
    #[inline(always)]
    fn sums(self, v: [[f32; 4]; 4]) -> [f32; 4] {
        [self.sum(v[0]), self.sum(v[1]), self.sum(v[2]), self.sum(v[3])]
    }
    #[inline(always)]
    fn largest(self, v: [f32; 4]) -> f32 {
        v[0].max(v[1]).max(v[2].max(v[3]))
    }
    #[inline(always)]
    unsafe fn transpose<E: Element>(
        self,
        (src, stride): (*const E, usize),
        rows: usize,
        scale: f32,
        (dst, dst_stride): (*mut f32, usize),
    ) {
        for i in 0..4 {
            for j in 0..4 {
                // SAFETY: the caller vouches for the rows of four values on both sides.
                unsafe {
                    let value = if i < rows { (*src.add(i * stride + j)).widen() * scale } else { 0.0 };
                    *dst.add(j * dst_stride + i) = value;
                }
            }
        }
    }
    #[inline(always)]
    fn prefetch<E>(self, _: *const E) {}
    #[inline(always)]
    fn prefetch_l2(self, _: *const f32) {}
    #[inline(never)]
    fn gemm(self, size: (usize, usize, usize), a: Left, b: Right, c: Out, store: Store) {
        gemm::gemm(self, size, a, b, c, store);
    }
    #[inline(never)]
    fn gemm_groups(self, size: (usize, usize, usize), a: (Groups, &[f32]), b: Right, c: Out, place: Option<Place>) {
        gemm::gemm_groups(self, size, a, b, c, place);
    }
    #[inline(never)]
    fn gemm_in_place<E: Element>(self, rows: usize, a: Left, b: Strided<E>, c: Out) {
        gemm::gemm_in_place(self, rows, a, b, c);
    }
}

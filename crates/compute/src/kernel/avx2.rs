//! Eight lanes, 16 registers.

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::element::Element;
use super::gemm::{self, Groups, Left, Out, Place, Right, Store};
use super::matrix::Strided;
use super::simd::{EXP2, Simd, TINY};

/// Proof that the processor has AVX2, FMA and F16C.
#[derive(Clone, Copy)]
pub struct Avx2(());

impl Avx2 {
    /// # Safety
    /// The processor must have avx2, fma and f16c.
    #[inline(always)]
    pub unsafe fn new_unchecked() -> Self {
        Avx2(())
    }
}

// SAFETY, of every block below: `self` exists only where the processor has the instructions (see `new_unchecked`);
// the loads and stores take pointers that their callers vouch for.
#[expect(clippy::undocumented_unsafe_blocks, reason = "one reason for all, given above")]
impl Simd for Avx2 {
    type V = __m256;
    const LANES: usize = 8;
    // 6 × 2 accumulators, 2 vectors of the panel and 1 broadcast: 15 of 16 registers, 12 independent chains.
    const ROWS: usize = 6;

    #[inline(always)]
    fn splat(self, x: f32) -> __m256 {
        unsafe { _mm256_set1_ps(x) }
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> __m256 {
        unsafe { _mm256_loadu_ps(p) }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, p: *const bf16) -> __m256 {
        unsafe { _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast())))) }
    }
    #[inline(always)]
    unsafe fn load_f16(self, p: *const f16) -> __m256 {
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(p.cast())) }
    }
    #[inline(always)]
    unsafe fn load_i8(self, p: *const i8) -> __m256 {
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p.cast()))) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: __m256) {
        unsafe { _mm256_storeu_ps(p, v) }
    }
    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_add_ps(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_sub_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_mul_ps(a, b) }
    }
    #[inline(always)]
    fn div(self, a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_div_ps(a, b) }
    }
    #[inline(always)]
    fn fma(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn residue(self, a: __m256, b: __m256, product: __m256) -> __m256 {
        unsafe { _mm256_fmsub_ps(a, b, product) }
    }
    #[inline(always)]
    fn max(self, a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_max_ps(a, b) }
    }
    #[inline(always)]
    fn min(self, a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_min_ps(a, b) }
    }
    #[inline(always)]
    fn pick(self, x: __m256, bound: __m256, yes: __m256, no: __m256) -> __m256 {
        unsafe { _mm256_blendv_ps(no, yes, _mm256_cmp_ps::<_CMP_LE_OQ>(x, bound)) }
    }
    #[inline(always)]
    unsafe fn keep(self, keep: *const bool, yes: __m256, no: __m256) -> __m256 {
        unsafe {
            let bytes = _mm_loadl_epi64(keep.cast());
            let hidden = _mm256_cmpeq_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_setzero_si256());
            _mm256_blendv_ps(yes, no, _mm256_castsi256_ps(hidden))
        }
    }
    #[inline(always)]
    fn exp2(self, x: __m256) -> __m256 {
        unsafe {
            // NaN is not less than anything. What is too small becomes −127, which gives the bit pattern of zero.
            let large = _mm256_cmp_ps::<_CMP_NLT_UQ>(x, _mm256_set1_ps(TINY));
            let x = _mm256_blendv_ps(_mm256_set1_ps(-127.0), x, large);
            let floor = _mm256_floor_ps(x);
            let f = _mm256_sub_ps(x, floor);
            let mut p = _mm256_set1_ps(EXP2[5]);
            for c in EXP2[..5].iter().rev() {
                p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(*c));
            }
            let n = _mm256_add_epi32(_mm256_cvtps_epi32(floor), _mm256_set1_epi32(127));
            _mm256_mul_ps(p, _mm256_castsi256_ps(_mm256_slli_epi32::<23>(n)))
        }
    }
    #[inline(always)]
    fn sum(self, v: __m256) -> f32 {
        unsafe {
            let v = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let v = _mm_add_ps(v, _mm_movehl_ps(v, v));
            _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)))
        }
    }
    #[inline(always)]
    fn sums(self, [a, b, c, d]: [__m256; 4]) -> [f32; 4] {
        unsafe {
            // Per 128 bits: halves of a and b, of c and d, then all four.
            let ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            let cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
            let all = _mm256_add_ps(_mm256_shuffle_ps::<0x44>(ab, cd), _mm256_shuffle_ps::<0xee>(ab, cd));
            let mut sums = [0.0; 4];
            let total = _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps::<1>(all));
            _mm_storeu_ps(sums.as_mut_ptr(), total);
            sums
        }
    }
    #[inline(always)]
    fn largest(self, v: __m256) -> f32 {
        unsafe {
            let v = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let v = _mm_max_ps(v, _mm_movehl_ps(v, v));
            _mm_cvtss_f32(_mm_max_ss(v, _mm_movehdup_ps(v)))
        }
    }
    #[inline(always)]
    unsafe fn transpose<E: Element>(
        self,
        (src, stride): (*const E, usize),
        rows: usize,
        scale: f32,
        (dst, dst_stride): (*mut f32, usize),
    ) {
        unsafe {
            let scale = _mm256_set1_ps(scale);
            let mut r = [_mm256_setzero_ps(); 8];
            for i in 0..8 {
                if i < rows {
                    r[i] = _mm256_mul_ps(E::load(self, src.add(i * stride)), scale);
                }
            }
            // As in AVX-512: 4 × 4 blocks within the 128-bit lanes first, then the 2 × 2 grid of lanes.
            let mut t = [_mm256_setzero_ps(); 8];
            for g in 0..2 {
                let (a, b, c, d) = (r[4 * g], r[4 * g + 1], r[4 * g + 2], r[4 * g + 3]);
                let lo0 = _mm256_castps_pd(_mm256_unpacklo_ps(a, b));
                let lo1 = _mm256_castps_pd(_mm256_unpacklo_ps(c, d));
                let hi0 = _mm256_castps_pd(_mm256_unpackhi_ps(a, b));
                let hi1 = _mm256_castps_pd(_mm256_unpackhi_ps(c, d));
                t[4 * g] = _mm256_castpd_ps(_mm256_unpacklo_pd(lo0, lo1));
                t[4 * g + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(lo0, lo1));
                t[4 * g + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(hi0, hi1));
                t[4 * g + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(hi0, hi1));
            }
            for c in 0..4 {
                _mm256_storeu_ps(dst.add(c * dst_stride), _mm256_permute2f128_ps::<0x20>(t[c], t[4 + c]));
                _mm256_storeu_ps(dst.add((4 + c) * dst_stride), _mm256_permute2f128_ps::<0x31>(t[c], t[4 + c]));
            }
        }
    }
    #[inline(always)]
    fn prefetch<E>(self, p: *const E) {
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
    }
    #[inline(always)]
    fn prefetch_l2(self, p: *const f32) {
        unsafe { _mm_prefetch::<_MM_HINT_T1>(p.cast()) }
    }
    #[inline(always)]
    fn gemm(self, size: (usize, usize, usize), a: Left, b: Right, c: Out, store: Store) {
        #[target_feature(enable = "avx2,fma")]
        fn compiled(simd: Avx2, size: (usize, usize, usize), a: Left, b: Right, c: Out, store: Store) {
            gemm::gemm(simd, size, a, b, c, store);
        }
        unsafe { compiled(self, size, a, b, c, store) }
    }
    #[inline(always)]
    fn gemm_groups(self, size: (usize, usize, usize), a: (Groups, &[f32]), b: Right, c: Out, place: Option<Place>) {
        #[target_feature(enable = "avx2,fma")]
        fn compiled(
            simd: Avx2,
            size: (usize, usize, usize),
            a: (Groups, &[f32]),
            b: Right,
            c: Out,
            place: Option<Place>,
        ) {
            gemm::gemm_groups(simd, size, a, b, c, place);
        }
        unsafe { compiled(self, size, a, b, c, place) }
    }
    #[inline(always)]
    fn gemm_in_place<E: Element>(self, rows: usize, a: Left, b: Strided<E>, c: Out) {
        #[target_feature(enable = "avx2,fma,f16c")]
        fn compiled<E: Element>(simd: Avx2, rows: usize, a: Left, b: Strided<E>, c: Out) {
            gemm::gemm_in_place(simd, rows, a, b, c);
        }
        unsafe { compiled(self, rows, a, b, c) }
    }
}

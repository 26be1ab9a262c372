//! Sixteen lanes, 32 registers.

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::element::Element;
use super::gemm::{self, Groups, Left, Out, Place, Right, Store};
use super::matrix::Strided;
use super::simd::{EXP2, Simd, TINY};

/// Proof that the processor has AVX-512 F, BW, DQ and VL.
#[derive(Clone, Copy)]
pub struct Avx512(());

impl Avx512 {
    /// # Safety
    /// The processor must have avx512f, avx512bw, avx512dq and avx512vl.
    #[inline(always)]
    pub unsafe fn new_unchecked() -> Self {
        Avx512(())
    }
}

// SAFETY, of every block below: `self` exists only where the processor has the instructions (see `new_unchecked`);
// the loads and stores take pointers that their callers vouch for.
#[expect(clippy::undocumented_unsafe_blocks, reason = "one reason for all, given above")]
impl Simd for Avx512 {
    type V = __m512;
    const LANES: usize = 16;
    // 12 × 2 accumulators, 2 vectors of the panel and 1 broadcast: 27 of 32 registers, 24 independent chains.
    const ROWS: usize = 12;

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        unsafe { _mm512_set1_ps(x) }
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> __m512 {
        unsafe { _mm512_loadu_ps(p) }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, p: *const bf16) -> __m512 {
        unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p.cast())))) }
    }
    #[inline(always)]
    unsafe fn load_f16(self, p: *const f16) -> __m512 {
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(p.cast())) }
    }
    #[inline(always)]
    unsafe fn load_i8(self, p: *const i8) -> __m512 {
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p.cast()))) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: __m512) {
        unsafe { _mm512_storeu_ps(p, v) }
    }
    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_div_ps(a, b) }
    }
    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn residue(self, a: __m512, b: __m512, product: __m512) -> __m512 {
        unsafe { _mm512_fmsub_ps(a, b, product) }
    }
    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_max_ps(a, b) }
    }
    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_min_ps(a, b) }
    }
    #[inline(always)]
    fn pick(self, x: __m512, bound: __m512, yes: __m512, no: __m512) -> __m512 {
        unsafe { _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(x, bound), no, yes) }
    }
    #[inline(always)]
    unsafe fn keep(self, keep: *const bool, yes: __m512, no: __m512) -> __m512 {
        unsafe {
            let bytes = _mm_loadu_si128(keep.cast());
            _mm512_mask_blend_ps(_mm_test_epi8_mask(bytes, bytes), no, yes)
        }
    }
    #[inline(always)]
    fn exp2(self, x: __m512) -> __m512 {
        // `vreduceps` gives x − ⌊x⌋ (0 for ±∞) and `vscalefps` multiplies by 2^⌊x⌋. NaN is not less than anything.
        unsafe {
            let f = _mm512_reduce_ps::<1>(x);
            let mut p = _mm512_set1_ps(EXP2[5]);
            for c in EXP2[..5].iter().rev() {
                p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(*c));
            }
            let large = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, _mm512_set1_ps(TINY));
            _mm512_maskz_scalef_ps(large, p, x)
        }
    }
    #[inline(always)]
    fn sum(self, v: __m512) -> f32 {
        unsafe { _mm512_reduce_add_ps(v) }
    }
    #[inline(always)]
    fn sums(self, [a, b, c, d]: [__m512; 4]) -> [f32; 4] {
        unsafe {
            // Per 128 bits: halves of a and b, of c and d, then all four.
            let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
            let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
            let all = _mm512_add_ps(_mm512_shuffle_ps::<0x44>(ab, cd), _mm512_shuffle_ps::<0xee>(ab, cd));
            let half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps::<1>(all));
            let mut sums = [0.0; 4];
            let total = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps::<1>(half));
            _mm_storeu_ps(sums.as_mut_ptr(), total);
            sums
        }
    }
    #[inline(always)]
    fn largest(self, v: __m512) -> f32 {
        unsafe { _mm512_reduce_max_ps(v) }
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
            let scale = _mm512_set1_ps(scale);
            let mut r = [_mm512_setzero_ps(); 16];
            for i in 0..16 {
                if i < rows {
                    r[i] = _mm512_mul_ps(E::load(self, src.add(i * stride)), scale);
                }
            }
            // Pairs of rows, then quadruples: after these, vector 4g + c holds column c of each 4-column group, for the
            // rows 4g..4g+4.
            let mut t = [_mm512_setzero_ps(); 16];
            for g in 0..4 {
                let (a, b, c, d) = (r[4 * g], r[4 * g + 1], r[4 * g + 2], r[4 * g + 3]);
                let lo0 = _mm512_castps_pd(_mm512_unpacklo_ps(a, b));
                let lo1 = _mm512_castps_pd(_mm512_unpacklo_ps(c, d));
                let hi0 = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
                let hi1 = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
                t[4 * g] = _mm512_castpd_ps(_mm512_unpacklo_pd(lo0, lo1));
                t[4 * g + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(lo0, lo1));
                t[4 * g + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(hi0, hi1));
                t[4 * g + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(hi0, hi1));
            }
            // Then the 4 × 4 grid of 128-bit lanes is transposed for each c.
            for c in 0..4 {
                let (a, b, e, f) = (t[c], t[4 + c], t[8 + c], t[12 + c]);
                let ab02 = _mm512_shuffle_f32x4::<0x88>(a, b);
                let ab13 = _mm512_shuffle_f32x4::<0xdd>(a, b);
                let ef02 = _mm512_shuffle_f32x4::<0x88>(e, f);
                let ef13 = _mm512_shuffle_f32x4::<0xdd>(e, f);
                _mm512_storeu_ps(dst.add(c * dst_stride), _mm512_shuffle_f32x4::<0x88>(ab02, ef02));
                _mm512_storeu_ps(dst.add((4 + c) * dst_stride), _mm512_shuffle_f32x4::<0x88>(ab13, ef13));
                _mm512_storeu_ps(dst.add((8 + c) * dst_stride), _mm512_shuffle_f32x4::<0xdd>(ab02, ef02));
                _mm512_storeu_ps(dst.add((12 + c) * dst_stride), _mm512_shuffle_f32x4::<0xdd>(ab13, ef13));
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
        #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")]
        fn compiled(simd: Avx512, size: (usize, usize, usize), a: Left, b: Right, c: Out, store: Store) {
            gemm::gemm(simd, size, a, b, c, store);
        }
        unsafe { compiled(self, size, a, b, c, store) }
    }
    #[inline(always)]
    fn gemm_groups(self, size: (usize, usize, usize), a: (Groups, &[f32]), b: Right, c: Out, place: Option<Place>) {
        #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")]
        fn compiled(
            simd: Avx512,
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
        #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")]
        fn compiled<E: Element>(simd: Avx512, rows: usize, a: Left, b: Strided<E>, c: Out) {
            gemm::gemm_in_place(simd, rows, a, b, c);
        }
        unsafe { compiled(self, rows, a, b, c) }
    }
}

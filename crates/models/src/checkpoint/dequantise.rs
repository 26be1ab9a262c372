//! Stored numbers to f32.
//!
//! A quantised row is a run of blocks. Each block holds small whole numbers q and the scales they share; what it
//! stands for is given at each function, as llama.cpp defines it. All are little-endian, and f16 where not said
//! otherwise. The two nibbles of a byte are *not* neighbours: the low ones come first, then the high ones.
//!
//! The K types share their layout of scales: eight pairs (sc, m) of 6 bits in 12 bytes, see [`scale_and_min`].

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::Dtype;

/// Converts whole blocks: `bytes` of type `dtype` into `out`, whose length they must fill.
///
/// # Panics
/// If the lengths do not fit or the type holds no numbers; [`super::Tensor`] checks both.
pub(crate) fn dequantise(dtype: Dtype, bytes: &[u8], out: &mut [f32]) {
    match dtype {
        Dtype::F64 => {
            for (x, b) in out.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *x = f64::from_le_bytes(*b) as f32;
            }
        }
        Dtype::F32 => {
            for (x, b) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *x = f32::from_le_bytes(*b);
            }
        }
        Dtype::BF16 => {
            for (x, b) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                *x = f32::from_bits(u32::from(u16::from_le_bytes(*b)) << 16);
            }
        }
        Dtype::F16 => half_to_f32(bytes, out),
        Dtype::Q4_0 => blocks::<18, 32>(bytes, out, q4_0),
        Dtype::Q4_1 => blocks::<20, 32>(bytes, out, q4_1),
        Dtype::Q5_0 => blocks::<22, 32>(bytes, out, q5_0),
        Dtype::Q5_1 => blocks::<24, 32>(bytes, out, q5_1),
        Dtype::Q8_0 => blocks::<34, 32>(bytes, out, q8_0),
        Dtype::Q4_K => blocks::<144, 256>(bytes, out, q4_k),
        Dtype::Q5_K => blocks::<176, 256>(bytes, out, q5_k),
        Dtype::Q6_K => blocks::<210, 256>(bytes, out, q6_k),
        Dtype::Other(name) => unreachable!("{name} is not read as numbers"),
    }
}

#[inline(always)]
fn blocks<const BYTES: usize, const NUMBERS: usize>(
    bytes: &[u8],
    out: &mut [f32],
    block: impl Fn(&[u8; BYTES], &mut [f32; NUMBERS]),
) {
    for (b, x) in bytes.as_chunks::<BYTES>().0.iter().zip(out.as_chunks_mut::<NUMBERS>().0) {
        block(b, x);
    }
}

/// A slice at a time, because only then does `half` use the processor's own conversion.
fn half_to_f32(bytes: &[u8], out: &mut [f32]) {
    let mut halves = [f16::ZERO; 512];
    for (bytes, out) in bytes.chunks(2 * halves.len()).zip(out.chunks_mut(halves.len())) {
        let halves = &mut halves[..out.len()];
        for (x, b) in halves.iter_mut().zip(bytes.as_chunks::<2>().0) {
            *x = f16::from_le_bytes(*b);
        }
        halves.convert_to_f32_slice(out);
    }
}

#[inline(always)]
fn half_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// d, 16 bytes of nibbles: d·(q − 8).
fn q4_0(b: &[u8; 18], x: &mut [f32; 32]) {
    let d = half_at(b, 0);
    for (i, q) in b[2..].iter().enumerate() {
        x[i] = d * (f32::from(q & 15) - 8.0);
        x[i + 16] = d * (f32::from(q >> 4) - 8.0);
    }
}

/// d, m, 16 bytes of nibbles: d·q + m.
fn q4_1(b: &[u8; 20], x: &mut [f32; 32]) {
    let (d, m) = (half_at(b, 0), half_at(b, 2));
    for (i, q) in b[4..].iter().enumerate() {
        x[i] = d * f32::from(q & 15) + m;
        x[i + 16] = d * f32::from(q >> 4) + m;
    }
}

/// d, 32 fifth bits, 16 bytes of nibbles: d·(q − 16).
fn q5_0(b: &[u8; 22], x: &mut [f32; 32]) {
    let d = half_at(b, 0);
    let high = u32::from_le_bytes([b[2], b[3], b[4], b[5]]);
    for (i, q) in b[6..].iter().enumerate() {
        x[i] = d * (f32::from(q & 15 | fifth(high, i)) - 16.0);
        x[i + 16] = d * (f32::from(q >> 4 | fifth(high, i + 16)) - 16.0);
    }
}

/// d, m, 32 fifth bits, 16 bytes of nibbles: d·q + m.
fn q5_1(b: &[u8; 24], x: &mut [f32; 32]) {
    let (d, m) = (half_at(b, 0), half_at(b, 2));
    let high = u32::from_le_bytes([b[4], b[5], b[6], b[7]]);
    for (i, q) in b[8..].iter().enumerate() {
        x[i] = d * f32::from(q & 15 | fifth(high, i)) + m;
        x[i + 16] = d * f32::from(q >> 4 | fifth(high, i + 16)) + m;
    }
}

/// Bit `i` of the 32, as the fifth bit of a number.
#[inline(always)]
fn fifth(high: u32, i: usize) -> u8 {
    ((high >> i & 1) << 4) as u8
}

/// d, 32 signed bytes: d·q.
fn q8_0(b: &[u8; 34], x: &mut [f32; 32]) {
    let d = half_at(b, 0);
    for (x, q) in x.iter_mut().zip(&b[2..]) {
        *x = d * f32::from(q.cast_signed());
    }
}

/// d, dmin, 12 bytes of scales, 128 bytes of nibbles. Group j of 32 numbers: d·sc_j·q − dmin·m_j. Two groups share 32
/// bytes, the first in the low nibbles.
fn q4_k(b: &[u8; 144], x: &mut [f32; 256]) {
    let (d, dmin) = (half_at(b, 0), half_at(b, 2));
    for (j, x) in x.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (sc, m) = scale_and_min(&b[4..16], j);
        let (d, m) = (d * sc, dmin * m);
        for (x, q) in x.iter_mut().zip(&b[16 + j / 2 * 32..]) {
            *x = d * f32::from(q >> (j % 2 * 4) & 15) - m;
        }
    }
}

/// As [`q4_k`], with 32 bytes of fifth bits between the scales and the nibbles: bit j of byte i is number i of group
/// j.
fn q5_k(b: &[u8; 176], x: &mut [f32; 256]) {
    let (d, dmin) = (half_at(b, 0), half_at(b, 2));
    for (j, x) in x.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (sc, m) = scale_and_min(&b[4..16], j);
        let (d, m) = (d * sc, dmin * m);
        for ((x, q), high) in x.iter_mut().zip(&b[48 + j / 2 * 32..]).zip(&b[16..48]) {
            *x = d * f32::from(q >> (j % 2 * 4) & 15 | (high >> j & 1) << 4) - m;
        }
    }
}

/// 128 bytes of nibbles, 64 bytes of upper bit pairs, 16 signed scales, d. Group j of 16 numbers: d·sc_j·(q − 32). Each
/// half of the block is its own: of 64 bytes of nibbles l and 32 of pairs h, number 32·k + i has nibble k / 2 of
/// l[32·(k % 2) + i] and pair k of h[i].
fn q6_k(b: &[u8; 210], x: &mut [f32; 256]) {
    let d = half_at(b, 208);
    for (half, x) in x.as_chunks_mut::<128>().0.iter_mut().enumerate() {
        let (low, high) = (&b[64 * half..], &b[128 + 32 * half..]);
        let scales = &b[192 + 8 * half..];
        for (k, x) in x.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            for (i, x) in x.iter_mut().enumerate() {
                let q = low[32 * (k % 2) + i] >> (k / 2 * 4) & 15 | (high[i] >> (2 * k) & 3) << 4;
                let sc = f32::from(scales[2 * k + i / 16].cast_signed());
                *x = d * sc * (f32::from(q) - 32.0);
            }
        }
    }
}

/// Pair j of the eight (sc, m) in 12 bytes s. The first four stand whole in the low six bits of s[j] and s[j + 4];
/// the others have their low four bits in s[j + 4] and their high two in the top of s[j − 4] and s[j].
#[inline(always)]
fn scale_and_min(s: &[u8], j: usize) -> (f32, f32) {
    let (sc, m) = if j < 4 {
        (s[j] & 63, s[j + 4] & 63)
    } else {
        (s[j + 4] & 15 | s[j - 4] >> 6 << 4, s[j + 4] >> 4 | s[j] >> 6 << 4)
    };
    (f32::from(sc), f32::from(m))
}

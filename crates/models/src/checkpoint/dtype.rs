use std::fmt;

/// How the numbers of a tensor are stored.
///
/// The quantised ones are GGUF's: a row is cut into blocks, and each block shares one or more scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(non_camel_case_types)]
#[non_exhaustive]
pub enum Dtype {
    /// IEEE double precision, rounded to single precision when it is read.
    F64,
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// The upper half of an F32.
    BF16,
    /// 32 of 4 bits: d·(q − 8).
    Q4_0,
    /// 32 of 4 bits: d·q + m.
    Q4_1,
    /// 32 of 5 bits: d·(q − 16).
    Q5_0,
    /// 32 of 5 bits: d·q + m.
    Q5_1,
    /// 32 of 8 bits: d·q.
    Q8_0,
    /// 256 of 4 bits in eight groups: d·sc·q − dmin·m.
    Q4_K,
    /// 256 of 5 bits in eight groups: d·sc·q − dmin·m.
    Q5_K,
    /// 256 of 6 bits in sixteen groups: d·sc·(q − 32).
    Q6_K,
    /// A type that is not read as numbers here: integers, truth values, 8-bit floats, further types of GGUF. Its name.
    Other(&'static str),
}

impl Dtype {
    /// The types that GGUF files may hold here, with GGUF's numbers for them.
    pub(crate) const GGUF: [(u32, Dtype); 12] = [
        (0, Dtype::F32),
        (1, Dtype::F16),
        (2, Dtype::Q4_0),
        (3, Dtype::Q4_1),
        (6, Dtype::Q5_0),
        (7, Dtype::Q5_1),
        (8, Dtype::Q8_0),
        (12, Dtype::Q4_K),
        (13, Dtype::Q5_K),
        (14, Dtype::Q6_K),
        (28, Dtype::F64),
        (30, Dtype::BF16),
    ];

    /// The other types of GGUF: their numbers, their names, and as for [`block`](Dtype::block) how many numbers make a block
    /// and how many bytes a block takes. Files that hold them are sound, and their other tensors can be read.
    pub(super) const GGUF_UNREAD: [(u32, &'static str, (usize, usize)); 26] = [
        (9, "Q8_1", (32, 36)),
        (10, "Q2_K", (256, 84)),
        (11, "Q3_K", (256, 110)),
        (15, "Q8_K", (256, 292)),
        (16, "IQ2_XXS", (256, 66)),
        (17, "IQ2_XS", (256, 74)),
        (18, "IQ3_XXS", (256, 98)),
        (19, "IQ1_S", (256, 50)),
        (20, "IQ4_NL", (32, 18)),
        (21, "IQ3_S", (256, 110)),
        (22, "IQ2_S", (256, 82)),
        (23, "IQ4_XS", (256, 136)),
        (24, "I8", (1, 1)),
        (25, "I16", (1, 2)),
        (26, "I32", (1, 4)),
        (27, "I64", (1, 8)),
        (29, "IQ1_M", (256, 56)),
        (31, "Q4_0_4_4", (32, 18)),
        (32, "Q4_0_4_8", (32, 18)),
        (33, "Q4_0_8_8", (32, 18)),
        (34, "TQ1_0", (256, 54)),
        (35, "TQ2_0", (256, 66)),
        (36, "IQ4_NL_4_4", (32, 18)),
        (37, "IQ4_NL_4_8", (32, 18)),
        (38, "IQ4_NL_8_8", (32, 18)),
        (39, "MXFP4", (32, 17)),
    ];

    /// How many numbers make a block, and how many bytes a block takes. `None` for what is not read as numbers.
    pub fn block(self) -> Option<(usize, usize)> {
        Some(match self {
            Dtype::F64 => (1, 8),
            Dtype::F32 => (1, 4),
            Dtype::F16 | Dtype::BF16 => (1, 2),
            Dtype::Q4_0 => (32, 18),
            Dtype::Q4_1 => (32, 20),
            Dtype::Q5_0 => (32, 22),
            Dtype::Q5_1 => (32, 24),
            Dtype::Q8_0 => (32, 34),
            Dtype::Q4_K => (256, 144),
            Dtype::Q5_K => (256, 176),
            Dtype::Q6_K => (256, 210),
            Dtype::Other(_) => return None,
        })
    }
}

impl From<safetensors::Dtype> for Dtype {
    fn from(dtype: safetensors::Dtype) -> Self {
        use safetensors::Dtype as S;
        match dtype {
            S::F32 => Dtype::F32,
            S::F16 => Dtype::F16,
            S::BF16 => Dtype::BF16,
            S::F64 => Dtype::F64,
            S::I64 => Dtype::Other("I64"),
            S::I32 => Dtype::Other("I32"),
            S::I16 => Dtype::Other("I16"),
            S::I8 => Dtype::Other("I8"),
            S::U64 => Dtype::Other("U64"),
            S::U32 => Dtype::Other("U32"),
            S::U16 => Dtype::Other("U16"),
            S::U8 => Dtype::Other("U8"),
            S::BOOL => Dtype::Other("BOOL"),
            S::F8_E4M3 => Dtype::Other("F8_E4M3"),
            S::F8_E5M2 => Dtype::Other("F8_E5M2"),
            _ => Dtype::Other("an unusual type"),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dtype::Other(name) => f.write_str(name),
            dtype => write!(f, "{dtype:?}"),
        }
    }
}

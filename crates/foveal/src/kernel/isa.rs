use std::fmt;
use std::sync::OnceLock;

use crate::Error;

/// An instruction set that the kernels are compiled for.
///
/// The best one that the machine has is used, unless the environment variable `FOVEAL_ISA` (`scalar`, `avx2`, `avx512`)
/// or [`Attention::isa`](crate::Attention::isa) says otherwise.
///
/// ```
/// use foveal::Isa;
/// println!("this machine runs {}", Isa::best());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// Portable code.
    Scalar,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
}

impl Isa {
    /// The best instruction set of this machine.
    pub fn best() -> Isa {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| {
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
                let wide = is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl");
                return if wide { Isa::Avx512 } else { Isa::Avx2 };
            }
            Isa::Scalar
        })
    }

    /// Every instruction set of this machine, the plainest first.
    ///
    /// ```
    /// # use foveal::Isa;
    /// assert_eq!(Isa::available().next(), Some(Isa::Scalar));
    /// ```
    pub fn available() -> impl Iterator<Item = Isa> {
        [Isa::Scalar, Isa::Avx2, Isa::Avx512].into_iter().filter(|isa| *isa <= Isa::best())
    }

    /// The set to use: the caller's wish, else the environment's, else the best. Nothing that the machine lacks.
    pub(crate) fn resolve(wish: Option<Isa>) -> Result<Isa, Error> {
        static FORCED: OnceLock<Result<Option<Isa>, Error>> = OnceLock::new();
        let wanted = match wish {
            Some(isa) => Some(isa),
            None => FORCED
                .get_or_init(|| std::env::var("FOVEAL_ISA").ok().map(|name| Isa::parse(&name)).transpose())
                .clone()?,
        };
        match wanted {
            Some(wanted) if wanted > Isa::best() => Err(Error::Isa { wanted, best: Isa::best() }),
            Some(wanted) => Ok(wanted),
            None => Ok(Isa::best()),
        }
    }

    fn parse(name: &str) -> Result<Isa, Error> {
        match name {
            "scalar" => Ok(Isa::Scalar),
            "avx2" => Ok(Isa::Avx2),
            "avx512" => Ok(Isa::Avx512),
            _ => Err(Error::IsaName { got: name.to_owned() }),
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for isa in [Isa::Scalar, Isa::Avx2, Isa::Avx512] {
            assert_eq!(Isa::parse(&isa.to_string()), Ok(isa));
        }
        let error = Isa::parse("sse9").unwrap_err();
        assert!(error.to_string().contains("scalar, avx2 or avx512"), "{error}");
    }
}

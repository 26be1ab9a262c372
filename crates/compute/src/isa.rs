use std::fmt;
use std::sync::OnceLock;

use crate::Error;

/// An instruction set that the kernels are compiled for.
///
/// The best one that the machine has is used, unless the environment variable `FOVEAL_ISA` (`scalar`, `avx2`, `avx512`)
/// or the caller says otherwise.
///
/// ```
/// use foveal_compute::Isa;
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
    /// # use foveal_compute::Isa;
    /// assert_eq!(Isa::available().next(), Some(Isa::Scalar));
    /// ```
    pub fn available() -> impl Iterator<Item = Isa> {
        [Isa::Scalar, Isa::Avx2, Isa::Avx512].into_iter().filter(|isa| *isa <= Isa::best())
    }

    /// The set to use: the caller's wish, else the environment's, else the best. Nothing that the machine lacks.
    ///
    /// # Errors
    /// If the machine lacks what is wanted, or the environment names nothing that there is.
    #[doc(hidden)]
    pub fn resolve(wish: Option<Isa>) -> Result<Supported, Error> {
        static FORCED: OnceLock<Result<Supported, Error>> = OnceLock::new();
        let best = Isa::best();
        match wish {
            Some(wanted) if wanted > best => Err(Error::Isa { wanted, best }),
            Some(wanted) => Ok(Supported(wanted)),
            None => FORCED
                .get_or_init(|| match std::env::var("FOVEAL_ISA").ok().map(|name| Isa::parse(&name)).transpose()? {
                    Some(wanted) if wanted > best => Err(Error::IsaVariable { wanted, best }),
                    wanted => Ok(Supported(wanted.unwrap_or(best))),
                })
                .clone(),
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

/// An instruction set that this machine has: the proof that code compiled for it may run. Only [`Isa::resolve`] makes one, after
/// it has asked the processor.
///
/// ```compile_fail
/// // Nobody else can make one.
/// let forged = foveal_compute::Supported(foveal_compute::Isa::Avx512);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct Supported(Isa);

impl Supported {
    /// Which one.
    pub fn isa(self) -> Isa {
        self.0
    }

    /// The best one of this machine.
    pub fn best() -> Supported {
        Supported(Isa::best())
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

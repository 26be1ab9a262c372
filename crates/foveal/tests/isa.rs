//! `FOVEAL_ISA` chooses the kernels. It is read once per process, so each value is tried in a process of its own.
#![allow(missing_docs)]

mod support;

use foveal::{Attention, Error, Isa};
use support::randn4;

/// What the environment asks for runs, and what it cannot mean is an error. Run by the test below with several values.
#[test]
fn the_environment_is_heeded() {
    let x = randn4(1, [1, 2, 100, 24]);
    let forced = Attention::new().forward(&x, &x, &x);
    let by = |isa| Attention::new().isa(isa).forward(&x, &x, &x).unwrap();
    match std::env::var("FOVEAL_ISA").as_deref() {
        Ok("scalar") => assert_eq!(forced.unwrap(), by(Isa::Scalar)),
        Ok("avx2") if Isa::best() >= Isa::Avx2 => assert_eq!(forced.unwrap(), by(Isa::Avx2)),
        Ok("avx512") if Isa::best() >= Isa::Avx512 => assert_eq!(forced.unwrap(), by(Isa::Avx512)),
        Ok("avx2" | "avx512") => assert!(matches!(forced, Err(Error::IsaVariable { .. }))),
        Ok(other) => assert_eq!(forced, Err(Error::IsaName { got: other.to_owned() })),
        Err(_) => assert_eq!(forced.unwrap(), by(Isa::best())),
    }
}

#[test]
fn every_value_of_the_variable() {
    for value in ["scalar", "avx2", "avx512", "neon", ""] {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_environment_is_heeded", "--quiet"])
            .env("FOVEAL_ISA", value)
            .status()
            .unwrap();
        assert!(status.success(), "FOVEAL_ISA={value:?}");
    }
}

//! Tests that run under mpirun start themselves on 1 to 4 ranks.
#![allow(dead_code, reason = "each test uses some of it")]

use std::ops::Range;
use std::process::Command;

use foveal_models::layer::Random;
use ndarray::{Array, Array4, Dimension, ShapeBuilder};

/// As a rank: runs `work`. Otherwise starts this program on `ranks` ranks each, one after the other.
pub fn on_ranks(ranks: Range<usize>, work: impl FnOnce()) {
    if foveal_cluster::launch::is_rank() {
        // Ranks of a test share the processors.
        rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("the first pool");
        return work();
    }
    // As test programs do: a filter that names no test here, or a list that is asked for.
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let own = std::env::current_exe().expect("this program has a path");
    for ranks in ranks {
        let mut command = foveal_cluster::launch::mpirun(ranks, &own).unwrap_or_else(|error| panic!("{error}"));
        let status = timed(&mut command).status().expect("mpirun starts");
        assert!(status.success(), "{ranks} ranks: {status}");
    }
}

/// The same command, ended after a while: ranks that wait for each other would wait for ever.
pub fn timed(command: &mut Command) -> Command {
    let mut timed = Command::new("timeout");
    timed.arg("600").arg(command.get_program()).args(command.get_args());
    timed.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    timed
}

/// Numbers of about normal distribution.
pub fn normal<S: ShapeBuilder<Dim = D>, D: Dimension>(seed: u64, shape: S) -> Array<f32, D> {
    Random::new(seed).normal(shape, 1.0)
}

/// `true` with this probability.
pub fn chance(seed: u64, probability: f64, shape: [usize; 4]) -> Array4<bool> {
    let mut random = Random::new(seed);
    Array4::from_shape_simple_fn(shape, || random.uniform() < probability)
}

/// |got − want| ≤ abs + rel·|want|, or both are not numbers.
#[track_caller]
pub fn assert_close<'a>(
    what: &str,
    got: impl IntoIterator<Item = &'a f32>,
    want: impl IntoIterator<Item = &'a f32>,
    (abs, rel): (f32, f32),
) {
    let (mut got, mut want) = (got.into_iter(), want.into_iter());
    loop {
        match (got.next(), want.next()) {
            (None, None) => return,
            (Some(got), Some(want)) => {
                let close =
                    got == want || (got.is_nan() && want.is_nan()) || (got - want).abs() <= abs + rel * want.abs();
                assert!(close, "{what}: {got}, expected {want}");
            }
            _ => panic!("{what}: not as many numbers"),
        }
    }
}

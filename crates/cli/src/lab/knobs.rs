//! The knobs of the experiments: what the flags say, checked.

use std::fmt;
use std::ops::RangeInclusive;

use anyhow::{Result, bail};

use super::Experiment;
use crate::arguments::Lab;

/// Numbers that a flag takes at most.
const MOST: usize = 12;

/// A flag that an experiment understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knob {
    Dims,
    Heads,
    Tokens,
    Seed,
    Model,
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Knob::Dims => "--dims",
            Knob::Heads => "--heads",
            Knob::Tokens => "--tokens",
            Knob::Seed => "--seed",
            Knob::Model => "--model",
        })
    }
}

/// Refuses flags that would change nothing.
pub fn check(lab: &Lab, experiment: &Experiment) -> Result<()> {
    let given = [
        (Knob::Dims, !lab.dims.is_empty()),
        (Knob::Heads, !lab.heads.is_empty()),
        (Knob::Tokens, !lab.tokens.is_empty()),
        (Knob::Seed, lab.seed.is_some()),
        (Knob::Model, lab.model.model.is_some()),
    ];
    let useless = |(knob, given): &(Knob, bool)| *given && !experiment.knobs.contains(knob);
    if let Some((knob, _)) = given.into_iter().find(useless) {
        let known: Vec<String> = experiment.knobs.iter().map(Knob::to_string).collect();
        match known.is_empty() {
            true => bail!("{knob} changes nothing in {}, whose numbers are fixed; leave it out", experiment.name),
            false => bail!("{knob} changes nothing in {}; it takes {}", experiment.name, known.join(", ")),
        }
    }
    if lab.alone.is_some() && !["memory", "family"].contains(&experiment.name) {
        bail!("--alone belongs to memory and family; leave it out");
    }
    Ok(())
}

/// One number of a flag.
pub fn one(knob: Knob, given: &[usize], default: usize, within: RangeInclusive<usize>) -> Result<usize> {
    match given {
        [] => Ok(default),
        [size] => bounded(knob, *size, &within),
        more => bail!("{knob} takes one number here, not {}", more.len()),
    }
}

/// The numbers of a flag, each once, from small to large.
pub fn some(knob: Knob, given: &[usize], default: &[usize], within: RangeInclusive<usize>) -> Result<Vec<usize>> {
    let mut sizes = if given.is_empty() { default } else { given }.to_vec();
    sizes.iter().try_for_each(|size| bounded(knob, *size, &within).map(drop))?;
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() > MOST {
        bail!("{knob} takes at most {MOST} numbers, not {}", sizes.len());
    }
    Ok(sizes)
}

/// A number that makes sense.
pub fn bounded(knob: Knob, size: usize, within: &RangeInclusive<usize>) -> Result<usize> {
    if !within.contains(&size) {
        bail!("{knob} {size} does not work here; take a number from {} to {}", within.start(), within.end());
    }
    Ok(size)
}

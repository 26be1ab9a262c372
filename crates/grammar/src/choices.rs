//! Choices at random, and how likely they were.

use crate::Random;

/// A stream of choices.
pub(crate) struct Choices<'a> {
    random: &'a mut Random,
    /// The product of the probabilities of all choices so far.
    pub(crate) probability: f64,
}

impl<'a> Choices<'a> {
    pub(crate) fn new(random: &'a mut Random) -> Self {
        Choices { random, probability: 1.0 }
    }

    /// One of some things, all equally likely; none if there are none.
    pub(crate) fn one_of<T: Copy>(&mut self, things: &[T]) -> Option<T> {
        self.probability /= things.len().max(1) as f64;
        things.get(self.random.below(things.len())).copied()
    }

    /// One of some things, those that are common six times as likely as others; none if there are none.
    pub(crate) fn favoured<T: Copy>(&mut self, things: &[T], common: impl Fn(&T) -> bool) -> Option<T> {
        const MORE: usize = 6;
        let weight = |thing: &T| if common(thing) { MORE } else { 1 };
        let total: usize = things.iter().map(weight).sum();
        let mut left = self.random.below(total);
        for thing in things {
            if left < weight(thing) {
                self.probability *= weight(thing) as f64 / total as f64;
                return Some(*thing);
            }
            left -= weight(thing);
        }
        None
    }

    /// One of some things by their weights; none if there are none.
    pub(crate) fn weighted<T: Copy>(&mut self, things: &[(usize, T)]) -> Option<T> {
        let total: usize = things.iter().map(|(weight, _)| weight).sum();
        let mut left = self.random.below(total);
        for &(weight, thing) in things {
            if left < weight {
                self.probability *= weight as f64 / total as f64;
                return Some(thing);
            }
            left -= weight;
        }
        None
    }

    /// Yes, in so many of a hundred cases.
    pub(crate) fn percent(&mut self, yes: usize) -> bool {
        self.weighted(&[(yes, true), (100 - yes, false)]).unwrap_or(false)
    }
}

//! Random choices, the same for a seed on every machine.
//!
//! SplitMix64 (Steele 2014): the state is a counter, and each number is a hash of it,
//! s_n = s_0 + n·γ, u_n = mix(s_n).

/// SplitMix64's γ, 2⁶⁴ divided by the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers.
///
/// ```
/// use foveal_grammar::Random;
///
/// assert_eq!(Random::new(7).below(1000), Random::new(7).below(1000));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    /// A stream of its own for each number, from one seed.
    pub fn stream(seed: u64, number: u64) -> Self {
        Random { state: mix(mix(seed.wrapping_add(GAMMA)).wrapping_add(GAMMA) ^ number) }
    }

    /// A number from 0 to below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_add(GAMMA);
        // The bias of this (Lemire 2019, without its rejection) is below end/2⁶⁴.
        ((u128::from(mix(self.state)) * end as u128) >> 64) as usize
    }
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_published_generator() {
        // The first outputs of SplitMix64 for the seed 1234567.
        let mut state = 1_234_567_u64;
        let mut next = || {
            state = state.wrapping_add(GAMMA);
            mix(state)
        };
        assert_eq!([next(), next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn numbers_spread_over_their_range() {
        let mut random = Random::new(3);
        let mut seen = [0; 10];
        (0..10_000).for_each(|_| seen[random.below(10)] += 1);
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
        assert_eq!(random.below(0), 0);
        assert_ne!(Random::stream(1, 2), Random::stream(1, 3));
    }
}

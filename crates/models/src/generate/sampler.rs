//! The choice of the next token.
//!
//! $$ p_v \propto e^{x_v / \tau} $$
//!
//! over the k likeliest tokens, of these over the fewest that have probability `top_p` together.

use std::cmp::Ordering;

use crate::layer::Random;
use crate::{Error, Result};

/// How the next token is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Choice {
    /// The likeliest; of equals the first.
    #[default]
    Greedy,
    /// By chance.
    Sample(Sampling),
}

/// What chance has to choose from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// τ: below 1 the likely ones become likelier, above 1 less so.
    pub temperature: f32,
    /// Only the k likeliest.
    pub top_k: Option<usize>,
    /// Only the likeliest that have this probability together.
    pub top_p: Option<f32>,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling { temperature: 1.0, top_k: None, top_p: None }
    }
}

/// Chooses tokens, the same for a seed.
#[derive(Clone, Debug)]
pub struct Sampler {
    choice: Choice,
    random: Random,
}

impl Sampler {
    /// A sampler.
    ///
    /// # Errors
    /// If the temperature is not a finite number above 0, k is 0, or p is not above 0 and at most 1.
    pub fn new(choice: Choice, seed: u64) -> Result<Self> {
        if let Choice::Sample(Sampling { temperature, top_k, top_p }) = choice {
            let refused = |what, expected, got: f64| Err(foveal::Error::Value { what, expected, got }.into());
            if !(temperature.is_finite() && temperature > 0.0) {
                let expected = "a finite number above 0 (for the likeliest token each time, choose greedily)";
                return refused("the temperature", expected, temperature.into());
            }
            if top_k == Some(0) {
                return refused("top-k", "at least 1", 0.0);
            }
            if let Some(p) = top_p.filter(|p| !(*p > 0.0 && *p <= 1.0)) {
                return refused("top-p", "a probability above 0 and at most 1", p.into());
            }
        }
        Ok(Sampler { choice, random: Random::new(seed) })
    }

    /// How many of the likeliest tokens it needs to know to choose one; none if all.
    pub fn enough(&self) -> Option<usize> {
        match self.choice {
            Choice::Greedy => Some(1),
            Choice::Sample(sampling) => sampling.top_k,
        }
    }

    /// A token, from the scores of all, or of as many of the likeliest as are [`enough`](Sampler::enough), in any order.
    ///
    /// # Errors
    /// [`Error::Scores`] if there are none, or one is NaN or +∞.
    pub fn choose(&mut self, mut tokens: Vec<(u32, f32)>) -> Result<u32> {
        let broken = tokens.iter().find(|(_, x)| x.is_nan() || *x == f32::INFINITY);
        if tokens.is_empty() || broken.is_some() {
            return Err(Error::Scores { token: broken.map(|(token, _)| *token as usize) });
        }
        // By score, and of equals by number, so that the order does not depend on the way of sorting.
        let likelier =
            |a: &(u32, f32), b: &(u32, f32)| b.1.partial_cmp(&a.1).unwrap_or(Ordering::Equal).then(a.0.cmp(&b.0));
        match self.choice {
            Choice::Greedy => Ok(tokens.into_iter().min_by(likelier).map_or(0, |(token, _)| token)),
            Choice::Sample(sampling) => {
                if let Some(k) = sampling.top_k.filter(|&k| k < tokens.len()) {
                    tokens.select_nth_unstable_by(k, likelier);
                    tokens.truncate(k);
                }
                tokens.sort_unstable_by(likelier);
                Ok(self.sample(sampling, &tokens))
            }
        }
    }

    /// One of these, the likeliest first.
    fn sample(&mut self, Sampling { temperature, top_p, .. }: Sampling, tokens: &[(u32, f32)]) -> u32 {
        let max = tokens[0].1;
        let mut weights: Vec<f64> = tokens.iter().map(|(_, x)| f64::from((x - max) / temperature).exp()).collect();
        if let Some(p) = top_p {
            let enough = f64::from(p) * weights.iter().sum::<f64>();
            let mut sum = 0.0;
            let reached = weights.iter().position(|w| {
                sum += w;
                sum >= enough
            });
            weights.truncate(reached.map_or(weights.len(), |last| last + 1));
        }
        let mut left = self.random.uniform() * weights.iter().sum::<f64>();
        let chosen = weights.iter().position(|w| {
            left -= w;
            left < 0.0
        });
        tokens[chosen.unwrap_or(weights.len() - 1)].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(logits: &[f32]) -> Vec<(u32, f32)> {
        (0..).zip(logits.iter().copied()).collect()
    }

    fn shares(sampling: Sampling, logits: &[f32]) -> Vec<f64> {
        let mut sampler = Sampler::new(Choice::Sample(sampling), 7).unwrap();
        let mut counts = vec![0.0; logits.len()];
        for _ in 0..20_000 {
            counts[sampler.choose(scores(logits)).unwrap() as usize] += 1.0 / 20_000.0;
        }
        counts
    }

    #[test]
    fn shares_are_those_of_softmax_over_what_is_left() {
        let logits = [1.0, 3.0, 2.0, f32::NEG_INFINITY, 0.0];
        let softmax = |logits: &[f64]| {
            let sum: f64 = logits.iter().map(|x| x.exp()).sum();
            logits.iter().map(|x| x.exp() / sum).collect::<Vec<_>>()
        };
        let near = |got: Vec<f64>, expected: &[f64]| {
            assert!(got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.015), "{got:?} {expected:?}");
        };
        let hidden = f64::NEG_INFINITY;
        near(shares(Sampling::default(), &logits), &softmax(&[1.0, 3.0, 2.0, hidden, 0.0]));
        let cold = Sampling { temperature: 0.5, ..Sampling::default() };
        near(shares(cold, &logits), &softmax(&[2.0, 6.0, 4.0, hidden, 0.0]));
        let top2 = Sampling { top_k: Some(2), ..Sampling::default() };
        near(shares(top2, &logits), &softmax(&[hidden, 3.0, 2.0, hidden, hidden]));
        // softmax is 0.088, 0.645, 0.237, 0, 0.032: 0.7 takes two of them.
        let nucleus = Sampling { top_p: Some(0.7), ..Sampling::default() };
        near(shares(nucleus, &logits), &softmax(&[hidden, 3.0, 2.0, hidden, hidden]));
        let all = Sampling { top_p: Some(1.0), top_k: Some(100), ..Sampling::default() };
        near(shares(all, &logits), &softmax(&[1.0, 3.0, 2.0, hidden, 0.0]));
    }

    #[test]
    fn greedy_takes_the_first_of_the_best() {
        let mut greedy = Sampler::new(Choice::Greedy, 0).unwrap();
        assert_eq!(greedy.choose(scores(&[1.0, 5.0, 5.0])).unwrap(), 1);
        assert!(matches!(greedy.choose(scores(&[1.0, f32::NAN])), Err(Error::Scores { token: Some(1) })));
        assert!(matches!(greedy.choose(scores(&[])), Err(Error::Scores { token: None })));
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        let refused = |sampling| Sampler::new(Choice::Sample(sampling), 0).is_err();
        for temperature in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert!(refused(Sampling { temperature, ..Sampling::default() }));
        }
        assert!(refused(Sampling { top_k: Some(0), ..Sampling::default() }));
        assert!(refused(Sampling { top_p: Some(0.0), ..Sampling::default() }));
        assert!(refused(Sampling { top_p: Some(1.1), ..Sampling::default() }));
    }
}

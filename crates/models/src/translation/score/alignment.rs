//! The alignment error rate (Och and Ney 2003).
//!
//! $$ \mathrm{AER} = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|} $$
//!
//! for the links A that were found, the sure links S that must be there and the possible links P ⊇ S that may be.

use std::collections::HashSet;

/// Links found against links expected, counted over many sentences. A link is (source word, target word).
///
/// ```
/// use foveal_models::translation::score::AlignmentScore;
///
/// let mut score = AlignmentScore::default();
/// score.add(&[(0, 0), (1, 2), (2, 1)], &[(0, 0), (1, 2)], &[]);
/// assert_eq!((score.precision(), score.recall()), (2.0 / 3.0, 1.0));
/// assert_eq!(score.error_rate(), 0.19999999999999996);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlignmentScore {
    found: u64,
    sure: u64,
    found_and_sure: u64,
    found_and_possible: u64,
}

impl AlignmentScore {
    /// Counts the links of a sentence. Sure links are possible too, whether `possible` has them or not, so that with no
    /// `possible` links all links are sure. A link that is given twice counts once.
    pub fn add(&mut self, found: &[(usize, usize)], sure: &[(usize, usize)], possible: &[(usize, usize)]) {
        let found: HashSet<_> = found.iter().collect();
        let sure: HashSet<_> = sure.iter().collect();
        let possible: HashSet<_> = possible.iter().chain(sure.iter().copied()).collect();
        self.found += found.len() as u64;
        self.sure += sure.len() as u64;
        self.found_and_sure += found.intersection(&sure).count() as u64;
        self.found_and_possible += found.intersection(&possible).count() as u64;
    }

    /// Adds the counts of other sentences.
    pub fn merge(&mut self, other: &AlignmentScore) {
        self.found += other.found;
        self.sure += other.sure;
        self.found_and_sure += other.found_and_sure;
        self.found_and_possible += other.found_and_possible;
    }

    /// The part of the found links that are at least possible; 1 if none was found.
    pub fn precision(&self) -> f64 {
        ratio(self.found_and_possible, self.found)
    }

    /// The part of the sure links that were found; 1 if there are none.
    pub fn recall(&self) -> f64 {
        ratio(self.found_and_sure, self.sure)
    }

    /// The alignment error rate, from 0 to 1; 0 if there are no links at all.
    pub fn error_rate(&self) -> f64 {
        1.0 - ratio(self.found_and_sure + self.found_and_possible, self.found + self.sure)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn possible_links_cost_nothing_either_way() {
        let (sure, possible) = ([(0, 0), (1, 1)], [(2, 1)]);
        for found in [&[(0, 0), (1, 1)][..], &[(0, 0), (1, 1), (2, 1)]] {
            let mut score = AlignmentScore::default();
            score.add(found, &sure, &possible);
            assert_eq!((score.error_rate(), score.precision(), score.recall()), (0.0, 1.0, 1.0));
        }
    }

    #[test]
    fn counts_add_up_over_sentences() {
        let mut all = AlignmentScore::default();
        assert_eq!(all.error_rate(), 0.0);
        let mut one = AlignmentScore::default();
        one.add(&[(0, 1), (0, 1)], &[(0, 0)], &[]);
        assert_eq!(one.error_rate(), 1.0);
        all.merge(&one);
        all.add(&[(0, 0), (1, 1)], &[(0, 0)], &[(1, 1)]);
        // |A| = 3, |S| = 2, |A ∩ S| = 1, |A ∩ P| = 2.
        assert_eq!(all.error_rate(), 1.0 - 3.0 / 5.0);
    }
}

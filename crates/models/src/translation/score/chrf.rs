//! chrF (Popović 2015) of a corpus: runs of characters in place of words, so that a word with another ending is not
//! wholly wrong.
//!
//! $$ \mathrm{chrF} = 100 \cdot \frac{(1 + \beta^2) P R}{\beta^2 P + R}, \qquad \beta = 2, $$
//!
//! where P and R are the means over n = 1 … 6 of the parts of the translations' and of the references' runs of n characters
//! that the other side has too. Spaces are left out; orders for which either side is too short do not count.

use super::tokens::is_space;
use super::{common, runs};

const ORDERS: usize = 6;
const BETA: f64 = 2.0;

/// chrF2 of pairs of (translation, reference), from 0 to 100.
pub fn chrf<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> f64 {
    let (mut found_runs, mut expected_runs, mut matches) = ([0u64; ORDERS], [0u64; ORDERS], [0u64; ORDERS]);
    for (found, expected) in pairs {
        let letters = |text: &str| text.chars().filter(|&c| !is_space(c)).collect::<Vec<char>>();
        let (found, expected) = (letters(found), letters(expected));
        for order in 1..=ORDERS {
            let (of_found, of_expected) = (runs(&found, order), runs(&expected, order));
            matches[order - 1] += common(&of_found, &of_expected);
            expected_runs[order - 1] += of_expected.values().sum::<u64>();
            // As in sacrebleu, a run counts only where the reference is long enough to have one.
            if !of_expected.is_empty() {
                found_runs[order - 1] += of_found.values().sum::<u64>();
            }
        }
    }
    let counted: Vec<usize> = (0..ORDERS).filter(|&n| found_runs[n] > 0 && expected_runs[n] > 0).collect();
    let mean = |of: [u64; ORDERS]| {
        counted.iter().map(|&n| matches[n] as f64 / of[n] as f64).sum::<f64>() / counted.len().max(1) as f64
    };
    let (precision, recall) = (mean(found_runs), mean(expected_runs));
    if precision + recall == 0.0 {
        return 0.0;
    }
    100.0 * (1.0 + BETA * BETA) * precision * recall / (BETA * BETA * precision + recall)
}

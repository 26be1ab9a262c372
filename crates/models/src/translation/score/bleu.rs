//! BLEU (Papineni 2002) of a corpus.
//!
//! $$ \mathrm{BLEU} = 100 \cdot \min(1, e^{1 - r/c}) \cdot \Big( \prod_{n=1}^{4} p_n \Big)^{1/4}, $$
//!
//! where c and r are the lengths of all translations and of all references, and pₙ is the part of the translations' runs of
//! n tokens that the references have too. The first order without any match counts as half a match, the next as a
//! quarter, and so on (the smoothing that `sacrebleu` calls `exp`).

use super::{Tokens, common, runs};

const ORDERS: usize = 4;

/// BLEU and what it is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bleu {
    /// From 0 to 100.
    pub score: f64,
    /// For runs of 1, 2, 3 and 4 tokens the percentage that the references have too.
    pub precisions: [f64; ORDERS],
    /// 1, or less if the translations are shorter than the references.
    pub brevity: f64,
    /// The tokens of all translations.
    pub length: u64,
    /// The tokens of all references.
    pub reference_length: u64,
}

/// BLEU of pairs of (translation, reference).
pub fn bleu<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>, tokens: Tokens) -> Bleu {
    let (mut length, mut reference_length) = (0, 0);
    let (mut correct, mut total) = ([0u64; ORDERS], [0u64; ORDERS]);
    for (found, expected) in pairs {
        let (found, expected) = (tokens.cut(found), tokens.cut(expected));
        length += found.len() as u64;
        reference_length += expected.len() as u64;
        for order in 1..=ORDERS {
            correct[order - 1] += common(&runs(&found, order), &runs(&expected, order));
            total[order - 1] += (found.len() + 1).saturating_sub(order) as u64;
        }
    }
    let brevity = match length {
        0 if reference_length > 0 => 0.0,
        _ if length < reference_length => (1.0 - reference_length as f64 / length as f64).exp(),
        _ => 1.0,
    };
    let mut precisions = [0.0; ORDERS];
    let mut score = 0.0;
    if correct.iter().any(|&count| count > 0) {
        let mut smooth = 1.0;
        for (precision, (&correct, &total)) in precisions.iter_mut().zip(correct.iter().zip(&total)) {
            if total == 0 {
                break;
            }
            if correct == 0 {
                smooth *= 2.0;
            }
            let matches = if correct == 0 { 1.0 / smooth } else { correct as f64 };
            *precision = 100.0 * matches / total as f64;
        }
        // An order for which the texts are too short has a precision of 0, and so has the whole.
        score = brevity * (precisions.iter().map(|p| p.ln()).sum::<f64>() / ORDERS as f64).exp();
    }
    Bleu { score, precisions, brevity, length, reference_length }
}

//! BLEU and chrF against `sacrebleu` (fixtures/make_scores.py).

#[path = "../support/mod.rs"]
mod support;

use foveal_models::translation::score::{Tokens, bleu, chrf, exact_match};
use serde_json::Value;

#[test]
fn scores_are_those_of_sacrebleu() {
    let file = std::fs::read(support::fixture("scores.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_slice(&file).unwrap();
    assert!(cases.len() >= 30);
    for case in &cases {
        let list =
            |key: &str| case[key].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect::<Vec<_>>();
        let (found, expected) = (list("translations"), list("references"));
        let pairs: Vec<(&str, &str)> = found.into_iter().zip(expected).collect();
        let near = |what: &str, found: f64, expected: &Value| {
            let expected = expected.as_f64().unwrap();
            assert!(
                (found - expected).abs() <= 1e-9 * expected.max(1.0),
                "{what}: {found}, not {expected}, of {pairs:?}"
            );
        };
        for (name, tokens) in [("13a", Tokens::Mteval), ("char", Tokens::Characters), ("none", Tokens::Words)] {
            let (expected, found) = (&case[name], bleu(pairs.iter().copied(), tokens));
            near(name, found.score, &expected["score"]);
            near("brevity", found.brevity, &expected["bp"]);
            near("length", found.length as f64, &expected["sys_len"]);
            near("reference length", found.reference_length as f64, &expected["ref_len"]);
            for order in 0..4 {
                near("precision", found.precisions[order], &expected["precisions"][order]);
            }
        }
        near("chrF", chrf(pairs.iter().copied()), &case["chrf"]);
    }
}

#[test]
fn exact_match_is_to_the_letter() {
    assert_eq!(exact_match([("a b", "a b "), ("a", "A"), ("", ""), ("집이 커요", "집이 커요.")]), 50.0);
    assert_eq!(exact_match([]), 0.0);
    assert_eq!((bleu([], Tokens::Mteval).score, chrf([])), (0.0, 0.0));
}

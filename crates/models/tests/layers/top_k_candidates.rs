//! The likeliest tokens, found without reading all of the table: the same tokens with the same scores, to the bit.

use foveal::{bf16, f16};
use foveal_models::Error;
use foveal_models::layer::{Embedding, Random, Weight};
use ndarray::{Array1, Array2, Axis};

/// Enough of a table that it is worth not to read it.
const TOKENS: usize = 9001;
const DIM: usize = 130;

fn table(seed: u64) -> Array2<f32> {
    Random::new(seed).normal((TOKENS, DIM), 0.02)
}

fn input(seed: u64) -> Array1<f32> {
    Random::new(seed).normal((1, DIM), 1.0).remove_axis(Axis(0))
}

/// Checks what is found against the scores of all; how many are found.
fn check(embedding: &Embedding, x: &Array1<f32>, k: usize) -> usize {
    let logits = embedding.logits(x.view().insert_axis(Axis(0))).unwrap().remove_axis(Axis(0));
    let found = embedding.top_k_candidates(x.view(), k).unwrap();
    assert!(found.is_sorted_by(|a, b| a.0 < b.0), "ascending by token");
    for (token, score) in &found {
        assert_eq!(score.to_bits(), logits[*token as usize].to_bits(), "the score of token {token}");
    }
    // All that score as high as the k-th of all, or are no numbers to compare, are there.
    let mut scores = logits.to_vec();
    scores.sort_by(|a, b| b.total_cmp(a));
    let last = scores[k.clamp(1, TOKENS) - 1];
    for (token, score) in
        logits.iter().enumerate().filter(|(_, score)| **score >= last || score.is_nan() || last.is_nan())
    {
        assert!(found.binary_search_by_key(&(token as u32), |found| found.0).is_ok(), "token {token}: {score}, {last}");
    }
    found.len()
}

#[test]
fn they_are_those_of_all_scores() {
    for seed in 0..5 {
        let array = table(seed);
        let weights: [Weight; 3] = [array.mapv(bf16::from_f32).into(), array.mapv(f16::from_f32).into(), array.into()];
        for weight in weights {
            let embedding = Embedding { weight };
            for k in [1, 2, 40] {
                let found = check(&embedding, &input(10 + seed), k);
                assert!(found < TOKENS / 16, "{found} found, which is not worth it");
            }
            for k in [TOKENS / 2, TOKENS, TOKENS + 1] {
                check(&embedding, &input(10 + seed), k);
            }
        }
    }
}

#[test]
fn equals_are_all_found() {
    let (mut array, x) = (table(1), input(2));
    let best = (&x * 0.05).insert_axis(Axis(0));
    for token in [8, 4000, 9000] {
        array.row_mut(token).assign(&best.row(0));
    }
    let embedding = Embedding { weight: array.into() };
    assert_eq!(check(&embedding, &x, 1), 3);
    check(&embedding, &x, 2);
}

/// What it is called, and what it does to a table.
type Change = (&'static str, fn(&mut Array2<f32>));

#[test]
fn whatever_the_numbers_are() {
    let changes: [Change; 9] = [
        ("all zero", |array| array.fill(0.0)),
        ("a zero row", |array| array.row_mut(7).fill(0.0)),
        ("one above zero", |array| {
            array.mapv_inplace(|x| -x.abs());
            array.row_mut(7).fill(f32::MIN_POSITIVE / 8.0);
        }),
        ("tiny rows", |array| *array *= 1e-38),
        ("huge rows", |array| *array *= 1e38),
        ("rows of all sizes", |array| {
            for (token, mut row) in array.outer_iter_mut().enumerate() {
                row *= 10f32.powi((token % 60) as i32 - 40);
            }
        }),
        ("one large number in a row", |array| array.column_mut(3).fill(100.0)),
        ("NaN", |array| array[[7, 5]] = f32::NAN),
        ("infinity", |array| array[[8000, 5]] = f32::NEG_INFINITY),
    ];
    let usual = input(4);
    let inputs = [
        ("usual", usual.clone()),
        ("above zero", usual.mapv(f32::abs)),
        ("zero", Array1::zeros(DIM)),
        ("tiny", &usual * 1e-40),
        ("small", &usual * 1e-14),
        ("huge", &usual * 1e36),
        ("infinite", usual.mapv(|x| if x > 2.0 { f32::INFINITY } else { x })),
    ];
    for (name, change) in changes {
        let mut array = table(3);
        change(&mut array);
        let embedding = Embedding { weight: array.into() };
        for (of_input, x) in &inputs {
            println!("{name}, the input {of_input}");
            for k in [1, 10] {
                check(&embedding, x, k);
            }
        }
    }
}

#[test]
fn a_changed_table_is_seen() {
    let (mut embedding, x) = (Embedding { weight: table(1).into() }, input(2));
    check(&embedding, &x, 1);
    embedding.weight.row_mut(77).assign(&x);
    let found = embedding.top_k_candidates(x.view(), 1).unwrap();
    assert!(found.iter().any(|(token, _)| *token == 77));
    check(&embedding, &x, 1);
}

#[test]
fn small_tables_and_wrong_widths() {
    let embedding = Embedding::new(5, 3, &mut Random::new(1));
    let found = embedding.top_k_candidates(Array1::ones(3).view(), 1).unwrap();
    assert_eq!(found.iter().map(|(token, _)| *token).collect::<Vec<_>>(), [0, 1, 2, 3, 4], "all are read");
    for embedding in [embedding, Embedding { weight: table(1).into() }] {
        let wrong = embedding.top_k_candidates(Array1::ones(4).view(), 1);
        assert!(matches!(wrong, Err(Error::Engine(foveal::Error::Shape { .. }))), "{wrong:?}");
    }
}

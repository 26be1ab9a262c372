//! Every number is the engine's: against plain f64 loops over q and k, on three models.

use foveal_explorer::Explorer;
use foveal_models::layer::Random;
use foveal_models::trace::{Kind, LayerTrace};
use foveal_models::{OpenModel, Trace};
use ndarray::{Array2, s};
use serde_json::{Value, json};

use crate::support::{ask, at, inside, numbers, over, run, save_llama};

const TEXT: &str = "ROMEO: But soft, what light through yonder window breaks? It is the east, and Juliet is the sun.";

/// The scores of a head in f64 and its weights: [T, S] each.
fn reference(layer: &LayerTrace, kind: Kind, head: usize) -> (Array2<f64>, Array2<f64>) {
    let (q, k) = (layer.q().to_f32(), layer.k().to_f32());
    let group = q.dim().1 / k.dim().1;
    let (q, k) = (q.slice(s![0, head, .., ..]), k.slice(s![0, head / group, .., ..]));
    let scale = 1.0 / (q.ncols() as f64).sqrt();
    let scores = Array2::from_shape_fn((q.nrows(), k.nrows()), |(i, j)| {
        let product: f64 = q.row(i).iter().zip(k.row(j)).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        if kind == Kind::Decoder && j > i { f64::NEG_INFINITY } else { scale * product }
    });
    let mut weights = scores.clone();
    for mut row in weights.outer_iter_mut() {
        let max = row.fold(f64::NEG_INFINITY, |max, x| max.max(*x));
        row.mapv_inplace(|x| (x - max).exp());
        let sum = row.sum();
        row.mapv_inplace(|x| x / sum);
    }
    (scores, weights)
}

/// The error of a weight in f32: that of its score, which is rounded, and of the sum.
fn near(got: f32, expected: f64, score: f64) -> bool {
    (f64::from(got) - expected).abs() <= 1e-7 + expected * 2e-6 * (16.0 + score.abs().min(1e3))
}

/// Compares random cells of all kinds of replies with the reference.
fn check(explorer: &Explorer, run: &Value, trace: &Trace, kind: Kind, cells: usize) {
    let site = kind.to_string();
    let mut random = Random::new(11);
    for _ in 0..cells {
        let layers: Vec<usize> = trace.of_kind(kind).map(|(number, _)| number).collect();
        let number = layers[random.below(layers.len())];
        let layer = trace.layer(kind, number).unwrap();
        let head = random.below(layer.heads());
        let (i, j) = (random.below(layer.queries()), random.below(layer.keys()));
        let (scores, weights) = reference(layer, kind, head);
        let place = at(run, &site, number, head as i64);
        let tile = json!({ "kind": "tile", "at": place, "measure": "weights", "rows": [i, i + 1], "cols": [j, j + 1] });
        let weight = numbers(&ask(explorer, tile).unwrap().buffers[0])[0];
        assert!(near(weight, weights[[i, j]], scores[[i, j]]), "{weight} {} at {i}, {j}", weights[[i, j]]);
        let cell = ask(explorer, json!({ "kind": "cell", "at": place, "query": i, "key": j })).unwrap();
        assert!((cell.head["weight"].as_f64().unwrap() - weights[[i, j]]).abs() <= 1e-5, "{}", cell.head);
        assert_eq!(cell.head["visible"].as_bool().unwrap(), scores[[i, j]].is_finite());
        if let Some(score) = cell.head["score"].as_f64() {
            assert!((score - scores[[i, j]]).abs() < 1e-5);
        }
        let size = json!([1, 1]);
        let map = json!({ "kind": "map", "at": place, "rows": [i, layer.queries()], "cols": [j, layer.keys()], "size": size });
        let largest = numbers(&ask(explorer, map).unwrap().buffers[0])[0];
        let rest = weights.slice(s![i.., j..]);
        let (expected, score) = rest.iter().zip(scores.slice(s![i.., j..])).fold(
            (0.0, 0.0),
            |max: (f64, f64), (w, s)| {
                if *w > max.0 { (*w, *s) } else { max }
            },
        );
        assert!(near(largest, expected, score), "{largest} {expected}");
    }
}

#[test]
fn a_language_model() {
    let explorer = inside();
    let run = run(&explorer, "shakespeare", TEXT);
    let trace = OpenModel::open("shakespeare").unwrap().observe(TEXT).unwrap().trace;
    check(&explorer, &run, &trace, Kind::Decoder, 350);
}

#[test]
fn a_translator() {
    let explorer = inside();
    let run = run(&explorer, "translate-en-ko", "The student reads two books.");
    let trace = OpenModel::open("translate-en-ko").unwrap().observe("The student reads two books.").unwrap().trace;
    for kind in [Kind::Encoder, Kind::Decoder, Kind::Cross] {
        check(&explorer, &run, &trace, kind, 100);
    }
}

#[test]
fn a_model_of_sharp_scores() {
    let folder = tempfile::tempdir().unwrap();
    save_llama(folder.path(), 2, 256, 13.0);
    let (explorer, id) = over(folder.path(), None);
    let run = run(&explorer, &id, TEXT);
    let trace = OpenModel::open(folder.path().to_str().unwrap()).unwrap().observe(TEXT).unwrap().trace;
    let (scores, _) = reference(trace.layer(Kind::Decoder, 1).unwrap(), Kind::Decoder, 0);
    let finite: Vec<f64> = scores.iter().copied().filter(|score| score.is_finite()).collect();
    let mean = finite.iter().sum::<f64>() / finite.len() as f64;
    let deviation = (finite.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / finite.len() as f64).sqrt();
    assert!((6.0..16.0).contains(&deviation), "the scores have deviation {deviation}");
    check(&explorer, &run, &trace, Kind::Decoder, 350);
}

#[test]
fn means_norms_and_rollouts() {
    let explorer = inside();
    let run = run(&explorer, "shakespeare", TEXT);
    let trace = OpenModel::open("shakespeare").unwrap().observe(TEXT).unwrap().trace;
    let layer = trace.layer(Kind::Decoder, 1).unwrap();
    let n = layer.queries();
    let of = |measure: &str, head: i64| {
        let place = at(&run, "decoder", 1, head);
        let tile = json!({ "kind": "tile", "at": place, "measure": measure, "rows": [0, n], "cols": [0, n] });
        let values = numbers(&ask(&explorer, tile).unwrap().buffers[0]);
        let size = json!([n / 3, n / 2]);
        let map =
            json!({ "kind": "map", "at": place, "measure": measure, "rows": [0, n], "cols": [0, n], "size": size });
        let map = numbers(&ask(&explorer, map).unwrap().buffers[0]);
        let values = Array2::from_shape_vec((n, n), values).unwrap();
        // Every pixel is the largest of its cells.
        for (at, pixel) in map.iter().enumerate() {
            let (h, w) = (n / 3, n / 2);
            let (y, x) = (at / w, at % w);
            let part = values.slice(s![y * n / h..(y + 1) * n / h, x * n / w..(x + 1) * n / w]);
            assert_eq!(*pixel, part.fold(0.0, |max: f32, x| max.max(*x)));
        }
        values
    };
    let mut mean = Array2::<f64>::zeros((n, n));
    for head in 0..layer.heads() {
        let (_, weights) = reference(layer, Kind::Decoder, head);
        mean.scaled_add(1.0 / layer.heads() as f64, &weights);
    }
    assert!(of("weights", -1).iter().zip(&mean).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-5));
    let norms = foveal_models::analysis::norms::of_head(layer, 0, 2).unwrap();
    assert!(of("norms", 2).iter().zip(&norms).all(|(a, b)| (a - b).abs() <= 1e-6 * (1.0 + b)));
    let rollout = foveal_models::analysis::rollout(&trace, Kind::Decoder, 0, 1).unwrap();
    assert!(of("rollout", 0).iter().zip(&rollout).all(|(a, b)| (a - b).abs() < 1e-6));
}

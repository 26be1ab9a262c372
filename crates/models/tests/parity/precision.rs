//! Models saved in half their size. Every number is the nearest one of its type, of two that are equally near the even one;
//! what the model computes from them moves by no more than that can move it.

use std::fs;
use std::path::Path;

use foveal_models::checkpoint::save_as;
use foveal_models::layer::Parameters;
use foveal_models::model::transformer::Batch;
use foveal_models::model::{Bert, Gpt2, Llama, Masked, Sentences, Trained, Transformer, Vit};
use foveal_models::{Checkpoint, Dtype, Error};
use ndarray::{Array1, Array2, ArrayD};
use serde_json::Map;

use crate::expected::{Expected, load};
use crate::stored::Stored;

/// A type of numbers: the bits of a fraction, the smallest exponent with all of them, and the first number too large.
#[derive(Clone, Copy)]
struct Format {
    dtype: Dtype,
    bits: i32,
    least: i32,
    limit: f64,
}

const F16: Format = Format { dtype: Dtype::F16, bits: 10, least: -14, limit: 65_536.0 };
const BF16: Format = Format { dtype: Dtype::BF16, bits: 7, least: -126, limit: 2.0 * (1u128 << 127) as f64 };

impl Format {
    /// How far the numbers around x lie apart.
    fn spacing(self, x: f32) -> f64 {
        // The bits of an f64 give the exponent of any f32 as it is, also of a subnormal one.
        let exponent = ((f64::from(x).to_bits() >> 52) & 0x7ff) as i32 - 1023;
        2f64.powi(exponent.max(self.least) - self.bits)
    }

    /// The first number that would be rounded to infinity.
    fn end(self) -> f32 {
        (self.limit - self.spacing((self.limit / 2.0) as f32) / 2.0) as f32
    }

    /// x, rounded. All of it is exact in f64.
    fn round(self, x: f32) -> f32 {
        let rounded = (f64::from(x) / self.spacing(x)).round_ties_even() * self.spacing(x);
        if rounded.abs() < self.limit { rounded as f32 } else { f32::INFINITY.copysign(x) }
    }
}

/// What is read of numbers that were saved.
fn through_a_file(dtype: Dtype, numbers: &[f32]) -> Vec<f32> {
    let folder = tempfile::tempdir().unwrap();
    let array = Array1::from(numbers.to_vec()).into_dyn();
    save_as(folder.path(), &Map::new(), [("x", array.view())], dtype).unwrap();
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    assert_eq!(checkpoint.tensor("x").unwrap().dtype(), dtype);
    checkpoint.array("x", &[numbers.len()]).unwrap().into_iter().collect()
}

/// All numbers of both types, and what lies in the middle between two of them, a little less and a little more.
#[test]
fn every_number_becomes_the_nearest() {
    let all_f16: Vec<f32> = (0..0x7c00).map(|bits| half::f16::from_bits(bits).to_f32()).collect();
    let all_bf16: Vec<f32> = (0..0x7f80).map(|bits| half::bf16::from_bits(bits).to_f32()).collect();
    for (format, all) in [(F16, all_f16), (BF16, all_bf16)] {
        assert_eq!(through_a_file(format.dtype, &all), all, "{}", format.dtype);
        let largest = all[all.len() - 1];
        let mut numbers = Vec::new();
        for (n, (low, high)) in all.iter().zip(&all[1..]).enumerate() {
            let middle = low + (format.spacing(*low) / 2.0) as f32;
            let even = if n % 2 == 0 { low } else { high };
            numbers.extend([(middle.next_down(), *low), (middle, *even), (middle.next_up(), *high)]);
        }
        numbers.extend([(format.end().next_down(), largest), (f32::INFINITY, f32::INFINITY)]);
        numbers.extend(numbers.clone().into_iter().map(|(x, expected)| (-x, -expected)));
        let (given, expected): (Vec<f32>, Vec<f32>) = numbers.into_iter().unzip();
        let got = through_a_file(format.dtype, &given);
        for ((x, expected), got) in given.iter().zip(&expected).zip(&got) {
            assert_eq!(got.to_bits(), expected.to_bits(), "{} makes {got:e} of {x:e}", format.dtype);
            if x.is_finite() {
                assert_eq!(format.round(*x).abs(), expected.abs(), "{x:e}");
            }
        }
        assert!(through_a_file(format.dtype, &[f32::NAN])[0].is_nan());
    }
}

/// A finite number that would become infinite is refused before anything is written.
#[test]
fn numbers_that_are_too_large_are_refused() {
    for (format, fit) in [(F16, "; save it as BF16 or F32"), (BF16, "; save it as F32")] {
        let largest = format.end().next_down();
        for value in [format.end(), -format.end(), f32::MAX] {
            let folder = tempfile::tempdir().unwrap();
            let (good, bad) = (Array1::from(vec![largest, -largest, f32::INFINITY]), Array1::from(vec![1.0, value]));
            let (good, bad) = (good.into_dyn(), bad.into_dyn());
            let save = |folder: &Path, tensor: &ArrayD<f32>, dtype| {
                save_as(folder, &Map::new(), [("fine", good.view()), ("layer.weight", tensor.view())], dtype)
            };
            let new = folder.path().join("new");
            let error = save(&new, &bad, format.dtype).unwrap_err();
            assert!(!new.exists());
            let Error::Range { name, value: got, dtype, .. } = &error else { panic!("{error:?}") };
            assert_eq!((name.as_str(), *got, *dtype), ("layer.weight", value, format.dtype));
            let text = error.to_string();
            assert!(text.contains(&format!("{value:e}")) && text.ends_with(fit), "{text}");

            save(folder.path(), &good, format.dtype).unwrap();
            let files = || ["model.safetensors", "config.json"].map(|file| fs::read(folder.path().join(file)).unwrap());
            let before = files();
            save(folder.path(), &bad, format.dtype).unwrap_err();
            assert_eq!(files(), before);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
            save(folder.path(), &bad, Dtype::F32).unwrap();
        }
    }
    let large: f32 = 65_520.0;
    assert_eq!(through_a_file(Dtype::BF16, &[large]), [65_536.0]);
}

/// Runs a model; where gradients are given as well, adds to them those of Σ dlogits·logits.
type Run<'a, M> = &'a dyn Fn(&M, Option<(&Array2<f32>, &mut M)>) -> Array2<f32>;

/// To first order, Σ |changes of the logits| is the change of Σ s·logits, where s are their signs, and that is
/// Σ gradient·change over the parameters, each of which changes by half a spacing at most.
fn check<M: Stored + Parameters + Clone>(name: &str, run: Run<M>) {
    let model: M = load(name);
    let logits = run(&model, None);
    for format in [F16, BF16] {
        let loaded = halved(name, &model, format);
        let changes = run(&loaded, None) - &logits;
        let mut grad = model.zeros_like();
        run(&model, Some((&changes.mapv(f32::signum), &mut grad)));
        let mut gradients = Vec::new();
        grad.visit("", &mut |_, gradient| gradients.push(gradient));
        let (mut gradients, mut limit) = (gradients.into_iter(), 0.0);
        model.visit("", &mut |_, parameter| {
            let pairs = parameter.into_iter().zip(gradients.next().unwrap());
            limit += pairs.map(|(x, d)| f64::from(d.abs()) * format.spacing(*x) / 2.0).sum::<f64>();
        });
        let moved: f64 = changes.iter().map(|x| f64::from(x.abs())).sum();
        assert!(0.0 < moved && moved <= limit, "{name} as {}: moved by {moved}, {limit} allowed", format.dtype);
        println!("{name} as {}: the logits move by {moved:.1e}, {limit:.1e} allowed", format.dtype);
    }
}

/// The model that is read of what was saved, and whether it is the one with every number rounded.
fn halved<M: Stored + Parameters + Clone>(name: &str, model: &M, format: Format) -> M {
    let folder = tempfile::tempdir().unwrap();
    model.save_as(folder.path(), format.dtype).unwrap();
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    let types = checkpoint.names().map(|name| checkpoint.tensor(name).unwrap().dtype());
    assert!(types.into_iter().all(|dtype| dtype == format.dtype), "{name}");
    let mut rounded = model.clone();
    rounded.visit_mut("", &mut |_, mut parameter| parameter.mapv_inplace(|x| format.round(x)));
    let loaded = M::load(&checkpoint).unwrap();
    assert_eq!(loaded, rounded, "{name} as {}", format.dtype);
    assert_ne!(&loaded, model, "{name}");
    loaded
}

fn language_model<M: Trained>(model: &M, back: Option<(&Array2<f32>, &mut M)>) -> Array2<f32> {
    let (logits, saved) = model.forward(&[3, 1, 4, 1, 5, 9, 2, 6], 2, None).unwrap();
    back.map(|(dlogits, grad)| model.backward(&saved, dlogits, grad).unwrap());
    logits
}

#[test]
fn models_do_nearly_the_same() {
    check::<Gpt2>("gpt2", &language_model);
    check::<Llama>("llama", &language_model);
    check::<Llama>("llama3", &language_model);
    check::<Bert>("bert", &|model, back| {
        let sentences = Sentences::new(&[&[3, 1, 4, 1, 5][..], &[9, 2, 6]]);
        let masked = Masked::new(sentences, &[(0, 1), (0, 4), (1, 2)], 7).unwrap();
        let (logits, saved) = model.forward(&masked, None).unwrap();
        back.map(|(dlogits, grad)| model.backward(&saved, dlogits, grad).unwrap());
        logits
    });
    let bert: Bert = load("bert_model");
    for format in [F16, BF16] {
        halved("bert_model", &bert, format);
    }
    let images = Expected::of("vit").images("images");
    check::<Vit>("vit", &|model, back| {
        let (logits, saved) = model.forward(&images, None).unwrap();
        back.map(|(dlogits, grad)| model.backward(&saved, dlogits, grad).unwrap());
        logits
    });
    for name in ["norm_last", "norm_first"] {
        check::<Transformer>(name, &|model, back| {
            let source = Batch { tokens: &[3, 1, 4, 1, 5, 9, 2, 0], lengths: &[4, 3] };
            let (logits, saved) = model.forward(source, &[2, 7, 1, 8, 2, 8], None).unwrap();
            back.map(|(dlogits, grad)| model.backward(&saved, dlogits, grad).unwrap());
            logits
        });
    }
}

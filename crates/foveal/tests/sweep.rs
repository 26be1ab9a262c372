//! More than a thousand random cases over all options, on every instruction set, against the f64 reference.
//!
//! The bar for out, lse and weights is PyTorch's own for f32, 1e-5 + 5e-6·|ref|, where scores are below 50, before a softcap and
//! after; beyond, it grows as the rounding of scores does. Gradients of any scores may be off by that much, or by twice as much as PyTorch's f32 is on the same
//! case, whichever is larger: sums whose terms cancel, such as the gradient of ALiBi's slopes, have no fixed bar
//! that f32 could keep.
//!
//! `fixtures/make_sweep.py` draws the cases and measures PyTorch. Arrays are made here again from their seeds.

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use foveal::reference::{self, Gradients};
use foveal::{Align, Attention, Bias, Direction, Isa, Mask, Pattern, Upstream};
use ndarray::{Array3, Array4, ArrayD, IntoDimension};
use rayon::prelude::*;
use serde_json::Value;
use support::{Random, widen};

/// PyTorch's own bar for f32.
const ABS: f64 = 1e-5;
const REL: f64 = 5e-6;
/// Below this |score| out, lse and weights are held to that bar.
const LARGE_SCORE: f64 = 50.0;

/// The arrays of case n come from the seeds 64·n + one of these; its masks from 64·n + MASKS + their place in the list.
#[derive(Clone, Copy)]
enum Stream {
    Q,
    K,
    V,
    Dout,
    Bias,
    Sink,
    Dlse,
    Hidden,
    Projection,
    Masks = 32,
}

/// One line of `sweep.json`.
struct Case {
    seed: u64,
    options: Value,
}

impl Case {
    fn all() -> Vec<Case> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sweep.json");
        let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let cases = file["cases"].as_array().unwrap().iter().cloned();
        (0..).zip(cases).map(|(seed, options)| Case { seed, options }).collect()
    }

    /// B, H, key heads, T, S, D, Dv.
    fn sizes(&self) -> [usize; 7] {
        whole(&self.options["sizes"]).try_into().unwrap()
    }

    fn top(&self) -> f64 {
        self.options["top"].as_f64().unwrap()
    }

    fn random(&self, stream: Stream, place: usize) -> Random {
        Random::new(64 * self.seed + stream as u64 + place as u64)
    }

    /// Nearly normal numbers, the same to the bit as `normal` in `make_sweep.py`.
    fn normal<I: IntoDimension>(&self, stream: Stream, shape: I, amplitude: f64) -> ndarray::Array<f32, I::Dim> {
        let mut random = self.random(stream, 0);
        ndarray::Array::from_shape_simple_fn(shape, || {
            let bits = random.bits();
            let words: i64 = (0..4).map(|n| (bits >> (16 * n) & 0xffff) as i64).sum();
            ((words - 2 * 0xffff) as f64 * (3f64.sqrt() / 65536.0) * amplitude) as f32
        })
    }

    fn inputs(&self) -> Inputs {
        let [b, h, g, t, s, d, dv] = self.sizes();
        let amplitude = self.options["amplitude"].as_f64().unwrap();
        let equal = self.options["equal_values"] == true;
        let v = self.normal(Stream::V, [b, g, if equal { 1 } else { s }, dv], 1.0);
        Inputs {
            q: self.normal(Stream::Q, [b, h, t, d], amplitude),
            k: self.normal(Stream::K, [b, g, s, d], amplitude),
            v: v.broadcast([b, g, s, dv]).unwrap().to_owned(),
            dout: self.normal(Stream::Dout, [b, h, t, dv], 1.0),
            dlse: (self.options["dlse"] == true).then(|| self.normal(Stream::Dlse, [b, h, t], 1.0)),
        }
    }

    fn attention(&self) -> Attention {
        let mut attention = Attention::new().mask(self.mask()).bias(self.bias());
        if let Some(scale) = self.options["scale"].as_f64() {
            attention = attention.scale(scale as f32);
        }
        if let Some(cap) = self.options["softcap"].as_f64() {
            attention = attention.softcap(cap as f32);
        }
        if let Some(amplitude) = self.options["sink"].as_f64() {
            let [_, heads, ..] = self.sizes();
            attention = attention.sinks(self.normal(Stream::Sink, heads, amplitude).to_vec());
        }
        match &self.options["align"] {
            Value::Null => attention,
            Value::String(_) => attention.align(Align::First),
            offsets => attention.align(Align::Offsets(whole(offsets).into_iter().map(|n| n as isize).collect())),
        }
    }

    fn mask(&self) -> Mask {
        let [.., keys, _, _] = self.sizes();
        let list = self.options["masks"].as_array().map_or(&[][..], Vec::as_slice);
        list.iter().enumerate().fold(Mask::none(), |mask, (place, options)| {
            let (kind, numbers) = options.as_array().unwrap().split_first().unwrap();
            let numbers: Vec<usize> = numbers.iter().map(|n| n.as_u64().unwrap() as usize).collect();
            let mut random = self.random(Stream::Masks, place);
            mask.and(match (kind.as_str().unwrap(), &numbers[..]) {
                ("causal", []) => Mask::causal(),
                ("window", &[left, right]) => Mask::window(left, right),
                ("padding", lengths) => Mask::padding(lengths),
                ("keep", &[percent, b, h, t, s]) => {
                    Mask::dense(Array4::from_shape_simple_fn((b, h, t, s), || random.below(100) < percent))
                }
                ("single", &[b, h, t, s]) => {
                    let seen = Array3::from_shape_simple_fn((b, h, t), || random.below(keys));
                    Mask::dense(Array4::from_shape_fn((b, h, t, s), |(b, h, t, s)| seen[[b, h, t]] == s))
                }
                ("longformer", [window, dilation, global @ ..]) => {
                    Mask::pattern(Pattern::longformer(*window, *dilation, global).unwrap())
                }
                ("strided", &[stride]) => Mask::pattern(Pattern::strided(stride).unwrap()),
                ("documents", lengths) => Mask::pattern(Pattern::documents(lengths).unwrap()),
                ("swin", &[rows, cols, height, width, down, right]) => {
                    Mask::pattern(Pattern::swin((rows, cols), (height, width), (down, right)).unwrap())
                }
                other => panic!("no mask {other:?}"),
            })
        })
    }

    fn bias(&self) -> Bias {
        let Some((kind, numbers)) = self.options["bias"].as_array().map(|list| list.split_first().unwrap()) else {
            return Bias::none();
        };
        let strength = numbers[0].as_f64().unwrap();
        let numbers: Vec<usize> = numbers[1..].iter().map(|n| n.as_u64().unwrap() as usize).collect();
        let heads = self.sizes()[1];
        match (kind.as_str().unwrap(), &numbers[..]) {
            ("alibi", &[0, heads]) => {
                Bias::alibi_with(self.normal(Stream::Bias, heads, strength).mapv(f32::abs).to_vec())
            }
            ("alibi", &[batch, heads]) => {
                Bias::alibi_per_sequence(self.normal(Stream::Bias, [batch, heads], strength).mapv(f32::abs))
            }
            ("t5", &[both, most, buckets, heads]) => {
                let direction = if both == 1 { Direction::Both } else { Direction::Backward };
                Bias::t5(self.normal(Stream::Bias, [buckets, heads], strength), direction, most).unwrap()
            }
            ("shaw", &[heads, distances, dim]) => {
                Bias::shaw(self.normal(Stream::Bias, [heads, distances, dim], strength)).unwrap()
            }
            ("swin", &[height, width, rows, cols]) => {
                let distances = (2 * height - 1) * (2 * width - 1);
                let table = self.normal(Stream::Bias, [distances, heads], strength);
                Bias::swin(table, (height, width), (rows, cols)).unwrap()
            }
            ("dense", &[percent, b, h, t, s]) => {
                let mut random = self.random(Stream::Hidden, 0);
                let bias = self.normal(Stream::Bias, [b, h, t, s], strength);
                Bias::dense(bias.mapv(|x| if random.below(100) < percent { f32::NEG_INFINITY } else { x }))
            }
            other => panic!("no bias {other:?}"),
        }
    }

    /// The names of what is measured, in the order of the file.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = ["out", "lse", "dq", "dk", "dv"].map(Into::into).into();
        names.extend(self.options["bias"][0].as_str().map(|kind| format!("dbias of {kind}")));
        names.extend(self.options["sink"].as_f64().map(|_| "dsinks".into()));
        names
    }

    /// A field of the file by those names.
    fn recorded(&self, field: &str) -> BTreeMap<String, f64> {
        let numbers = self.options[field].as_array().unwrap().iter().map(|x| x.as_f64().unwrap());
        self.names().into_iter().zip(numbers).collect()
    }

    /// As `projection` in `make_sweep.py`.
    fn sum(&self, x: &ArrayD<f64>) -> f64 {
        let random = widen(&self.normal(Stream::Projection, x.shape(), 1.0));
        let terms = x.iter().zip(&random).filter(|(x, _)| x.is_finite()).map(|(x, r)| x * r);
        terms.sum::<f64>() / (x.len() as f64).sqrt()
    }

    fn reference(&self, inputs: &Inputs, attention: &Attention) -> BTreeMap<String, ArrayD<f64>> {
        let [q, k, v, dout] = [&inputs.q, &inputs.k, &inputs.v, &inputs.dout].map(widen);
        let dlse = inputs.dlse.as_ref().map(widen);
        let qkv = (q.view(), k.view(), v.view());
        let fwd = reference::forward(attention, &q, &k, &v).unwrap();
        let dlse = dlse.as_ref().map(|dlse| dlse.view());
        let Gradients { dq, dk, dv, dbias, dsinks } =
            reference::backward_with(attention, qkv, dout.view(), dlse).unwrap();
        let gradients = [dq, dk, dv].map(|x| x.into_dyn());
        let found = [fwd.out.into_dyn(), fwd.lse.into_dyn()].into_iter().chain(gradients).chain(dbias);
        let found = found.chain(dsinks.map(|x| x.into_dyn()));
        let mut found: BTreeMap<String, ArrayD<f64>> = self.names().into_iter().zip(found).collect();
        found.insert("weights".into(), fwd.weights.into_dyn());
        found
    }

    fn engine(&self, inputs: &Inputs, attention: &Attention) -> BTreeMap<String, ArrayD<f32>> {
        let Inputs { q, k, v, dout, .. } = inputs;
        let fwd = attention.forward(q, k, v).unwrap();
        let upstream = Upstream { dout: dout.into(), dlse: inputs.dlse.as_ref().map(|dlse| dlse.view()) };
        let grads = attention.backward(q, k, v, &fwd, upstream).unwrap();
        let gradients = [grads.dq, grads.dk, grads.dv].map(|x| x.into_dyn());
        let lse = fwd.lse.mapv(|lse| lse as f32).into_dyn();
        let found = [fwd.out.into_dyn(), lse].into_iter().chain(gradients).chain(grads.dbias);
        let found = found.chain(grads.dsinks.map(|x| x.into_dyn()));
        let mut found: BTreeMap<String, ArrayD<f32>> = self.names().into_iter().zip(found).collect();
        found.insert("weights".into(), attention.weights(q, k).unwrap().into_dyn());
        found
    }

    /// Of what is off by more than it may be, in tolerances.
    fn misses(&self, inputs: &Inputs, attention: &Attention, tolerance: f64) -> Vec<Miss> {
        let want = self.reference(inputs, attention);
        let theirs = self.recorded("errors");
        let of_isa = |isa: Isa| {
            let got = self.engine(inputs, &attention.clone().isa(isa));
            assert_eq!(got.len(), want.len());
            let misses = got.into_iter().filter_map(|(name, got)| {
                let error = excess(&got, &want[&name]);
                let bar = match name.as_str() {
                    "out" | "lse" | "weights" => tolerance * f64::max(1.0, self.top() / LARGE_SCORE),
                    gradient => f64::max(tolerance, 2.0 * theirs[gradient]),
                };
                // A NaN is never within the bar.
                let within = error <= bar;
                (!within).then(|| Miss { isa, name, seed: self.seed, top: self.top(), error, bar })
            });
            misses.collect::<Vec<_>>()
        };
        Isa::available().flat_map(of_isa).collect()
    }
}

struct Inputs {
    q: Array4<f32>,
    k: Array4<f32>,
    v: Array4<f32>,
    dout: Array4<f32>,
    dlse: Option<Array3<f32>>,
}

/// A result that is off by more than it may be, both in tolerances.
struct Miss {
    isa: Isa,
    name: String,
    seed: u64,
    top: f64,
    error: f64,
    bar: f64,
}

/// Fails with a table of what is off, and prints every miss.
#[track_caller]
fn assert_none(misses: &[Miss]) {
    let mut table: BTreeMap<(String, &str), (usize, &Miss)> = BTreeMap::new();
    for miss in misses {
        let Miss { isa, name, seed, top, error, bar } = miss;
        eprintln!("case {seed}, scores to {top}, {isa}: {name} is off by {error:.2} tolerances; the bar is {bar:.2}");
        let (count, worst) = table.entry((isa.to_string(), name)).or_insert((0, miss));
        *count += 1;
        if error / bar > worst.error / worst.bar {
            *worst = miss;
        }
    }
    let lines = table.into_iter().map(|((isa, name), (count, Miss { seed, error, bar, .. }))| {
        format!("{isa:<8} {name:<16} {count:>4}   worst: {error:>8.2} tolerances, bar {bar:>6.2}, in case {seed}\n")
    });
    assert!(
        misses.is_empty(),
        "off by more than twice PyTorch's f32 and than the tolerance:\n{}",
        lines.collect::<String>()
    );
}

/// The largest |got − want| in units of the tolerance. −∞ against −∞ is no error; what else is not finite is.
fn excess(got: &ArrayD<f32>, want: &ArrayD<f64>) -> f64 {
    assert_eq!(got.shape(), want.shape());
    got.iter().zip(want).fold(0.0, |worst, (got, want)| {
        let got = f64::from(*got);
        let error = if got == *want { 0.0 } else { (got - want).abs() / (ABS + REL * want.abs()) };
        if error.is_nan() || error > worst { error } else { worst }
    })
}

fn whole(list: &Value) -> Vec<usize> {
    list.as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect()
}

#[test]
fn the_generator_is_the_one_of_the_script() {
    let case = Case { seed: 3, options: Value::Null };
    let q = case.normal(Stream::Q, 4, 1.0);
    assert_eq!(q.to_vec(), [0.298_198_37, -2.012_541_8, 1.271_869_1, 1.556_641_6]);
    let mut random = case.random(Stream::Masks, 1);
    let below: Vec<usize> = (0..8).map(|_| random.below(100)).collect();
    assert_eq!(below, [35, 1, 30, 30, 49, 26, 52, 23]);
}

#[test]
fn the_reference_agrees_with_pytorch() {
    let cases = Case::all();
    assert!(cases.len() >= 1000);
    cases.par_iter().for_each(|case| {
        let (found, want) = (case.reference(&case.inputs(), &case.attention()), case.recorded("sums"));
        for (name, want) in want {
            let largest = found[&name].iter().filter(|x| x.is_finite()).fold(0f64, |most, x| most.max(x.abs()));
            let got = case.sum(&found[&name]);
            let close = (got - want).abs() <= 1e-6 * (want.abs() + 1e-3 * (1.0 + largest));
            assert!(close, "case {}: {name}: {got} here, {want} in PyTorch", case.seed);
        }
    });
}

#[test]
fn every_result_is_as_good_as_pytorchs() {
    let cases = Case::all();
    let misses: Vec<Miss> =
        cases.par_iter().flat_map_iter(|case| case.misses(&case.inputs(), &case.attention(), 1.0)).collect();
    assert_none(&misses);
}

/// PyTorch cannot draw our dropout, so there is nothing to compare with: the bar is a few tolerances, as the weights that are
/// kept are larger.
#[test]
fn and_with_dropout() {
    let cases = Case::all();
    let offered = cases.par_iter().filter(|case| case.seed % 5 == 0);
    let misses: Vec<Miss> = offered
        .flat_map_iter(|case| {
            let probability = [0.1, 0.25, 0.5][case.seed as usize % 3];
            let attention = case.attention().dropout(probability, case.seed);
            case.misses(&case.inputs(), &attention, 4.0 / (1.0 - f64::from(probability)))
        })
        .collect();
    assert_none(&misses);
}

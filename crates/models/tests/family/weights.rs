//! What a trace says was attended to, against the definition of each kind, in f64 from the queries and keys of the trace.

use foveal_models::layer::{Family, Parameters};
use foveal_models::model::transformer::Batch;
use foveal_models::model::{Gpt2, LanguageModel, Model};
use foveal_models::trace::{Capture, Kind, LayerTrace, Probe};
use foveal_models::{Checkpoint, Dtype};
use ndarray::{Array2, ArrayView1, s};

use crate::{all, bert, gpt2, llama, transformer, vit};

const TOKENS: [u32; 14] = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7];

/// Which of `n` tokens query i sees, from the papers' words. None where the pattern is random.
fn sees(family: Family, i: usize, j: usize) -> Option<bool> {
    let distance = i.abs_diff(j);
    Some(match family {
        Family::Longformer { window, dilation, globals } => {
            i < globals || j < globals || (distance <= window * dilation && distance.is_multiple_of(dilation))
        }
        Family::Strided { stride } => distance <= stride || distance.is_multiple_of(stride),
        Family::Fixed { stride, summary } => i / stride == j / stride || j % stride >= stride - summary,
        Family::BigBird { block, window, globals, .. } => {
            let (i, j) = (i / block, j / block);
            if i < globals || j < globals || i.abs_diff(j) <= window / 2 {
                return Some(true);
            }
            return None;
        }
        _ => true,
    })
}

fn dot(a: ArrayView1<f32>, b: ArrayView1<f32>) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// Weights before they are divided by their sum.
fn kernel(family: Family, learned: Option<ArrayView1<f32>>, q: ArrayView1<f32>, k: ArrayView1<f32>) -> f64 {
    let elu = |x: f32| if x > 0.0 { f64::from(x) + 1.0 } else { f64::from(x).exp() };
    match family {
        Family::Dot => dot(q, k).exp(),
        Family::Additive => {
            let terms = learned.unwrap().into_iter().zip(q).zip(k);
            terms.map(|((a, q), k)| f64::from(*a) * f64::from(q + k).tanh()).sum::<f64>().exp()
        }
        Family::Linear => q.iter().zip(k).map(|(q, k)| elu(*q) * elu(*k)).sum(),
        _ => (dot(q, k) / (q.len() as f64).sqrt()).exp(),
    }
}

fn check(family: Family, layer: &LayerTrace, learned: Option<&Array2<f32>>, causal: bool) {
    let (heads, group) = (layer.heads(), layer.heads() / layer.k().dim().1);
    let (queries, keys) = (layer.q().to_f32(), layer.k().to_f32());
    for head in 0..heads {
        let weights = layer.weights(0, head).unwrap();
        let learned = learned.map(|learned| learned.row(head));
        let mut hidden = 0;
        for (i, row) in weights.outer_iter().enumerate() {
            assert!((row.sum() - 1.0).abs() < 1e-5, "{family}: row {i} sums to {}", row.sum());
            let values: Vec<f64> = (0..row.len())
                .map(|j| {
                    // What a random pattern shows is taken from the weights, the rest must be as it says.
                    let seen = sees(family, i, j).unwrap_or(row[j] > 0.0) && !(causal && j > i);
                    hidden += usize::from(!seen);
                    let (q, k) = (queries.slice(s![0, head, i, ..]), keys.slice(s![0, head / group, j, ..]));
                    if seen { kernel(family, learned, q, k) } else { 0.0 }
                })
                .collect();
            let sum: f64 = values.iter().sum();
            for (j, value) in values.iter().enumerate() {
                let (got, expected) = (f64::from(row[j]), value / sum);
                assert!((got - expected).abs() < 1e-5, "{family}, head {head}: w[{i}, {j}] is {got}, not {expected}");
                let cell = layer.cell(0, head, i, j).unwrap();
                assert!((cell.weight - expected).abs() < 1e-5 && (cell.exp / cell.sum - expected).abs() < 1e-5);
            }
        }
        let sparse = matches!(family.name(), "longformer" | "bigbird" | "strided" | "fixed");
        let past = if causal { weights.nrows() * (weights.nrows() - 1) / 2 } else { 0 };
        assert_eq!(sparse, hidden > past, "{family} hides {hidden}");
        let (rows, cols) = weights.dim();
        let map = layer.map((0, head), 0..rows, 0..cols, (1, 1), foveal::Pool::Max).unwrap();
        assert_eq!(map[[0, 0]], weights.fold(0.0, |max: f32, w| max.max(*w)));
    }
}

#[test]
fn of_language_models_are_what_the_papers_say() {
    for family in all().into_iter().filter(|family| family.name() != "favor") {
        let model = gpt2(family);
        let mut probe = Probe::new(Capture::All);
        model.infer(&TOKENS, 1, None, &mut probe).unwrap();
        let trace = probe.into_trace();
        for layer in 0..2 {
            let learned = model.attention(layer).unwrap().mechanism.learned.as_ref();
            check(family, trace.layer(Kind::Decoder, layer).unwrap(), learned, true);
        }
    }
}

#[test]
fn of_an_encoder_decoder_are_what_the_papers_say() {
    for family in all().into_iter().filter(|family| family.name() != "favor") {
        let model = transformer(family);
        let mut probe = Probe::new(Capture::All);
        let source = Batch { tokens: &TOKENS, lengths: &[TOKENS.len()] };
        let memory = model.encode(source, &mut probe).unwrap();
        let mut state = model.start(source, memory.view()).unwrap();
        model.write(&[1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3], &mut state, &mut probe).unwrap();
        let trace = probe.into_trace();
        let own = |block: &foveal_models::model::Block<_, _>| {
            block.attention.layer.attention().unwrap().mechanism.learned.clone()
        };
        check(family, trace.layer(Kind::Encoder, 1).unwrap(), own(&model.encoder[1]).as_ref(), false);
        check(family, trace.layer(Kind::Decoder, 1).unwrap(), own(&model.decoder[1]).as_ref(), true);
        let cross = &model.decoder[1].cross.as_ref().unwrap().layer.mechanism;
        check(cross.family(), trace.layer(Kind::Cross, 1).unwrap(), cross.learned.as_ref(), false);
    }
}

#[test]
fn of_more_features_come_nearer_to_the_softmax() {
    let (mut errors, plain) = (Vec::new(), gpt2(Family::Softmax));
    for features in [32, 2048] {
        let model = gpt2(Family::Favor { features, seed: 1 });
        // The same weights in both, as nothing is learned beside them, and small ones: the error grows with their size.
        let run = |model: &Gpt2| {
            let mut model = model.clone();
            model.visit_mut("", &mut |_, mut parameter| parameter *= 0.5);
            let mut probe = Probe::new(Capture::Layers(vec![0]));
            model.infer(&TOKENS, 1, None, &mut probe).unwrap();
            probe.into_trace().layer(Kind::Decoder, 0).unwrap().weights(0, 1).unwrap()
        };
        errors.push((run(&model) - run(&plain)).mapv(|x| x * x).sum());
    }
    assert!(errors[1] < errors[0] / 8.0, "{errors:?}");
}

#[test]
fn windows_of_an_image_hide_the_others() {
    let model = vit(Family::Swin { window: 2 }, false);
    let mut probe = Probe::new(Capture::All);
    model
        .infer(&ndarray::Array4::from_shape_fn((1, 1, 8, 8), |(_, _, y, x)| (y * 3 + x) as f32 / 31.0), &mut probe)
        .unwrap();
    let trace = probe.into_trace();
    for (layer, shift) in [(0, 0), (1, 1)] {
        let weights = trace.layer(Kind::Encoder, layer).unwrap().weights(0, 0).unwrap();
        for ((i, j), weight) in weights.indexed_iter() {
            // Shifted windows of 2 on 4 × 4 patches: rows and columns 0 | 1 2 | 3.
            let window = |patch: usize| ((patch / 4 + shift) / 2, (patch % 4 + shift) / 2);
            assert_eq!(*weight > 0.0, window(i) == window(j), "layer {layer}: {i} {j}");
        }
    }
}

#[test]
fn a_cache_changes_nothing() {
    for family in all() {
        let models: [Box<dyn LanguageModel>; 2] = [Box::new(gpt2(family)), Box::new(llama(family))];
        for model in models {
            let whole = model.infer(&TOKENS, 1, None, &mut Probe::default()).unwrap();
            let mut cache = model.cache(1, 0);
            let mut probe = Probe::new(Capture::All);
            let mut start = 0;
            for step in [5, 1, 1, 4, 1, 2] {
                let part = model.infer(&TOKENS[start..start + step], 1, Some(&mut cache), &mut probe).unwrap();
                let error =
                    (&part - &whole.slice(s![start..start + step, ..])).mapv(f32::abs).fold(0.0, |a: f32, b| a.max(*b));
                assert!(error < 2e-4, "{family}: token {start} differs by {error}");
                start += step;
            }
            let mut once = Probe::new(Capture::All);
            model.infer(&TOKENS, 1, None, &mut once).unwrap();
            let (joined, once) = (probe.into_trace(), once.into_trace());
            let weights =
                |trace: &foveal_models::trace::Trace| trace.layer(Kind::Decoder, 1).unwrap().weights(0, 1).unwrap();
            let error = (weights(&joined) - weights(&once)).mapv(f32::abs).fold(0.0, |a: f32, b| a.max(*b));
            assert!(error < 1e-4, "{family}: the joined trace differs by {error}");
        }
    }
}

#[test]
fn what_a_batch_is_filled_up_with_says_nothing() {
    for family in all().into_iter().chain([Family::Fourier]) {
        let model = transformer(family);
        let alone = model.encode(Batch { tokens: &TOKENS[..6], lengths: &[6] }, &mut Probe::default()).unwrap();
        let filled: Vec<u32> = TOKENS.iter().chain(&TOKENS[..6]).copied().chain([7; 8]).collect();
        let both = model.encode(Batch { tokens: &filled, lengths: &[14, 6] }, &mut Probe::default()).unwrap();
        let error = (&alone - &both.slice(s![14..20, ..])).mapv(f32::abs).fold(0.0, |a: f32, b| a.max(*b));
        assert!(error < 1e-3, "{family}: differs by {error}");
    }
}

#[test]
fn of_a_saved_model_are_the_same() {
    for family in all() {
        let folder = tempfile::tempdir().unwrap();
        let (gpt2, llama) = (gpt2(family), llama(family));
        gpt2.save(folder.path(), Dtype::F32).unwrap();
        let Model::Gpt2(again) = Model::load(&Checkpoint::open(folder.path()).unwrap()).unwrap() else { panic!() };
        assert_eq!(gpt2, again, "{family}");
        let folder = tempfile::tempdir().unwrap();
        llama.save(folder.path(), Dtype::F32).unwrap();
        let Model::Llama(again) = Model::load(&Checkpoint::open(folder.path()).unwrap()).unwrap() else { panic!() };
        assert_eq!(llama, again, "{family}");
    }
    for family in all().into_iter().chain([Family::Fourier]) {
        let (folder, model) = (tempfile::tempdir().unwrap(), bert(family));
        model.save(folder.path(), Dtype::F32).unwrap();
        let Model::Bert(again) = Model::load(&Checkpoint::open(folder.path()).unwrap()).unwrap() else { panic!() };
        assert_eq!(model, again, "{family}");
        let (folder, model) = (tempfile::tempdir().unwrap(), transformer(family));
        model.save(folder.path(), Dtype::F32).unwrap();
        let Model::Transformer(again) = Model::load(&Checkpoint::open(folder.path()).unwrap()).unwrap() else {
            panic!()
        };
        assert_eq!(model, again, "{family}");
    }
    for (family, class_token) in [(Family::Swin { window: 2 }, false), (Family::Fourier, true), (Family::Linear, false)]
    {
        let (folder, model) = (tempfile::tempdir().unwrap(), vit(family, class_token));
        model.save(folder.path(), Dtype::F32).unwrap();
        let Model::Vit(again) = Model::load(&Checkpoint::open(folder.path()).unwrap()).unwrap() else { panic!() };
        assert_eq!(model, again, "{family}");
    }
}

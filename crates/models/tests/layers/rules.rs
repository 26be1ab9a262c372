//! What holds for the layers whatever their numbers are.

use foveal::{Attention, Bias, Mask};
use foveal_models::Error;
use foveal_models::layer::dropout::{self, Dropout};
use foveal_models::layer::{
    Activation, CrossEntropy, Embedding, GatedMlp, LayerNorm, Linear, Mlp, MultiHeadAttention, Parameters, Random,
    RmsNorm, Source, derive_seed,
};
use ndarray::{Array2, s};

fn random(seed: u64, shape: (usize, usize)) -> Array2<f32> {
    Random::new(seed).normal(shape, 1.0)
}

/// One training step's worth of everything, large enough that threads are used: all outputs and gradients, as bits.
fn all_bits() -> Vec<u32> {
    let (batch, tokens, dim, vocabulary) = (3, 101, 72, 309);
    let mut random = Random::new(5);
    let embedding = Embedding::new(vocabulary, dim, &mut random);
    let norm = LayerNorm::new(dim, 1e-5);
    let rms = RmsNorm::new(dim, 1e-5);
    let attention = MultiHeadAttention::grouped(dim, 6, 2, &mut random).unwrap();
    let mlp = Mlp::new(dim, 4 * dim, Activation::Gelu, &mut random);
    let gated = GatedMlp::new(dim, 3 * dim, Activation::Silu, &mut random);
    let options = Attention::new().mask(Mask::causal()).dropout(0.1, 3);
    let drop = Dropout::new(0.1, derive_seed(1, &[2, 3]));
    let mut layers = (embedding.zeros_like(), norm.zeros_like(), rms.zeros_like(), attention.zeros_like());
    let mut mlps = (mlp.zeros_like(), gated.zeros_like());

    let ids: Vec<u32> = (0..batch * tokens).map(|_| random.below(vocabulary) as u32).collect();
    let mut x = embedding.forward(&ids).unwrap() * 50.0;
    dropout::apply(drop, batch, &mut x).unwrap();
    let (a, saved_norm) = norm.forward(&x.into_shared()).unwrap();
    let (b, saved_attention) = attention.forward(&a.into_shared(), None, batch, &options).unwrap();
    let (c, saved_mlp) = mlp.forward(&b.into_shared()).unwrap();
    let (d, saved_rms) = rms.forward(&c.into_shared()).unwrap();
    let (e, saved_gated) = gated.forward(&d.into_shared()).unwrap();
    let mut logits = embedding.logits(&e).unwrap() * 50.0;
    let mut values = logits.clone().into_raw_vec_and_offset().0;
    let loss =
        CrossEntropy { label_smoothing: 0.1, ignore: Some(7), of: None }.forward_backward(&mut logits, &ids).unwrap();
    values.push(loss.mean);
    let de = embedding.logits_backward(&e, &logits, &mut layers.0).unwrap();
    let dd = gated.backward(&saved_gated, &de, &mut mlps.1).unwrap();
    let dc = rms.backward(&saved_rms, &dd, &mut layers.2).unwrap();
    let db = mlp.backward(&saved_mlp, &dc, &mut mlps.0).unwrap();
    let da = attention.backward(&saved_attention, &db, &mut layers.3).unwrap().dx;
    let mut dx = norm.backward(&saved_norm, &da, &mut layers.1).unwrap();
    dropout::apply(drop, batch, &mut dx).unwrap();
    embedding.backward(&ids, &dx, &mut layers.0).unwrap();

    let mut collect = |name: &str, gradient: ndarray::ArrayViewD<f32>| {
        assert!(gradient.iter().any(|x| *x != 0.0), "{name} has no gradient");
        values.extend(&gradient);
    };
    layers.0.visit("embedding", &mut collect);
    layers.1.visit("norm", &mut collect);
    layers.2.visit("rms", &mut collect);
    layers.3.visit("attention", &mut collect);
    mlps.0.visit("mlp", &mut collect);
    mlps.1.visit("gated", &mut collect);
    assert!(values.iter().all(|x| x.is_finite()));
    values.into_iter().map(f32::to_bits).collect()
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let bits = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(all_bits);
    let one = bits(1);
    for threads in [1, 2, 3, 5] {
        assert!(bits(threads) == one, "{threads} threads");
    }
}

#[test]
fn the_cache_gives_what_the_whole_gives() {
    let llama = MultiHeadAttention::grouped(32, 4, 2, &mut Random::new(1)).unwrap();
    let gpt = MultiHeadAttention::fused(32, 4, &mut Random::new(1)).unwrap();
    let causal = Attention::new().mask(Mask::causal());
    for layer in [llama, gpt] {
        let (batch, tokens) = (2, 9);
        let x = random(2, (batch * tokens, 32)).into_shape_with_order((batch, tokens, 32)).unwrap();
        let rows = |range: std::ops::Range<usize>| {
            let part = x.slice(s![.., range, ..]).as_standard_layout().into_owned();
            let n = part.dim().0 * part.dim().1;
            part.into_shape_with_order((n, 32)).unwrap()
        };
        let whole = layer.infer(&rows(0..tokens), batch, Source::Own, &causal).unwrap().0;
        let whole = whole.into_shape_with_order((batch, tokens, 32)).unwrap();
        let mut cache = layer.cache(batch, tokens);
        for range in [0..4, 4..5, 5..7, 7..8, 8..9] {
            let (y, record) = layer.infer(&rows(range.clone()), batch, Source::Cache(&mut cache), &causal).unwrap();
            let y = y.into_shape_with_order((batch, range.len(), 32)).unwrap();
            let error = (&y - &whole.slice(s![.., range.clone(), ..])).mapv(f32::abs);
            assert!(error.iter().all(|x| *x < 1e-5), "{range:?}");
            assert_eq!((record.start, cache.len()), (range.start, range.end));
            assert_eq!(record.weights().is_ok(), range.start == 0);
        }
        // A refused call leaves the cache as it was.
        let wrong = causal.clone().mask(Mask::padding([1]));
        assert!(layer.infer(&rows(0..1), batch, Source::Cache(&mut cache), &wrong).is_err());
        assert_eq!(cache.len(), tokens);
    }
}

#[test]
fn every_option_of_the_engine_goes_through() {
    let layer = MultiHeadAttention::new(16, 4, &mut Random::new(1)).unwrap();
    let x = random(2, (6, 16)).into_shared();
    let options = Attention::new().mask(Mask::window(2, 1)).bias(Bias::alibi_with(vec![0.5, 0.25, 0.125, 0.0625]));
    let options = options.softcap(5.0).scale(0.3);
    let (y, saved) = layer.forward(&x, None, 1, &options).unwrap();
    assert_ne!(y, layer.forward(&x, None, 1, &Attention::new()).unwrap().0);
    let weights = saved.record.weights().unwrap();
    assert!(weights[[0, 0, 5, 0]] == 0.0 && (weights.sum() - 4.0 * 6.0).abs() < 1e-4);
    let gradients = layer.backward(&saved, &x, &mut layer.zeros_like()).unwrap();
    assert_eq!(gradients.dbias.unwrap().shape(), [4]);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let random_numbers = &mut Random::new(1);
    let error = MultiHeadAttention::new(100, 3, random_numbers).unwrap_err();
    assert!(error.to_string().contains("d_model 100 does not divide by"), "{error}");
    assert!(MultiHeadAttention::new(8, 0, random_numbers).is_err());
    assert!(MultiHeadAttention::grouped(24, 4, 3, random_numbers).is_err());
    let layer = MultiHeadAttention::new(8, 2, random_numbers).unwrap();
    assert!(layer.infer(&random(1, (7, 8)), 2, Source::Own, &Attention::new()).is_err(), "7 rows for 2 sequences");
    assert!(layer.infer(&random(1, (6, 9)), 2, Source::Own, &Attention::new()).is_err(), "9 columns for 8");
    assert!(layer.infer(&random(1, (6, 8)), 0, Source::Own, &Attention::new()).is_err(), "6 rows for no sequence");

    let embedding = Embedding::new(5, 4, random_numbers);
    assert!(matches!(embedding.forward(&[0, 5]), Err(Error::TokenId { id: 5, vocabulary: 5 })));
    let mut x = random(1, (6, 4));
    assert!(matches!(embedding.add_positions(&mut x, 1, 0), Err(Error::Context { tokens: 6, limit: 5 })));
    assert!(embedding.add_positions(&mut x, 4, 0).is_err());
    assert!(Linear::new(3, 2, random_numbers).forward(&x).is_err());
    assert!(LayerNorm::new(3, 1e-5).infer(&x).is_err() && RmsNorm::new(3, 1e-5).infer(&x).is_err());
    assert!(Mlp::new(3, 2, Activation::Relu, random_numbers).infer(&x).is_err());
    assert!(dropout::apply(Dropout::new(1.0, 0), 1, &mut x).is_err());
    let loss = CrossEntropy::new();
    assert!(loss.forward(&x, &[0; 5]).is_err() && loss.forward(&x, &[4; 6]).is_err());
    assert!(CrossEntropy { label_smoothing: 1.5, ..loss }.forward(&x, &[0; 6]).is_err());
}

#[test]
fn nothing_is_something_too() {
    let random_numbers = &mut Random::new(1);
    let x = Array2::<f32>::zeros((0, 8));
    let attention = MultiHeadAttention::new(8, 2, random_numbers).unwrap();
    let (y, saved) = attention.forward(&x.to_shared(), None, 3, &Attention::new()).unwrap();
    assert_eq!(y.dim(), (0, 8));
    attention.backward(&saved, &y, &mut attention.zeros_like()).unwrap();
    let norm = LayerNorm::new(8, 1e-5);
    let (y, saved) = norm.forward(&x.to_shared()).unwrap();
    norm.backward(&saved, &y, &mut norm.zeros_like()).unwrap();
    let mlp = Mlp::new(8, 16, Activation::Relu, random_numbers);
    mlp.backward(&mlp.forward(&x.to_shared()).unwrap().1, &y, &mut mlp.zeros_like()).unwrap();
    let all_ignored = CrossEntropy { ignore: Some(1), ..CrossEntropy::new() };
    let mut logits = random(1, (2, 4));
    let loss = all_ignored.forward_backward(&mut logits, &[1, 1]).unwrap();
    assert_eq!((loss.mean, loss.counted), (0.0, 0));
    assert!(logits.iter().all(|x| *x == 0.0));
    assert_eq!(CrossEntropy::new().forward(&Array2::zeros((0, 4)), &[]).unwrap().counted, 0);
}

#[test]
fn unlikely_numbers_survive() {
    // A NaN shows; an overflow of eˣ does not happen.
    let mut logits = ndarray::array![[1000.0, -1000.0, 0.0], [f32::NEG_INFINITY, 2.0, 2.0]];
    let loss = CrossEntropy::new().forward_backward(&mut logits, &[0, 2]).unwrap();
    assert!((loss.mean - 0.5 * 2f32.ln()).abs() < 1e-6 && logits.iter().all(|x| x.is_finite()));
    assert!(CrossEntropy::new().forward(&ndarray::array![[0.0, f32::NAN]], &[0]).unwrap().mean.is_nan());
    for activation in [Activation::Gelu, Activation::GeluTanh, Activation::Silu, Activation::Relu] {
        let mut x = ndarray::array![[f32::NAN, 1e4, -1e4, 3e38, -3e38]];
        activation.apply(&mut x);
        assert!(x[[0, 0]].is_nan(), "{activation:?}");
        assert_eq!(x.slice(s![0, 1..]), ndarray::array![1e4, 0.0, 3e38, 0.0], "{activation:?}");
    }
}

#[test]
fn names_are_unique_and_stay() {
    let layer = MultiHeadAttention::new(8, 2, &mut Random::new(1)).unwrap();
    let mut names = Vec::new();
    layer.visit("layers.0.self_attn", &mut |name, _| names.push(name.to_owned()));
    let expected = ["q_proj", "k_proj", "v_proj", "o_proj"];
    let expected: Vec<_> =
        expected.iter().flat_map(|p| ["weight", "bias"].map(|w| format!("layers.0.self_attn.{p}.{w}"))).collect();
    assert_eq!(names, expected);
    assert_eq!(vec![layer.clone(), layer.clone()].parameter_count(), 2 * layer.parameter_count());
}

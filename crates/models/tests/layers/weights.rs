//! Weights kept in 16 bits: the same numbers, and the same results from them, to the bit.

use foveal::{bf16, f16};
use foveal_models::Checkpoint;
use foveal_models::checkpoint::Dtype;
use foveal_models::generate::{Choice, GenerateOptions, Session};
use foveal_models::layer::{Embedding, Linear, Parameters, Projection, Random, Weight};
use foveal_models::model::{Gpt2, Gpt2Config, LanguageModel, Llama, LlamaConfig, Trained};
use ndarray::{Array1, Array2, s};

/// A matrix stored in 16 bits of either kind, and the same numbers in 32.
fn stored(seed: u64, shape: (usize, usize)) -> [(Weight, Array2<f32>); 2] {
    let array = Random::new(seed).normal(shape, 1.0);
    let (brain, half) = (array.mapv(bf16::from_f32), array.mapv(f16::from_f32));
    let wide = (brain.mapv(bf16::to_f32), half.mapv(f16::to_f32));
    [(brain.into(), wide.0), (half.into(), wide.1)]
}

#[test]
fn looking_at_it_does_not_change_it() {
    for shape in [(5, 7), (0, 3), (1, 1)] {
        for (weight, wide) in stored(1, shape) {
            assert_eq!((weight.shape(), weight.nrows(), weight.ncols()), (shape.into(), shape.0, shape.1));
            assert_eq!((weight.operand().widened(), &*weight), (wide.clone(), &wide));
            assert_eq!(weight.parameter_count(), shape.0 * shape.1);
            assert!(weight.is_narrow() && weight == Weight::from(wide));
        }
    }
}

#[test]
fn changing_it_makes_it_wide() {
    let changes: [fn(&mut Weight); 3] = [
        |weight| weight[[1, 2]] = 0.1,
        |weight| weight.visit_mut("", &mut |_, mut values| values[[1, 2]] = 0.1),
        |weight| weight.row_mut(1)[2] = 0.1,
    ];
    for change in changes {
        for looked_at in [false, true] {
            for (mut weight, wide) in stored(1, (5, 7)) {
                assert!(!looked_at || weight[[0, 0]] == wide[[0, 0]]);
                let before = weight.clone();
                change(&mut weight);
                assert!(!weight.is_narrow() && weight[[1, 2]] == 0.1 && weight[[4, 6]] == wide[[4, 6]]);
                assert!(before.is_narrow() && before != weight && *before == wide, "a copy is a copy");
            }
        }
    }
}

#[test]
fn layers_compute_the_same() {
    for (weight, wide) in stored(1, (90, 130)) {
        let bias = Some(Array1::linspace(-1.0, 1.0, 90));
        let narrow = Linear { weight: weight.clone(), bias: bias.clone() };
        let expected = Linear { weight: wide.clone().into(), bias };
        for rows in [1, 3, 20, 200] {
            let (x, dy) = (Random::new(3).normal((rows, 130), 1.0), Random::new(4).normal((rows, 90), 1.0));
            assert_eq!(narrow.forward(&x).unwrap(), expected.forward(&x).unwrap());
            let (mut grad, mut expected_grad) = (narrow.zeros_like(), expected.zeros_like());
            let dx = narrow.backward(&x, &dy, &mut grad).unwrap();
            assert_eq!(dx, expected.backward(&x, &dy, &mut expected_grad).unwrap());
            assert_eq!(grad, expected_grad);
            assert!(narrow.weight.is_narrow() && !grad.weight.is_narrow());
        }
        let (narrow, expected) = (Embedding { weight }, Embedding { weight: wide.into() });
        let x = narrow.forward(&[3, 89, 0, 3]).unwrap();
        assert_eq!(x, expected.forward(&[3, 89, 0, 3]).unwrap());
        assert_eq!(narrow.logits(&x).unwrap(), expected.logits(&x).unwrap());
        assert_eq!(narrow.logits(x.slice(s![..1, ..])).unwrap(), expected.logits(x.slice(s![..1, ..])).unwrap());
    }
}

/// Loaded from 16 bits, a model writes what it writes from the same numbers in 32.
fn writes_the_same<M: LanguageModel + Trained + Clone>(
    model: &M,
    save: impl Fn(&M, &std::path::Path, Dtype),
    load: impl Fn(&Checkpoint) -> M,
    projection: impl Fn(&M) -> &Projection,
) {
    let is_narrow = |model: &M| match projection(model) {
        Projection::Fused(qkv) => qkv.weight.is_narrow(),
        Projection::Separate { q, k, v } => [q, k, v].iter().all(|part| part.weight.is_narrow()),
    };
    let tokens = [3, 1, 4, 1, 5, 9, 2, 6];
    for dtype in [Dtype::BF16, Dtype::F16] {
        let round = |x: f32| if dtype == Dtype::BF16 { bf16::from_f32(x).to_f32() } else { f16::from_f32(x).to_f32() };
        let folder = tempfile::tempdir().unwrap();
        save(model, folder.path(), dtype);
        let loaded = load(&Checkpoint::open(folder.path()).unwrap());
        let mut wide = model.clone();
        wide.visit_mut("", &mut |_, mut values| values.mapv_inplace(round));
        assert!(is_narrow(&loaded) && !is_narrow(&wide));
        let write = |model: &M| {
            let options = GenerateOptions { most: 20, choice: Choice::Greedy, ..GenerateOptions::default() };
            Session::new(model).generate(&tokens, options).unwrap().collect::<Result<Vec<_>, _>>().unwrap()
        };
        assert_eq!(write(&loaded), write(&wide));
        let (logits, saved) = loaded.forward(&tokens, 2, None).unwrap();
        assert_eq!(logits, wide.forward(&tokens, 2, None).unwrap().0);
        // It can be trained all the same.
        let mut grad = loaded.zeros_like();
        loaded.backward(&saved, &logits, &mut grad).unwrap();
        assert!(is_narrow(&loaded) && !is_narrow(&grad));
        // Stored as f32, it is wide.
        save(&loaded, folder.path(), Dtype::F32);
        let again = load(&Checkpoint::open(folder.path()).unwrap());
        assert!(!is_narrow(&again));
        assert_eq!(again.forward(&tokens, 2, None).unwrap().0, logits);
    }
}

#[test]
fn models_of_16_bits() {
    let config =
        Gpt2Config { vocabulary: 40, context: 64, width: 64, layers: 2, heads: 4, hidden: 96, ..Gpt2Config::nano() };
    writes_the_same(
        &Gpt2::new(&config, &mut Random::new(1)).unwrap(),
        |model, folder, dtype| model.save(folder, dtype).unwrap(),
        |checkpoint| Gpt2::load(checkpoint).unwrap(),
        |model| &model.layers[1].attention.layer.attention().unwrap().projection,
    );
    let sizes = LlamaConfig { vocabulary: 40, width: 64, layers: 2, hidden: 96, ..LlamaConfig::nano() };
    let config = LlamaConfig { heads: 4, key_heads: 2, head_dim: 16, ..sizes };
    writes_the_same(
        &Llama::new(&config, &mut Random::new(1)).unwrap(),
        |model, folder, dtype| model.save(folder, dtype).unwrap(),
        |checkpoint| Llama::load(checkpoint).unwrap(),
        |model| &model.layers[1].attention.layer.attention().unwrap().projection,
    );
}

//! Weights kept in 16 bits: the same numbers, and the same results from them, to the bit.

use foveal::{bf16, f16};
use foveal_models::Checkpoint;
use foveal_models::checkpoint::Dtype;
use foveal_models::generate::{Choice, Session, Writing};
use foveal_models::layer::{Embedding, Linear, Parameters, Projection, Random, Weight};
use foveal_models::model::{Gpt2, Gpt2Config, LanguageModel, Llama, LlamaConfig, Trained};
use ndarray::{Array2, ShapeBuilder, array};

const ROUND: [fn(f32) -> f32; 2] = [|x| bf16::from_f32(x).to_f32(), |x| f16::from_f32(x).to_f32()];

fn rounded(seed: u64, shape: (usize, usize), round: fn(f32) -> f32) -> Array2<f32> {
    Random::new(seed).normal(shape, 1.0).mapv(round)
}

fn bits(x: &Array2<f32>) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn what_fits_is_kept_narrow() {
    let large = (300, 70);
    for round in ROUND {
        // Both orders in memory; nothing at all; more than one block of numbers.
        let rows = rounded(1, large, round);
        let columns = Array2::from_shape_fn(large.f(), |at| rows[at]);
        for array in [rows.clone(), columns, Array2::zeros((0, 3)), array![[0.0, -0.0, f32::INFINITY, f32::NAN]]] {
            let mut weight = Weight::from(array.clone());
            weight.narrow();
            assert!(weight.is_narrow());
            assert_eq!(
                (weight.shape(), weight.nrows(), weight.ncols()),
                (array.dim().into(), array.nrows(), array.ncols())
            );
            assert_eq!(bits(&weight), bits(&array));
            assert!(weight.is_narrow(), "looking does not change it");
            // Twice is as good as once.
            weight.narrow();
            assert_eq!(bits(&weight), bits(&array));
        }
        // One number that does not fit, at the beginning, in another block and at the end.
        for at in [(0, 0), (200, 3), (299, 69)] {
            let mut array = rows.clone();
            array[at] = 0.1;
            let mut weight = Weight::from(array.clone());
            weight.narrow();
            assert!(!weight.is_narrow() && *weight == array, "{at:?}");
        }
        let backwards = rows.slice(ndarray::s![..;-1, ..]).to_owned();
        let mut weight = Weight::from(rows.clone());
        weight.invert_axis(ndarray::Axis(0));
        weight.narrow();
        assert_eq!(*weight, backwards);
    }
    // The largest subnormal number of f16, the largest of all, and one that would become infinite. None is one of bf16.
    for (x, narrow) in [(f16::from_bits(0x3ff).to_f32(), true), (65_504.0, true), (65_521.0, false)] {
        let mut weight = Weight::from(array![[x]]);
        weight.narrow();
        assert_eq!((weight.is_narrow(), weight[[0, 0]]), (narrow, x));
    }
}

#[test]
fn changing_it_makes_it_wide_again() {
    let array = rounded(1, (5, 7), ROUND[0]);
    let changes: [fn(&mut Weight); 3] = [
        |weight| weight[[1, 2]] = 0.1,
        |weight| weight.visit_mut("", &mut |_, mut values| values[[1, 2]] = 0.1),
        |weight| weight.row_mut(1)[2] = 0.1,
    ];
    for change in changes {
        for looked_at in [false, true] {
            let mut weight = Weight::from(array.clone());
            weight.narrow();
            assert!(!looked_at || weight[[0, 0]] == array[[0, 0]]);
            let before = weight.clone();
            change(&mut weight);
            assert!(!weight.is_narrow() && weight[[1, 2]] == 0.1 && weight[[4, 6]] == array[[4, 6]]);
            assert!(before.is_narrow() && before != weight && *before == array, "a copy is a copy");
        }
    }
}

#[test]
fn layers_compute_the_same() {
    for round in ROUND {
        let (weight, bias) =
            (rounded(1, (90, 130), round), Some(rounded(2, (1, 90), round).remove_axis(ndarray::Axis(0))));
        let wide = Linear { weight: weight.clone().into(), bias };
        let mut narrow = wide.clone();
        narrow.narrow();
        assert!(narrow.weight.is_narrow());
        for rows in [1, 3, 20, 200] {
            let (x, dy) = (Random::new(3).normal((rows, 130), 1.0), Random::new(4).normal((rows, 90), 1.0));
            assert_eq!(narrow.forward(&x).unwrap(), wide.forward(&x).unwrap());
            let (mut grad, mut expected) = (narrow.zeros_like(), wide.zeros_like());
            let dx = narrow.backward(&x, &dy, &mut grad).unwrap();
            assert_eq!(dx, wide.backward(&x, &dy, &mut expected).unwrap());
            assert_eq!(grad, expected);
            assert!(!grad.weight.is_narrow());
        }
        let wide = Embedding { weight: weight.into() };
        let mut narrow = wide.clone();
        narrow.narrow();
        let x = narrow.forward(&[3, 89, 0, 3]).unwrap();
        assert_eq!(x, wide.forward(&[3, 89, 0, 3]).unwrap());
        assert_eq!(narrow.logits(&x).unwrap(), wide.logits(&x).unwrap());
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
    for (dtype, round) in [(Dtype::BF16, ROUND[0]), (Dtype::F16, ROUND[1])] {
        let folder = tempfile::tempdir().unwrap();
        save(model, folder.path(), dtype);
        let loaded = load(&Checkpoint::open(folder.path()).unwrap());
        let mut wide = model.clone();
        wide.visit_mut("", &mut |_, mut values| values.mapv_inplace(round));
        assert!(is_narrow(&loaded) && !is_narrow(&wide));
        let write = |model: &M| {
            let writing = Writing { most: 20, choice: Choice::Greedy, ..Writing::default() };
            Session::new(model).generate(&tokens, writing).unwrap().collect::<Result<Vec<_>, _>>().unwrap()
        };
        assert_eq!(write(&loaded), write(&wide));
        let (logits, saved) = loaded.forward(&tokens, 2, None).unwrap();
        assert_eq!(logits, wide.forward(&tokens, 2, None).unwrap().0);
        assert!(is_narrow(&loaded), "no one had to have it wide");
        // It can be trained all the same.
        let mut grad = loaded.zeros_like();
        loaded.backward(&saved, &logits, &mut grad).unwrap();
        assert!(!is_narrow(&grad) && is_narrow(&loaded));
    }
}

#[test]
fn models_of_16_bits() {
    let config =
        Gpt2Config { vocabulary: 40, context: 64, width: 64, layers: 2, heads: 4, hidden: 96, ..Gpt2Config::nano() };
    let gpt2 = Gpt2::new(&config, &mut Random::new(1)).unwrap();
    writes_the_same(
        &gpt2,
        |model, folder, dtype| model.save(folder, dtype).unwrap(),
        |checkpoint| Gpt2::load(checkpoint).unwrap(),
        |model| &model.layers[1].attention.layer.attention().unwrap().projection,
    );
    let config = LlamaConfig {
        vocabulary: 40,
        width: 64,
        layers: 2,
        heads: 4,
        key_heads: 2,
        head_dim: 16,
        hidden: 96,
        ..LlamaConfig::nano()
    };
    let llama = Llama::new(&config, &mut Random::new(1)).unwrap();
    writes_the_same(
        &llama,
        |model, folder, dtype| model.save(folder, dtype).unwrap(),
        |checkpoint| Llama::load(checkpoint).unwrap(),
        |model| &model.layers[1].attention.layer.attention().unwrap().projection,
    );
}

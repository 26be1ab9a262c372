//! The copy head against PyTorch, with its pointer in a layer of cross-attention, and against finite differences.

use foveal::{Attention, Mask};
use foveal_models::Error;
use foveal_models::layer::{
    CopyHead, CrossEntropy, Embedding, MultiHeadAttention, Param, ParamMut, Parameters, Pointed, PointerGradient,
    Random,
};
use ndarray::{Array2, Array3, arr0};

use crate::fixture::Fixture;

const POINTER: usize = 1;

/// A decoder in small: attention, scores of what it gives, and the gate.
#[derive(Clone)]
struct Decoder {
    attention: MultiHeadAttention,
    embedding: Embedding,
    copy: CopyHead,
}

impl Parameters for Decoder {
    fn params<'a>(&'a self, _: &str, f: &mut dyn FnMut(&str, Param<'a>)) {
        self.attention.params("attention", f);
        self.embedding.params("embedding", f);
        self.copy.params("", f);
    }

    fn params_mut<'a>(&'a mut self, _: &str, f: &mut dyn FnMut(&str, ParamMut<'a>)) {
        self.attention.params_mut("attention", f);
        self.embedding.params_mut("embedding", f);
        self.copy.params_mut("", f);
    }
}

#[test]
fn a_pointer_in_cross_attention_is_pytorchs() {
    for (name, label_smoothing) in [("copy", 0.0), ("copy_smooth", 0.1)] {
        let (file, random, batch) = (Fixture::load(name), &mut Random::new(1), 2);
        let mut model = Decoder {
            attention: MultiHeadAttention::new(24, 4, random).unwrap(),
            embedding: Embedding::new(11, 24, random),
            copy: CopyHead::new(24, random),
        };
        file.fill("", &mut model);
        let (x, memory) = (file.matrix("x").into_shared(), file.matrix("memory").into_shared());
        let (read, targets) = (file.tokens("read"), file.tokens("targets"));
        let padding = Attention::new().mask(Mask::padding([9, 6]));
        let (hidden, saved) = model.attention.forward(&x, Some(&memory), batch, &padding).unwrap();
        let weights = saved.record.pointer(POINTER).unwrap();
        let pointed = Pointed { weights: weights.view(), tokens: &read };
        let logits = model.embedding.logits(&hidden).unwrap();
        let mixture = model.copy.forward(&hidden, logits, pointed).unwrap();
        let options = CrossEntropy { label_smoothing, ignore: Some(3), of: None };
        let (loss, gradients) = mixture.loss_backward(&options, &targets).unwrap();
        file.check("y", &arr0(loss.mean).into_dyn());

        let mut grad = model.zeros_like();
        let dhidden = model.copy.backward(&hidden, &gradients, &mut grad.copy).unwrap()
            + model.embedding.logits_backward(&hidden, &gradients.dlogits, &mut grad.embedding).unwrap();
        let pointer = PointerGradient { head: POINTER, dweights: gradients.dweights.view() };
        let back = model.attention.backward_with(&saved, &dhidden, Some(pointer.into()), &mut grad.attention).unwrap();
        file.check("dx", &back.dx.into_dyn());
        file.check("dmemory", &back.dmemory.unwrap().into_dyn());
        file.check_gradients("", &grad);
    }
}

/// −ln p of each target, written out in f64, averaged.
fn loss(hidden: &Array2<f32>, logits: &Array2<f32>, weights: &Array3<f32>, gate: &[f32]) -> f64 {
    let mut sum = 0.0;
    for (n, target) in TARGETS.into_iter().enumerate() {
        let h: f64 = hidden.row(n).iter().zip(gate).map(|(h, w)| f64::from(*h) * f64::from(*w)).sum();
        let g = 1.0 / (1.0 + (-h).exp());
        let exp: Vec<f64> = logits.row(n).iter().map(|x| f64::from(*x).exp()).collect();
        let pointed = weights.slice(ndarray::s![n / 2, n % 2, ..]);
        let read = &READ[n / 2 * 3..n / 2 * 3 + 3];
        let copied = read.iter().zip(pointed).filter(|(token, _)| **token == target);
        let copied: f64 = copied.map(|(_, a)| f64::from(*a)).sum();
        sum -= ((1.0 - g) * exp[target as usize] / exp.iter().sum::<f64>() + g * copied).ln();
    }
    sum / TARGETS.len() as f64
}

const READ: [u32; 6] = [4, 2, 4, 0, 3, 1];
const TARGETS: [u32; 4] = [4, 1, 3, 3];

#[test]
fn gradients_are_finite_differences() {
    let mut random = Random::new(5);
    let (mut hidden, mut logits) = (random.normal((4, 3), 1.0), random.normal((4, 5), 1.0));
    let mut weights = random.normal((2, 2, 3), 1.0).mapv(f32::exp);
    weights.rows_mut().into_iter().for_each(|mut row| row /= row.sum());
    let mut copy = CopyHead::new(3, &mut random);
    copy.gate.weight.assign(&random.normal((1, 3), 1.0));
    let gate = copy.gate.weight.row(0).to_vec();
    let pointed = Pointed { weights: weights.view(), tokens: &READ };
    let mixture = copy.forward(&hidden, logits.clone(), pointed).unwrap();
    let (got, gradients) = mixture.loss_backward(&CrossEntropy::new(), &TARGETS).unwrap();
    assert!((f64::from(got.mean) - loss(&hidden, &logits, &weights, &gate)).abs() < 1e-6);
    let dhidden = copy.backward(&hidden, &gradients, &mut copy.zeros_like()).unwrap();

    // The error of a difference is h²/6 times the third derivative of −ln p, which is 2/p³.
    const STEP: f32 = 1.0 / 1024.0;
    let check = |what: &str, plus: f64, minus: f64, distance: f64, ours: f32| {
        let slope = (plus - minus) / distance;
        assert!((slope - f64::from(ours)).abs() < 3e-4, "{what}: {ours}, not {slope}");
    };
    macro_rules! differences {
        ($array:ident, $gradient:expr) => {
            for i in 0..$array.len() {
                let old = $array.as_slice().unwrap()[i];
                let mut at = |value: f32| {
                    $array.as_slice_mut().unwrap()[i] = value;
                    loss(&hidden, &logits, &weights, &gate)
                };
                let (plus, minus) = (at(old + STEP), at(old - STEP));
                at(old);
                let distance = f64::from(old + STEP) - f64::from(old - STEP);
                check(stringify!($array), plus, minus, distance, $gradient.as_slice().unwrap()[i]);
            }
        };
    }
    differences!(hidden, dhidden);
    differences!(logits, gradients.dlogits);
    differences!(weights, gradients.dweights);
}

#[test]
fn bad_inputs_are_told() {
    let copy = CopyHead::new(3, &mut Random::new(1));
    let weights = Array3::zeros((1, 2, 2));
    let run = |rows, tokens: &[u32]| {
        let pointed = Pointed { weights: weights.view(), tokens };
        copy.forward(&Array2::ones((rows, 3)), Array2::zeros((rows, 5)), pointed).map(|_| ())
    };
    assert!(run(2, &[0, 4]).is_ok());
    assert!(matches!(run(2, &[0, 5]), Err(Error::TokenId { id: 5, vocabulary: 5 })));
    assert!(run(3, &[0, 4]).is_err() && run(2, &[0]).is_err());
}

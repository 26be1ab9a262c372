//! Every layer, forward and backward, against PyTorch in f64.

use foveal::{Attention, Mask};
use foveal_models::layer::{
    Activation, CrossEntropy, Embedding, GatedMlp, LayerNorm, Linear, Mlp, MultiHeadAttention, Parameters, Projection,
    Random, RmsNorm, Source,
};
use ndarray::Array2;

use crate::fixture::Fixture;

#[test]
fn linear() {
    let file = Fixture::load("linear");
    let mut layer = Linear::new(37, 50, &mut Random::new(1));
    file.fill("", &mut layer);
    let conv1d = Linear::from_conv1d(layer.weight.t().as_standard_layout().into_owned(), layer.bias.clone());
    for layer in [layer, conv1d] {
        let x = file.matrix("x");
        file.check("y", &layer.forward(&x).unwrap().into_dyn());
        let mut grad = layer.zeros_like();
        file.check("dx", &layer.backward(&x, &file.matrix("dy"), &mut grad).unwrap().into_dyn());
        file.check_gradients("", &grad);
    }
}

#[test]
fn norms() {
    let file = Fixture::load("layer_norm");
    let mut layer = LayerNorm::new(37, 1e-5);
    file.fill("", &mut layer);
    let (y, saved) = layer.forward(&file.matrix("x").into_shared()).unwrap();
    file.check("y", &y.clone().into_dyn());
    assert_eq!(layer.infer(&file.matrix("x")).unwrap(), y);
    let mut grad = layer.zeros_like();
    file.check("dx", &layer.backward(&saved, file.matrix("dy"), &mut grad).unwrap().into_dyn());
    file.check_gradients("", &grad);

    let file = Fixture::load("rms_norm");
    let mut layer = RmsNorm::new(37, 1e-6);
    file.fill("", &mut layer);
    let (y, saved) = layer.forward(&file.matrix("x").into_shared()).unwrap();
    file.check("y", &y.clone().into_dyn());
    assert_eq!(layer.infer(&file.matrix("x")).unwrap(), y);
    let mut grad = layer.zeros_like();
    file.check("dx", &layer.backward(&saved, file.matrix("dy"), &mut grad).unwrap().into_dyn());
    file.check_gradients("", &grad);
}

#[test]
fn embedding() {
    let file = Fixture::load("embedding");
    let (mut tokens, mut positions) =
        (Embedding::new(13, 37, &mut Random::new(1)), Embedding::new(8, 37, &mut Random::new(1)));
    tokens.weight.assign(&file.matrix("p.tokens"));
    positions.weight.assign(&file.matrix("p.positions"));
    let ids = file.tokens("ids");
    let mut y = tokens.forward(&ids).unwrap();
    positions.add_positions(&mut y, 2, 2).unwrap();
    file.check("y", &y.into_dyn());
    let (mut dtokens, mut dpositions, dy) = (tokens.zeros_like(), positions.zeros_like(), file.matrix("dy"));
    tokens.backward(&ids, &dy, &mut dtokens).unwrap();
    positions.add_positions_backward(&dy, 2, 2, &mut dpositions).unwrap();
    file.check("g.tokens", &dtokens.weight.view().to_owned().into_dyn());
    file.check("g.positions", &dpositions.weight.view().to_owned().into_dyn());

    let file = Fixture::load("logits");
    let mut layer = tokens;
    file.fill("", &mut layer);
    let x = file.matrix("x");
    file.check("y", &layer.logits(&x).unwrap().into_dyn());
    let mut grad = layer.zeros_like();
    file.check("dx", &layer.logits_backward(&x, &file.matrix("dy"), &mut grad).unwrap().into_dyn());
    file.check_gradients("", &grad);
}

#[test]
fn activations() {
    let all = [
        ("gelu", Activation::Gelu),
        ("gelu_tanh", Activation::GeluTanh),
        ("silu", Activation::Silu),
        ("relu", Activation::Relu),
    ];
    for (name, activation) in all {
        let (file, x) = (Fixture::load(name), Fixture::load(name).matrix("x"));
        let (y, slopes) = activation.forward(x.clone());
        let y = y.into_owned();
        file.check("y", &y.clone().into_dyn());
        let worst = |expected: &ndarray::ArrayD<f64>, got: &Array2<f32>| {
            let small = expected.iter().zip(got).filter(|(expected, _)| expected.abs() < 10.0);
            small.map(|(expected, got)| (expected - f64::from(*got)).abs()).fold(0.0, f64::max)
        };
        assert!(worst(file.get("y"), &y) < 1e-6, "{name}: error {:e}", worst(file.get("y"), &y));
        let mut in_place = x.clone();
        activation.apply(&mut in_place);
        assert_eq!(y, in_place);
        let mut dy = file.matrix("dy");
        assert_eq!(slopes.backward(&dy).unwrap(), slopes.apply(&mut dy).map(|()| dy.clone()).unwrap());
        file.check("dx", &dy.into_dyn());
    }
}

#[test]
fn mlps() {
    let file = Fixture::load("mlp");
    let mut layer = Mlp::new(37, 50, Activation::GeluTanh, &mut Random::new(1));
    file.fill("", &mut layer);
    let (y, saved) = layer.forward(&file.matrix("x").into_shared()).unwrap();
    file.check("y", &y.clone().into_dyn());
    assert_eq!(layer.infer(&file.matrix("x")).unwrap(), y);
    let mut grad = layer.zeros_like();
    file.check("dx", &layer.backward(&saved, file.matrix("dy"), &mut grad).unwrap().into_dyn());
    file.check_gradients("", &grad);

    let file = Fixture::load("gated_mlp");
    let mut layer = GatedMlp::new(37, 50, Activation::Silu, &mut Random::new(1));
    file.fill("", &mut layer);
    let (y, saved) = layer.forward(&file.matrix("x").into_shared()).unwrap();
    file.check("y", &y.clone().into_dyn());
    assert_eq!(layer.infer(&file.matrix("x")).unwrap(), y);
    let mut grad = layer.zeros_like();
    file.check("dx", &layer.backward(&saved, file.matrix("dy"), &mut grad).unwrap().into_dyn());
    file.check_gradients("", &grad);
}

#[test]
fn cross_entropy() {
    let smooth = CrossEntropy { label_smoothing: 0.1, ignore: Some(12), of: None };
    for (name, loss) in [("cross_entropy", CrossEntropy::new()), ("cross_entropy_smooth", smooth)] {
        let file = Fixture::load(name);
        let (mut logits, targets) = (file.matrix("x"), file.tokens("targets"));
        let only = loss.forward(&logits, &targets).unwrap();
        let got = loss.forward_backward(&mut logits, &targets).unwrap();
        assert_eq!(only, got);
        file.check("y", &ndarray::arr0(got.mean).into_dyn());
        file.check("dx", &logits.into_dyn());
    }
}

/// Fills the layer from the file, runs it both ways, and compares everything.
fn check_attention(name: &'static str, mut layer: MultiHeadAttention, attention: &Attention) {
    let (file, batch) = (Fixture::load(name), 2);
    file.fill("", &mut layer);
    let x = file.matrix("x").into_shared();
    let memory = name.contains("cross").then(|| file.matrix("memory").into_shared());
    let (y, saved) = layer.forward(&x, memory.as_ref(), batch, attention).unwrap();
    file.check("y", &y.clone().into_dyn());
    file.check("weights", &saved.record.weights().unwrap().into_dyn());
    if let Some(memory) = &memory {
        let projected = layer.project_memory(memory, batch).unwrap();
        assert_eq!(layer.infer(&x, batch, Source::Projected(&projected), attention).unwrap().0, y);
    }
    let mut grad = layer.zeros_like();
    let gradients = layer.backward(&saved, &file.matrix("dy"), &mut grad).unwrap();
    file.check("dx", &gradients.dx.into_dyn());
    assert_eq!(gradients.dmemory.is_some(), memory.is_some());
    if let Some(dmemory) = gradients.dmemory {
        file.check("dmemory", &dmemory.into_dyn());
    }
    file.check_gradients("", &grad);
}

fn fused() -> MultiHeadAttention {
    MultiHeadAttention::fused(24, 4, &mut Random::new(1)).unwrap()
}

#[test]
fn multi_head_attention() {
    let causal = Attention::new().mask(Mask::causal());
    check_attention("attention_self", fused(), &Attention::new());
    check_attention("attention_causal", fused(), &causal);
    check_attention("attention_padding", fused(), &Attention::new().mask(Mask::padding([7, 4])));
    check_attention("attention_cross_fused", fused(), &Attention::new());

    let random = &mut Random::new(1);
    let (q, k, v) = (Linear::new(24, 24, random), Linear::new(18, 24, random), Linear::new(18, 24, random));
    let projection = Projection::Separate { q, k, v };
    let cross = MultiHeadAttention::from_parts(projection, Linear::new(24, 24, random), 4, 4).unwrap();
    check_attention("attention_cross", cross, &Attention::new().mask(Mask::padding([9, 6])));

    let llama = MultiHeadAttention::grouped(24, 4, 2, random).unwrap();
    check_attention("attention_llama", llama, &causal);
}

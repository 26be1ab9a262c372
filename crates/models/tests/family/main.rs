//! Every kind of attention as the attention of a model: its weights by their definition, its gradients by differences of the
//! loss, generation with a cache, and what is saved.

mod gradients;
mod names;
mod weights;

use foveal_models::layer::{Activation, Family, Random};
use foveal_models::model::{
    Bert, BertConfig, Gpt2, Gpt2Config, Llama, LlamaConfig, Transformer, TransformerConfig, Vit, VitConfig,
};

/// Small sizes, so that nothing sees everything.
fn all() -> Vec<Family> {
    let text = [
        "softmax",
        "dot",
        "additive",
        "longformer:window=2,dilation=1,globals=1",
        "longformer:window=2,dilation=2,globals=0",
        "bigbird:block=2,window=1,globals=1,random=1,seed=5",
        "strided:stride=3",
        "fixed:stride=3,summary=1",
        "linear",
        "favor:features=24,seed=3",
    ];
    text.iter().map(|text| text.parse().unwrap()).collect()
}

fn gpt2(attention: Family) -> Gpt2 {
    let sizes =
        Gpt2Config { vocabulary: 11, context: 16, width: 24, heads: 2, layers: 2, hidden: 48, ..Gpt2Config::nano() };
    lively(Gpt2::new(&Gpt2Config { attention, ..sizes }, &mut Random::new(4)).unwrap())
}

fn bert(attention: Family) -> Bert {
    let sizes =
        BertConfig { vocabulary: 11, context: 16, width: 24, heads: 2, layers: 2, hidden: 48, ..BertConfig::base() };
    lively(Bert::new(&BertConfig { guesses: true, attention, ..sizes }, &mut Random::new(4)).unwrap())
}

fn llama(attention: Family) -> Llama {
    let sizes = LlamaConfig { vocabulary: 11, context: 16, width: 24, heads: 2, key_heads: 1, ..LlamaConfig::nano() };
    let sizes = LlamaConfig { head_dim: 12, hidden: 32, layers: 2, attention, ..sizes };
    lively(Llama::new(&sizes, &mut Random::new(4)).unwrap())
}

fn transformer(attention: Family) -> Transformer {
    let small =
        TransformerConfig { source_vocabulary: 11, target_vocabulary: 9, context: 16, ..TransformerConfig::small() };
    let sizes = TransformerConfig { width: 24, heads: 2, hidden: 32, activation: Activation::Gelu, attention, ..small };
    lively(Transformer::new(&sizes, &mut Random::new(4)).unwrap())
}

fn vit(attention: Family, class_token: bool) -> Vit {
    let sizes = VitConfig { image: 8, patch: 2, width: 16, heads: 2, hidden: 32, layers: 2, ..VitConfig::digits() };
    lively(Vit::new(&VitConfig { class_token, attention, ..sizes }, &mut Random::new(4)).unwrap())
}

/// Parameters large enough that attention is not the same everywhere.
fn lively<P: foveal_models::layer::Parameters>(mut model: P) -> P {
    let mut random = Random::new(8);
    model.visit_mut("", &mut |name, mut parameter| {
        let shape = parameter.raw_dim();
        if !name.contains("norm") {
            parameter.assign(&random.normal(shape, 0.25));
        }
    });
    model
}

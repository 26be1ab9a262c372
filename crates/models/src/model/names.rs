//! The names that Hugging Face gives to parameters, and loading and saving by them.

use std::path::Path;

use serde_json::Value;

use crate::Result;
use crate::checkpoint::{Checkpoint, Config, Dtype, save_as};
use crate::layer::{Activation, Family, ParamMut, Parameters};

/// How the names of a model's parameters become those of its checkpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    /// What becomes of parts of a name, one after the other. A part of ours that begins without a dot is the beginning.
    pub parts: &'static [(&'static str, &'static str)],
    /// Ends of names whose matrices lie transposed in the file.
    pub transposed: &'static [&'static str],
}

impl Names {
    /// Their name for ours.
    fn theirs(&self, ours: &str) -> String {
        self.parts.iter().fold(ours.to_owned(), |name, (from, to)| match name.find(from) {
            Some(at) if at == 0 || from.starts_with('.') => name.replacen(from, to, 1),
            _ => name,
        })
    }

    fn is_transposed(&self, theirs: &str) -> bool {
        self.transposed.iter().any(|end| theirs.ends_with(end))
    }

    /// Fills all parameters of a model from a checkpoint. Weights of 16 bits stay as they are there.
    pub fn load(&self, checkpoint: &Checkpoint, model: &mut impl Parameters) -> Result<()> {
        let mut outcome = Ok(());
        model.params_mut("", &mut |ours, param| {
            if outcome.is_err() {
                return;
            }
            let name = self.theirs(ours);
            let transposed = self.is_transposed(&name);
            outcome = match param {
                ParamMut::Weight(weight) => checkpoint.read_weight(&name, transposed, weight),
                ParamMut::Values(values) if transposed => checkpoint.read_into(&name, values.reversed_axes()),
                ParamMut::Values(values) => checkpoint.read_into(&name, values),
            };
        });
        outcome
    }

    /// Saves a model with its configuration, whole or not at all.
    pub fn save(&self, folder: &Path, config: &Value, model: &impl Parameters, dtype: Dtype) -> Result<()> {
        self.save_without("", folder, config, model, dtype)
    }

    /// The same with names that begin after `prefix`: those of a body without a head.
    pub fn save_without(
        &self,
        prefix: &str,
        folder: &Path,
        config: &Value,
        model: &impl Parameters,
        dtype: Dtype,
    ) -> Result<()> {
        let mut tensors = Vec::new();
        model.visit("", &mut |ours, parameter| {
            let name = self.theirs(ours);
            let parameter = if self.is_transposed(&name) { parameter.reversed_axes() } else { parameter };
            tensors.push((name.strip_prefix(prefix).map_or(name.clone(), str::to_owned), parameter));
        });
        save_as(folder, config.as_object().expect("a configuration is an object"), tensors, dtype)
    }
}

/// Where a language model's predictions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputHead {
    /// The embedding.
    Tied,
    /// A matrix of its own.
    Own,
    /// Nowhere: the checkpoint is a body without a head.
    None,
}

impl OutputHead {
    /// By what a checkpoint's files hold. A head that is there counts, also where the configuration ties it to the embedding:
    /// so do transformers and llama.cpp. The same numbers twice are one matrix.
    pub(super) fn of(checkpoint: &Checkpoint, tied: bool, head: &str, embedding: &str) -> Self {
        match (checkpoint.get(head), checkpoint.get(embedding)) {
            (Some(head), Some(embedding)) if tied && head.is_same(&embedding) => OutputHead::Tied,
            (Some(_), _) => OutputHead::Own,
            (None, _) if tied => OutputHead::Tied,
            // A model that is said to predict and lacks what it takes is damaged.
            (None, _) if names_a_predictor(checkpoint.config()) => OutputHead::Own,
            (None, _) => OutputHead::None,
        }
    }
}

/// Whether the class in `architectures` is one that predicts tokens; a file that names none is taken for one.
fn names_a_predictor(config: &Config) -> bool {
    let class = config.get("architectures").and_then(|list| list.get(0)).and_then(Value::as_str);
    class.is_none_or(|class| class.ends_with("ForCausalLM") || class.ends_with("LMHeadModel"))
}

/// Refuses truth values other than those that are computed here.
pub(super) fn only(config: &Config, computed: &[(&str, bool)]) -> Result<()> {
    for &(key, computed) in computed {
        if config.flag_or(key, computed)? != computed {
            return Err(config.error(key, computed.to_string(), !computed));
        }
    }
    Ok(())
}

const ACTIVATIONS: [(&str, Activation); 7] = [
    ("gelu", Activation::Gelu),
    ("gelu_new", Activation::GeluTanh),
    ("gelu_pytorch_tanh", Activation::GeluTanh),
    ("gelu_fast", Activation::GeluTanh),
    ("silu", Activation::Silu),
    ("swish", Activation::Silu),
    ("relu", Activation::Relu),
];

/// The activation that a configuration names.
pub(super) fn activation(config: &Config, key: &str, default: &str) -> Result<Activation> {
    let name = config.text_or(key, default)?;
    let known = ACTIVATIONS.into_iter().find(|(known, _)| *known == name);
    known.map(|(_, activation)| activation).ok_or_else(|| {
        let names = ACTIVATIONS.map(|(name, _)| name).join(", ");
        config.error(key, format!("one of {names}"), name)
    })
}

/// The kind of attention that a configuration names. Hugging Face knows no such key: without it there is softmax attention.
pub(super) fn family(config: &Config) -> Result<Family> {
    let name = config.text_or(FAMILY, "softmax")?;
    name.parse().map_err(|error| config.error(FAMILY, format!("{error}"), name))
}

/// Adds it to a configuration, if it is not what all know.
pub(super) fn write_family(config: &mut Value, family: Family) {
    if family != Family::Softmax {
        config[FAMILY] = family.to_string().into();
    }
}

const FAMILY: &str = "attention_family";

/// A number as it was meant: 1e-5 is 9.999999747378752e-6 as f64.
pub(super) fn decimal(x: f32) -> f64 {
    x.to_string().parse().unwrap_or_else(|_| x.into())
}

/// The name of an activation.
pub(super) fn of_activation(activation: Activation) -> &'static str {
    let known = ACTIVATIONS.into_iter().find(|(_, known)| *known == activation);
    known.map_or("gelu", |(name, _)| name)
}

//! Weights that were made small in ways that are not read here. Their tensors have other names, shapes and types than the
//! model's, so that without a look at them first all that could be said is that something is absent.

use super::{Config, Dtype};
use crate::{Error, Result};

/// Ends of the names of tensors by which a method is known, where the configuration does not name it.
const MARKS: [(&str, &str); 7] = [
    (".qweight", "gptq or awq"),
    (".qzeros", "gptq or awq"),
    (".SCB", "bitsandbytes (8 bits)"),
    (".weight.absmax", "bitsandbytes (4 bits)"),
    (".quant_state.bitsandbytes__nf4", "bitsandbytes (4 bits)"),
    (".quant_state.bitsandbytes__fp4", "bitsandbytes (4 bits)"),
    (".weight_packed", "compressed-tensors"),
];

const METHOD: &str = "quantization_config.quant_method";
const EXPECTED: &str =
    "none: weights as F32, F16 or BF16, or a GGUF file; take the model as it was before it was quantised";

/// Refuses a checkpoint that was quantised, by its configuration or the names of its tensors, and one whose weights have a type
/// that holds no numbers of a model.
pub(super) fn refuse<'a>(config: &Config, tensors: impl Iterator<Item = (&'a str, Dtype)> + Clone) -> Result<()> {
    if let Some(section) = config.section("quantization_config")? {
        return Err(config.error(METHOD, EXPECTED, named(&section)));
    }
    for (name, _) in tensors.clone() {
        if let Some((mark, method)) = MARKS.into_iter().find(|(mark, _)| name.ends_with(mark)) {
            return Err(config.error(
                METHOD,
                EXPECTED,
                format!("absent, but the tensor {name} is of {method} ({mark})"),
            ));
        }
    }
    // Beside weights there are buffers of whole numbers, such as positions, that no one reads.
    let weight = |name: &str| name.ends_with(".weight") || name.ends_with(".bias");
    match tensors.clone().find(|(name, dtype)| weight(name) && matches!(dtype, Dtype::Other(_))) {
        Some((name, dtype)) => Err(Error::Dtype { name: name.to_owned(), got: dtype.to_string() }),
        None => Ok(()),
    }
}

/// What a `quantization_config` calls its method; bitsandbytes did not always say.
fn named(section: &Config) -> String {
    let set = |key: &str| section.get(key).is_some_and(|value| value == true);
    match section.get("quant_method").and_then(|method| method.as_str()) {
        Some(method) => method.to_owned(),
        None if set("load_in_8bit") || set("load_in_4bit") => "bitsandbytes".into(),
        None => "not said".into(),
    }
}

//! Rotary positions as `config.json` says them.
//!
//! transformers has kept them under `rope_theta` and `rope_scaling`, and since version 5 under `rope_parameters`. Where there
//! are both sections, `rope_scaling` counts; what a section lacks is taken from beside it.

use foveal::RopeScaling;
use serde_json::{Value, json};

use crate::Result;
use crate::checkpoint::Config;

/// What is said of rotary positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Positions {
    /// How many tokens a text may have.
    pub(super) context: usize,
    pub(super) base: f64,
    pub(super) scaling: RopeScaling,
    /// By how much queries and keys are made longer.
    pub(super) attention_factor: f64,
}

const ORIGINAL: &str = "original_max_position_embeddings";

impl Positions {
    pub(super) fn read(config: &Config) -> Result<Self> {
        let older = config.section("rope_scaling")?.filter(|section| !section.values().is_empty());
        let section = match older {
            Some(section) => Some(section),
            None => config.section("rope_parameters")?,
        };
        for config in section.iter().chain([config]) {
            let share = config.float_or("partial_rotary_factor", 1.0)?;
            if share != 1.0 {
                return Err(config.error("partial_rotary_factor", "1, all of a head", share));
            }
        }
        let with_base = section.as_ref().filter(|section| section.get("rope_theta").is_some());
        let context = config.size_or("max_position_embeddings", 2048)?;
        let base = with_base.unwrap_or(config).float_or("rope_theta", 10_000.0)?;
        let plain = Positions { context, base, scaling: RopeScaling::None, attention_factor: 1.0 };
        section.as_ref().map_or(Ok(plain), |section| plain.scaled(config, section))
    }

    /// With what the section says, whose kind older files call `type`.
    fn scaled(self, config: &Config, section: &Config) -> Result<Self> {
        let key = if section.get("rope_type").is_some() { "rope_type" } else { "type" };
        // The length a model was trained on first stands in some files beside the section, and counts more there.
        let trained = || match config.get(ORIGINAL) {
            Some(_) => config.size(ORIGINAL),
            None => section.size_or(ORIGINAL, self.context),
        };
        Ok(match section.text_or(key, "default")? {
            "default" => self,
            "linear" => Positions { scaling: RopeScaling::Linear(section.float("factor")?), ..self },
            "dynamic" => {
                let (factor, trained) = (section.float("factor")?, self.context);
                // max_position_embeddings is the trained length here, and the factor how far the scaling reaches.
                let context = (trained as f64 * factor.max(1.0)).min(f64::from(u32::MAX)) as usize;
                Positions { context, scaling: RopeScaling::Dynamic { factor, trained }, ..self }
            }
            "llama3" => {
                let scaling = RopeScaling::Llama3 {
                    factor: section.float("factor")?,
                    low: section.float("low_freq_factor")?,
                    high: section.float("high_freq_factor")?,
                    trained: trained()?,
                };
                Positions { scaling, ..self }
            }
            "yarn" => self.yarn(section, trained()?)?,
            other => return Err(section.error(key, "default, linear, dynamic, llama3 or yarn", other)),
        })
    }

    fn yarn(self, section: &Config, trained: usize) -> Result<Self> {
        let factor = section.float_or("factor", self.context as f64 / trained as f64)?;
        // 0 counts as not said, as in transformers.
        let or = |key: &str, default: f64| {
            section.float_or(key, 0.0).map(|value| if value == 0.0 { default } else { value })
        };
        let sharper = |by: f64| if factor <= 1.0 { 1.0 } else { 0.1 * by * factor.ln() + 1.0 };
        let suggested = match (or("mscale", 0.0)?, or("mscale_all_dim", 0.0)?) {
            (scale, all) if scale != 0.0 && all != 0.0 => sharper(scale) / sharper(all),
            _ => sharper(1.0),
        };
        let scaling = RopeScaling::Yarn {
            factor,
            fast: or("beta_fast", 32.0)?,
            slow: or("beta_slow", 1.0)?,
            trained,
            whole_pairs: section.flag_or("truncate", true)?,
        };
        Ok(Positions { scaling, attention_factor: section.float_or("attention_factor", suggested)?, ..self })
    }

    /// Adds them to a `config.json`.
    pub(super) fn write(&self, config: &mut Value, head_dim: usize) {
        let (mut context, mut base) = (self.context, self.base);
        let scaling = match self.scaling {
            RopeScaling::Linear(factor) => json!({ "rope_type": "linear", "factor": factor }),
            RopeScaling::Dynamic { factor, trained } => {
                context = trained;
                json!({ "rope_type": "dynamic", "factor": factor })
            }
            RopeScaling::Llama3 { factor, low, high, trained } => json!({
                "rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high,
                ORIGINAL: trained,
            }),
            RopeScaling::Yarn { factor, fast, slow, trained, whole_pairs } => json!({
                "rope_type": "yarn", "factor": factor, "beta_fast": fast, "beta_slow": slow, "truncate": whole_pairs,
                "attention_factor": self.attention_factor, ORIGINAL: trained,
            }),
            RopeScaling::Ntk(factor) => {
                // Nothing but another base, and it has no name of its own.
                let dim = head_dim as f64;
                base *= factor.powf(dim / (dim - 2.0));
                Value::Null
            }
            _ => Value::Null,
        };
        config["max_position_embeddings"] = context.into();
        config["rope_theta"] = base.into();
        if !scaling.is_null() {
            config["rope_scaling"] = scaling;
        }
    }
}

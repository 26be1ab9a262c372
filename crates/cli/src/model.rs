//! The model of a command: the one asked for, or one inside the program.

use anyhow::Result;
use foveal_models::OpenModel;

use crate::arguments::ModelChoice;

/// The model asked for, or the one inside of this name.
pub fn open(choice: &ModelChoice, default: &str) -> Result<OpenModel> {
    Ok(OpenModel::open(choice.model.as_deref().unwrap_or(default))?)
}

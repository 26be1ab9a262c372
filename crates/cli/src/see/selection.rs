//! Which part of the model is shown.

use anyhow::{Result, bail};
use foveal_models::Observation;

use crate::arguments::{See, Show, View, Which};

/// All heads, those of a layer, or one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Selection {
    All,
    Layer(usize),
    Head(usize, usize),
}

impl Selection {
    /// What is asked for; where nothing is, the head that stands out.
    pub fn of(see: &See, seen: &Observation) -> Result<Self> {
        let (layers, heads) = (seen.layers().len(), seen.heads());
        let check = |what: &str, which: Option<Which>, count: usize| match which {
            Some(Which::One(n)) if n >= count => bail!("there is no {what} {n}; there are {count}, counted from 0"),
            _ => Ok(()),
        };
        check("layer", see.layer, layers)?;
        check("head", see.head, heads)?;
        let grid = see.view == Some(View::Grid);
        let selection = match (see.layer, see.head) {
            (Some(Which::All), Some(Which::One(_))) => {
                bail!("one head of all layers is no picture; take --head all, or one layer")
            }
            (Some(Which::All), _) => Selection::All,
            (None, Some(Which::All)) if see.view.is_none() || grid => Selection::All,
            (None, None) if grid => Selection::All,
            (Some(Which::One(layer)), Some(Which::All)) => Selection::Layer(layer),
            (Some(Which::One(layer)), None) if grid => Selection::Layer(layer),
            (Some(Which::One(layer)), Some(Which::One(head))) => Selection::Head(layer, head),
            // Rollout goes through all layers, and joins their heads.
            (Some(Which::One(layer)), None) if see.show == Show::Rollout => Selection::Head(layer, 0),
            (None, None) if see.show == Show::Rollout => Selection::Head(layers - 1, 0),
            (Some(Which::One(layer)), None) => Selection::Head(layer, seen.salient_head(Some(layer))?.1),
            (None, Some(Which::One(head))) => Selection::Head(seen.salient_head(None)?.0, head),
            (None, Some(Which::All)) => Selection::Layer(seen.salient_head(None)?.0),
            (None, None) => {
                let (layer, head) = seen.salient_head(None)?;
                Selection::Head(layer, head)
            }
        };
        Ok(match selection {
            Selection::Layer(layer) if see.show == Show::Rollout => Selection::Head(layer, 0),
            other => other,
        })
    }
}

//! The numbers that are shown: between tokens or words, whole or at the size in which they are drawn.

use std::ops::Range;

use anyhow::{Result, bail};
use foveal::Pool;
use foveal_models::analysis::{norms, rollout, rollouts, words};
use foveal_models::{Observation, OpenModel, Prediction, TokenAxis};
use foveal_view::{Format, Grid, pool};
use ndarray::{Array1, Array2, s};
use serde_json::{Value, json};

use super::selection::Selection;
use crate::arguments::{See, Show, Unit};
use crate::output::Output;

/// Rows of a panel, tokens or words, that are computed at a time.
const BAND: usize = 128;

pub struct Values<'a> {
    pub see: &'a See,
    pub seen: &'a Observation,
    /// What rows and columns stand for.
    pub unit: Unit,
}

impl Values<'_> {
    /// Queries and keys.
    pub fn axes(&self) -> (TokenAxis, TokenAxis) {
        (self.unit.of(&self.seen.queries), self.unit.of(&self.seen.keys))
    }

    /// The query that is asked for.
    pub fn token(&self) -> Result<Option<usize>> {
        let count = self.axes().0.len();
        match self.see.token {
            Some(token) if token >= count => bail!("there is no token {token}; there are {count}, counted from 0"),
            token => Ok(token),
        }
    }

    /// What is shown of one head, whole.
    pub fn matrix(&self, layer: usize, head: usize) -> Result<Array2<f32>> {
        let trace = self.seen.layer(layer)?;
        self.in_units(match self.see.show {
            Show::Weights => trace.weights(0, head)?,
            Show::Norm => norms::of_head(trace, 0, head)?,
            Show::Rollout => rollout(&self.seen.trace, self.seen.kind, 0, layer)?,
        })
    }

    /// Values between tokens as those between tokens or words.
    fn in_units(&self, values: Array2<f32>) -> Result<Array2<f32>> {
        Ok(match self.unit {
            Unit::Tokens => values,
            Unit::Words => words::merge(&values, &self.seen.queries.groups, &self.seen.keys.groups)?,
        })
    }

    /// All heads, or the rollout of every layer.
    pub fn grid(&self, output: &Output) -> Result<Grid> {
        let layers = self.seen.layers();
        if self.see.show == Show::Rollout {
            let columns = Grid::columns(layers.len());
            let all = rollouts(&self.seen.trace, self.seen.kind, 0)?;
            let panels = all.map(|values| Ok(self.pooled(self.in_units(values?)?, columns, output)));
            let names = layers.iter().map(|layer| format!("{} {layer}", output.language.of("Layer", "층")));
            return Ok(self.named(Grid::heads(panels.collect::<Result<_>>()?)?.names(names)));
        }
        let heads = self.seen.heads();
        let of_layer = |layer: usize| (0..heads).map(|head| self.panel(layer, head, heads, output)).collect();
        let panels = layers.into_iter().map(of_layer).collect::<Result<_>>()?;
        Ok(self.named(Grid::layers(panels)?))
    }

    /// The heads of a layer.
    pub fn grid_of_layer(&self, layer: usize, output: &Output) -> Result<Grid> {
        let heads = self.seen.heads();
        let panels = (0..heads).map(|head| self.panel(layer, head, Grid::columns(heads), output));
        Ok(self.named(Grid::heads(panels.collect::<Result<_>>()?)?))
    }

    /// Says what the panels are pictures of.
    fn named(&self, grid: Grid) -> Grid {
        let (queries, keys) = self.axes();
        grid.pooled_from((queries.len(), keys.len())).tokens(queries.labels, keys.labels)
    }

    /// Rows and columns of a whole matrix.
    fn size(&self) -> (usize, usize) {
        (self.axes().0.len(), self.axes().1.len())
    }

    /// One head as it is drawn where `columns` stand beside each other, or whole where its numbers are written. What is drawn is
    /// pooled from bands of rows: no matrix of all tokens is ever stored.
    fn panel(&self, layer: usize, head: usize, columns: usize, output: &Output) -> Result<Array2<f32>> {
        if output.format() == Some(Format::Csv) {
            return self.matrix(layer, head);
        }
        let (rows, cols) = self.size();
        let pixels = Grid::pixels(columns, (rows, cols));
        if (self.see.show, self.unit) == (Show::Weights, Unit::Tokens) {
            return Ok(self.seen.layer(layer)?.map((0, head), 0..rows, 0..cols, pixels, Pool::Max)?);
        }
        let cut = |pixel: usize| pixel * rows / pixels.0;
        let together = (BAND * pixels.0 / rows.max(1)).max(1);
        let norms = match self.see.show {
            Show::Norm => Some(norms::of_keys(self.seen.layer(layer)?, 0, head)?),
            _ => None,
        };
        let mut drawn = Array2::zeros(pixels);
        for first in (0..pixels.0).step_by(together) {
            let last = (first + together).min(pixels.0);
            let band = self.band(layer, head, cut(first)..cut(last), norms.as_ref())?;
            for pixel in first..last {
                let rows = band.slice(s![cut(pixel) - cut(first)..cut(pixel + 1) - cut(first), ..]);
                drawn.row_mut(pixel).assign(&pool(rows, 1, pixels.1).row(0));
            }
        }
        Ok(drawn)
    }

    /// Some rows of a head, as [`matrix`](Self::matrix) has them: weights, or norms where those of the keys are given.
    fn band(&self, layer: usize, head: usize, rows: Range<usize>, norms: Option<&Array1<f32>>) -> Result<Array2<f32>> {
        let queries = match self.unit {
            Unit::Tokens => rows.clone(),
            Unit::Words => words::tokens(&self.seen.queries.groups[rows.clone()]),
        };
        let trace = self.seen.layer(layer)?;
        let mut values = trace.tile(0, head, queries, 0..trace.keys())?;
        if let Some(norms) = norms {
            values *= norms;
        }
        Ok(match self.unit {
            Unit::Tokens => values,
            Unit::Words => words::merge(&values, &self.seen.queries.groups[rows], &self.seen.keys.groups)?,
        })
    }

    /// A whole matrix as it is drawn, or as it is where its numbers are written.
    fn pooled(&self, values: Array2<f32>, columns: usize, output: &Output) -> Array2<f32> {
        if output.format() == Some(Format::Csv) {
            return values;
        }
        let (height, width) = Grid::pixels(columns, values.dim());
        pool(values.view(), height, width)
    }

    /// All numbers, for other programs.
    pub fn figures(&self, open: &OpenModel, selection: Selection) -> Result<Value> {
        let (queries, keys) = self.axes();
        Ok(json!({
            "model": open.name,
            "kind": self.seen.kind.to_string(),
            "queries": queries.labels,
            "keys": keys.labels,
            "heads": self.heads(selection)?,
            "next": predicted(&self.seen.predictions),
            "masked": self.seen.masked.iter().map(|masked| {
                json!({ "token": masked.at, "predictions": predicted(&masked.predictions) })
            }).collect::<Vec<_>>(),
        }))
    }

    fn heads(&self, selection: Selection) -> Result<Vec<Value>> {
        let rows = |values: Array2<f32>| -> Vec<Vec<f32>> { values.outer_iter().map(|row| row.to_vec()).collect() };
        // Rollout joins the heads of a layer.
        if self.see.show == Show::Rollout {
            let layers = match selection {
                Selection::All => self.seen.layers(),
                Selection::Layer(layer) | Selection::Head(layer, _) => vec![layer],
            };
            let all = rollouts(&self.seen.trace, self.seen.kind, 0)?.enumerate();
            let wanted = all.filter(|(layer, _)| layers.contains(layer));
            return wanted
                .map(|(layer, values)| {
                    Ok(json!({ "layer": layer, "head": null, "values": rows(self.in_units(values?)?) }))
                })
                .collect();
        }
        let heads = 0..self.seen.heads();
        let shown: Vec<(usize, usize)> = match selection {
            Selection::All => {
                self.seen.layers().iter().flat_map(|&l| heads.clone().map(move |head| (l, head))).collect()
            }
            Selection::Layer(layer) => heads.map(|head| (layer, head)).collect(),
            Selection::Head(layer, head) => vec![(layer, head)],
        };
        let of = |(layer, head)| Ok(json!({ "layer": layer, "head": head, "values": rows(self.matrix(layer, head)?) }));
        shown.into_iter().map(of).collect()
    }
}

fn predicted(predictions: &[Prediction]) -> Vec<Value> {
    predictions.iter().map(|one| json!({ "token": one.label, "p": one.probability })).collect()
}

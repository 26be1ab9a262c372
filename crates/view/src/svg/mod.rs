//! Scenes as SVG.

mod bars;
pub(crate) mod canvas;
pub(crate) mod chart;
mod compare;
mod frame;
mod grid;
mod heatmap;
mod lines;
mod map;
mod panel;
pub(crate) mod patches;

use crate::{Error, Look, Scene};

/// The picture as a document of its own.
pub(crate) fn draw(scene: &Scene, look: &Look) -> Result<String, Error> {
    match scene {
        Scene::Heatmap(scene) => heatmap::draw(scene, look),
        Scene::Bars(scene) => Ok(bars::draw(scene, look)),
        Scene::Grid(scene) => grid::draw(scene, look),
        Scene::Lines(scene) => Ok(lines::draw(scene, look)),
        Scene::Map(scene) => map::draw(scene, look),
        Scene::Patches(scene) => patches::draw(scene, look),
        Scene::Chart(scene) => chart::draw(scene, look),
        Scene::Compare(scene) => compare::draw(scene, look),
    }
}

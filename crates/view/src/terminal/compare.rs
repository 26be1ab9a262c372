use super::heatmap::matrix;
use super::styled::{Ink, Page};
use crate::scale::{Scale, default_steps, maximum};
use crate::scene::{Compare, Numbers, Panels};

pub(super) fn draw(scene: &Compare, page: &mut Page) {
    let look = page.terminal.look();
    let language = scene.caption.language;
    let steps = default_steps(scene.first.1.dim());
    let labels = (scene.rows.as_slice(), scene.cols.as_slice());
    let names = (language.query(), language.key());
    if scene.panels != Panels::Difference {
        let shared = Scale::from_zero(maximum(scene.first.1.iter().chain(&scene.second.1)), &look).steps(steps);
        for (name, values) in [&scene.first, &scene.second] {
            page.text(name, Ink::bold());
            matrix(page, values, labels, names, &shared, Numbers::Fitting);
        }
        page.colour_bar(&shared, language.weight());
    }
    if scene.panels != Panels::Both {
        let difference = scene.difference();
        let symmetric = Scale::symmetric(maximum(&difference.mapv(f32::abs)), &look).steps(steps);
        page.text(&scene.difference_name(), Ink::bold());
        matrix(page, &difference, labels, names, &symmetric, Numbers::Fitting);
        page.colour_bar(&symmetric, language.difference());
    }
}

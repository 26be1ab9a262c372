use super::canvas::{Canvas, Type};
use super::frame::{MARGIN, bar_width, colour_bar, header, header_width};
use super::panel::Panel;
use crate::scale::{Scale, default_steps, maximum};
use crate::scene::{Compare, Numbers, Panels};
use crate::{Error, Look, font};

/// Size of a panel's name.
const NAME: f64 = 14.0;

pub(super) fn draw(scene: &Compare, look: &Look) -> Result<String, Error> {
    let mut canvas = Canvas::new(look);
    let language = scene.caption.language;
    let steps = default_steps(scene.first.1.dim());
    let difference = scene.difference();
    let shared = Scale::from_zero(maximum(scene.first.1.iter().chain(&scene.second.1)), look).steps(steps);
    let symmetric = Scale::symmetric(maximum(&difference.mapv(f32::abs)), look).steps(steps);
    let name = scene.difference_name();
    let both = [
        (scene.first.0.as_str(), &scene.first.1, shared, None),
        (scene.second.0.as_str(), &scene.second.1, shared, Some(language.weight())),
    ];
    let last = [(name.as_str(), &difference, symmetric, Some(language.difference()))];
    let (panels, room): (Vec<_>, f64) = match scene.panels {
        Panels::All => (both.into_iter().chain(last).collect(), 380.0),
        Panels::Both => (both.to_vec(), 460.0),
        Panels::Difference => (last.to_vec(), 720.0),
    };
    let y = header(&mut canvas, &scene.caption);
    let (mut x, mut bottom) = (MARGIN, y);
    for (name, values, scale, bar_name) in panels {
        let labels = (scene.rows.as_slice(), scene.cols.as_slice());
        let panel = Panel::new(values, labels, (language.query(), language.key()), scale, Numbers::Fitting, room);
        let reach = panel.left + panel.inner_width() + panel.overhang();
        let heading = font::shorten(name, NAME, reach.max(160.0));
        canvas.text(x, y + NAME * 0.75, &heading, Type::new(NAME, look.theme.ink()).bold());
        let top = y + NAME + 14.0;
        panel.draw(&mut canvas, x, top)?;
        let cells = top + panel.top;
        let mut width = panel.left + panel.inner_width();
        let mut overhang = panel.overhang();
        let mut height = panel.inner_height();
        if let Some(bar_name) = bar_name {
            height = height.max(96.0);
            colour_bar(&mut canvas, (x + width + 16.0, cells), height, &scale, bar_name)?;
            let bar = 16.0 + bar_width(&scale, height);
            width += bar;
            overhang -= bar;
        }
        bottom = f64::max(bottom, cells + height);
        x += (width + overhang.max(0.0)).max(font::bold_width(&heading, NAME)) + 36.0;
    }
    let width = (x - 36.0 + MARGIN).max(header_width(&scene.caption));
    Ok(canvas.finish(width, bottom + MARGIN, &scene.caption.title))
}

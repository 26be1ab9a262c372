use super::canvas::Canvas;
use super::frame::{MARGIN, bar_width, colour_bar, header, header_width};
use super::panel::Panel;
use crate::scene::Heatmap;
use crate::{Error, Look};

/// Room for the cells.
const ROOM: f64 = 720.0;

pub(super) fn draw(scene: &Heatmap, look: &Look) -> Result<String, Error> {
    let mut canvas = Canvas::new(look);
    let scale = scene.scale(look);
    let panel = Panel::new(
        &scene.values,
        (&scene.rows, &scene.cols),
        (scene.row_name(), scene.col_name()),
        scale,
        scene.numbers,
        ROOM,
    );
    let y = header(&mut canvas, &scene.caption);
    panel.draw(&mut canvas, MARGIN, y)?;
    let (right, top) = (MARGIN + panel.left + panel.inner_width(), y + panel.top);
    let bar = panel.inner_height().max(96.0);
    colour_bar(&mut canvas, (right + 20.0, top), bar, &scale, scene.value_name())?;
    let width = right + (20.0 + bar_width(&scale, bar)).max(panel.overhang()) + MARGIN;
    Ok(canvas.finish(width.max(header_width(&scene.caption)), top + bar + MARGIN, &scene.caption.title))
}

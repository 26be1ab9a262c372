use super::canvas::{Anchor, Canvas, Type, png};
use super::frame::{MARGIN, SMALL, bar_width, colour_bar, header, header_width};
use crate::pool::pool;
use crate::scale::{Scale, Steps, number, ticks};
use crate::scene::Map;
use crate::{Error, Look, font};

/// The longer side of the picture.
const SIDE: f64 = 720.0;

pub(super) fn draw(scene: &Map, look: &Look) -> Result<String, Error> {
    let mut canvas = Canvas::new(look);
    let theme = look.theme;
    let (lo, hi) = scene.limits();
    let scale = match scene.steps {
        Steps::Log => Scale::log(lo, hi, look),
        steps => Scale::from_zero(hi, look).steps(steps),
    };
    let (queries, keys) = (scene.queries.len() as f64, scene.keys.len() as f64);
    let unit = SIDE / queries.max(keys);
    let (width, height) = ((keys * unit).max(60.0), (queries * unit).max(60.0));
    let y = header(&mut canvas, &scene.caption);
    let name_room = SMALL + 10.0;
    let left = MARGIN + name_room + font::width(&number(scene.queries.end as f64), SMALL) + 12.0;
    let top = y + name_room + SMALL + 12.0;

    let pixels = pool(scene.pixels.view(), 2048, 2048);
    let (rows, cols) = pixels.dim();
    let picture = png(cols, rows, |i, j| scale.pixel(pixels[[i, j]], i, j))?;
    canvas.image(left, top, width, height, &picture);
    canvas.frame(left - 0.5, top - 0.5, width + 1.0, height + 1.0, theme.rule(), 1.0);

    let style = Type::new(SMALL, theme.muted());
    let marks = |range: &std::ops::Range<usize>, length: f64| {
        let about = (length / 110.0).clamp(1.0, 8.0) as usize;
        ticks(range.start as f64, range.end as f64, Steps::Linear, about).into_iter().filter(|t| t.0.fract() == 0.0)
    };
    for (token, text) in marks(&scene.queries, height) {
        let at = top + (token - scene.queries.start as f64) / queries * height;
        canvas.line((left - 4.0, at), (left, at), theme.muted(), 1.0);
        canvas.text_mid(left - 8.0, at, &text, style.anchor(Anchor::End));
    }
    for (token, text) in marks(&scene.keys, width) {
        let at = left + (token - scene.keys.start as f64) / keys * width;
        canvas.line((at, top - 4.0), (at, top), theme.muted(), 1.0);
        canvas.text(at, top - 8.0, &text, style.anchor(Anchor::Middle));
    }
    let (row_name, col_name) = scene.names();
    let name = style.bold().anchor(Anchor::Middle);
    canvas.text_mid(left + width / 2.0, y + SMALL / 2.0, col_name, name);
    canvas.text_mid(MARGIN + SMALL / 2.0, top + height / 2.0, row_name, name.turned(-90.0));

    let bar = height.max(96.0);
    colour_bar(&mut canvas, (left + width + 20.0, top), bar, &scale, scene.value_name())?;
    let right = left + width + 20.0 + bar_width(&scale, bar) + MARGIN;
    Ok(canvas.finish(right.max(header_width(&scene.caption)), top + bar + MARGIN, &scene.caption.title))
}

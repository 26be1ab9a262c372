use super::canvas::{Anchor, Canvas, Type, png};
use super::frame::{MARGIN, bar_width, colour_bar, header, header_width};
use crate::pool::pool;
use crate::scale::maximum;
use crate::scene::{Grid, GridKind, Range};
use crate::{Error, Look, font};

pub(super) fn draw(scene: &Grid, look: &Look) -> Result<String, Error> {
    let mut canvas = Canvas::new(look);
    let theme = look.theme;
    let table = scene.kind == GridKind::LayersHeads;
    let (side, gap) = Grid::side(scene.columns);
    let text = if table { 12.5 } else { 13.0 };
    let heading = text + 8.0;

    let row_names: Vec<String> =
        if table { (0..scene.rows()).map(|i| scene.row_name(i)).collect() } else { Vec::new() };
    let gutter = row_names.iter().map(|name| font::width(name, text)).fold(0.0, f64::max);
    let left = MARGIN + if table { gutter.min(140.0) + 12.0 } else { 0.0 };
    let y = header(&mut canvas, &scene.caption);
    let step_y = side + gap + if table { 0.0 } else { heading };
    let first = y + heading;

    // The longest side of the largest panel fills the square.
    let longest = scene.panels.iter().map(|p| scene.matrix(p)).map(|(rows, cols)| rows.max(cols)).max().unwrap_or(1);
    let overall = maximum(scene.panels.iter().flatten());
    for (k, values) in scene.panels.iter().enumerate() {
        let (row, column) = (k / scene.columns, k % scene.columns);
        let (x, y) = (left + column as f64 * (side + gap), first + row as f64 * step_y);
        let (height, width) = Grid::extent(side, scene.matrix(values), longest);
        let max = if scene.range == Range::Shared { overall } else { maximum(values) };
        let scale = scene.scale(max, look);
        let pixels = pool(values.view(), height as usize, width as usize);
        let picture = png(pixels.ncols(), pixels.nrows(), |i, j| scale.pixel(pixels[[i, j]], i, j))?;
        canvas.image(x, y, width, height, &picture);
        canvas.frame(x - 0.5, y - 0.5, width + 1.0, height + 1.0, theme.rule(), 1.0);
        if !table || row == 0 {
            let name = font::shorten(&scene.name(k), text, side);
            if table {
                canvas.text(x + side / 2.0, y - 8.0, &name, Type::new(text, theme.muted()).anchor(Anchor::Middle));
            } else {
                canvas.text(x, y - 8.0, &name, Type::new(text, theme.ink()));
            }
        }
        if table && column == 0 {
            let name = font::shorten(&row_names[row], text, 140.0);
            canvas.text_mid(left - 12.0, y + side / 2.0, &name, Type::new(text, theme.muted()).anchor(Anchor::End));
        }
    }
    let mut right = left + scene.columns as f64 * (side + gap) - gap;
    let height = scene.rows() as f64 * step_y - gap - if table { 0.0 } else { heading };
    if scene.range == Range::Shared {
        let scale = scene.scale(overall, look);
        let bar = height.clamp(96.0, 320.0);
        colour_bar(&mut canvas, (right + 20.0, first), bar, &scale, scene.caption.language.weight())?;
        right += 20.0 + bar_width(&scale, bar);
    }
    let width = (right + MARGIN).max(header_width(&scene.caption));
    Ok(canvas.finish(width, first + height.max(96.0) + MARGIN, &scene.caption.title))
}

//! What stands around a picture: margins, title, colour bar.

use super::canvas::{Anchor, Canvas, Type, png};
use crate::Error;
use crate::font;
use crate::scale::Scale;
use crate::scene::Caption;

/// Free paper around everything.
pub(crate) const MARGIN: f64 = 28.0;
const TITLE: f64 = 19.0;
const NOTE: f64 = 13.0;
/// Small text: names of axes, ticks.
pub(crate) const SMALL: f64 = 11.5;

/// The title and the note, from the top of the paper; returns where the picture begins.
pub(crate) fn header(canvas: &mut Canvas, caption: &Caption) -> f64 {
    let theme = canvas.theme();
    let mut y = MARGIN;
    if !caption.title.is_empty() {
        y += TITLE * 0.8;
        canvas.text(MARGIN, y, &caption.title, Type::new(TITLE, theme.ink()).bold());
        y += 8.0;
    }
    if !caption.note.is_empty() {
        y += NOTE;
        canvas.text(MARGIN, y, &caption.note, Type::new(NOTE, theme.muted()));
        y += 6.0;
    }
    if y > MARGIN { y + 12.0 } else { y }
}

/// The width that the title and the note ask for, margins included.
pub(crate) fn header_width(caption: &Caption) -> f64 {
    font::bold_width(&caption.title, TITLE).max(font::width(&caption.note, NOTE)) + 2.0 * MARGIN
}

/// Width of a colour bar with its ticks and name.
pub(crate) fn bar_width(scale: &Scale, height: f64) -> f64 {
    12.0 + 6.0 + tick_width(scale, height) + 10.0 + SMALL
}

fn tick_width(scale: &Scale, height: f64) -> f64 {
    bar_ticks(scale, height).iter().map(|t| font::width(&t.1, SMALL)).fold(0.0, f64::max)
}

fn bar_ticks(scale: &Scale, height: f64) -> Vec<(f64, String)> {
    scale.ticks((height / 40.0).clamp(2.0, 6.0) as usize)
}

/// The colours from the least value (below) to the largest, their ticks, and what they measure.
pub(crate) fn colour_bar(
    canvas: &mut Canvas,
    (x, y): (f64, f64),
    height: f64,
    scale: &Scale,
    name: &str,
) -> Result<(), Error> {
    const STEPS: usize = 128;
    let theme = canvas.theme();
    let column = png(1, STEPS, |i, _| scale.colour_at(1.0 - (i as f64 + 0.5) / STEPS as f64))?;
    canvas.image(x, y, 12.0, height, &column);
    canvas.frame(x + 0.5, y + 0.5, 11.0, height - 1.0, theme.rule(), 1.0);
    for (value, text) in bar_ticks(scale, height) {
        let at = y + height * (1.0 - scale.fraction(value).unwrap_or(0.0));
        canvas.line((x + 12.0, at), (x + 15.0, at), theme.muted(), 1.0);
        canvas.text_mid(x + 18.0, at, &text, Type::new(SMALL, theme.muted()));
    }
    let name_x = x + 18.0 + tick_width(scale, height) + 10.0 + SMALL / 2.0;
    let name = font::shorten(name, SMALL, height.max(60.0));
    canvas.text_mid(
        name_x,
        y + height / 2.0,
        &name,
        Type::new(SMALL, theme.muted()).anchor(Anchor::Middle).turned(90.0),
    );
    Ok(())
}

use super::canvas::{Anchor, BASE, Canvas, Type};
use super::frame::{MARGIN, SMALL, header, header_width};
use crate::colour::{Rgb, categorical};
use crate::scale::{Scale, Steps, bar_number, maximum, ticks};
use crate::scene::Bars;
use crate::{Look, font, label};

/// Up to this many bars lie, each with its label; more stand side by side, and only the longest are labelled.
const LYING: usize = 48;

pub(super) fn draw(scene: &Bars, look: &Look) -> String {
    if scene.values.len() <= LYING { lying(scene, look) } else { standing(scene, look) }
}

fn colour(scene: &Bars, look: &Look, i: usize, scale: &Scale) -> Rgb {
    if scene.token == Some(i) {
        return categorical(look.theme, 1);
    }
    // Even a short bar must differ from the paper.
    let t = scale.fraction(f64::from(scene.values[i])).unwrap_or(0.0);
    scale.colour_at(0.35 + 0.4 * t)
}

fn lying(scene: &Bars, look: &Look) -> String {
    const LENGTH: f64 = 460.0;
    let mut canvas = Canvas::new(look);
    let theme = look.theme;
    let y = header(&mut canvas, &scene.caption);
    let step = if scene.values.len() <= 16 { 28.0 } else { 21.0 };
    let labels: Vec<String> = scene.labels.iter().map(|l| font::shorten(&label::visible(l), BASE, 150.0)).collect();
    let left = MARGIN + labels.iter().map(|l| font::width(l, BASE)).fold(0.0, f64::max) + 10.0;
    let scale = Scale::from_zero(maximum(&scene.values), look);
    let height = step * scene.values.len() as f64;
    let top = y + SMALL + 12.0;
    for (value, text) in ticks(0.0, scale.hi, Steps::Linear, 5) {
        let x = left + value / scale.hi * LENGTH;
        canvas.line((x, top), (x, top + height), theme.rule(), 1.0);
        canvas.text(x, top - 8.0, &text, Type::new(SMALL, theme.muted()).anchor(Anchor::Middle));
    }
    for (i, text) in labels.iter().enumerate() {
        let (at, value) = (top + (i as f64 + 0.5) * step, f64::from(scene.values[i]));
        let style = Type::new(BASE, theme.ink()).anchor(Anchor::End);
        canvas.text_mid(left - 10.0, at, text, if scene.token == Some(i) { style.bold() } else { style });
        let length = scale.fraction(value).unwrap_or(0.0) * LENGTH;
        if length > 0.0 {
            let thick = step * 0.68;
            canvas.pill(left, at - thick / 2.0, length.max(1.5), thick, 2.0, colour(scene, look, i, &scale));
        }
        let ink = if value.is_nan() { theme.nan().1 } else { theme.muted() };
        canvas.text_mid(left + length + 7.0, at, &bar_number(value), Type::new(SMALL, ink));
    }
    canvas.line((left, top), (left, top + height), theme.muted(), 1.0);
    let foot = top + height + SMALL + 8.0;
    canvas.text(left + LENGTH / 2.0, foot, scene.value_name(), axis_name(look).anchor(Anchor::Middle));
    let right = left + LENGTH + 60.0 + MARGIN;
    canvas.finish(right.max(header_width(&scene.caption)), foot + MARGIN, &scene.caption.title)
}

fn axis_name(look: &Look) -> Type {
    Type::new(SMALL, look.theme.muted()).bold()
}

fn standing(scene: &Bars, look: &Look) -> String {
    const WIDTH: f64 = 900.0;
    const HEIGHT: f64 = 280.0;
    let mut canvas = Canvas::new(look);
    let theme = look.theme;
    let y = header(&mut canvas, &scene.caption);
    let scale = Scale::from_zero(maximum(&scene.values), look);
    let (left, top) = (MARGIN + 66.0, y + 34.0);
    let bottom = top + HEIGHT;
    for (value, text) in ticks(0.0, scale.hi, Steps::Linear, 4) {
        let at = bottom - value / scale.hi * HEIGHT;
        canvas.line((left, at), (left + WIDTH, at), theme.rule(), 1.0);
        canvas.text_mid(left - 8.0, at, &text, Type::new(SMALL, theme.muted()).anchor(Anchor::End));
    }
    let count = scene.values.len();
    let step = WIDTH / count as f64;
    let gap = if step > 4.0 { 1.0 } else { 0.0 };
    for (i, &value) in scene.values.iter().enumerate() {
        let length = scale.fraction(f64::from(value)).unwrap_or(0.0) * HEIGHT;
        if value.is_nan() {
            canvas.rect(left + i as f64 * step, top, step, HEIGHT, theme.nan().0);
        } else if length >= 0.2 {
            let fill = colour(scene, look, i, &scale);
            canvas.rect(left + i as f64 * step, bottom - length, step - gap, length, fill);
        }
    }
    canvas.line((left, bottom), (left + WIDTH, bottom), theme.muted(), 1.0);
    for (token, text) in ticks(0.0, count as f64 - 1.0, Steps::Linear, 8) {
        let x = left + (token + 0.5) * step;
        canvas.line((x, bottom), (x, bottom + 4.0), theme.muted(), 1.0);
        canvas.text(x, bottom + 7.0 + SMALL * 0.8, &text, Type::new(SMALL, theme.muted()).anchor(Anchor::Middle));
    }
    // The longest first; a label that would lie on an earlier one is left out.
    let mut order: Vec<usize> = (0..count).filter(|&i| f64::from(scene.values[i]) > 0.2 * scale.hi).collect();
    order.sort_by(|&a, &b| scene.values[b].total_cmp(&scene.values[a]).then(a.cmp(&b)));
    let mut placed: Vec<(f64, f64, f64)> = Vec::new();
    for i in order.into_iter().take(24) {
        let text = font::shorten(&label::visible(&scene.labels[i]), SMALL, 120.0);
        let half = font::width(&text, SMALL) / 2.0 + 3.0;
        let x = (left + (i as f64 + 0.5) * step).clamp(left + half, left + WIDTH - half);
        let at = bottom - scale.fraction(f64::from(scene.values[i])).unwrap_or(0.0) * HEIGHT - 6.0;
        let clear = |&(px, py, ph): &(f64, f64, f64)| (px - x).abs() > half + ph || (py - at).abs() > SMALL + 3.0;
        // Nor may it lie on the bars beside it.
        let under =
            ((x - half - left) / step).max(0.0) as usize..=((x + half - left) / step).min(count as f64 - 1.0) as usize;
        let tallest = maximum(&scene.values[under]);
        if placed.len() < 8 && placed.iter().all(clear) && tallest <= f64::from(scene.values[i]) {
            canvas.text(x, at, &text, Type::new(SMALL, theme.ink()).anchor(Anchor::Middle));
            placed.push((x, at, half));
        }
    }
    let middle = (top + bottom) / 2.0;
    let style = axis_name(look).anchor(Anchor::Middle);
    canvas.text_mid(MARGIN + SMALL / 2.0, middle, scene.value_name(), style.turned(-90.0));
    let foot = bottom + 2.0 * SMALL + 16.0;
    canvas.text(left + WIDTH / 2.0, foot, scene.caption.language.key(), style);
    canvas.finish((left + WIDTH + MARGIN).max(header_width(&scene.caption)), foot + MARGIN, &scene.caption.title)
}

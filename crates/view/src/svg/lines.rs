use super::canvas::{Anchor, BASE, Canvas, Type, n};
use super::frame::{MARGIN, SMALL, header, header_width};
use crate::colour::categorical;
use crate::scale::{Scale, Steps, maximum, ticks};
use crate::scene::Lines;
use crate::{Look, font, label};

/// Width between the two columns.
const SPAN: f64 = 300.0;
/// Weights below this part of the largest are not drawn: they would only tint the paper.
const FAINTEST: f64 = 0.02;
/// More lines than this cannot be told apart; the strongest are drawn. Where tokens are too many for labels, four each.
const MOST: usize = 6000;

pub(super) fn draw(scene: &Lines, look: &Look) -> String {
    let mut canvas = Canvas::new(look);
    let theme = look.theme;
    let count = scene.queries.len().max(scene.keys.len());
    let counted = count > 100;
    let step = if counted { (900.0 / count as f64).max(2.0) } else { (840.0 / count as f64).clamp(14.0, 30.0) };
    let size = BASE.min(step * 0.86);
    let shown = |labels: &[String]| -> Vec<String> {
        labels.iter().map(|l| font::shorten(&label::visible(l), size, 150.0)).collect()
    };
    let longest = |labels: &[String]| labels.iter().map(|l| font::width(l, size)).fold(40.0, f64::max);
    let (queries, keys) = (shown(&scene.queries), shown(&scene.keys));
    let (wide_q, wide_k) = if counted { (40.0, 40.0) } else { (longest(&queries), longest(&keys)) };

    let mut y = header(&mut canvas, &scene.caption);
    if scene.heads.len() > 1 {
        y = legend(&mut canvas, scene, y);
    }
    let (left, right) = (MARGIN + wide_q + 10.0, MARGIN + wide_q + 10.0 + SPAN);
    let top = y + SMALL + 14.0;
    let height = step * count as f64;
    let (query_name, key_name) = scene.names();
    let name = Type::new(SMALL, theme.muted()).bold();
    canvas.text(left - 10.0, y + SMALL * 0.8, query_name, name.anchor(Anchor::End));
    canvas.text(right + 10.0, y + SMALL * 0.8, key_name, name);

    let at = |i: usize| top + (i as f64 + 0.5) * step;
    let scale = Scale::from_zero(maximum(scene.heads.iter().flat_map(|(_, weights)| weights)), look);
    let mut lines: Vec<(f64, usize, usize, usize)> = Vec::new();
    for (h, (_, weights)) in scene.heads.iter().enumerate() {
        for ((i, j), &weight) in weights.indexed_iter() {
            // What is no number is drawn as if it were the largest, in a colour of its own.
            let t = scale.fraction(f64::from(weight)).unwrap_or(1.0);
            if t >= FAINTEST {
                let faded = scene.token.is_some_and(|token| token != i);
                lines.push((if faded { t * 0.06 } else { t }, h, i, j));
            }
        }
    }
    lines.sort_by(|a, b| b.0.total_cmp(&a.0));
    lines.truncate(if counted { 4 * count } else { MOST });
    let bend = SPAN * 0.4;
    // The strongest last, on top.
    for &(t, h, i, j) in lines.iter().rev() {
        let (y1, y2) = (n(at(i)), n(at(j)));
        let data = format!("M{} {y1}C{} {y1} {} {y2} {} {y2}", n(left), n(left + bend), n(right - bend), n(right));
        let opacity = (t.powf(0.8) * 100.0).ceil() / 100.0;
        let nan = scene.heads[h].1[[i, j]].is_nan();
        let colour = if nan { theme.nan().1 } else { categorical(theme, h) };
        canvas.path(&data, colour, if counted { 1.0 } else { 0.8 + 2.2 * t }, opacity);
    }

    if counted {
        for (x, anchor, tokens) in [(left, Anchor::End, queries.len()), (right, Anchor::Start, keys.len())] {
            let out = if anchor == Anchor::End { -1.0 } else { 1.0 };
            canvas.line((x, top), (x, top + step * tokens as f64), theme.rule(), 1.0);
            for (token, text) in ticks(0.0, tokens as f64 - 1.0, Steps::Linear, 10) {
                let y = at(token as usize);
                canvas.line((x, y), (x + 4.0 * out, y), theme.muted(), 1.0);
                canvas.text_mid(x + 8.0 * out, y, &text, Type::new(SMALL, theme.muted()).anchor(anchor));
            }
        }
    } else {
        let style = Type::new(size, theme.ink());
        for (i, text) in queries.iter().enumerate() {
            let style = if scene.token == Some(i) { style.bold() } else { style };
            canvas.text_mid(left - 8.0, at(i), text, style.anchor(Anchor::End));
        }
        for (j, text) in keys.iter().enumerate() {
            canvas.text_mid(right + 8.0, at(j), text, style);
        }
    }
    let width = (right + 10.0 + wide_k + MARGIN).max(header_width(&scene.caption));
    canvas.finish(width, top + height + MARGIN, &scene.caption.title)
}

/// A square and a name for each head, in rows; returns where the picture begins.
fn legend(canvas: &mut Canvas, scene: &Lines, y: f64) -> f64 {
    let theme = canvas.theme();
    let (mut x, mut y) = (MARGIN, y);
    for (h, (name, _)) in scene.heads.iter().enumerate() {
        let width = 16.0 + font::width(name, SMALL) + 16.0;
        if x > MARGIN && x + width > MARGIN + SPAN + 160.0 {
            (x, y) = (MARGIN, y + 20.0);
        }
        canvas.pill(x, y, 11.0, 11.0, 2.0, categorical(theme, h));
        canvas.text(x + 16.0, y + 9.8, name, Type::new(SMALL, theme.ink()));
        x += width;
    }
    y + 30.0
}

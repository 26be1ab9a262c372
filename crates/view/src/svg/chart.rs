use super::canvas::{Anchor, BASE, Canvas, Type, n};
use super::frame::{MARGIN, SMALL, header, header_width};
use crate::colour::categorical;
use crate::scale::{Steps, ticks};
use crate::scene::Chart;
use crate::{Error, Look, font};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 380.0;
/// Curves of at most this many points get a dot on each.
const DOTTED: usize = 24;

pub(super) fn draw(scene: &Chart, look: &Look) -> Result<String, Error> {
    let (xs, ys) = scene.limits()?;
    let mut canvas = Canvas::new(look);
    let theme = look.theme;
    let y = header(&mut canvas, &scene.caption);
    let y_ticks = ticks(ys.0, ys.1, scene.y_steps, 6);
    let widest = y_ticks.iter().map(|t| font::width(&t.1, SMALL)).fold(0.0, f64::max);
    let (left, top) = (MARGIN + SMALL + 12.0 + widest + 8.0, y + 6.0);
    let bottom = top + HEIGHT;
    let place = |(x, y): (f64, f64)| {
        (left + fraction(x, xs, scene.x_steps) * WIDTH, bottom - fraction(y, ys, scene.y_steps) * HEIGHT)
    };

    let style = Type::new(SMALL, theme.muted());
    for (value, text) in y_ticks {
        let (_, at) = place((xs.0, value));
        canvas.line((left, at), (left + WIDTH, at), theme.rule(), 1.0);
        canvas.text_mid(left - 8.0, at, &text, style.anchor(Anchor::End));
    }
    for (value, text) in ticks(xs.0, xs.1, scene.x_steps, 7) {
        let (at, _) = place((value, ys.0));
        canvas.line((at, bottom), (at, bottom + 5.0), theme.muted(), 1.0);
        canvas.text(at, bottom + 9.0 + SMALL * 0.8, &text, style.anchor(Anchor::Middle));
    }
    canvas.line((left, bottom), (left + WIDTH, bottom), theme.muted(), 1.0);
    let name = style.bold().anchor(Anchor::Middle);
    let foot = bottom + 2.0 * SMALL + 20.0;
    canvas.text(left + WIDTH / 2.0, foot, &scene.x_name, name);
    canvas.text_mid(MARGIN + SMALL / 2.0, top + HEIGHT / 2.0, &scene.y_name, name.turned(-90.0));

    let mut ends = Vec::new();
    for (i, series) in scene.series.iter().enumerate() {
        let colour = categorical(theme, i);
        let (mut data, mut pen_down, mut last) = (String::new(), false, None);
        for &point in &series.points {
            if !scene.shows(point) {
                pen_down = false;
                continue;
            }
            let (x, y) = place(point);
            data.push_str(&format!("{}{} {}", if pen_down { "L" } else { "M" }, n(x), n(y)));
            (pen_down, last) = (true, Some((x, y)));
        }
        canvas.path(&data, colour, 2.0, 1.0);
        if series.points.len() <= DOTTED {
            for &point in series.points.iter().filter(|p| scene.shows(**p)) {
                let (x, y) = place(point);
                canvas.dot(x, y, 3.4, colour);
            }
        }
        ends.extend(last.map(|(x, y)| (x, y, y, i)));
    }

    // Each curve is named where it ends; names that would touch are pushed apart.
    let apart = BASE + 5.0;
    ends.sort_by(|a, b| a.2.total_cmp(&b.2));
    for k in 1..ends.len() {
        ends[k].2 = ends[k].2.max(ends[k - 1].2 + apart);
    }
    let mut floor = bottom + apart;
    for end in ends.iter_mut().rev() {
        end.2 = end.2.min(floor - apart);
        floor = end.2;
    }
    let names = scene.series.len() > 1 || scene.series.iter().any(|s| !s.name.is_empty());
    let mut widest: f64 = 0.0;
    for (x, from, to, i) in ends {
        let colour = categorical(theme, i);
        let text = font::shorten(&scene.series[i].name, BASE, 200.0);
        if (from - to).abs() > 2.0 || x < left + WIDTH - 2.0 {
            let bend = n(left + WIDTH + 8.0);
            let data = format!("M{} {}L{bend} {}", n(x), n(from), n(to));
            canvas.path(&data, colour, 1.0, 0.5);
        }
        canvas.text_mid(left + WIDTH + 12.0, to, &text, Type::new(BASE, colour).bold());
        widest = widest.max(font::bold_width(&text, BASE));
    }
    let right = left + WIDTH + if names { 12.0 + widest } else { 0.0 } + MARGIN;
    Ok(canvas.finish(right.max(header_width(&scene.caption)), foot + MARGIN, &scene.caption.title))
}

/// Where a value lies in its range, 0 to 1.
pub(crate) fn fraction(value: f64, (lo, hi): (f64, f64), steps: Steps) -> f64 {
    match steps {
        Steps::Linear | Steps::Root => (value - lo) / (hi - lo),
        Steps::Log => (value / lo).ln() / (hi / lo).ln(),
    }
}

use super::styled::{Ink, Line, Page};
use crate::colour::categorical;
use crate::label::{columns, fit, visible_all};
use crate::scale::{Scale, bar_number, maximum};
use crate::scene::Bars;

/// More bars than this are cut to the longest.
const MOST: usize = 60;
const SHOWN: usize = 40;

pub(super) fn draw(scene: &Bars, page: &mut Page) {
    let width = page.terminal.width;
    let scale = Scale::from_zero(maximum(&scene.values), &page.terminal.look());
    let labels = visible_all(&scene.labels);
    let mut shown: Vec<usize> = (0..labels.len()).collect();
    if labels.len() > MOST {
        shown.sort_by(|&a, &b| scene.values[b].total_cmp(&scene.values[a]).then(a.cmp(&b)));
        shown.truncate(SHOWN);
        shown.sort_unstable();
    }
    let gutter = shown.iter().map(|&i| columns(&labels[i])).max().unwrap_or(1).min(width / 3);
    let length = width - gutter - 9;
    for &i in &shown {
        let mut line = Line::default();
        let own = scene.token == Some(i);
        line.push(&fit(&labels[i], gutter, true), if own { Ink::bold() } else { Ink::default() });
        line.plain(if own && page.is_plain() { ">" } else { " " });
        let value = f64::from(scene.values[i]);
        let eighths = (scale.fraction(value).unwrap_or(0.0) * length as f64 * 8.0).round() as usize;
        let theme = page.terminal.theme;
        let colour = if own { categorical(theme, 1) } else { categorical(theme, 0) };
        line.push(&bar(eighths, page.is_plain()), Ink::fore(colour));
        line.push(&format!(" {}", bar_number(value)), page.muted());
        page.line(line);
    }
    if shown.len() < labels.len() {
        page.text(&format!("… {} / {}", shown.len(), labels.len()), page.muted());
    }
}

/// A bar to an eighth of a column.
fn bar(eighths: usize, plain: bool) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    match plain {
        true => "#".repeat((eighths + 4) / 8),
        false => "█".repeat(eighths / 8) + PARTS[eighths % 8],
    }
}

use super::styled::{Ink, Line, Page};
use crate::colour::categorical;
use crate::label::{columns, fit, visible_all};
use crate::scale::{Scale, cell_text, maximum};
use crate::scene::Lines;

/// A terminal draws no curves: each query is followed by the keys that it attends to most, strongest first.
pub(super) fn draw(scene: &Lines, page: &mut Page) {
    let width = page.terminal.width;
    let (queries, keys) = (visible_all(&scene.queries), visible_all(&scene.keys));
    let (query_name, key_name) = scene.names();
    let longest = queries.iter().map(|l| columns(l)).max().unwrap_or(1).max(columns(query_name));
    let gutter = longest.min(width / 4).min(16);
    let scale = Scale::from_zero(maximum(scene.heads.iter().flat_map(|(_, w)| w)), &page.terminal.look());
    let mut name = Line::default();
    name.push(&format!("{} → {}", fit(query_name, gutter, true), fit(key_name, 16, false).trim_end()), page.muted());
    page.line(name);
    for (h, (head, weights)) in scene.heads.iter().enumerate() {
        if scene.heads.len() > 1 {
            page.text(head, Ink { bold: true, ..Ink::fore(categorical(page.terminal.theme, h)) });
        }
        for (i, query) in queries.iter().enumerate().filter(|(i, _)| scene.token.is_none_or(|token| token == *i)) {
            let mut order: Vec<usize> = (0..keys.len()).filter(|&j| weights[[i, j]] != 0.0).collect();
            // What is no number comes first: it must be seen.
            let rank = |j: usize| if weights[[i, j]].is_nan() { f32::INFINITY } else { weights[[i, j]] };
            order.sort_by(|&a, &b| rank(b).total_cmp(&rank(a)).then(a.cmp(&b)));
            let mut line = Line::default();
            line.plain(&fit(query, gutter, true));
            line.push(" → ", page.muted());
            for j in order.into_iter().take(12) {
                let value = weights[[i, j]];
                if f64::from(value) < 0.02 * scale.hi && line.width() > gutter + 3 {
                    break;
                }
                let key = fit(&keys[j], columns(&keys[j]).min(16), false);
                let text = format!(" {key} ");
                let number = cell_text(value, true).replace('×', "NaN");
                if line.width() + columns(&text) + columns(&number) + 1 > width {
                    break;
                }
                match scale.colour(f64::from(value)) {
                    Some(colour) if !page.is_plain() => line.push(&text, Ink::on(colour)),
                    _ => line.plain(text.trim_start()),
                }
                let gap = if page.is_plain() { "" } else { " " };
                line.push(&format!("{gap}{number}"), page.muted());
                line.plain("  ");
            }
            page.line(line);
        }
    }
    page.blank();
}

use super::styled::{Ink, Line, Page};
use crate::Error;
use crate::colour::categorical;
use crate::label::{clip, columns, fit};
use crate::scale::ticks;
use crate::scene::Chart;
use crate::svg::chart::fraction;

/// Lines of a chart.
const HEIGHT: usize = 16;
/// The letters of the curves in plain text.
const MARKS: &[u8; 8] = b"*o+x#@%&";

/// Curves in dots of Braille, eight to a character, or in one mark a character in plain text.
pub(super) fn draw(scene: &Chart, page: &mut Page) -> Result<(), Error> {
    let (xs, ys) = scene.limits()?;
    let y_ticks = ticks(ys.0, ys.1, scene.y_steps, 5);
    let gutter = y_ticks.iter().map(|t| columns(&t.1)).max().unwrap_or(1).min(12);
    let wide = (page.terminal.width - gutter - 3).min(100);
    // Dots to a character.
    let (dx, dy) = if page.is_plain() { (1, 1) } else { (2, 4) };
    let (cols, rows) = (wide * dx, HEIGHT * dy);
    let place = |(x, y): (f64, f64)| {
        let at = |t: f64, count: usize| (t.clamp(0.0, 1.0) * (count - 1) as f64).round() as i64;
        (at(fraction(x, xs, scene.x_steps), cols), rows as i64 - 1 - at(fraction(y, ys, scene.y_steps), rows))
    };
    // Which dots of each character are set, and by which curves.
    let mut dots = vec![(0u8, 0u64); wide * HEIGHT];
    for (s, series) in scene.series.iter().enumerate() {
        let mut last: Option<(i64, i64)> = None;
        for &point in &series.points {
            if !scene.shows(point) {
                last = None;
                continue;
            }
            let here = place(point);
            let from = last.unwrap_or(here);
            let steps = (here.0 - from.0).abs().max((here.1 - from.1).abs()).max(1);
            for k in 0..=steps {
                let between = |a: i64, b: i64| (a as f64 + (b - a) as f64 * k as f64 / steps as f64).round() as usize;
                let (x, y) = (between(from.0, here.0), between(from.1, here.1));
                let cell = &mut dots[y / dy * wide + x / dx];
                *cell = (cell.0 | braille(x % dx, y % dy), cell.1 | 1 << (s % 64));
            }
            last = Some(here);
        }
    }
    page.text(&scene.y_name, page.muted());
    for row in 0..HEIGHT {
        let here = |v: f64| place((xs.0, v)).1 as usize / dy == row;
        let mark = y_ticks.iter().find(|t| here(t.0)).map_or("", |t| t.1.as_str());
        let mut line = Line::default();
        line.push(&format!("{} {} ", fit(mark, gutter, true), if mark.is_empty() { "│" } else { "┤" }), page.muted());
        for (column, &(set, curves)) in dots[row * wide..(row + 1) * wide].iter().enumerate() {
            let s = in_turn(curves, column);
            match (set, page.is_plain()) {
                (0, _) => line.plain(" "),
                (_, true) => line.plain(&(MARKS[s % MARKS.len()] as char).to_string()),
                (set, false) => {
                    let c = char::from_u32(0x2800 + u32::from(set)).unwrap_or(' ');
                    line.push(&c.to_string(), Ink::fore(categorical(page.terminal.theme, s)));
                }
            }
        }
        page.line(line);
    }
    let mut axis = Line::default();
    axis.push(&format!("{} └{}", " ".repeat(gutter), "─".repeat(wide + 1)), page.muted());
    page.line(axis);
    let mut foot = Line::default();
    for (value, text) in ticks(xs.0, xs.1, scene.x_steps, wide / 14) {
        let at = gutter + 3 + place((value, ys.0)).0 as usize / dx;
        let start = at.saturating_sub(columns(&text) / 2).min((gutter + 3 + wide).saturating_sub(columns(&text)));
        if start >= foot.width() + usize::from(foot.width() > 0) {
            foot.pad_to(start);
            foot.push(&text, page.muted());
        }
    }
    page.line(foot);
    let name = clip(&scene.x_name, wide);
    page.text(&format!("{}{name}", " ".repeat(gutter + 3 + (wide - columns(&name)) / 2)), page.muted());
    for (s, series) in scene.series.iter().enumerate().filter(|(_, series)| !series.name.is_empty()) {
        let mark = if page.is_plain() { (MARKS[s % MARKS.len()] as char).to_string() } else { "━━".into() };
        let mut line = Line::default();
        line.push(&format!("{mark} "), Ink::fore(categorical(page.terminal.theme, s)));
        line.plain(&clip(&series.name, page.terminal.width - 3));
        page.line(line);
    }
    Ok(())
}

/// Of the curves that lie on one another, each takes its turn from column to column, so that none is hidden.
fn in_turn(curves: u64, column: usize) -> usize {
    let count = curves.count_ones().max(1) as usize;
    (0..64).filter(|s| curves >> s & 1 == 1).nth(column % count).unwrap_or(0)
}

/// The bit of a dot in its character, by column and row.
fn braille(x: usize, y: usize) -> u8 {
    [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]][x][y]
}

use std::ops::Range;

use super::pixels;
use super::styled::{Line, Page};
use crate::label::{columns, fit};
use crate::pool::pool;
use crate::scale::{Scale, Steps, number, ticks};
use crate::scene::Map;

pub(super) fn draw(scene: &Map, page: &mut Page) {
    let look = page.terminal.look();
    let (lo, hi) = scene.limits();
    let scale = match scene.steps {
        Steps::Log => Scale::log(lo, hi, &look),
        steps => Scale::from_zero(hi, &look).steps(steps),
    };
    let room = page.terminal.width - gutter(&scene.queries) - 1;
    let wide = room.min(scene.pixels.ncols()).min(160);
    let tall = (wide * scene.pixels.nrows() / scene.pixels.ncols()).clamp(2, 400);
    let small = pool(scene.pixels.view(), tall, wide);
    framed(page, pixels::matrix(page, &small, &scale), (scene.queries.clone(), scene.keys.clone()), scene.names());
    page.colour_bar(&scale, scene.value_name());
}

fn gutter(queries: &Range<usize>) -> usize {
    columns(&number(queries.end as f64)).max(5)
}

/// Columns that a frame of so many queries takes beside its pixels.
pub(super) fn side(queries: usize) -> usize {
    gutter(&(0..queries)) + 1
}

/// Lines of pixels with token numbers at the left and on top.
pub(super) fn framed(
    page: &mut Page,
    lines: Vec<Line>,
    (queries, keys): (Range<usize>, Range<usize>),
    (row_name, col_name): (&str, &str),
) {
    let gutter = gutter(&queries);
    let wide = lines.first().map_or(1, Line::width);
    let muted = page.muted();
    let mut name = Line::default();
    name.push(&fit(row_name, gutter, true), muted);
    name.push(&format!(" {}", fit(&format!("{col_name} →"), wide.max(8), false).trim_end()), muted);
    page.line(name);

    let mut top = Line::default();
    top.push(&" ".repeat(gutter + 1), muted);
    for (token, text) in ticks(keys.start as f64, keys.end as f64, Steps::Linear, (wide / 14).clamp(1, 8)) {
        let at = gutter + 1 + ((token - keys.start as f64) / keys.len() as f64 * wide as f64) as usize;
        if at >= top.width() && at + columns(&text) <= gutter + 1 + wide {
            top.push(&" ".repeat(at - top.width()), muted);
            top.push(&text, muted);
        }
    }
    page.line(top);

    let count = lines.len();
    let marks = ticks(queries.start as f64, queries.end as f64, Steps::Linear, (count / 4).clamp(1, 8));
    for (k, pixels) in lines.into_iter().enumerate() {
        let here = |token: f64| ((token - queries.start as f64) / queries.len() as f64 * count as f64) as usize == k;
        let mark = marks.iter().find(|t| here(t.0)).map_or("", |t| t.1.as_str());
        let mut line = Line::default();
        line.push(&format!("{} ", fit(mark, gutter, true)), muted);
        line.append(&pixels);
        page.line(line);
    }
    page.blank();
}

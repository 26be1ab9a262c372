use ndarray::Array2;
use unicode_width::UnicodeWidthChar;

use super::styled::{Ink, Line, Page, ramp};
use super::{map, pixels};
use crate::label::{columns, fit, visible_all};
use crate::pool::pool;
use crate::scale::{Scale, cell_text};
use crate::scene::{Heatmap, Numbers};

/// Labels over narrow columns are written downwards, at most this many characters.
const TALLEST: usize = 7;

pub(super) fn draw(scene: &Heatmap, page: &mut Page) {
    let scale = scene.scale(&page.terminal.look());
    let names = (scene.row_name(), scene.col_name());
    matrix(page, &scene.values, (&scene.rows, &scene.cols), names, &scale, scene.numbers);
    page.colour_bar(&scale, scene.value_name());
}

/// Cells with numbers if there is room for them, else cells of two columns, else pixels.
pub(super) fn matrix(
    page: &mut Page,
    values: &Array2<f32>,
    (rows, cols): (&[String], &[String]),
    (row_name, col_name): (&str, &str),
    scale: &Scale,
    numbers: Numbers,
) {
    let width = page.terminal.width;
    let (height, count) = values.dim();
    let (rows, cols) = (visible_all(rows), visible_all(cols));
    let longest = rows.iter().map(|l| columns(l)).max().unwrap_or(0).max(columns(row_name));
    let gutter = longest.min(width / 4).min(16);
    let room = width - gutter - 1;
    let cell = match room / count {
        _ if height > 200 => 0,
        c if c >= 5 && numbers == Numbers::Fitting => c.min(8),
        c if c >= 2 => 2,
        _ => 0,
    };
    if cell == 0 {
        // The frame has numbers of tokens at its side, however short the labels are.
        let room = room.min(width - map::side(height));
        let small = pool(values.view(), room.max(2), room);
        map::framed(page, pixels::matrix(page, &small, scale), (0..height, 0..count), (row_name, col_name));
        return;
    }
    let mut name = Line::default();
    name.push(&fit(row_name, gutter, true), page.muted());
    name.push(&format!(" {}", fit(&format!("{col_name} →"), room, false).trim_end()), page.muted());
    page.line(name);
    heads(page, &cols, gutter, cell);
    for i in 0..height {
        let mut line = Line::default();
        line.plain(&format!("{} ", fit(&rows[i], gutter, true)));
        for j in 0..count {
            value(page, &mut line, values[[i, j]], cell, scale);
        }
        page.line(line);
    }
    page.blank();
}

fn value(page: &Page, line: &mut Line, value: f32, cell: usize, scale: &Scale) {
    let text = if cell >= 5 { cell_text(value, false) } else { String::new() };
    let text = text.replace('×', "NaN");
    match (scale.colour(f64::from(value)), scale.fraction(f64::from(value))) {
        (Some(colour), _) if !page.is_plain() => {
            let ink = if colour == page.terminal.theme.paper() { page.muted() } else { Ink::on(colour) };
            line.push(&centred(&text, cell), ink);
        }
        (_, Some(t)) if cell < 5 => line.plain(&ramp(t).to_string().repeat(cell)),
        (_, Some(_)) => line.plain(&centred(&text, cell)),
        (_, None) => {
            let mark = if cell < 5 { "?".repeat(cell) } else { centred("NaN", cell) };
            let (pale, dark) = page.terminal.theme.nan();
            line.push(&mark, Ink { fore: Some(dark), back: Some(pale), bold: false });
        }
    }
}

fn centred(text: &str, width: usize) -> String {
    let left = width.saturating_sub(columns(text)).div_ceil(2);
    fit(&(" ".repeat(left) + text), width, false)
}

/// The labels of the columns: level where cells are wide, downwards where they are narrow.
fn heads(page: &mut Page, cols: &[String], gutter: usize, cell: usize) {
    if cell >= 5 {
        let mut line = Line::default();
        line.plain(&" ".repeat(gutter + 1));
        cols.iter().for_each(|label| line.plain(&centred(fit(label, cell - 1, false).trim_end(), cell)));
        page.line(line);
        return;
    }
    let letters: Vec<Vec<char>> = cols
        .iter()
        .map(|label| {
            // The dot that stands for a space would cost a line.
            let word = label.trim_start_matches('·');
            let label = if word.is_empty() { label } else { word };
            let all: Vec<char> = label.chars().filter(|c| c.width().unwrap_or(0) > 0).collect();
            if all.len() <= TALLEST { all } else { all[..TALLEST - 1].iter().copied().chain(['…']).collect() }
        })
        .collect();
    let tallest = letters.iter().map(Vec::len).max().unwrap_or(0);
    for k in 0..tallest {
        let mut line = Line::default();
        line.plain(&" ".repeat(gutter + 1));
        for letters in &letters {
            // Words stand on the cells: the last letter of each is in the last line.
            let letter = (k + letters.len()).checked_sub(tallest).map(|at| letters[at].to_string());
            line.plain(&fit(&letter.unwrap_or_default(), cell, false));
        }
        page.line(line);
    }
}

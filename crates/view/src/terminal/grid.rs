use super::pixels;
use super::styled::{Ink, Line, Page};
use crate::label::{columns, fit};
use crate::pool::pool;
use crate::scale::maximum;
use crate::scene::{Grid, GridKind, Range};

pub(super) fn draw(scene: &Grid, page: &mut Page) {
    let table = scene.kind == GridKind::LayersHeads;
    let width = page.terminal.width;
    let gutter = match table {
        true => (0..scene.rows()).map(|i| columns(&scene.row_name(i))).max().unwrap_or(0).min(12) + 1,
        false => 0,
    };
    // A panel is at least four columns wide; what does not fit beside one another goes on below.
    let room = width - gutter;
    let across = scene.columns.min((room + 1) / 5).max(1);
    let side = ((room + 1) / across - 1).clamp(4, 24);
    let overall = maximum(scene.panels.iter().flatten());
    let look = page.terminal.look();
    let shared = scene.scale(overall, &look);
    for row in 0..scene.rows() {
        let in_row = scene.columns.min(scene.panels.len() - row * scene.columns);
        for start in (0..in_row).step_by(across) {
            let columns: Vec<usize> = (start..in_row.min(start + across)).collect();
            let mut heads = Line::default();
            heads.plain(&" ".repeat(gutter));
            let mut blocks = Vec::new();
            for &column in &columns {
                let k = row * scene.columns + column;
                let scale = match scene.range {
                    Range::Shared => shared,
                    Range::Own => scene.scale(maximum(&scene.panels[k]), &look),
                };
                let name = scene.name(if table { column } else { k });
                // `Head 11` in four columns is `11`.
                let name = if name.len() > side { name.rsplit(' ').next().unwrap_or("").to_string() } else { name };
                heads.push(&(fit(&name, side, false) + " "), page.muted());
                blocks.push(pixels::matrix(page, &pool(scene.panels[k].view(), side, side), &scale));
            }
            if !table || row == 0 || across < scene.columns {
                page.line(heads);
            }
            let tallest = blocks.iter().map(Vec::len).max().unwrap_or(0);
            for i in 0..tallest {
                let mut line = Line::default();
                let name = if table && i == 0 { scene.row_name(row) } else { String::new() };
                line.push(&fit(&name, gutter.saturating_sub(1), false), page.muted());
                line.push(&" ".repeat(gutter.min(1)), Ink::default());
                for (b, block) in blocks.iter().enumerate() {
                    if let Some(pixels) = block.get(i) {
                        line.append(pixels);
                    }
                    line.pad_to(gutter + (b + 1) * (side + 1) - usize::from(b + 1 == blocks.len()));
                }
                page.line(line);
            }
            page.blank();
        }
    }
    if scene.range == Range::Shared {
        page.colour_bar(&shared, scene.caption.language.weight());
    }
}

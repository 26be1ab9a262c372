use super::pixels;
use super::styled::{Line, Page};
use crate::label::fit;
use crate::pool::pool;
use crate::scale::{Scale, maximum};
use crate::scene::{Patches, Range};
use crate::svg::patches::{base, light, lit};

pub(super) fn draw(scene: &Patches, page: &mut Page) {
    let look = light(&page.terminal.look());
    let (height, width, _) = scene.image.dim();
    let language = scene.caption.language;
    let overall = maximum(scene.maps.iter().flat_map(|(_, map)| map));
    let across = (scene.maps.len() + 1).min((page.terminal.width + 2) / 16).max(1);
    let wide = ((page.terminal.width + 2) / across - 2).clamp(8, 32).min(width.max(8));
    let tall = (wide * height / width).clamp(2, 64);
    let mut panels: Vec<(String, Vec<Line>)> = Vec::new();
    for k in 0..=scene.maps.len() {
        let map = k.checked_sub(1).map(|m| &scene.maps[m]);
        let max = map.map_or(1.0, |(_, map)| if scene.range == Range::Shared { overall } else { maximum(map) });
        let scale = Scale::from_zero(max, &look);
        let pixel = |i: usize, j: usize| base(scene, i * height / tall, j * width / wide);
        let name = match map {
            None => language.image().to_owned(),
            Some((name, _)) if name.is_empty() => scene.heading(language.attention(), max),
            Some((name, _)) => scene.heading(name, max),
        };
        let lines = match (map, page.is_plain()) {
            (None, false) => pixels::rows(page, tall, wide, pixel),
            (Some((_, map)), false) => {
                let (rows, cols) = map.dim();
                pixels::rows(page, tall, wide, |i, j| {
                    lit(pixel(i, j), map[[i * rows / tall, j * cols / wide]], &scale, (i, j))
                })
            }
            (None, true) => {
                let grey = ndarray::Array2::from_shape_fn((tall, wide), |(i, j)| f32::from(pixel(i, j).1) / 255.0);
                pixels::matrix(page, &grey, &Scale::from_zero(1.0, &look))
            }
            (Some((_, map)), true) => {
                let small = pool(map.view(), tall, wide);
                let (rows, cols) = small.dim();
                let fine =
                    ndarray::Array2::from_shape_fn((tall, wide), |(i, j)| small[[i * rows / tall, j * cols / wide]]);
                pixels::matrix(page, &fine, &scale)
            }
        };
        panels.push((name, lines));
    }
    for row in panels.chunks(across) {
        let mut names = Line::default();
        row.iter().for_each(|(name, _)| names.push(&(fit(name, wide, false) + "  "), page.muted()));
        page.line(names);
        for k in 0..tall.div_ceil(2) {
            let mut line = Line::default();
            for (p, (_, lines)) in row.iter().enumerate() {
                if let Some(pixels) = lines.get(k) {
                    line.append(pixels);
                }
                line.pad_to((p + 1) * (wide + 2) - 2 * usize::from(p + 1 == row.len()));
            }
            page.line(line);
        }
        page.blank();
    }
    let (most, measure) = scene.bar(overall);
    page.colour_bar(&Scale::from_zero(most, &look), measure);
}

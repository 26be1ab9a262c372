use super::canvas::{Canvas, Type, png};
use super::frame::{MARGIN, bar_width, colour_bar, header, header_width};
use crate::colour::{Rgb, categorical};
use crate::scale::{Scale, maximum};
use crate::scene::{Patches, Range};
use crate::{Error, Look, Palette, font};

const NAME: f64 = 13.0;
/// Panels side by side.
const ACROSS: usize = 5;

pub(super) fn draw(scene: &Patches, look: &Look) -> Result<String, Error> {
    let mut canvas = Canvas::new(look);
    let theme = look.theme;
    let language = scene.caption.language;
    let (height, width, _) = scene.image.dim();
    let side = if scene.maps.len() <= 2 { 280.0 } else { 200.0 };
    let unit = side / height.max(width) as f64;
    let (w, h) = ((width as f64 * unit).max(8.0), (height as f64 * unit).max(8.0));
    let y = header(&mut canvas, &scene.caption);
    let look = &light(look);
    let overall = maximum(scene.maps.iter().flat_map(|(_, map)| map));

    for k in 0..=scene.maps.len() {
        let (row, column) = (k / ACROSS, k % ACROSS);
        let (x, y) = (MARGIN + column as f64 * (w + 20.0), y + row as f64 * (h + NAME + 28.0));
        let top = y + NAME + 8.0;
        let (name, picture) = match k.checked_sub(1).map(|m| &scene.maps[m]) {
            None => (language.image().to_owned(), png(width, height, |i, j| base(scene, i, j))?),
            Some((name, map)) => {
                let max = if scene.range == Range::Shared { overall } else { maximum(map) };
                let name = if name.is_empty() { language.attention() } else { name.as_str() };
                (scene.heading(name, max), overlay(scene, map, &Scale::from_zero(max, look))?)
            }
        };
        canvas.text(x, y + NAME * 0.8, &font::shorten(&name, NAME, w), Type::new(NAME, theme.ink()));
        canvas.image(x, top, w, h, &picture);
        canvas.frame(x - 0.5, top - 0.5, w + 1.0, h + 1.0, theme.rule(), 1.0);
        let (rows, cols) = scene.grid();
        if let Some((i, j)) = scene.query.filter(|&(i, j)| i < rows && j < cols) {
            let (pw, ph) = (w / cols as f64, h / rows as f64);
            canvas.frame(x + j as f64 * pw, top + i as f64 * ph, pw, ph, categorical(theme, 1), 2.5);
        }
    }
    let across = (scene.maps.len() + 1).min(ACROSS) as f64;
    let down = (scene.maps.len() + 1).div_ceil(ACROSS) as f64;
    let mut right = MARGIN + across * (w + 20.0) - 20.0;
    let (most, measure) = scene.bar(overall);
    let scale = Scale::from_zero(most, look);
    colour_bar(&mut canvas, (right + 20.0, y + NAME + 8.0), h, &scale, measure)?;
    right += 20.0 + bar_width(&scale, h);
    let bottom = y + down * (h + NAME + 28.0) - 20.0;
    Ok(canvas.finish((right + MARGIN).max(header_width(&scene.caption)), bottom + MARGIN, &scene.caption.title))
}

/// Over an image, large must be bright in either theme.
pub(crate) fn light(look: &Look) -> Look {
    if look.palette == Palette::Paper { look.palette(Palette::Viridis) } else { *look }
}

/// A pixel of the image.
pub(crate) fn base(scene: &Patches, i: usize, j: usize) -> Rgb {
    let channel = |c| (scene.image[[i, j, c]].clamp(0.0, 1.0) * 255.0).round() as u8;
    Rgb(channel(0), channel(1), channel(2))
}

/// A pixel of the image in the light of its patch: grey and dim where the weight is 0, its colour where it is large.
pub(crate) fn lit(pixel: Rgb, weight: f32, scale: &Scale, at: (usize, usize)) -> Rgb {
    let grey = (f64::from(pixel.0) * 0.299 + f64::from(pixel.1) * 0.587 + f64::from(pixel.2) * 0.114) as u8;
    let grey = Rgb(grey, grey, grey);
    let dim = grey.mix(Rgb(0, 0, 0), 0.35);
    match scale.fraction(f64::from(weight)) {
        Some(t) => dim.mix(scale.colour_at(t), 0.4 + 0.35 * t),
        None => dim.mix(scale.pixel(weight, at.0, at.1), 0.7),
    }
}

fn overlay(scene: &Patches, map: &ndarray::Array2<f32>, scale: &Scale) -> Result<Vec<u8>, Error> {
    // Every pixel of the image and every patch gets whole pixels, up to a limit.
    let (height, width, _) = scene.image.dim();
    let (rows, cols) = map.dim();
    let fine = |pixels: usize, patches: usize| {
        let both = pixels * patches / gcd(pixels, patches);
        if both <= 1024 { both } else { pixels.max(patches) }
    };
    let (tall, wide) = (fine(height, rows), fine(width, cols));
    png(wide, tall, |i, j| {
        let pixel = base(scene, i * height / tall, j * width / wide);
        lit(pixel, map[[i * rows / tall, j * cols / wide]], scale, (i, j))
    })
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

//! The font inside the crate: it draws the PNG, and its widths lay out every SVG, so labels fit the same way everywhere.

use std::sync::{Arc, LazyLock};

use resvg::usvg::fontdb;
use ttf_parser::Face;

/// What an SVG asks for; a browser without the first takes the next.
pub(crate) const FAMILY: &str = "Pretendard,'Noto Sans KR','Apple SD Gothic Neo','Malgun Gothic',sans-serif";

static REGULAR: &[u8] = include_bytes!("../font/Pretendard-Regular.otf");
static SEMIBOLD: &[u8] = include_bytes!("../font/Pretendard-SemiBold.otf");

static FACE: LazyLock<Option<Face<'static>>> = LazyLock::new(|| Face::parse(REGULAR, 0).ok());

/// Width of `text` at one pixel to the em.
fn ems(text: &str) -> f64 {
    text.chars().map(char_ems).sum()
}

fn char_ems(c: char) -> f64 {
    let known = FACE.as_ref().and_then(|face| {
        let glyph = face.glyph_index(c)?;
        Some(f64::from(face.glyph_hor_advance(glyph)?) / f64::from(face.units_per_em()))
    });
    // What another font will draw is about as wide as the terminal's columns say.
    known.unwrap_or_else(|| unicode_width::UnicodeWidthChar::width(c).unwrap_or(0) as f64 * 0.5)
}

/// Width of `text` in pixels.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    ems(text) * size
}

/// Width of `text` in the semi-bold face, which runs about 4 % wider.
pub(crate) fn bold_width(text: &str, size: f64) -> f64 {
    ems(text) * size * 1.04
}

/// `text`, or its beginning and `…`, not wider than `limit` pixels.
pub(crate) fn shorten(text: &str, size: f64, limit: f64) -> String {
    if width(text, size) <= limit {
        return text.to_string();
    }
    let mut used = char_ems('…') * size;
    let mut kept = String::new();
    for c in text.chars() {
        used += char_ems(c) * size;
        if used > limit {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

/// Whether the font inside the crate can draw all of `text`.
pub(crate) fn covers(text: &str) -> bool {
    FACE.as_ref()
        .is_some_and(|face| text.chars().all(|c| c.is_ascii() || c.is_control() || face.glyph_index(c).is_some()))
}

/// The font inside the crate; with `system`, the machine's fonts after it.
pub(crate) fn database(system: bool) -> Arc<fontdb::Database> {
    let mut fonts = fontdb::Database::new();
    for face in [REGULAR, SEMIBOLD] {
        fonts.load_font_source(fontdb::Source::Binary(Arc::new(face)));
    }
    if system {
        fonts.load_system_fonts();
    }
    fonts.set_sans_serif_family("Pretendard");
    Arc::new(fonts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_all_of_modern_hangul_and_the_signs_of_the_labels() {
        let hangul: String = ('가'..='힣').collect();
        assert_eq!(hangul.chars().count(), 11_172);
        assert!(covers(&hangul));
        assert!(covers("Azäñß αβΔσ −×·…⏎⇥□←→≤∞√"));
        assert!(!covers("漢"));
    }

    #[test]
    fn shortens_to_the_limit() {
        for text in ["attention", "대한민국의 수도", "a漢字b🙂c", ""] {
            for limit in [20.0, 40.0, 400.0] {
                let short = shorten(text, 12.0, limit);
                assert!(width(&short, 12.0) <= limit, "{short}");
                assert!(short == text || short.ends_with('…'));
            }
        }
    }
}

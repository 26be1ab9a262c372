//! The SVG, as pixels.

use resvg::{tiny_skia, usvg};

use crate::{Error, font};

/// The most pixels of a side: 16,384, which is also what browsers can show.
const LONGEST: f32 = 16_384.0;

/// Draws the document with `scale` pixels to a unit. Characters that the font inside the crate does not have are
/// looked for among the machine's fonts.
pub(crate) fn rasterise(svg: &str, scale: f32) -> Result<Vec<u8>, Error> {
    if !(scale > 0.0 && scale <= 16.0) {
        let expected = "a number above 0, at most 16";
        return Err(Error::Value { what: "the scale of the PNG", expected, got: f64::from(scale) });
    }
    let options = usvg::Options {
        font_family: "Pretendard".into(),
        fontdb: font::database(!font::covers(svg)),
        ..usvg::Options::default()
    };
    let failed = |problem: String| Error::Internal { doing: "drawing the SVG", problem };
    let tree = usvg::Tree::from_str(svg, &options).map_err(|e| failed(e.to_string()))?;
    let (width, height) = (tree.size().width() * scale, tree.size().height() * scale);
    if width > LONGEST || height > LONGEST {
        return Err(Error::TooLarge { width: width as u32, height: height as u32 });
    }
    let mut pixels = tiny_skia::Pixmap::new(width.ceil() as u32, height.ceil() as u32)
        .ok_or_else(|| failed("no memory for the pixels".into()))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| failed(e.to_string()))
}

//! The few shapes that a picture is made of, written as compact SVG.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::colour::Rgb;
use crate::font;
use crate::{Look, Theme};

/// Which end of a text stands at its point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a text is set.
#[derive(Clone, Copy)]
pub(crate) struct Type {
    pub size: f64,
    pub colour: Rgb,
    pub anchor: Anchor,
    pub bold: bool,
    /// Degrees, clockwise, about the text's point.
    pub turned: f64,
}

impl Type {
    pub fn new(size: f64, colour: Rgb) -> Self {
        Type { size, colour, anchor: Anchor::Start, bold: false, turned: 0.0 }
    }

    pub fn anchor(mut self, anchor: Anchor) -> Self {
        self.anchor = anchor;
        self
    }

    pub fn bold(mut self) -> Self {
        self.bold = true;
        self
    }

    pub fn turned(mut self, degrees: f64) -> Self {
        self.turned = degrees;
        self
    }
}

pub(crate) struct Canvas {
    body: String,
    pub look: Look,
}

impl Canvas {
    pub fn new(look: &Look) -> Self {
        Canvas { body: String::new(), look: *look }
    }

    pub fn theme(&self) -> Theme {
        self.look.theme
    }

    pub fn rect(&mut self, x: f64, y: f64, w: f64, h: f64, fill: Rgb) {
        let _ = writeln!(
            self.body,
            r#"<rect x="{}" y="{}" width="{}" height="{}" fill="{}"/>"#,
            n(x),
            n(y),
            n(w),
            n(h),
            fill.hex()
        );
    }

    /// A rectangle with round corners.
    pub fn pill(&mut self, x: f64, y: f64, w: f64, h: f64, radius: f64, fill: Rgb) {
        let (w, radius) = (w.max(0.0), radius.min(w / 2.0).max(0.0));
        let _ = writeln!(
            self.body,
            r#"<rect x="{}" y="{}" width="{}" height="{}" rx="{}" fill="{}"/>"#,
            n(x),
            n(y),
            n(w),
            n(h),
            n(radius),
            fill.hex()
        );
    }

    pub fn frame(&mut self, x: f64, y: f64, w: f64, h: f64, stroke: Rgb, width: f64) {
        let _ = writeln!(
            self.body,
            r#"<rect x="{}" y="{}" width="{}" height="{}" fill="none" stroke="{}" stroke-width="{}"/>"#,
            n(x),
            n(y),
            n(w),
            n(h),
            stroke.hex(),
            n(width)
        );
    }

    /// Lines given as the data of a path.
    pub fn path(&mut self, data: &str, stroke: Rgb, width: f64, opacity: f64) {
        if data.is_empty() {
            return;
        }
        let _ =
            write!(self.body, r#"<path d="{data}" fill="none" stroke="{}" stroke-width="{}""#, stroke.hex(), n(width));
        if opacity < 1.0 {
            let _ = write!(self.body, r#" opacity="{}""#, n(opacity));
        }
        self.body.push_str("/>\n");
    }

    pub fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), stroke: Rgb, width: f64) {
        let data = format!("M{} {}L{} {}", n(x1), n(y1), n(x2), n(y2));
        self.path(&data, stroke, width, 1.0);
    }

    pub fn dot(&mut self, x: f64, y: f64, radius: f64, fill: Rgb) {
        let _ = writeln!(self.body, r#"<circle cx="{}" cy="{}" r="{}" fill="{}"/>"#, n(x), n(y), n(radius), fill.hex());
    }

    /// `text` with its base line at y.
    pub fn text(&mut self, x: f64, y: f64, text: &str, style: Type) {
        if text.is_empty() {
            return;
        }
        let _ = write!(self.body, r#"<text x="{}" y="{}""#, n(x), n(y));
        if style.size != BASE {
            let _ = write!(self.body, r#" font-size="{}""#, n(style.size));
        }
        if style.bold {
            self.body.push_str(r#" font-weight="600""#);
        }
        match style.anchor {
            Anchor::Start => {}
            Anchor::Middle => self.body.push_str(r#" text-anchor="middle""#),
            Anchor::End => self.body.push_str(r#" text-anchor="end""#),
        }
        if style.turned != 0.0 {
            let _ = write!(self.body, r#" transform="rotate({} {} {})""#, n(style.turned), n(x), n(y));
        }
        let _ = write!(self.body, r#" fill="{}">"#, style.colour.hex());
        // The dots that stand for spaces step back.
        let word = text.trim_start_matches('·');
        if word.len() < text.len() {
            let dots = &text[..text.len() - word.len()];
            let _ = write!(self.body, r#"<tspan fill-opacity=".45">{dots}</tspan>"#);
        }
        let _ = writeln!(self.body, "{}</text>", escape(word));
    }

    /// `text` centred on y: the height of capitals is 0.71 em in the font used.
    pub fn text_mid(&mut self, x: f64, y: f64, text: &str, style: Type) {
        let lift = style.size * 0.355;
        let (dx, dy) = match style.turned {
            0.0 => (0.0, lift),
            degrees => (-lift * degrees.to_radians().sin(), lift * degrees.to_radians().cos()),
        };
        self.text(x + dx, y + dy, text, style);
    }

    /// A picture of pixels; its pixels stay squares at any zoom.
    pub fn image(&mut self, x: f64, y: f64, w: f64, h: f64, png: &[u8]) {
        let _ = write!(
            self.body,
            r#"<image x="{}" y="{}" width="{}" height="{}" preserveAspectRatio="none" style="image-rendering:pixelated" href="data:image/png;base64,"#,
            n(x),
            n(y),
            n(w),
            n(h)
        );
        STANDARD.encode_string(png, &mut self.body);
        self.body.push_str("\"/>\n");
    }

    /// The whole document. The title is for screen readers; the picture draws its own.
    pub fn finish(self, width: f64, height: f64, title: &str) -> String {
        let (width, height) = (width.ceil(), height.ceil());
        let mut out = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" font-family="{}" font-size="{}" role="img">"#,
            font::FAMILY,
            n(BASE),
            w = n(width),
            h = n(height),
        );
        out.push('\n');
        if !title.is_empty() {
            let _ = writeln!(out, "<title>{}</title>", escape(title));
        }
        let _ = writeln!(out, r#"<rect width="100%" height="100%" fill="{}"/>"#, self.look.theme.paper().hex());
        out.push_str(&self.body);
        out.push_str("</svg>\n");
        out
    }
}

/// The size of most text.
pub(crate) const BASE: f64 = 13.0;

/// A number with at most two decimals.
pub(crate) fn n(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// Text as XML takes it; characters that XML does not allow become □.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('□'),
            c => out.push(c),
        }
    }
    out
}

/// A PNG of `width` × `height` pixels, three bytes each.
pub(crate) fn png(width: usize, height: usize, pixel: impl Fn(usize, usize) -> Rgb) -> Result<Vec<u8>, crate::Error> {
    let mut data = Vec::with_capacity(width * height * 3);
    for i in 0..height {
        for j in 0..width {
            let Rgb(r, g, b) = pixel(i, j);
            data.extend_from_slice(&[r, g, b]);
        }
    }
    let failed = |e: png::EncodingError| crate::Error::Internal { doing: "encoding a PNG", problem: e.to_string() };
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&data).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_text_are_compact_and_safe() {
        assert_eq!([1.0, 1.5, 1.256, -0.001, 100.0].map(n), ["1", "1.5", "1.26", "0", "100"]);
        assert_eq!(escape("<a & \"b\">\u{1}"), "&lt;a &amp; &quot;b&quot;&gt;□");
    }
}

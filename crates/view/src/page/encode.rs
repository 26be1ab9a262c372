//! Bytes as a page holds them: base64 in scripts that no browser runs.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use foveal::f16;

use crate::Error;

/// Level 6 and above take four times as long for 4 % less.
const LEVEL: u32 = 5;

/// A chunk of data with its name.
pub(super) fn chunk(id: &str, bytes: &[u8]) -> String {
    format!("<script type=\"text/plain\" id=\"{id}\">{}</script>\n", STANDARD.encode(bytes))
}

/// The same, compressed.
pub(super) fn packed(id: &str, bytes: &[u8]) -> Result<String, Error> {
    let failed = |e: std::io::Error| Error::Internal { doing: "compressing the page", problem: e.to_string() };
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(LEVEL));
    encoder.write_all(bytes).map_err(failed)?;
    let bytes = encoder.finish().map_err(failed)?;
    Ok(format!("<script type=\"text/plain\" id=\"{id}\" data-packed>{}</script>\n", STANDARD.encode(bytes)))
}

pub(super) fn f32s<'a>(values: impl IntoIterator<Item = &'a f32>) -> Vec<u8> {
    values.into_iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(super) fn f64s<'a>(values: impl IntoIterator<Item = &'a f64>) -> Vec<u8> {
    values.into_iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(super) fn f16s<'a>(values: impl IntoIterator<Item = &'a f32>) -> Vec<u8> {
    values.into_iter().flat_map(|value| f16::from_f32(*value).to_le_bytes()).collect()
}

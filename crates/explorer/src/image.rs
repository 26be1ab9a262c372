//! Images for vision models: decoded within bounds, cut to the model's size.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use foveal_models::model::Vit;
use image::{ImageEncoder, ImageReader, Limits};
use ndarray::Array3;
use serde_json::{Value, json};

use crate::fault::Fault;

/// Bytes that decoding may take: photographs of 40 megapixels have 120 MB.
const MOST: u64 = 256 << 20;

/// An image as a model has read it.
#[derive(Clone, Debug)]
pub struct Picture {
    /// [height, width, C]
    pub pixels: Array3<u8>,
    /// Patches along a side.
    pub grid: usize,
}

impl Picture {
    /// Patches across and down, and the image itself.
    pub fn json(&self) -> Value {
        let (height, width, channels) = self.pixels.dim();
        let colour = if channels == 1 { image::ExtendedColorType::L8 } else { image::ExtendedColorType::Rgb8 };
        let mut png = Vec::new();
        let bytes: Vec<u8> = self.pixels.iter().copied().collect();
        let written =
            image::codecs::png::PngEncoder::new(&mut png).write_image(&bytes, width as u32, height as u32, colour);
        json!({ "width": self.grid, "height": self.grid, "png": written.map(|()| STANDARD.encode(&png)).unwrap_or_default() })
    }
}

/// The image of a request: a PNG or JPEG in base64, perhaps as a `data:` address.
///
/// # Errors
/// As [`decode`]; also if it is no base64.
pub fn from_base64(model: &Vit, text: &str) -> Result<Array3<u8>, Fault> {
    let data = text.strip_prefix("data:").and_then(|rest| rest.split_once(',')).map_or(text, |(_, data)| data);
    let bytes = STANDARD.decode(data.trim()).map_err(|error| {
        Fault::request(
            format!("the image is no base64: {error}; send a PNG or JPEG in base64"),
            format!("이미지가 base64가 아닙니다: {error}. PNG나 JPEG를 base64로 보내십시오"),
        )
    })?;
    decode(model, &bytes)
}

/// A PNG or JPEG in the size of the model: [height, width, C].
///
/// # Errors
/// If it is none, would take too much memory, or the model wants other channels than grey or coloured images have.
pub fn decode(model: &Vit, bytes: &[u8]) -> Result<Array3<u8>, Fault> {
    let unread = |error: &dyn std::fmt::Display| {
        Fault::request(
            format!("this is no PNG or JPEG that can be read: {error}"),
            format!("읽을 수 있는 PNG나 JPEG가 아닙니다: {error}"),
        )
    };
    let mut reader =
        ImageReader::new(std::io::Cursor::new(bytes)).with_guessed_format().map_err(|error| unread(&error))?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST);
    reader.limits(limits);
    let picture = reader.decode().map_err(|error| unread(&error))?;
    let (height, width) = (picture.height() as usize, picture.width() as usize);
    let array = |bytes: Vec<u8>, channels| Array3::from_shape_vec((height, width, channels), bytes);
    let fit =
        |pixels: Result<Array3<u8>, _>| pixels.map(|pixels| model.preprocessor().fit(&pixels)).map_err(|e| unread(&e));
    match model.config().channels {
        1 => {
            let grey = fit(array(picture.to_luma8().into_raw(), 1))?;
            // Digits are white on black; ink on paper is turned around.
            let mean = grey.iter().map(|x| f64::from(*x)).sum::<f64>() / grey.len().max(1) as f64;
            Ok(if mean > 127.5 { grey.mapv(|x| 255 - x) } else { grey })
        }
        3 => fit(array(picture.to_rgb8().into_raw(), 3)),
        channels => Err(Fault::request(
            format!("the model wants images of {channels} channels; there are grey (1) and coloured (3) ones"),
            format!("모델은 채널이 {channels}개인 이미지를 받습니다. 회색(1)이나 색(3) 이미지만 있습니다"),
        )),
    }
}

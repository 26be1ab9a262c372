//! Any bytes as a PNG or JPEG, brought to the size of a vision model.
//!
//!     cargo +nightly fuzz run picture

#![no_main]

use foveal_models::model::Preprocessor;
use libfuzzer_sys::fuzz_target;
use ndarray::Array3;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = image::ImageReader::new(std::io::Cursor::new(bytes)).with_guessed_format() else { return };
    let mut limits = image::Limits::default();
    (limits.max_image_width, limits.max_image_height) = (Some(512), Some(512));
    reader.limits(limits);
    let Ok(picture) = reader.decode() else { return };
    let shape = (picture.height() as usize, picture.width() as usize, 3);
    let picture = Array3::from_shape_vec(shape, picture.to_rgb8().into_raw()).expect("three bytes a pixel");
    let steps = Preprocessor::plain(24);
    assert_eq!(steps.values(&steps.fit(&picture)).shape(), [1, 3, 24, 24]);
});

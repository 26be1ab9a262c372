//! Any bytes as the preprocessor_config.json of a vision model, and what it makes of pictures.
//!
//!     cargo +nightly fuzz run preprocessor

#![no_main]

use foveal_models::Config;
use foveal_models::model::{Preprocessor, Size};
use libfuzzer_sys::fuzz_target;
use ndarray::Array3;

fuzz_target!(|bytes: &[u8]| {
    let Ok(config) = Config::from_json("preprocessor_config.json", bytes) else { return };
    let Ok(steps) = Preprocessor::read(&config) else { return };
    assert_eq!(
        Preprocessor::read(&Config::new("", steps.write().as_object().expect("an object").clone())).ok(),
        Some(steps.clone())
    );
    // Larger pictures than models read take long, and show nothing more.
    let large = |size: [usize; 2]| size[0].saturating_mul(size[1]) > 1 << 16;
    let too_large = match steps.resize {
        Some((Size::Exact(size), _)) => large(size),
        Some((Size::ShortestEdge(edge), _)) => large([edge, 8 * edge]),
        _ => false,
    };
    if too_large || steps.crop.is_some_and(large) {
        return;
    }
    for shape in [(3, 5, 3), (1, 1, 1), (8, 1, 3), (0, 4, 3)] {
        let picture = Array3::from_shape_fn(shape, |(y, x, c)| (31 * y + 7 * x + c) as u8);
        let _ = steps.values(&steps.fit(&picture));
    }
});

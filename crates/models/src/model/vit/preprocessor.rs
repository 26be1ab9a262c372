//! From a picture to what a vision model reads, as `preprocessor_config.json` says.
//!
//! ```text
//! picture → in the size asked for → its middle → times a factor, mostly 1/255 → (x − mean) / deviation
//! ```
//!
//! Each step may be left out. What the file does not say is as transformers has it for the class that the file names.

use std::path::Path;

use ndarray::{Array3, Array4, ArrayView3, Axis, s};
use serde_json::{Value, json};

use super::resample::{Filter, resize};
use crate::Result;
use crate::checkpoint::Config;

/// The steps before a vision model.
#[derive(Clone, Debug, PartialEq)]
pub struct Preprocessor {
    /// The size that pictures are brought to, and how.
    pub resize: Option<(Size, Filter)>,
    /// Height and width of what is cut from the middle.
    pub crop: Option<[usize; 2]>,
    /// What values from 0 to 255 are multiplied with.
    pub rescale: Option<f64>,
    /// Mean and deviation of each channel; one of either stands for all.
    pub normalise: Option<(Vec<f32>, Vec<f32>)>,
}

/// A size to bring pictures to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Size {
    /// Height and width, whatever the picture's shape.
    Exact([usize; 2]),
    /// The shorter edge, and the longer in proportion.
    ShortestEdge(usize),
}

impl Size {
    fn of(self, [height, width]: [usize; 2]) -> [usize; 2] {
        match self {
            Size::Exact(size) => size,
            // In whole numbers, cut off as in Python's int().
            Size::ShortestEdge(edge) if width <= height => [edge * height / width.max(1), edge],
            Size::ShortestEdge(edge) => [edge, edge * width / height.max(1)],
        }
    }
}

/// What a class of transformers does where the file does not say.
struct Class {
    size: Size,
    filter: Filter,
    /// Height and width of the middle, if it is cut out.
    crop: Option<usize>,
    mean: [f32; 3],
    deviation: [f32; 3],
}

const VIT: Class =
    Class { size: Size::Exact([224, 224]), filter: Filter::Bilinear, crop: None, mean: [0.5; 3], deviation: [0.5; 3] };
const DEIT: Class = Class { size: Size::Exact([256, 256]), filter: Filter::Bicubic, crop: Some(224), ..VIT };
const CLIP: Class = Class {
    size: Size::ShortestEdge(224),
    filter: Filter::Bicubic,
    crop: Some(224),
    mean: [0.481_454_66, 0.457_827_5, 0.408_210_73],
    deviation: [0.268_629_54, 0.261_302_6, 0.275_777_1],
};

impl Preprocessor {
    /// The steps of the first ViTs: pictures of `size` × `size`, their values from −1 to 1.
    pub fn plain(size: usize) -> Self {
        Preprocessor {
            resize: Some((Size::Exact([size, size]), Filter::Bilinear)),
            crop: None,
            rescale: Some(1.0 / 255.0),
            normalise: Some((vec![0.5], vec![0.5])),
        }
    }

    /// The steps that the `preprocessor_config.json` of a folder says, if there is one.
    ///
    /// # Errors
    /// If it cannot be read, or asks for what is not done here.
    pub fn of_folder(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join("preprocessor_config.json");
        if path.exists() { Preprocessor::read(&Config::read(&path)?).map(Some) } else { Ok(None) }
    }

    /// The steps that the contents of a `preprocessor_config.json` say.
    ///
    /// # Errors
    /// If they make no sense, or ask for what is not done here.
    pub fn read(config: &Config) -> Result<Self> {
        let class = class(config)?;
        if config.flag_or("do_pad", false)? {
            return Err(config.error("do_pad", "false", true));
        }
        let filter = match config.index("resample")? {
            None => class.filter,
            Some(number) => Filter::of(number as u64)
                .ok_or_else(|| config.error("resample", "one of Pillow's filters, 0 to 5", number))?,
        };
        let resizes = config.flag_or("do_resize", true)?;
        let crops = config.flag_or("do_center_crop", class.crop.is_some())?;
        let crop = match (crops, config.get("crop_size")) {
            (false, _) => None,
            (true, None) => Some([class.crop.unwrap_or(224); 2]),
            (true, Some(_)) => match size(config, "crop_size", VIT.size)? {
                Size::Exact(crop) => Some(crop),
                Size::ShortestEdge(edge) => Some([edge, edge]),
            },
        };
        let rescales = config.flag_or("do_rescale", true)?;
        let factor = config.float_or("rescale_factor", 1.0 / 255.0)?;
        let normalises = config.flag_or("do_normalize", true)?;
        let (mean, deviation) =
            (numbers(config, "image_mean", &class.mean)?, numbers(config, "image_std", &class.deviation)?);
        if normalises && deviation.contains(&0.0) {
            return Err(config.error("image_std", "numbers other than 0", 0));
        }
        Ok(Preprocessor {
            resize: if resizes { Some((size(config, "size", class.size)?, filter)) } else { None },
            crop,
            rescale: rescales.then_some(factor),
            normalise: normalises.then_some((mean, deviation)),
        })
    }

    /// The same as the contents of a `preprocessor_config.json`.
    pub fn write(&self) -> Value {
        let mut config = json!({
            "image_processor_type": "ViTImageProcessor",
            "do_resize": self.resize.is_some(),
            "do_center_crop": self.crop.is_some(),
            "do_rescale": self.rescale.is_some(),
            "do_normalize": self.normalise.is_some(),
        });
        if let Some((size, filter)) = self.resize {
            config["resample"] = filter.number().into();
            config["size"] = match size {
                Size::Exact([height, width]) => json!({ "height": height, "width": width }),
                Size::ShortestEdge(edge) => json!({ "shortest_edge": edge }),
            };
        }
        if let Some([height, width]) = self.crop {
            config["crop_size"] = json!({ "height": height, "width": width });
        }
        if let Some(factor) = self.rescale {
            config["rescale_factor"] = factor.into();
        }
        if let Some((mean, deviation)) = &self.normalise {
            config["image_mean"] = json!(mean);
            config["image_std"] = json!(deviation);
        }
        config
    }

    /// A picture [height, width, channels] in the size that the model reads: resized, and its middle. Where the middle is larger
    /// than the picture, black is put around it.
    pub fn fit<'a>(&self, picture: impl Into<ArrayView3<'a, u8>>) -> Array3<u8> {
        let picture = picture.into();
        let (height, width, _) = picture.dim();
        let resized = match self.resize {
            Some((size, filter)) if height > 0 && width > 0 => resize(picture, size.of([height, width]), filter),
            _ => picture.to_owned(),
        };
        self.crop.map_or_else(|| resized.clone(), |crop| middle(&resized, crop))
    }

    /// What the model reads of a picture that has its size: [1, channels, height, width].
    pub fn values<'a>(&self, picture: impl Into<ArrayView3<'a, u8>>) -> Array4<f32> {
        let values = picture.into().mapv(|x| self.rescale.map_or(f32::from(x), |by| (f64::from(x) * by) as f32));
        let mut values = values.permuted_axes([2, 0, 1]).as_standard_layout().into_owned();
        if let Some((mean, deviation)) = &self.normalise {
            for (channel, mut values) in values.outer_iter_mut().enumerate() {
                let of = |numbers: &[f32]| numbers.get(channel).or(numbers.first()).copied();
                let (mean, deviation) = (of(mean).unwrap_or(0.0), of(deviation).unwrap_or(1.0));
                values.mapv_inplace(|x| (x - mean) / deviation);
            }
        }
        values.insert_axis(Axis(0))
    }
}

fn class(config: &Config) -> Result<Class> {
    let key =
        if config.get("image_processor_type").is_some() { "image_processor_type" } else { "feature_extractor_type" };
    let name = config.text_or(key, "ViTImageProcessor")?;
    let stem = ["ImageProcessorFast", "ImageProcessorPil", "ImageProcessor", "FeatureExtractor"];
    Ok(match stem.iter().find_map(|end| name.strip_suffix(end)) {
        Some("ViT") => VIT,
        Some("DeiT") => DEIT,
        Some("CLIP" | "Bit") => CLIP,
        _ => {
            return Err(config.error(
                key,
                "ViTImageProcessor, DeiTImageProcessor, CLIPImageProcessor or BitImageProcessor",
                name,
            ));
        }
    })
}

/// A size: one number, or an object that says what its numbers are.
fn size(config: &Config, key: &str, default: Size) -> Result<Size> {
    match config.get(key) {
        None => Ok(default),
        Some(Value::Object(_)) => {
            let Some(section) = config.section(key)? else { return Ok(default) };
            match (section.get("height"), section.get("shortest_edge"), section.get("longest_edge")) {
                (Some(_), ..) => Ok(Size::Exact([section.size("height")?, section.size("width")?])),
                (None, Some(_), None) => Ok(Size::ShortestEdge(section.size("shortest_edge")?)),
                _ => Err(config.error(
                    key,
                    "height and width, or shortest_edge",
                    Value::Object(section.values().clone()),
                )),
            }
        }
        Some(_) => match default {
            Size::Exact(_) => config.size(key).map(|edge| Size::Exact([edge, edge])),
            Size::ShortestEdge(_) => config.size(key).map(Size::ShortestEdge),
        },
    }
    .and_then(|size| {
        let edges = match size {
            Size::Exact(edges) => edges,
            Size::ShortestEdge(edge) => [edge, edge],
        };
        // No model reads larger pictures, and larger ones would take all memory.
        if edges.iter().all(|&edge| edge <= 1 << 14) {
            Ok(size)
        } else {
            Err(config.error(key, "at most 16384 pixels", edges[0].max(edges[1])))
        }
    })
}

/// A number for each channel, or one for all.
fn numbers(config: &Config, key: &str, default: &[f32]) -> Result<Vec<f32>> {
    let expected = "a number, or one for each channel";
    match config.get(key) {
        None => Ok(default.to_vec()),
        Some(Value::Array(list)) => {
            let number =
                |value: &Value| value.as_f64().map(|x| x as f32).ok_or_else(|| config.error(key, expected, value));
            let numbers = list.iter().map(number).collect::<Result<Vec<_>>>()?;
            if numbers.is_empty() { Err(config.error(key, expected, "[]")) } else { Ok(numbers) }
        }
        Some(_) => Ok(vec![config.float(key)? as f32]),
    }
}

/// The middle of a picture, with black around it where it is smaller.
fn middle(picture: &Array3<u8>, [height, width]: [usize; 2]) -> Array3<u8> {
    let (old_height, old_width, channels) = picture.dim();
    let mut cut = Array3::zeros((height, width, channels));
    // Where the two lie in one another along an axis: from, to, and how much. Halves are rounded as transformers does.
    let place = |old: usize, new: usize| {
        if new <= old { ((old - new) / 2, 0, new) } else { (0, (new - old).div_ceil(2), old) }
    };
    let ((top, to_top, rows), (left, to_left, columns)) = (place(old_height, height), place(old_width, width));
    let source = picture.slice(s![top..top + rows, left..left + columns, ..]);
    cut.slice_mut(s![to_top..to_top + rows, to_left..to_left + columns, ..]).assign(&source);
    cut
}

use ndarray::{Array2, Array3, Axis};
use serde::Serialize;

use super::{Caption, caption_setters, check_not_empty, check_shape};
use crate::Error;
use crate::scale::number;
use crate::scene::Range;

/// Weights over the patches of an image: the image, and beside it one copy for each map, lit where it is attended to.
#[derive(Clone, Debug, Serialize)]
pub struct Patches {
    /// [height, width, 3], 0 to 1.
    pub(crate) image: Array3<f32>,
    pub(crate) maps: Vec<(String, Array2<f32>)>,
    pub(crate) query: Option<(usize, usize)>,
    pub(crate) range: Range,
    pub(crate) caption: Caption,
}

impl Patches {
    /// A grey image, 0 (black) to 1 (white), and the weight of each patch as a matrix of as many rows and columns as
    /// there are patches.
    ///
    /// # Errors
    /// If the image or the weights are empty.
    pub fn grey(image: &Array2<f32>, weights: Array2<f32>) -> Result<Self, Error> {
        let (height, width) = image.dim();
        Patches::rgb(Array3::from_shape_fn((height, width, 3), |(i, j, _)| image[[i, j]]), weights)
    }

    /// An image [height, width, 3], 0 to 1.
    ///
    /// # Errors
    /// As [`grey`](Patches::grey); also if the image has no three channels.
    pub fn rgb(image: Array3<f32>, weights: Array2<f32>) -> Result<Self, Error> {
        check_not_empty(&weights)?;
        super::check_count("channels of the image", 3, image.len_of(Axis(2)))?;
        if image.is_empty() {
            return Err(Error::Empty { what: "pixels" });
        }
        let maps = vec![(String::new(), weights)];
        Ok(Patches { image, maps, query: None, range: Range::Own, caption: Caption::default() })
    }

    caption_setters!();

    /// The name of the first map.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        if let Some(map) = self.maps.first_mut() {
            map.0 = name.into();
        }
        self
    }

    /// One more map over the same patches: another head, another layer.
    ///
    /// # Errors
    /// If it has another shape than the first.
    pub fn and(mut self, name: impl Into<String>, weights: Array2<f32>) -> Result<Self, Error> {
        check_shape("the map", self.grid(), weights.dim())?;
        self.maps.push((name.into(), weights));
        Ok(self)
    }

    /// The patch (row, column) whose attention it is; it is framed.
    #[must_use]
    pub fn query(mut self, row: usize, column: usize) -> Self {
        self.query = Some((row, column));
        self
    }

    /// What the colours are measured against; the largest value of each map by default.
    #[must_use]
    pub fn range(mut self, range: Range) -> Self {
        self.range = range;
        self
    }

    /// Whether each map has colours of its own.
    fn each_its_own(&self) -> bool {
        self.range != Range::Shared && self.maps.len() > 1
    }

    /// What stands over a map: also its largest value, where the colours are measured against that.
    pub(crate) fn heading(&self, name: &str, max: f64) -> String {
        if self.each_its_own() {
            format!("{name} · ≤ {}", number((max * 1e3).round() / 1e3))
        } else {
            name.to_owned()
        }
    }

    /// The end of the colour bar and what it measures: of maps with colours of their own, shares of their largest values.
    pub(crate) fn bar(&self, overall: f64) -> (f64, &'static str) {
        let language = self.caption.language;
        if self.each_its_own() { (1.0, language.of_largest()) } else { (overall, language.weight()) }
    }

    /// Rows and columns of patches.
    pub(crate) fn grid(&self) -> (usize, usize) {
        self.maps.first().map_or((1, 1), |map| map.1.dim())
    }
}

use serde::Serialize;

use super::{Caption, caption_setters};
use crate::{Error, Steps};

/// The ends of an axis.
pub(crate) type Limits = (f64, f64);

/// One curve of a chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// (x, y), in the order in which they are joined. Points that are not finite, or not above 0 on an axis of equal
    /// ratios, leave a gap.
    pub points: Vec<(f64, f64)>,
}

/// Curves over two axes: losses over steps, times over lengths.
///
/// ```
/// use foveal_view::{Chart, Look, Scene, Steps};
///
/// let chart = Chart::new("tokens", "seconds")
///     .series("naive", [(512.0, 0.01), (1024.0, 0.04), (2048.0, 0.16)])
///     .series("foveal", [(512.0, 0.002), (1024.0, 0.007), (2048.0, 0.028)])
///     .steps(Steps::Log, Steps::Log);
/// assert!(Scene::from(chart).svg(&Look::new())?.contains("foveal"));
/// # Ok::<(), foveal_view::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Chart {
    pub(crate) series: Vec<Series>,
    pub(crate) x_name: String,
    pub(crate) y_name: String,
    pub(crate) x_steps: Steps,
    pub(crate) y_steps: Steps,
    pub(crate) from_zero: bool,
    pub(crate) caption: Caption,
}

impl Chart {
    /// A chart without curves, its axes named.
    pub fn new(x_name: impl Into<String>, y_name: impl Into<String>) -> Self {
        Chart {
            series: Vec::new(),
            x_name: x_name.into(),
            y_name: y_name.into(),
            x_steps: Steps::Linear,
            y_steps: Steps::Linear,
            from_zero: false,
            caption: Caption::default(),
        }
    }

    caption_setters!();

    /// One more curve.
    #[must_use]
    pub fn series(mut self, name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.series.push(Series { name: name.into(), points: points.into_iter().collect() });
        self
    }

    /// Even steps or steps of equal ratio, along x and along y.
    #[must_use]
    pub fn steps(mut self, x: Steps, y: Steps) -> Self {
        (self.x_steps, self.y_steps) = (x, y);
        self
    }

    /// The y axis begins at 0.
    #[must_use]
    pub fn from_zero(mut self) -> Self {
        self.from_zero = true;
        self
    }

    /// Whether a point has a place on the axes.
    pub(crate) fn shows(&self, (x, y): (f64, f64)) -> bool {
        let on = |v: f64, steps| v.is_finite() && (steps != Steps::Log || v > 0.0);
        on(x, self.x_steps) && on(y, self.y_steps)
    }

    /// The ranges of x and y that hold all points.
    pub(crate) fn limits(&self) -> Result<(Limits, Limits), Error> {
        let points = || self.series.iter().flat_map(|s| &s.points).copied().filter(|p| self.shows(*p));
        if points().next().is_none() {
            return Err(Error::Empty { what: "points" });
        }
        let range = |of: fn((f64, f64)) -> f64| {
            points().map(of).fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)))
        };
        let (x, mut y) = (range(|p| p.0), range(|p| p.1));
        if self.from_zero && self.y_steps != Steps::Log {
            y = (y.0.min(0.0), y.1.max(0.0));
        }
        Ok((widened(x, self.x_steps, 0.0), widened(y, self.y_steps, 0.05)))
    }
}

/// A range that is not empty, with a margin of this part of it.
fn widened((lo, hi): Limits, steps: Steps, margin: f64) -> Limits {
    match steps {
        Steps::Linear | Steps::Root if hi - lo <= hi.abs().max(lo.abs()) * 1e-9 => {
            let half = if hi == 0.0 { 1.0 } else { hi.abs() * 0.5 };
            (lo - half, hi + half)
        }
        Steps::Linear | Steps::Root => {
            let more = (hi - lo) * margin;
            (if lo == 0.0 { lo } else { lo - more }, if hi == 0.0 { hi } else { hi + more })
        }
        Steps::Log if hi / lo < 1.0 + 1e-9 => (lo / 2.0, hi * 2.0),
        Steps::Log => {
            let more = (hi / lo).powf(margin);
            (lo / more, hi * more)
        }
    }
}

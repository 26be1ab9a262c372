//! From values to colours and positions: ranges, ticks, and numbers as text.

use serde::Serialize;

use crate::colour::{self, Rgb};
use crate::{Look, Palette, Theme};

/// How the steps of a range follow one another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Steps {
    /// Even.
    #[default]
    Linear,
    /// Even steps of the square root: small values are seen, and 0 has its place. On the axis of a chart, as `Linear`.
    Root,
    /// Of equal ratio: for values over several orders of magnitude. What is not above 0 has no place on it.
    Log,
}

/// The colours of a range of values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub lo: f64,
    pub hi: f64,
    pub steps: Steps,
    diverging: bool,
    theme: Theme,
    palette: Palette,
}

impl Scale {
    /// From 0 to `hi`.
    pub fn from_zero(hi: f64, look: &Look) -> Self {
        let hi = if hi.is_finite() && hi > 0.0 { hi } else { 1.0 };
        Scale { lo: 0.0, hi, steps: Steps::Linear, diverging: false, theme: look.theme, palette: look.palette }
    }

    /// From `lo` to `hi` in steps of equal ratio.
    pub fn log(lo: f64, hi: f64, look: &Look) -> Self {
        let hi = if hi.is_finite() && hi > 0.0 { hi } else { 1.0 };
        let lo = if lo.is_finite() && lo > 0.0 && lo < hi { lo } else { hi * 1e-4 };
        Scale { lo, steps: Steps::Log, ..Scale::from_zero(hi, look) }
    }

    /// From −`hi` to `hi`.
    pub fn symmetric(hi: f64, look: &Look) -> Self {
        let hi = if hi.is_finite() && hi > 0.0 { hi } else { 1.0 };
        Scale { lo: -hi, hi, diverging: true, ..Scale::from_zero(hi, look) }
    }

    /// The same range in other steps; a range from 0 has no steps of equal ratio, and begins at 1/10,000 of its end.
    pub fn steps(self, steps: Steps) -> Self {
        match steps {
            Steps::Log if !self.diverging => Scale { lo: self.hi * 1e-4, steps, ..self },
            Steps::Log => self,
            _ => Scale { steps, ..self },
        }
    }

    /// Where `value` lies, 0 to 1; `None` if it is no number.
    pub fn fraction(&self, value: f64) -> Option<f64> {
        if value.is_nan() {
            return None;
        }
        let t = match self.steps {
            Steps::Linear => (value - self.lo) / (self.hi - self.lo),
            Steps::Root if self.diverging => 0.5 + 0.5 * value.signum() * (value.abs() / self.hi).sqrt(),
            Steps::Root => (value.max(0.0) / self.hi).sqrt(),
            Steps::Log if value <= 0.0 => 0.0,
            Steps::Log => (value / self.lo).ln() / (self.hi / self.lo).ln(),
        };
        Some(t.clamp(0.0, 1.0))
    }

    pub fn colour(&self, value: f64) -> Option<Rgb> {
        self.fraction(value).map(|t| self.colour_at(t))
    }

    /// The colour of the fraction `t` of the range.
    pub fn colour_at(&self, t: f64) -> Rgb {
        match self.diverging {
            true => colour::diverging(self.theme, 2.0 * t - 1.0),
            false => self.palette.colour(self.theme, t),
        }
    }

    /// The colour of one pixel of a picture; what is no number is a chequerboard.
    pub fn pixel(&self, value: f32, i: usize, j: usize) -> Rgb {
        self.colour(f64::from(value)).unwrap_or_else(|| {
            let (pale, dark) = self.theme.nan();
            if (i + j).is_multiple_of(2) { pale } else { dark }
        })
    }

    pub fn ticks(&self, about: usize) -> Vec<(f64, String)> {
        match self.steps {
            Steps::Root => self.root_ticks(about),
            _ => ticks(self.lo, self.hi, self.steps, about),
        }
    }

    /// 0 and 1, 2, 5 · 10ᵏ, from the largest down, where they do not come too near to one another.
    fn root_ticks(&self, about: usize) -> Vec<(f64, String)> {
        let place = |v: f64| (v / self.hi).sqrt();
        let apart = 0.6 / about.max(1) as f64;
        let mut marks: Vec<f64> = Vec::new();
        let top = self.hi.log10().ceil() as i32;
        for v in (0..8).flat_map(|k| [10.0, 5.0, 2.0].map(|m| m * 10f64.powi(top - 1 - k))) {
            let last = marks.last().map_or(1.0 + apart, |&m| place(m));
            if v <= self.hi * 1.000_001 && last - place(v) >= apart && place(v) >= apart {
                marks.push(v);
            }
        }
        let below: Vec<f64> = if self.diverging { marks.iter().map(|v| -v).collect() } else { Vec::new() };
        marks.push(0.0);
        below.into_iter().chain(marks.into_iter().rev()).map(|v| (v, number(v))).collect()
    }
}

/// Up to this many tokens a side, weights are large enough for even steps.
const FEW: usize = 64;

/// The steps for matrices of this shape, if the caller wants no others.
pub(crate) fn default_steps((rows, cols): (usize, usize)) -> Steps {
    if rows.max(cols) <= FEW { Steps::Linear } else { Steps::Root }
}

/// The largest finite value, or 0.
pub(crate) fn maximum<'a>(values: impl IntoIterator<Item = &'a f32>) -> f64 {
    values.into_iter().filter(|v| v.is_finite()).fold(0.0, |max: f64, &v| max.max(f64::from(v)))
}

/// Round numbers from `lo` to `hi`, about as many as asked for, with their text.
pub(crate) fn ticks(lo: f64, hi: f64, steps: Steps, about: usize) -> Vec<(f64, String)> {
    if !(lo.is_finite() && hi.is_finite() && hi > lo) {
        return vec![(lo, number(lo))];
    }
    match steps {
        Steps::Linear | Steps::Root => {
            let rough = (hi - lo) / about.max(1) as f64;
            let power = 10f64.powf(rough.log10().floor());
            let step =
                [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough * 0.999).unwrap_or(rough);
            let decimals = (-step.log10().floor()).max(0.0) as usize;
            let first = (lo / step - 1e-9).ceil();
            let count = (hi / step + 1e-9).floor() - first;
            (0..=count.clamp(0.0, 100.0) as usize)
                .map(|i| (first + i as f64) * step)
                .map(|v| (v, if v == 0.0 { "0".into() } else { decimal(v, decimals, step) }))
                .collect()
        }
        Steps::Log => {
            let (first, last) = (lo.log10(), hi.log10());
            let tens = (first - 1e-9).ceil() as i32..=(last + 1e-9).floor() as i32;
            let every = ((last - first) / about.max(1) as f64).ceil().max(1.0) as usize;
            let mut marks: Vec<f64> = tens.clone().step_by(every).map(|e| 10f64.powi(e)).collect();
            if last - first < 2.6 {
                for e in first.floor() as i32..=last.floor() as i32 {
                    marks.extend([2.0, 5.0].map(|m| m * 10f64.powi(e)).iter().filter(|v| **v >= lo && **v <= hi));
                }
                marks.sort_by(f64::total_cmp);
            }
            if marks.len() < 2 {
                marks = vec![lo, hi];
            }
            marks.into_iter().map(|v| (v, number(v))).collect()
        }
    }
}

fn decimal(value: f64, decimals: usize, step: f64) -> String {
    if decimals > 4 || step >= 1e5 { number(value) } else { grouped(&minus(&format!("{value:.decimals$}"))) }
}

/// A number as short as three digits allow: `0.507`, `12.3`, `4,096`, `1.5e9`.
pub(crate) fn number(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞".into() } else { "−∞".into() };
    }
    let size = value.abs();
    let text = if value == 0.0 {
        "0".into()
    } else if !(1e-3..1e7).contains(&size) {
        let text = format!("{value:.1e}");
        text.replace(".0e", "e")
    } else if size >= 100.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        let decimals = if size >= 10.0 {
            1
        } else if size >= 1.0 {
            2
        } else {
            3
        };
        let text = format!("{value:.decimals$}");
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    };
    grouped(&minus(&text))
}

/// A number at the end of a bar: three decimals, so that the numbers of all bars line up.
pub(crate) fn bar_number(value: f64) -> String {
    if value != 0.0 && value.abs() < 10.0 { minus(&format!("{value:.3}")) } else { number(value) }
}

fn minus(text: &str) -> String {
    text.replace('-', "−")
}

/// Thousands set apart: `16384` → `16,384`.
fn grouped(text: &str) -> String {
    let digits = text.bytes().skip_while(|b| !b.is_ascii_digit()).take_while(u8::is_ascii_digit).count();
    if digits < 5 {
        return text.to_string();
    }
    let start = text.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
    let mut out = text[..start].to_string();
    for (i, c) in text[start..start + digits].chars().enumerate() {
        if i > 0 && (digits - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out + &text[start + digits..]
}

/// A weight as it stands in a cell: two decimals, without the leading 0 where there is little room. Nothing for an
/// exact 0, which is what a mask leaves.
pub(crate) fn cell_text(value: f32, narrow: bool) -> String {
    if value == 0.0 {
        return String::new();
    }
    if value.is_nan() {
        return "×".into();
    }
    if value.abs() >= 99.5 {
        return number(f64::from(value));
    }
    let text = if value.abs() >= 9.95 { format!("{value:.0}") } else { format!("{value:.2}") };
    let text = if text == "-0.00" { "0.00".to_string() } else { text };
    let text = match narrow {
        true if text == "1.00" => "1".to_string(),
        true if text == "0.00" => "0".to_string(),
        true => text.replacen("0.", ".", 1),
        false => text,
    };
    minus(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lo: f64, hi: f64, steps: Steps, about: usize) -> Vec<String> {
        ticks(lo, hi, steps, about).into_iter().map(|t| t.1).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(text(0.0, 1.0, Steps::Linear, 5), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(text(0.0, 0.507, Steps::Linear, 5), ["0", "0.2", "0.4"]);
        assert_eq!(text(-0.3, 0.3, Steps::Linear, 4), ["−0.2", "0", "0.2"]);
        assert_eq!(text(0.0, 16384.0, Steps::Linear, 4), ["0", "5000", "10,000", "15,000"]);
        assert_eq!(text(1e-4, 1.0, Steps::Log, 5), ["1e−4", "0.001", "0.01", "0.1", "1"]);
        assert_eq!(text(128.0, 4096.0, Steps::Log, 5), ["200", "500", "1000", "2000"]);
        assert_eq!(text(1.0, 1.0, Steps::Linear, 5), ["1"]);
        assert_eq!(text(0.0, f64::NAN, Steps::Linear, 5), ["0"]);
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.50648, 12.345, 4096.0, 16384.0, 1.5e9, 0.0, -0.25, 1e-5, f64::NAN].map(number);
        assert_eq!(shown, ["0.506", "12.3", "4096", "16,384", "1.5e9", "0", "−0.25", "1e−5", "NaN"]);
        assert_eq!([0.5065, 0.0, 1.0, 0.001, f32::NAN].map(|v| cell_text(v, false)), ["0.51", "", "1.00", "0.00", "×"]);
        assert_eq!([0.5065, 1.0, 0.001, -0.3].map(|v| cell_text(v, true)), [".51", "1", "0", "−.30"]);
    }

    #[test]
    fn scales_never_divide_by_nothing() {
        let look = Look::new();
        for hi in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-30] {
            for scale in [Scale::from_zero(hi, &look), Scale::log(hi, hi, &look), Scale::symmetric(hi, &look)] {
                for v in [0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, 1e-40] {
                    assert!(scale.fraction(v).is_some_and(|t| (0.0..=1.0).contains(&t)), "{scale:?} {v}");
                }
                assert!(scale.fraction(f64::NAN).is_none());
            }
        }
    }
}

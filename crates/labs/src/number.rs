//! Numbers as readers and as other programs want them.

use ndarray::Array2;

/// Thousands set apart: 16,384.
pub fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// As many decimals as there are, up to five: 2, 0.5, 0.50648.
pub fn short(x: f64) -> String {
    if x == f64::NEG_INFINITY {
        return "−∞".into();
    }
    let text = format!("{x:.5}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.replace('-', "−") }
}

/// A size that may be tiny: 0.0312, 4.1e−9, 0.
pub fn tiny(x: f64) -> String {
    match x.abs() {
        0.0 => "0".into(),
        size if size < 1e-3 => format!("{x:.1e}").replace('-', "−"),
        _ => format!("{x:.4}").replace('-', "−"),
    }
}

/// Megabytes of 2²⁰ bytes: 4, 1,024, 0.3.
pub fn megabytes(bytes: f64) -> String {
    let mb = bytes / f64::from(1 << 20);
    if mb >= 10.0 || mb.fract() == 0.0 { grouped(mb.round() as u128) } else { format!("{mb:.1}") }
}

/// 900 B, 64 KB, 4.5 MB, 1.5 TB, in powers of 1,024.
pub fn bytes(bytes: f64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB"];
    let step = (0..units.len() - 1).find(|&step| bytes < 1024f64.powi(step as i32 + 1)).unwrap_or(units.len() - 1);
    let (value, unit) = (bytes / 1024f64.powi(step as i32), units[step]);
    if value >= 10.0 || value.fract() == 0.0 { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") }
}

/// A count in words' worth of digits: 124.4 M, 174.6 B.
pub fn counted(number: f64) -> String {
    match number {
        n if n >= 1e12 => format!("{:.1} T", n / 1e12),
        n if n >= 1e9 => format!("{:.1} B", n / 1e9),
        n if n >= 1e6 => format!("{:.1} M", n / 1e6),
        n => grouped(n.round() as u128),
    }
}

/// A length in tokens: 512, 1K, 16K.
pub fn length(tokens: usize) -> String {
    if tokens >= 1024 && tokens.is_multiple_of(1024) {
        format!("{}K", grouped((tokens / 1024) as u128))
    } else {
        grouped(tokens as u128)
    }
}

/// A matrix for JSON, in the shortest decimals that read back as the same numbers: 0.1, not 0.10000000149.
pub fn rows(values: &Array2<f32>) -> Vec<Vec<f64>> {
    values.outer_iter().map(|row| row.iter().map(|x| single(*x)).collect()).collect()
}

/// One of them.
pub fn single(x: f32) -> f64 {
    x.to_string().parse().unwrap_or(f64::from(x))
}

/// The largest difference between two matrices of the same shape.
pub fn largest_difference(a: &Array2<f32>, b: &Array2<f32>) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs())).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([1, 999, 16_384, 1_234_567].map(grouped), ["1", "999", "16,384", "1,234,567"]);
        assert_eq!(
            [2.0, 0.5, 0.506_480_4, -1.25, f64::NEG_INFINITY].map(short),
            ["2", "0.5", "0.50648", "−1.25", "−∞"]
        );
        assert_eq!([0.0, 4.1e-9, 0.25].map(tiny), ["0", "4.1e−9", "0.2500"]);
        assert_eq!([4.0, 1024.0, 0.3].map(|mb| megabytes(mb * 1048576.0)), ["4", "1,024", "0.3"]);
        assert_eq!([900.0, 65_536.0, 4.5 * 1048576.0].map(bytes), ["900 B", "64 KB", "4.5 MB"]);
        assert_eq!([124_439_808.0, 174.6e9, 65.0].map(counted), ["124.4 M", "174.6 B", "65"]);
        assert_eq!([100, 1024, 1000, 16_384].map(length), ["100", "1K", "1,000", "16K"]);
        assert_eq!(single(0.1), 0.1);
    }
}

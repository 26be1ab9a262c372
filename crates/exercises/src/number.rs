//! Numbers in questions and answers.

use ndarray::Array2;

use foveal_labs::Table;

/// With this many digits after the point; what is not finite as people write it.
pub fn fixed(x: f64, decimals: usize) -> String {
    if x.is_nan() {
        return "NaN".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "∞".into() } else { "−∞".into() };
    }
    let text = format!("{x:.decimals$}");
    let zero = text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.');
    if zero { text.trim_start_matches('-').to_owned() } else { text.replace('-', "−") }
}

/// With as many digits as it has, up to five.
pub fn short(x: f64) -> String {
    let text = fixed(x, 5);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// In a row.
pub fn list(values: impl IntoIterator<Item = f64>) -> String {
    format!("[{}]", values.into_iter().map(short).collect::<Vec<_>>().join(", "))
}

/// A matrix with named rows and columns.
pub fn matrix(values: &Array2<f32>, rows: &str, columns: &str) -> Table {
    let head = std::iter::once(String::new()).chain((0..values.ncols()).map(|j| format!("{columns}{j}")));
    let mut table = Table::new(head.collect::<Vec<_>>());
    for (i, row) in values.outer_iter().enumerate() {
        table.row(std::iter::once(format!("{rows}{i}")).chain(row.iter().map(|x| short(f64::from(*x)))));
    }
    table
}

/// As f64.
pub fn wide<'a>(values: impl IntoIterator<Item = &'a f32>) -> Vec<f64> {
    values.into_iter().map(|x| f64::from(*x)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0.5, -1.25, 3.0, -0.000_000_1].map(short), ["0.5", "−1.25", "3", "0"]);
        assert_eq!([f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(short), ["NaN", "∞", "−∞"]);
        assert_eq!((fixed(0.125, 2), list([1.0, 0.5])), ("0.12".to_owned(), "[1, 0.5]".to_owned()));
    }
}

//! Pixels of a picture and the cells that they pool: pixel p of h over n cells has those from ⌊p·n/h⌋ to before
//! ⌊(p + 1)·n/h⌋, as in the engine.

use std::ops::Range;

use ndarray::ArrayView2;

use crate::request::Pool;

/// The first cell of pixel p.
pub fn bounds(cells: usize, pixels: usize, p: usize) -> usize {
    (p as u128 * cells as u128 / pixels as u128) as usize
}

/// Pixels 0..`pixels` over `cells` cells in strips of at most `most`, each of which is the same when it is made by itself:
/// cut at its own ends, its pixels have the same bounds.
pub fn strips(cells: usize, pixels: usize, most: usize) -> Vec<Range<usize>> {
    let mut strips = Vec::new();
    let mut start = 0;
    while start < pixels {
        let alike = |length: &usize| {
            let first = bounds(cells, pixels, start);
            let own = bounds(cells, pixels, start + length) - first;
            (1..*length).all(|p| bounds(own, *length, p) == bounds(cells, pixels, start + p) - first)
        };
        // A single pixel always is.
        let length = (1..=most.min(pixels - start)).rev().find(alike).unwrap_or(1);
        strips.push(start..start + length);
        start += length;
    }
    strips
}

/// A row of pixels on its way: rows of numbers are pooled into one, then that along itself.
pub struct Line {
    pool: Pool,
    values: Vec<f32>,
}

impl Line {
    /// A row of pixels over so many columns.
    pub fn new(cols: usize, pool: Pool) -> Self {
        Line { pool, values: vec![0.0; cols] }
    }

    /// Adds rows.
    pub fn add(&mut self, rows: ArrayView2<f32>) {
        for row in rows.outer_iter() {
            match self.pool {
                Pool::Max => self.values.iter_mut().zip(row).for_each(|(x, y)| *x = larger(*x, *y)),
                Pool::Mean => self.values.iter_mut().zip(row).for_each(|(x, y)| *x += y),
            }
        }
    }

    /// The pixels, `width` of them, from `rows` rows.
    pub fn finish(&self, rows: usize, width: usize, mut pixel: impl FnMut(usize, f32)) {
        for x in 0..width {
            let (start, end) = (bounds(self.values.len(), width, x), bounds(self.values.len(), width, x + 1));
            let part = &self.values[start..end];
            pixel(
                x,
                match self.pool {
                    Pool::Max => part.iter().fold(0.0, |x, y| larger(x, *y)),
                    Pool::Mean => part.iter().sum::<f32>() / (rows * part.len()) as f32,
                },
            );
        }
    }
}

/// The larger one, and NaN where one is: nothing wrong is pooled away.
fn larger(x: f32, y: f32) -> f32 {
    if y > x || y.is_nan() { y } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_keep_the_bounds_of_pixels() {
        for (cells, pixels, most) in
            [(16_384, 1024, 64), (16_381, 1024, 64), (1000, 999, 50), (37, 5, 2), (7, 7, 3), (5, 1, 9)]
        {
            let strips = strips(cells, pixels, most);
            assert_eq!(strips.iter().map(Range::len).sum::<usize>(), pixels);
            for strip in &strips {
                assert!(strip.len() <= most);
                let first = bounds(cells, pixels, strip.start);
                let own = bounds(cells, pixels, strip.end) - first;
                for p in 0..=strip.len() {
                    assert_eq!(first + bounds(own, strip.len(), p), bounds(cells, pixels, strip.start + p));
                }
            }
            // Few strips: a picture in single pixels would be computed twice as slowly.
            assert!(strips.len() <= 4 * pixels.div_ceil(most) + 16, "{} strips for {cells}, {pixels}", strips.len());
        }
    }
}

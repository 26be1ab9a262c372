//! One head: what the page has stored of it, and what can be asked.

use foveal::reference::row;
use foveal::{Error, HeadOptions, Pool, Threads, f16};
use foveal_compute::matmul;
use ndarray::{ArrayView2, ArrayView3, ArrayView4, ArrayViewMut2};

/// Numbers of [`Loaded::options`]: scale, softcap, left, right, offset, length, slope, sink. NaN stands for none.
pub const OPTIONS: usize = 8;

/// Queries, keys and options of one head.
#[derive(Default)]
pub struct Loaded {
    pub queries: usize,
    pub keys: usize,
    pub dim: usize,
    /// [T, D]
    pub q: Vec<f32>,
    /// [S, D]
    pub k: Vec<f32>,
    /// [T]
    pub lse: Vec<f64>,
    pub options: [f64; OPTIONS],
    /// What was asked for last.
    pub out: Vec<f32>,
    /// The arithmetic of a cell.
    pub steps: Vec<f64>,
    /// Numbers of 16 bits on their way to q or k.
    pub bits: Vec<u16>,
    /// Three square matrices, for products.
    pub squares: [Vec<f32>; 3],
}

impl Loaded {
    /// Room for another head.
    pub fn resize(&mut self, queries: usize, keys: usize, dim: usize) {
        (self.queries, self.keys, self.dim) = (queries, keys, dim);
        self.q.resize(queries * dim, 0.0);
        self.k.resize(keys * dim, 0.0);
        self.lse.resize(queries, 0.0);
    }

    /// Widens what lies in `bits` into the queries or the keys.
    pub fn widen(&mut self, keys: bool) {
        let target = if keys { &mut self.k } else { &mut self.q };
        target.iter_mut().zip(&self.bits).for_each(|(number, bits)| *number = f16::from_bits(*bits).to_f32());
    }

    fn head_options(&self) -> HeadOptions {
        let [scale, softcap, left, right, offset, length, slope, sink] = self.options;
        let some = |x: f64| (!x.is_nan()).then_some(x);
        HeadOptions {
            scale: scale as f32,
            softcap: some(softcap).map(|x| x as f32),
            left: some(left).map(|x| x as usize),
            right: some(right).map(|x| x as usize),
            offset: offset as isize,
            length: length as usize,
            slope: slope as f32,
            sink: some(sink).map(|x| x as f32),
        }
    }

    fn arrays(&self) -> (ArrayView4<'_, f32>, ArrayView4<'_, f32>, ArrayView3<'_, f64>) {
        let sized = "the arrays have been sized together";
        (
            ArrayView4::from_shape((1, 1, self.queries, self.dim), &self.q).expect(sized),
            ArrayView4::from_shape((1, 1, self.keys, self.dim), &self.k).expect(sized),
            ArrayView3::from_shape((1, 1, self.queries), &self.lse).expect(sized),
        )
    }

    /// An exact rectangle, [rows, cols], into `out`.
    pub fn tile(&mut self, rows: [usize; 2], cols: [usize; 2]) -> Result<(), Error> {
        let attention = self.head_options().attention().threads(Threads::Sequential);
        let (q, k, lse) = self.arrays();
        let tile = attention.head(q, k, lse, (0, 0))?.tile(rows[0]..rows[1], cols[0]..cols[1])?;
        self.out = tile.into_raw_vec_and_offset().0;
        Ok(())
    }

    /// A pooled picture of a rectangle, [size], into `out`.
    pub fn map(&mut self, rows: [usize; 2], cols: [usize; 2], size: [usize; 2], pool: Pool) -> Result<(), Error> {
        let attention = self.head_options().attention().threads(Threads::Sequential);
        let (q, k, lse) = self.arrays();
        let size = (size[0], size[1]);
        let map = attention.head(q, k, lse, (0, 0))?.map(rows[0]..rows[1], cols[0]..cols[1], size, pool)?;
        self.out = map.into_raw_vec_and_offset().0;
        Ok(())
    }

    /// How one weight comes about, into `steps`: product, scale, scaled, score, visible, max, exp, sum, weight.
    pub fn cell(&mut self, query: usize, key: usize) -> Result<(), Error> {
        let (q, k, _) = self.arrays();
        let row = row(&self.head_options().attention(), q, k, (0, 0), query)?;
        let outside = Error::Range { what: "columns", start: key, end: key.saturating_add(1), limit: self.keys };
        let cell = row.cells.get(key).ok_or(outside)?;
        let visible = f64::from(u8::from(cell.visible));
        let steps =
            [cell.product, row.scale, cell.scaled, cell.score, visible, row.max, cell.exp, row.sum, cell.weight];
        self.steps = steps.to_vec();
        Ok(())
    }

    /// Square 2 = square 0 · square 1, of n rows.
    pub fn multiply(&mut self, n: usize) -> Result<(), Error> {
        let [a, b, c] = &mut self.squares;
        c.resize(n * n, 0.0);
        let sized = "the squares have been sized together";
        let view = |x| ArrayView2::from_shape((n, n), x).expect(sized);
        let out = ArrayViewMut2::from_shape((n, n), c).expect(sized);
        Ok(matmul(1.0, view(a), view(b), 0.0, out, Threads::Sequential)?)
    }
}

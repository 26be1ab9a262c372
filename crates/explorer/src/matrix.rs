//! One matrix of a run, of which any rectangle can be asked: the weights of a head, their norms, the mean of all heads, a
//! rollout.
//!
//! Weights of one head come from the engine as they are. Norms and means are made from tiles of it, some rows at a time, so
//! that no n × n array is ever there. Long work is cut into strips, between which it can be stopped.

use std::ops::Range;
use std::sync::Arc;

use foveal_models::trace::LayerTrace;
use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use rayon::prelude::*;

use crate::asker::Cancel;
use crate::fault::Fault;
use crate::pool::{Line, bounds, strips};
use crate::request::{At, Measure, Pool};
use crate::run::Run;

/// Cells between two looks at whether the answer is still wanted: some 50 ms of work.
const STRIP: usize = 1 << 25;
/// Cells of a tile that a map is made from: 8 MB, within reach of the caches.
const BLOCK: usize = 1 << 21;

/// One matrix of a run: [T, S].
pub enum Matrix<'a> {
    /// The weights of a head.
    Weights { layer: &'a LayerTrace, head: usize },
    /// The mean over heads of the weights, or of weights times what the key has to say.
    Mean { layer: &'a LayerTrace, heads: Vec<(usize, Option<Arc<Array1<f32>>>)> },
    /// Numbers that are there.
    Whole(Arc<Array2<f32>>),
}

impl<'a> Matrix<'a> {
    /// The matrix that a question is about.
    ///
    /// # Errors
    /// If there is no such site, layer, head or measure.
    pub fn of(run: &'a Run, at: &At, measure: Measure) -> Result<Self, Fault> {
        let site = run.site(at.site)?;
        let layer = run.layer(site, at.layer)?;
        if !site.measures.contains(&measure) && measure == Measure::Norms {
            return Err(foveal_models::Error::NotTraced { part: "values" }.into());
        }
        if measure == Measure::Rollout {
            return run.rollout(site, at.layer).map(Matrix::Whole);
        }
        let heads = heads(at.head, layer.heads())?;
        if let (Measure::Weights, true) = (measure, heads.len() == 1) {
            return Ok(Matrix::Weights { layer, head: heads.start });
        }
        let with_norms = |head| match measure {
            Measure::Norms => Ok((head, Some(run.norms(site, at.layer, head)?))),
            _ => Ok((head, None)),
        };
        Ok(Matrix::Mean { layer, heads: heads.map(with_norms).collect::<Result<_, Fault>>()? })
    }

    /// T and S.
    pub fn dim(&self) -> (usize, usize) {
        match self {
            Matrix::Weights { layer, .. } | Matrix::Mean { layer, .. } => (layer.queries(), layer.keys()),
            Matrix::Whole(matrix) => matrix.dim(),
        }
    }

    /// A rectangle, exactly.
    ///
    /// # Errors
    /// If it does not lie within the matrix.
    pub fn tile(&self, rows: Range<usize>, cols: Range<usize>) -> Result<Array2<f32>, Fault> {
        match self {
            Matrix::Weights { layer, head } => Ok(layer.tile(0, *head, rows, cols)?),
            Matrix::Mean { layer, heads } => {
                let mut sum = Array2::zeros((rows.len(), cols.len()));
                for (head, norms) in heads {
                    let weights = layer.tile(0, *head, rows.clone(), cols.clone())?;
                    match norms {
                        Some(norms) => sum += &(weights * norms.slice(s![cols.clone()])),
                        None => sum += &weights,
                    }
                }
                let count = heads.len() as f32;
                if count > 1.0 {
                    sum.mapv_inplace(|x| x / count);
                }
                Ok(sum)
            }
            Matrix::Whole(matrix) => Ok(matrix.slice(s![rows, cols]).to_owned()),
        }
    }

    /// A rectangle as a picture of `size` pixels.
    ///
    /// # Errors
    /// As [`tile`](Self::tile); [`Fault::stopped`] if it is no longer wanted.
    pub fn map(
        &self,
        rows: Range<usize>,
        cols: Range<usize>,
        size: (usize, usize),
        pool: Pool,
        cancel: &Cancel,
    ) -> Result<Array2<f32>, Fault> {
        match self {
            Matrix::Weights { layer, head } => map_of_head(layer, *head, (rows, cols), size, pool, cancel),
            Matrix::Whole(matrix) => Ok(pooled(matrix.slice(s![rows, cols]), size, pool)),
            Matrix::Mean { .. } => self.map_of_tiles((rows, cols), size, pool, cancel),
        }
    }

    /// A picture made from tiles, several rows of pixels a task.
    fn map_of_tiles(
        &self,
        (rows, cols): (Range<usize>, Range<usize>),
        (height, width): (usize, usize),
        pool: Pool,
        cancel: &Cancel,
    ) -> Result<Array2<f32>, Fault> {
        let mut out = Array2::zeros((height, width));
        let most = (BLOCK / cols.len()).clamp(1, rows.len());
        let lines = (most * height / rows.len()).clamp(1, height);
        let mut tasks: Vec<_> = out.axis_chunks_iter_mut(Axis(0), lines).enumerate().collect();
        tasks.par_iter_mut().try_for_each(|(task, out)| {
            cancel.check()?;
            for (n, mut pixels) in out.outer_iter_mut().enumerate() {
                let row = |p| rows.start + bounds(rows.len(), height, p);
                let (start, end) = (row(*task * lines + n), row(*task * lines + n + 1));
                let mut line = Line::new(cols.len(), pool);
                for first in (start..end).step_by(most) {
                    cancel.check()?;
                    line.add(self.tile(first..(first + most).min(end), cols.clone())?.view());
                }
                line.finish(end - start, width, |x, value| pixels[x] = value);
            }
            Ok::<(), Fault>(())
        })?;
        Ok(out)
    }
}

/// The head that is asked for, or all of them for their mean.
fn heads(head: i64, count: usize) -> Result<Range<usize>, Fault> {
    match usize::try_from(head) {
        Ok(head) if head < count => Ok(head..head + 1),
        Err(_) if head == -1 => Ok(0..count),
        _ => Err(Fault::request(
            format!("there is no head {head}; there are {count}, counted from 0, and -1 is their mean"),
            format!("헤드 {head}이(가) 없습니다. 0부터 세어 {count}개가 있고 -1은 평균입니다"),
        )),
    }
}

/// The engine's map, strip by strip.
fn map_of_head(
    layer: &LayerTrace,
    head: usize,
    (rows, cols): (Range<usize>, Range<usize>),
    (height, width): (usize, usize),
    pool: Pool,
    cancel: &Cancel,
) -> Result<Array2<f32>, Fault> {
    let pool = match pool {
        Pool::Max => foveal::Pool::Max,
        Pool::Mean => foveal::Pool::Mean,
    };
    let most = (STRIP / cols.len() * height / rows.len()).max(1);
    let mut out = Array2::zeros((height, width));
    for pixels in strips(rows.len(), height, most) {
        cancel.check()?;
        let row = |p| rows.start + bounds(rows.len(), height, p);
        let size = (pixels.len(), width);
        let strip = layer.map((0, head), row(pixels.start)..row(pixels.end), cols.clone(), size, pool)?;
        out.slice_mut(s![pixels, ..]).assign(&strip);
    }
    Ok(out)
}

/// A matrix that is there, as a picture.
pub fn pooled(matrix: ArrayView2<f32>, (height, width): (usize, usize), pool: Pool) -> Array2<f32> {
    let (rows, cols) = matrix.dim();
    let mut out = Array2::zeros((height, width));
    for (p, mut pixels) in out.outer_iter_mut().enumerate() {
        let (start, end) = (bounds(rows, height, p), bounds(rows, height, p + 1));
        let mut line = Line::new(cols, pool);
        line.add(matrix.slice(s![start..end, ..]));
        line.finish(end - start, width, |x, value| pixels[x] = value);
    }
    out
}

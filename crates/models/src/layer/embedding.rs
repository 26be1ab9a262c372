//! Embedding: a table of vectors, one for each token or position.
//!
//! $$ x_n = E_{t_n}, \qquad dE_t = \textstyle\sum_{n:\, t_n = t} dx_n $$
//!
//! Many models use the same table to turn vectors into scores for each token at their end: logits = x·Eᵀ.
//!
//! ```
//! use foveal_models::layer::Embedding;
//! use ndarray::array;
//!
//! let tokens = Embedding { weight: array![[1., 2.], [3., 4.], [5., 6.]].into() };
//! let positions = Embedding { weight: array![[10., 10.], [20., 20.]].into() };
//! let mut x = tokens.forward(&[2, 0])?;
//! positions.add_positions(&mut x, 1, 0)?; // one sequence, which starts at position 0
//! assert_eq!(x, array![[15., 16.], [21., 22.]]);
//! # Ok::<(), foveal_models::Error>(())
//! ```

use foveal::Threads;
use foveal_compute::affine;
use ndarray::{Array2, ArrayView1, ArrayView2, Axis, s};

use super::linear::project_backward_parameters;
use super::shape::expect;
use super::{Random, Weight, parameters};
use crate::Error;

/// A table of vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    /// E: [V, D]
    pub weight: Weight,
}

parameters!(Embedding { weight: "weight" });

impl Embedding {
    /// Vectors from a normal distribution of deviation 0.02.
    pub fn new(entries: usize, dim: usize, random: &mut Random) -> Self {
        Embedding { weight: random.normal((entries, dim), 0.02).into() }
    }

    /// The vectors of tokens: [N, D].
    ///
    /// # Errors
    /// [`Error::TokenId`] if the table has no such token.
    pub fn forward(&self, tokens: &[u32]) -> Result<Array2<f32>, Error> {
        self.check(tokens)?;
        let mut x = Array2::zeros((tokens.len(), self.weight.ncols()));
        for (row, token) in x.outer_iter_mut().zip(tokens) {
            self.weight.copy_row(*token as usize, row);
        }
        Ok(x)
    }

    /// Adds dx: [N, D] to the gradients of the tokens' vectors, one after the other.
    ///
    /// # Errors
    /// As [`forward`](Embedding::forward); also if there are not as many rows as tokens.
    pub fn backward<'d>(
        &self,
        tokens: &[u32],
        dx: impl Into<ArrayView2<'d, f32>>,
        grad: &mut Embedding,
    ) -> Result<(), Error> {
        let dx = dx.into();
        self.check(tokens)?;
        expect("the gradient of the embedded tokens", &[tokens.len(), self.weight.ncols()], dx.shape())?;
        for (row, token) in dx.outer_iter().zip(tokens) {
            let mut target = grad.weight.row_mut(*token as usize);
            target += &row;
        }
        Ok(())
    }

    /// Adds the vectors of positions `start`, `start` + 1, … to every one of `batch` sequences in x: [B·T, D].
    ///
    /// # Errors
    /// [`Error::Context`] if a position lies beyond the table; also if x has another width or cannot be cut into sequences.
    pub fn add_positions(&self, x: &mut Array2<f32>, batch: usize, start: usize) -> Result<(), Error> {
        let tokens = self.positions(x.shape(), batch, start)?;
        let table = self.weight.slice(s![start..start + tokens, ..]);
        x.axis_chunks_iter_mut(Axis(0), tokens.max(1)).for_each(|mut sequence| sequence += &table);
        Ok(())
    }

    /// Adds dx: [B·T, D] to the gradients of the positions' vectors. The gradient of x itself is dx.
    ///
    /// # Errors
    /// As [`add_positions`](Embedding::add_positions).
    pub fn add_positions_backward(
        &self,
        dx: &Array2<f32>,
        batch: usize,
        start: usize,
        grad: &mut Embedding,
    ) -> Result<(), Error> {
        let tokens = self.positions(dx.shape(), batch, start)?;
        let mut target = grad.weight.slice_mut(s![start..start + tokens, ..]);
        dx.axis_chunks_iter(Axis(0), tokens.max(1)).for_each(|sequence| target += &sequence);
        Ok(())
    }

    /// logits = x·Eᵀ: [N, V] for x: [N, D].
    ///
    /// # Errors
    /// If x has another width.
    pub fn logits<'a>(&self, x: impl Into<ArrayView2<'a, f32>>) -> Result<Array2<f32>, Error> {
        Ok(affine(x, self.weight.operand().t(), None, Threads::Rayon)?)
    }

    /// Tokens with their logits, ascending by token: the k largest are among them, and often few others. x: [D].
    ///
    /// Unlike [`logits`](Embedding::logits) it does not read the whole table, but a copy in 8 bits, which tells of most tokens
    /// that they are not among the likeliest. The first call makes it.
    ///
    /// # Errors
    /// If x has another width.
    pub fn top_k_candidates(&self, x: ArrayView1<f32>, k: usize) -> Result<Vec<(u32, f32)>, Error> {
        let x = x.insert_axis(Axis(0));
        let Some(tokens) = self.weight.candidates(x, k)? else { return Ok((0..).zip(self.logits(x)?).collect()) };
        // A matrix of one column would be read in another direction, and so summed in another order.
        let mut table = Array2::zeros((tokens.len().max(2), self.weight.ncols()));
        for (row, token) in table.outer_iter_mut().zip(&tokens) {
            self.weight.copy_row(*token, row);
        }
        let logits = affine(x, table.t(), None, Threads::Rayon)?;
        Ok(tokens.into_iter().map(|token| token as u32).zip(logits).collect())
    }

    /// dx: [N, D] from dlogits: [N, V].
    ///
    /// # Errors
    /// If the shapes do not fit.
    pub fn logits_backward<'a>(
        &self,
        x: impl Into<ArrayView2<'a, f32>>,
        dlogits: impl Into<ArrayView2<'a, f32>>,
        grad: &mut Embedding,
    ) -> Result<Array2<f32>, Error> {
        let (x, dlogits) = (x.into(), dlogits.into());
        expect("the input of the logits", &[dlogits.nrows(), self.weight.ncols()], x.shape())?;
        let dx = affine(dlogits, self.weight.operand(), None, Threads::Rayon)?;
        project_backward_parameters(x, dlogits, grad.weight.view_mut(), None)?;
        Ok(dx)
    }

    fn check(&self, tokens: &[u32]) -> Result<(), Error> {
        let vocabulary = self.weight.nrows();
        match tokens.iter().find(|token| **token as usize >= vocabulary) {
            Some(&id) => Err(Error::TokenId { id, vocabulary }),
            None => Ok(()),
        }
    }

    /// T, if the table has all positions for x: [B·T, D].
    fn positions(&self, shape: &[usize], batch: usize, start: usize) -> Result<usize, Error> {
        let [limit, dim] = self.weight.shape();
        let tokens = shape[0] / batch.max(1);
        expect("the embedded tokens", &[batch * tokens, dim], shape)?;
        match start.checked_add(tokens) {
            Some(end) if end <= limit => Ok(tokens),
            end => Err(Error::Context { tokens: end.unwrap_or(usize::MAX), limit }),
        }
    }
}

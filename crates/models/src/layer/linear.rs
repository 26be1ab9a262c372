//! The linear layer.
//!
//! $$ y = x W^\top + b, \qquad dx = dy\, W, \qquad dW = dy^\top x, \qquad db = \textstyle\sum_n dy_n $$
//!
//! ```
//! use foveal_models::layer::Linear;
//! use ndarray::array;
//!
//! let layer = Linear { weight: array![[1., 0., 1.], [0., 2., 0.]].into(), bias: Some(array![10., 20.]) };
//! assert_eq!(layer.forward(&array![[1., 2., 3.]])?, array![[14., 24.]]);
//! # Ok::<(), foveal_models::Error>(())
//! ```

use foveal::Threads;
use foveal_compute::{affine, matmul};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis};

use super::shape::expect;
use super::{Random, Weight, parameters};
use crate::Error;

/// y = x·Wᵀ + b on rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    /// W: [out, in]. Its memory may lie in either order.
    pub weight: Weight,
    /// b: \[out\]
    pub bias: Option<Array1<f32>>,
}

parameters!(Linear { weight: "weight", bias: "bias" });

impl Linear {
    /// Weights from a normal distribution of deviation 0.02, as in GPT-2 and BERT; a bias of zeros.
    pub fn new(inputs: usize, outputs: usize, random: &mut Random) -> Self {
        Linear { weight: random.normal((outputs, inputs), 0.02).into(), bias: Some(Array1::zeros(outputs)) }
    }

    /// Weights from Xavier's distribution, as in the first Transformer; a bias of zeros.
    pub fn xavier(inputs: usize, outputs: usize, random: &mut Random) -> Self {
        Linear { weight: random.xavier(outputs, inputs).into(), bias: Some(Array1::zeros(outputs)) }
    }

    /// GPT-2's `Conv1D`, whose weight is stored [in, out]. The values stay where they are.
    pub fn from_conv1d(weight: Array2<f32>, bias: Option<Array1<f32>>) -> Self {
        Linear { weight: weight.reversed_axes().into(), bias }
    }

    /// The same without a bias.
    #[must_use]
    pub fn without_bias(self) -> Self {
        Linear { bias: None, ..self }
    }

    /// y: [N, out] for x: [N, in].
    ///
    /// # Errors
    /// If x has another width, or the bias another length, than the weight calls for.
    pub fn forward<'a>(&self, x: impl Into<ArrayView2<'a, f32>>) -> Result<Array2<f32>, Error> {
        Ok(affine(x, self.weight.operand().t(), self.bias(), Threads::Rayon)?)
    }

    /// dx: [N, in], from the x: [N, in] of [`forward`](Linear::forward) and dy: [N, out].
    ///
    /// # Errors
    /// If the shapes do not fit.
    pub fn backward<'a, 'd>(
        &self,
        x: impl Into<ArrayView2<'a, f32>>,
        dy: impl Into<ArrayView2<'d, f32>>,
        grad: &mut Linear,
    ) -> Result<Array2<f32>, Error> {
        let (x, dy) = (x.into(), dy.into());
        expect("the input of the linear layer", &[dy.nrows(), self.weight.ncols()], x.shape())?;
        let dx = affine(dy, self.weight.operand(), None, Threads::Rayon)?;
        self.backward_parameters(x, dy, grad)?;
        Ok(dx)
    }

    /// The same where other layers have the same input: adds to a dx: [N, in] that they have begun.
    ///
    /// # Errors
    /// If the shapes do not fit.
    pub fn backward_onto<'a, 'd>(
        &self,
        x: impl Into<ArrayView2<'a, f32>>,
        dy: impl Into<ArrayView2<'d, f32>>,
        dx: &mut Array2<f32>,
        grad: &mut Linear,
    ) -> Result<(), Error> {
        let (x, dy) = (x.into(), dy.into());
        matmul(1.0, dy, &*self.weight, 1.0, dx, Threads::Rayon)?;
        self.backward_parameters(x, dy, grad)
    }

    /// The gradients of weight and bias alone, for a layer whose input needs none.
    ///
    /// # Errors
    /// If the shapes do not fit.
    pub fn backward_parameters<'a, 'd>(
        &self,
        x: impl Into<ArrayView2<'a, f32>>,
        dy: impl Into<ArrayView2<'d, f32>>,
        grad: &mut Linear,
    ) -> Result<(), Error> {
        let (dweight, dbias) = grad.view_mut();
        project_backward_parameters(x.into(), dy.into(), dweight, dbias)
    }

    pub(super) fn bias(&self) -> Option<ArrayView1<'_, f32>> {
        self.bias.as_ref().map(|bias| bias.view())
    }

    pub(super) fn view_mut(&mut self) -> (ArrayViewMut2<'_, f32>, Option<ArrayViewMut1<'_, f32>>) {
        (self.weight.view_mut(), self.bias.as_mut().map(|bias| bias.view_mut()))
    }
}

/// dW ⟵ dW + dyᵀ·x, db ⟵ db + Σ dy.
pub(super) fn project_backward_parameters(
    x: ArrayView2<f32>,
    dy: ArrayView2<f32>,
    dweight: ArrayViewMut2<f32>,
    dbias: Option<ArrayViewMut1<f32>>,
) -> Result<(), Error> {
    matmul(1.0, dy.reversed_axes(), x, 1.0, dweight, Threads::Rayon)?;
    if let Some(dbias) = dbias {
        // A row of ones times dy: one pass over dy, as it lies.
        let ones = ArrayView2::from_shape((1, 1), &[1.0]).expect("one value");
        let ones = ones.broadcast((1, dy.nrows())).expect("one value can be any number of them");
        matmul(1.0, ones, dy, 1.0, dbias.insert_axis(Axis(0)), Threads::Rayon)?;
    }
    Ok(())
}

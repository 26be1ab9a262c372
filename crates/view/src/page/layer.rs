//! What a page knows of one layer: what its weights are computed from, or the weights themselves.

use foveal::{Attention, HeadOptions, f16};
use ndarray::{Array2, Array3, Array4, ArrayView2, ArrayView4, Axis, Zip};

use crate::Error;
use crate::scene::{check_count, check_shape};

/// One layer of attention, over one sequence.
#[derive(Clone, Debug)]
pub struct Layer {
    pub(super) data: Data,
    /// ‖v·W_o‖ of each key: [H, S].
    pub(super) norms: Option<Array2<f32>>,
    pub(super) values: Option<Values>,
}

#[derive(Clone, Debug)]
pub(super) enum Data {
    /// [T, S] of each head.
    Weights(Vec<Array2<f32>>),
    Scores(Box<Scores>),
}

/// Queries, keys and options, of which any weight follows.
#[derive(Clone, Debug)]
pub(super) struct Scores {
    /// [H, T, D]
    pub q: Array3<f32>,
    /// [G, S, D]
    pub k: Array3<f32>,
    /// [H, T]
    pub lse: Array2<f64>,
    /// One a head.
    pub options: Vec<HeadOptions>,
}

/// For the arithmetic of a cell beyond its weight.
#[derive(Clone, Debug)]
pub(super) struct Values {
    /// [G, S, Dv]
    pub v: Array3<f32>,
    /// W_o: [D, H·Dv].
    pub output: Array2<f32>,
}

impl Layer {
    /// The weights of each head, [T, S], as they are: for small pictures, and for attention that is no softmax of q·k.
    ///
    /// # Errors
    /// If there is no head, or heads differ in shape.
    pub fn weights(heads: Vec<Array2<f32>>) -> Result<Self, Error> {
        let first = heads.first().ok_or(Error::Empty { what: "heads" })?.dim();
        heads.iter().try_for_each(|head| check_shape("a matrix of the page", first, head.dim()))?;
        Ok(Layer { data: Data::Weights(heads), norms: None, values: None })
    }

    /// Queries [H, T, D], keys [G, S, D], the log-sum-exp of each row [H, T], and the options of each head: the page computes
    /// any weight from them.
    ///
    /// # Errors
    /// If the arrays do not fit each other.
    pub fn scores(q: Array3<f32>, k: Array3<f32>, lse: Array2<f64>, options: Vec<HeadOptions>) -> Result<Self, Error> {
        let ((heads, queries, dim), (groups, ..)) = (q.dim(), k.dim());
        if heads == 0 || groups == 0 || !heads.is_multiple_of(groups) {
            return Err(Error::Count { what: "heads of keys", expected: heads, got: groups });
        }
        check_shape("the log-sum-exp", (heads, queries), lse.dim())?;
        check_count("options of heads", heads, options.len())?;
        check_count("dimensions of the keys", dim, k.dim().2)?;
        Ok(Layer { data: Data::Scores(Box::new(Scores { q, k, lse, options })), norms: None, values: None })
    }

    /// ‖v·W_o‖ of each key in each head, [H, S]: with it the page shows norms.
    ///
    /// # Errors
    /// If there is not one for each head and key.
    pub fn norms(mut self, norms: Array2<f32>) -> Result<Self, Error> {
        check_shape("the norms", (self.heads(), self.size().1), norms.dim())?;
        self.norms = Some(norms);
        Ok(self)
    }

    /// Values [G, S, Dv] and W_o [D, H·Dv]: with them the page shows the arithmetic of a cell to its end.
    ///
    /// # Errors
    /// If they do not fit the keys and heads.
    pub fn values(mut self, v: Array3<f32>, output: Array2<f32>) -> Result<Self, Error> {
        check_count("values", self.size().1, v.dim().1)?;
        check_count("columns of W_o", self.heads() * v.dim().2, output.ncols())?;
        self.values = Some(Values { v, output });
        Ok(self)
    }

    /// H.
    pub(super) fn heads(&self) -> usize {
        match &self.data {
            Data::Weights(heads) => heads.len(),
            Data::Scores(scores) => scores.q.dim().0,
        }
    }

    /// (T, S).
    pub(super) fn size(&self) -> (usize, usize) {
        match &self.data {
            Data::Weights(heads) => heads[0].dim(),
            Data::Scores(scores) => (scores.q.dim().1, scores.k.dim().1),
        }
    }

    /// Bytes of what is stored, with numbers of `width` bytes.
    pub(super) fn bytes(&self, width: usize) -> usize {
        match &self.data {
            Data::Weights(heads) => heads.iter().map(|head| head.len() * 4).sum(),
            Data::Scores(scores) => (scores.q.len() + scores.k.len()) * width + scores.lse.len() * 8,
        }
    }
}

impl Scores {
    /// The same with q and k rounded to 16 bits, and the log-sum-exp of these: rows of weights still sum to 1.
    pub fn rounded(&self) -> Result<Scores, Error> {
        let round = |x: &Array3<f32>| x.mapv(|x| f16::from_f32(x).to_f32());
        let mut rounded = Scores { q: round(&self.q), k: round(&self.k), ..self.clone() };
        for head in 0..rounded.options.len() {
            let (attention, q, k) = rounded.head(head);
            let v = Array4::<f32>::zeros((1, 1, k.dim().2, 1));
            let forward = attention.forward(q, k, &v).map_err(failed)?;
            rounded.lse.row_mut(head).iter_mut().zip(&forward.lse).for_each(|(to, from)| *to = *from);
        }
        Ok(rounded)
    }

    /// Of one head: its attention, and its q and k as [1, 1, T, D].
    pub fn head(&self, head: usize) -> (Attention, ArrayView4<'_, f32>, ArrayView4<'_, f32>) {
        let group = head * self.k.dim().0 / self.q.dim().0;
        (self.options[head].attention(), alone(&self.q, head), alone(&self.k, group))
    }
}

/// One head of an array, as [1, 1, T, D].
fn alone(array: &Array3<f32>, head: usize) -> ArrayView4<'_, f32> {
    array.index_axis(Axis(0), head).insert_axis(Axis(0)).insert_axis(Axis(0))
}

pub(super) fn failed(error: foveal::Error) -> Error {
    Error::Internal { doing: "computing a picture of the page", problem: error.to_string() }
}

/// The weights of keys times their norms.
pub(super) fn scaled(weights: ArrayView2<f32>, norms: Option<ndarray::ArrayView1<f32>>) -> Array2<f32> {
    let mut out = weights.to_owned();
    if let Some(norms) = norms {
        for mut row in out.rows_mut() {
            Zip::from(&mut row).and(norms).for_each(|weight, norm| *weight *= norm);
        }
    }
    out
}

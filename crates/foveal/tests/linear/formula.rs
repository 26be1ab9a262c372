//! Linear attention as it is defined, in f64.

use ndarray::{Array1, Array2, Array4, ArrayView1, s};

/// A feature map and its derivative for one row, in f64.
#[derive(Clone)]
pub enum Phi {
    Elu,
    /// The vectors w: [m, D].
    Favor(Array2<f64>),
}

impl Phi {
    fn of(&self, x: ArrayView1<f64>) -> Array1<f64> {
        match self {
            Phi::Elu => x.mapv(|x| if x > 0.0 { x + 1.0 } else { x.exp() }),
            Phi::Favor(w) => {
                let x = &x * (x.len() as f64).powf(-0.25);
                let half = x.dot(&x) / 2.0;
                w.rows().into_iter().map(|w_f| (w_f.dot(&x) - half).exp() / (w.dim().0 as f64).sqrt()).collect()
            }
        }
    }

    fn backward(&self, x: ArrayView1<f64>, dphi: &Array1<f64>) -> Array1<f64> {
        match self {
            Phi::Elu => x.mapv(|x| if x > 0.0 { 1.0 } else { x.exp() }) * dphi,
            Phi::Favor(w) => {
                let scale = (x.len() as f64).powf(-0.25);
                let mut dx = Array1::zeros(x.len());
                for ((w, phi), dphi) in w.rows().into_iter().zip(self.of(x)).zip(dphi) {
                    dx += &((&w - &(&x * scale)) * (scale * phi * dphi));
                }
                dx
            }
        }
    }
}

/// The definition: which pairs are seen, and what becomes of them.
#[derive(Clone)]
pub struct Formula {
    pub phi: Phi,
    /// How many keys after its own position a query sees; all if none.
    pub right: Option<usize>,
    /// The position of the first query; by default the last stands at the last key.
    pub offsets: Option<Vec<isize>>,
    pub lengths: Option<Vec<usize>>,
    /// [B, S]
    pub keep: Option<Array2<bool>>,
    /// Every how many queries one is computed.
    pub step: usize,
}

pub struct Exact {
    pub out: Array4<f64>,
    pub lse: ndarray::Array3<f64>,
    pub weights: Array4<f64>,
}

impl Formula {
    pub fn new(phi: Phi) -> Self {
        Formula { phi, right: None, offsets: None, lengths: None, keep: None, step: 1 }
    }

    fn sees(&self, b: usize, i: usize, j: usize, queries: usize, keys: usize) -> bool {
        let offset = self.offsets.as_ref().map_or(keys as isize - queries as isize, |offsets| offsets[b]);
        self.right.is_none_or(|right| j as isize <= i as isize + offset + right as isize)
            && self.lengths.as_ref().is_none_or(|lengths| j < lengths[b])
            && self.keep.as_ref().is_none_or(|keep| keep[[b, j]])
    }

    /// φ of every row.
    fn features(&self, x: &Array4<f64>) -> Array4<f64> {
        let (batch, heads, tokens, dim) = x.dim();
        let width = self.phi.of(Array1::zeros(dim).view()).len();
        let mut phi = Array4::zeros((batch, heads, tokens, width));
        phi.rows_mut().into_iter().zip(x.rows()).for_each(|(mut phi, x)| phi.assign(&self.phi.of(x)));
        phi
    }

    pub fn forward(&self, q: &Array4<f64>, k: &Array4<f64>, v: &Array4<f64>) -> Exact {
        let ((batch, heads, queries, _), (_, kv, keys, values)) = (q.dim(), v.dim());
        let (phi_q, phi_k) = (self.features(q), self.features(k));
        let mut exact = Exact {
            out: Array4::zeros((batch, heads, queries, values)),
            lse: ndarray::Array3::from_elem((batch, heads, queries), f64::NEG_INFINITY),
            weights: Array4::zeros((batch, heads, queries, keys)),
        };
        for ((b, h, i), lse) in exact.lse.indexed_iter_mut().filter(|((_, _, i), _)| i % self.step == 0) {
            let g = h / (heads / kv);
            let phi = phi_q.slice(s![b, h, i, ..]);
            let seen: Vec<usize> = (0..keys).filter(|j| self.sees(b, i, *j, queries, keys)).collect();
            let products: Vec<f64> = seen.iter().map(|j| phi.dot(&phi_k.slice(s![b, g, *j, ..]))).collect();
            let sum: f64 = products.iter().sum();
            if sum > 0.0 {
                *lse = sum.ln();
                for (j, product) in seen.iter().zip(products) {
                    exact.weights[[b, h, i, *j]] = product / sum;
                    exact.out.slice_mut(s![b, h, i, ..]).scaled_add(product / sum, &v.slice(s![b, g, *j, ..]));
                }
            }
        }
        exact
    }

    /// dq, dk and dv.
    pub fn backward(&self, q: &Array4<f64>, k: &Array4<f64>, v: &Array4<f64>, dout: &Array4<f64>) -> [Array4<f64>; 3] {
        let exact = self.forward(q, k, v);
        let (phi_q, phi_k) = (self.features(q), self.features(k));
        let (mut dphi_q, mut dphi_k) = (Array4::zeros(phi_q.dim()), Array4::zeros(phi_k.dim()));
        let mut dv = Array4::zeros(v.dim());
        let (heads, kv) = (q.dim().1, v.dim().1);
        for ((b, h, i, j), w) in exact.weights.indexed_iter().filter(|(_, w)| **w != 0.0) {
            let g = h / (heads / kv);
            let dout = dout.slice(s![b, h, i, ..]);
            let slope = dout.dot(&v.slice(s![b, g, j, ..])) - dout.dot(&exact.out.slice(s![b, h, i, ..]));
            let ds = slope / exact.lse[[b, h, i]].exp();
            dv.slice_mut(s![b, g, j, ..]).scaled_add(*w, &dout);
            dphi_q.slice_mut(s![b, h, i, ..]).scaled_add(ds, &phi_k.slice(s![b, g, j, ..]));
            dphi_k.slice_mut(s![b, g, j, ..]).scaled_add(ds, &phi_q.slice(s![b, h, i, ..]));
        }
        let through = |x: &Array4<f64>, dphi: &Array4<f64>| {
            let mut dx = Array4::zeros(x.dim());
            for ((mut dx, x), dphi) in dx.rows_mut().into_iter().zip(x.rows()).zip(dphi.rows()) {
                dx.assign(&self.phi.backward(x, &dphi.to_owned()));
            }
            dx
        };
        [through(q, &dphi_q), through(k, &dphi_k), dv]
    }
}

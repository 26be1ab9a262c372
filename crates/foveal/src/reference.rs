//! Attention as its definition says it, in f64: what the fast kernels are tested against.
//!
//! Every cell (i, j) of the n×n matrix is visited by itself, and nothing is shared with the kernels, neither the
//! arithmetic nor the reading of masks and biases. Slow on purpose: for tests, for finite differences, and for reading.
//!
//! $$ x_{ij} = \text{scale} \cdot q_i \cdot k_j, \qquad
//!    s_{ij} = \mathrm{cap}\tanh(x_{ij} / \mathrm{cap}) + b_{ij}, \qquad
//!    w_{ij} = \frac{e^{s_{ij} - m_i}}{\sum_{j'} e^{s_{ij'} - m_i}}, \qquad
//!    out_i = \sum_j f_{ij} w_{ij} v_j $$
//!
//! with mᵢ = maxⱼ sᵢⱼ, which keeps exp from overflowing, and fᵢⱼ the dropout factor: 0 or 1/(1 − p), and 1 without
//! dropout. All sums run over the keys that query i sees. The gradients, from dout:
//!
//! $$ dw_{ij} = f_{ij} dout_i \cdot v_j, \qquad
//!    ds_{ij} = w_{ij} \Bigl( dw_{ij} - \sum_{j'} w_{ij'} dw_{ij'} \Bigr), \qquad
//!    dx_{ij} = ds_{ij} \bigl( 1 - \tanh^2(x_{ij} / \mathrm{cap}) \bigr) $$
//! $$ dv_j = \sum_i f_{ij} w_{ij} dout_i, \qquad dq_i = \text{scale} \sum_j dx_{ij} k_j, \qquad
//!    dk_j = \text{scale} \sum_i dx_{ij} q_i, \qquad db_{ij} = ds_{ij} $$
//!
//! A sink is one more score in every row of its head, zₕ, that has weight and no value: it adds exp(zₕ − mᵢ) to the sum
//! under the fraction, and mᵢ = max(maxⱼ sᵢⱼ, zₕ). If the loss depends on lseᵢ = mᵢ + ln Σ too, with gradient dlseᵢ, then
//!
//! $$ ds_{ij} = w_{ij} \Bigl( dw_{ij} - \sum_{j'} w_{ij'} dw_{ij'} + dlse_i \Bigr), \qquad
//!    dz_h = \sum_i e^{z_h - lse_i} \Bigl( dlse_i - \sum_{j'} w_{ij'} dw_{ij'} \Bigr) $$
//!
//! Hidden cells are skipped, never multiplied by zero, so that NaN in them goes nowhere.
//!
//! ```
//! use foveal::{Attention, Mask, reference};
//! use ndarray::Array4;
//!
//! let x = Array4::from_shape_fn((1, 2, 5, 4), |(_, h, t, d)| ((h + 3 * t + 7 * d) as f64).sin());
//! let attention = Attention::new().mask(Mask::causal());
//! let exact = reference::forward(&attention, &x, &x, &x)?;
//! let fast = attention.forward(&x.mapv(|x| x as f32), &x.mapv(|x| x as f32), &x.mapv(|x| x as f32))?;
//! assert!(exact.out.iter().zip(&fast.out).all(|(e, f)| (e - f64::from(*f)).abs() < 1e-5));
//! # Ok::<(), foveal::Error>(())
//! ```

use ndarray::{Array1, Array3, Array4, ArrayD, ArrayView3, ArrayView4, s};

use crate::bias::{Kind, Swin};
use crate::shape::{Shape, check_range, expect};
use crate::{Attention, Error, Part, Pattern, ScoreRow};

/// What [`forward`] gives back.
#[derive(Clone, Debug, PartialEq)]
pub struct Forward {
    /// [B, H, T, Dv]
    pub out: Array4<f64>,
    /// ln Σⱼ exp sᵢⱼ, the sink included: [B, H, T]; −∞ where a query sees nothing and there is no sink.
    pub lse: Array3<f64>,
    /// The weights before dropout: [B, H, T, S].
    pub weights: Array4<f64>,
}

/// What [`backward`] gives back.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradients {
    /// Shaped like q.
    pub dq: Array4<f64>,
    /// Shaped like k.
    pub dk: Array4<f64>,
    /// Shaped like v.
    pub dv: Array4<f64>,
    /// Shaped like what the [`Bias`](crate::Bias) was made of. `None` if there is no bias.
    pub dbias: Option<ArrayD<f64>>,
    /// One a head. `None` if there are no sinks.
    pub dsinks: Option<Array1<f64>>,
}

/// q, k and v.
type Qkv<'a> = (ArrayView4<'a, f64>, ArrayView4<'a, f64>, ArrayView4<'a, f64>);

/// The output, the log-sum-exp and the weights, in O(T·S) memory.
///
/// # Errors
/// As [`Attention::forward`].
pub fn forward<'a>(
    attention: &Attention,
    q: impl Into<ArrayView4<'a, f64>>,
    k: impl Into<ArrayView4<'a, f64>>,
    v: impl Into<ArrayView4<'a, f64>>,
) -> Result<Forward, Error> {
    forward_of(attention, (q.into(), k.into(), v.into()))
}

fn forward_of(attention: &Attention, (q, k, v): Qkv) -> Result<Forward, Error> {
    let cells = Cells::new(attention, &q, &k, Shape::of(&q, &k, &v)?)?;
    let shape = cells.shape;
    let mut fwd = Forward {
        out: Array4::zeros(shape.out()),
        lse: Array3::from_elem(shape.lse(), f64::NEG_INFINITY),
        weights: Array4::zeros([shape.batch, shape.heads, shape.queries, shape.keys]),
    };
    for [b, h, i] in cells.rows() {
        let g = h / shape.group();
        let seen = cells.seen([b, h, i]);
        let scores: Array1<f64> = seen.iter().map(|&j| cells.score([b, h, i, j])).collect();
        let sink = cells.sink(h);
        // A row without a score above −∞ sees nothing. (NaN is not −∞: it goes on and spreads.)
        if scores.iter().chain([&sink]).all(|&s| s == f64::NEG_INFINITY) {
            continue;
        }
        let max = scores.fold(sink, |max, &s| max.max(s));
        let sum = scores.mapv(|s| (s - max).exp()).sum() + (sink - max).exp();
        fwd.lse[[b, h, i]] = max + sum.ln();
        for (&j, s) in seen.iter().zip(&scores) {
            let w = (s - max).exp() / sum;
            fwd.weights[[b, h, i, j]] = w;
            let v_j = v.slice(s![b, g, j, ..]);
            fwd.out.slice_mut(s![b, h, i, ..]).scaled_add(w * cells.dropout([b, h, i, j]), &v_j);
        }
    }
    Ok(fwd)
}

/// The gradients of a loss whose gradient in the output is `dout` [B, H, T, Dv].
///
/// # Errors
/// As [`Attention::backward`].
pub fn backward<'a>(
    attention: &Attention,
    q: impl Into<ArrayView4<'a, f64>>,
    k: impl Into<ArrayView4<'a, f64>>,
    v: impl Into<ArrayView4<'a, f64>>,
    dout: impl Into<ArrayView4<'a, f64>>,
) -> Result<Gradients, Error> {
    backward_with(attention, (q.into(), k.into(), v.into()), dout.into(), None)
}

/// [`backward`] of a loss that may depend on the log-sum-exp, too: `dlse` [B, H, T] is its gradient there, beside `dout`
/// [B, H, T, Dv].
///
/// # Errors
/// As [`Attention::backward`]; also if `dlse` does not fit.
pub fn backward_with(
    attention: &Attention,
    (q, k, v): Qkv,
    dout: ArrayView4<f64>,
    dlse: Option<ArrayView3<f64>>,
) -> Result<Gradients, Error> {
    let cells = Cells::new(attention, &q, &k, Shape::of(&q, &k, &v)?)?;
    let shape = cells.shape;
    expect("dout", &shape.out(), dout.shape())?;
    dlse.iter().try_for_each(|dlse| expect("dlse", &shape.lse(), dlse.shape()))?;
    let fwd = forward_of(attention, (q, k, v))?;
    let mut grads = Gradients {
        dq: Array4::zeros(q.raw_dim()),
        dk: Array4::zeros(k.raw_dim()),
        dv: Array4::zeros(v.raw_dim()),
        dbias: cells.zero_dbias(),
        dsinks: cells.sinks().map(|sinks| Array1::zeros(sinks.len())),
    };
    for [b, h, i] in cells.rows().filter(|&row| fwd.lse[row] != f64::NEG_INFINITY) {
        let g = h / shape.group();
        let (q_i, dout_i) = (q.slice(s![b, h, i, ..]), dout.slice(s![b, h, i, ..]));
        let seen = cells.seen([b, h, i]);
        let w: Array1<f64> = seen.iter().map(|&j| fwd.weights[[b, h, i, j]]).collect();
        let f: Array1<f64> = seen.iter().map(|&j| cells.dropout([b, h, i, j])).collect();
        let dw: Array1<f64> =
            &f * &seen.iter().map(|&j| dot(dout_i, v.slice(s![b, g, j, ..]))).collect::<Array1<f64>>();
        let mean = dot(&w, &dw) - dlse.map_or(0.0, |dlse| dlse[[b, h, i]]);
        if let Some(dsinks) = &mut grads.dsinks {
            dsinks[h] -= (cells.sink(h) - fwd.lse[[b, h, i]]).exp() * mean;
        }
        for (n, &j) in seen.iter().enumerate() {
            let ds = w[n] * (dw[n] - mean);
            let dx = ds * cells.bent([b, h, i, j]).1;
            grads.dv.slice_mut(s![b, g, j, ..]).scaled_add(f[n] * w[n], &dout_i);
            grads.dq.slice_mut(s![b, h, i, ..]).scaled_add(cells.scale * dx, &k.slice(s![b, g, j, ..]));
            grads.dk.slice_mut(s![b, g, j, ..]).scaled_add(cells.scale * dx, &q_i);
            cells.add_dbias([b, h, i, j], ds, &mut grads);
        }
    }
    Ok(grads)
}

/// The scores and weights of one query, step by step; what [`row`] gives back.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What q·k is multiplied with.
    pub scale: f64,
    /// m, the largest score; −∞ if the query sees nothing.
    pub max: f64,
    /// Σⱼ exp(sⱼ − m); 0 if the query sees nothing.
    pub sum: f64,
    /// What becomes of each key.
    pub cells: Vec<Cell>,
}

/// The way from q·k to a weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// q·k.
    pub product: f64,
    /// x = scale·q·k.
    pub scaled: f64,
    /// s: x after softcap and bias; −∞ where hidden.
    pub score: f64,
    /// Whether the query sees this key.
    pub visible: bool,
    /// exp(s − m).
    pub exp: f64,
    /// w, before dropout.
    pub weight: f64,
}

/// The arithmetic of one query's weights, in sequence and head `at`, in O(S) memory.
///
/// ```
/// use foveal::{Attention, reference};
/// use ndarray::array;
///
/// // The first row of the textbook's example: q·k = 2, 0, 1.
/// let x = array![[[[1f32, 0., 1., 0.], [0., 1., 0., 1.], [1., 1., 0., 0.]]]];
/// let row = reference::row(&Attention::new(), &x, &x, (0, 0), 0)?;
/// assert_eq!(row.cells.iter().map(|cell| cell.scaled).collect::<Vec<_>>(), [1.0, 0.0, 0.5]);
/// assert!((row.cells[0].weight - 0.506_480).abs() < 1e-6);
/// # Ok::<(), foveal::Error>(())
/// ```
///
/// # Errors
/// As [`Attention::head`]; also if there is no such query.
pub fn row<'a, A: Copy + Into<f64> + 'a>(
    attention: &Attention,
    q: impl Into<ArrayView4<'a, A>>,
    k: impl Into<ArrayView4<'a, A>>,
    (b, h): (usize, usize),
    i: usize,
) -> Result<Row, Error> {
    let (q, k) = (q.into(), k.into());
    let shape = Shape::of_scores(&q, &k)?;
    for (what, at, limit) in [("sequence", b, shape.batch), ("head", h, shape.heads), ("rows", i, shape.queries)] {
        check_range(what, &(at..at.saturating_add(1)), limit)?;
    }
    let cells = Cells::new(attention, &q, &k, shape)?;
    let cell = |j| {
        let (product, visible) = (cells.dot([b, h, i, j]), cells.visible([b, h, i, j]));
        let score = if visible { cells.score([b, h, i, j]) } else { f64::NEG_INFINITY };
        Cell { product, scaled: cells.scale * product, score, visible, exp: 0.0, weight: 0.0 }
    };
    let mut row = Row { scale: cells.scale, max: 0.0, sum: 0.0, cells: (0..shape.keys).map(cell).collect() };
    let sink = cells.sink(h);
    row.max = row.cells.iter().fold(sink, |max, cell| max.max(cell.score));
    if row.cells.iter().any(|cell| cell.score != f64::NEG_INFINITY) {
        row.cells.iter_mut().filter(|cell| cell.visible).for_each(|cell| cell.exp = (cell.score - row.max).exp());
        row.sum = row.cells.iter().map(|cell| cell.exp).sum::<f64>() + (sink - row.max).exp();
        row.cells.iter_mut().filter(|cell| cell.visible).for_each(|cell| cell.weight = cell.exp / row.sum);
    }
    Ok(row)
}

/// The arrays, and what the options say about each cell [b, h, i, j]: query i of head h of sequence b, against key j.
struct Cells<'a, A> {
    attention: &'a Attention,
    q: ArrayView4<'a, A>,
    k: ArrayView4<'a, A>,
    shape: Shape,
    scale: f64,
    part: Part,
}

impl<'a, A: Copy + Into<f64>> Cells<'a, A> {
    fn new(
        attention: &'a Attention,
        q: &ArrayView4<'a, A>,
        k: &ArrayView4<'a, A>,
        shape: Shape,
    ) -> Result<Self, Error> {
        attention.check(&shape)?;
        let scale = attention.scale.map_or_else(|| 1.0 / (shape.dim as f64).sqrt(), f64::from);
        let part = attention.part.unwrap_or(Part::of(shape.queries, shape.keys));
        Ok(Cells { attention, q: *q, k: *k, shape, scale, part })
    }

    /// One a head; a part of a larger call leaves them to the merge.
    fn sinks(&self) -> Option<&'a [f32]> {
        self.attention.sinks.as_deref().filter(|_| self.attention.part.is_none())
    }

    /// The sink of head h; −∞, which has no weight, if there is none.
    fn sink(&self, h: usize) -> f64 {
        self.sinks().map_or(f64::NEG_INFINITY, |sinks| sinks[h].into())
    }

    fn rows(&self) -> impl Iterator<Item = [usize; 3]> + use<A> {
        let Shape { batch, heads, queries, .. } = self.shape;
        (0..batch).flat_map(move |b| (0..heads).flat_map(move |h| (0..queries).map(move |i| [b, h, i])))
    }

    /// The keys that query i sees.
    fn seen(&self, [b, h, i]: [usize; 3]) -> Vec<usize> {
        (0..self.shape.keys).filter(|&j| self.visible([b, h, i, j])).collect()
    }

    fn visible(&self, [b, h, i, j]: [usize; 4]) -> bool {
        let mask = &self.attention.mask;
        let distance = self.distance(b, i, j);
        let reach = if distance < 0 { mask.left } else { mask.right };
        let near = reach.is_none_or(|reach| distance.unsigned_abs() <= reach);
        let in_whole = j as isize + self.part.keys;
        let within = mask.lengths.iter().all(|lengths| in_whole < lengths[b] as isize);
        let kept = mask.keep.iter().all(|keep| keep[shared(keep.shape(), [b, h, i, j])]);
        let position = in_whole - distance;
        let pattern_shows = |pattern: &Pattern| usize::try_from(in_whole).is_ok_and(|key| pattern.sees(position, key));
        let shown = mask.patterns.iter().all(|heads| pattern_shows(&heads[h.min(heads.len() - 1)]));
        // A dense bias of −∞ or f32::MIN hides a key as a mask does.
        let biased_away = match &self.attention.bias.kind {
            Kind::Dense(bias) => bias[shared(bias.shape(), [b, h, i, j])] <= f32::MIN,
            _ => false,
        };
        near && within && kept && shown && !biased_away
    }

    /// From where the query stands to key j.
    fn distance(&self, b: usize, i: usize, j: usize) -> isize {
        let (queries, keys) = self.part.of;
        let position = i as isize + self.part.queries + self.attention.align.offset(b, queries, keys);
        j as isize + self.part.keys - position
    }

    /// x = scale·q·k
    fn product(&self, cell: [usize; 4]) -> f64 {
        self.scale * self.dot(cell)
    }

    /// q·k
    fn dot(&self, [b, h, i, j]: [usize; 4]) -> f64 {
        let g = h / self.shape.group();
        dot(self.q.slice(s![b, h, i, ..]), self.k.slice(s![b, g, j, ..]))
    }

    /// cap·tanh(x/cap) and its derivative in x.
    fn capped(&self, x: f64) -> (f64, f64) {
        self.attention.softcap.map_or((x, 1.0), |cap| {
            let tanh = (x / f64::from(cap)).tanh();
            (f64::from(cap) * tanh, 1.0 - tanh * tanh)
        })
    }

    /// The score function of softcap of scale·q·k, and its derivative in scale·q·k.
    fn bent(&self, cell: [usize; 4]) -> (f64, f64) {
        let (capped, slope) = self.capped(self.product(cell));
        let Some(function) = &self.attention.function else { return (capped, slope) };
        let [b, h, i, j] = cell;
        let row = ScoreRow {
            batch: b + self.part.batch,
            head: h + self.part.head,
            query: i as isize + self.part.queries,
            position: j as isize + self.part.keys - self.distance(b, i, j),
            first_key: j as isize + self.part.keys,
        };
        // The caller's function takes f32: so does what it is compared with.
        let (mut score, mut ds) = ([capped as f32], [1.0]);
        function.backward(row, &score.clone(), &mut ds);
        function.apply(row, &mut score);
        (score[0].into(), f64::from(ds[0]) * slope)
    }

    fn score(&self, cell: [usize; 4]) -> f64 {
        self.bent(cell).0 + self.bias(cell)
    }

    fn dropout(&self, [b, h, i, j]: [usize; 4]) -> f64 {
        let Part { batch, head, queries, keys, .. } = self.part;
        let in_whole = |n: usize, origin: isize| (n as isize + origin).cast_unsigned();
        let (i, j) = (in_whole(i, queries), in_whole(j, keys));
        self.attention.dropout.map_or(1.0, |dropout| dropout.row(b + batch, h + head, i).factor(j).into())
    }

    fn bias(&self, [b, h, i, j]: [usize; 4]) -> f64 {
        let distance = self.distance(b, i, j);
        match &self.attention.bias.kind {
            Kind::None => 0.0,
            Kind::Alibi(alibi) => -f64::from(alibi.slope(b, h)) * distance.unsigned_abs() as f64,
            Kind::T5(t5) => t5.table[[t5.bucket[clip(distance, t5.bucket.len())], h]].into(),
            Kind::Shaw(table) => {
                let a = table.slice(s![h.min(table.dim().0 - 1), clip(distance, table.dim().1), ..]);
                self.scale * dot(self.q.slice(s![b, h, i, ..]), a)
            }
            Kind::Swin(swin) => swin.table
                [[swin_entry(swin, self.part.keys + j as isize - distance, self.part.keys + j as isize), h]]
            .into(),
            Kind::Dense(bias) => bias[shared(bias.shape(), [b, h, i, j])].into(),
        }
    }

    fn zero_dbias(&self) -> Option<ArrayD<f64>> {
        match &self.attention.bias.kind {
            _ if !self.attention.bias.learned => None,
            Kind::None => None,
            Kind::Alibi(alibi) => Some(ArrayD::zeros(alibi.shape())),
            Kind::T5(t5) => Some(ArrayD::zeros(t5.table.shape())),
            Kind::Swin(swin) => Some(ArrayD::zeros(swin.table.shape())),
            Kind::Shaw(table) => Some(ArrayD::zeros(table.shape())),
            Kind::Dense(bias) => Some(ArrayD::zeros(bias.shape())),
        }
    }

    /// Adds ds times the derivative of [`bias`](Cells::bias): in what the bias was made of, and for Shaw's also in q.
    fn add_dbias(&self, [b, h, i, j]: [usize; 4], ds: f64, grads: &mut Gradients) {
        let distance = self.distance(b, i, j);
        if let Kind::Shaw(table) = &self.attention.bias.kind {
            let a = table.slice(s![h.min(table.dim().0 - 1), clip(distance, table.dim().1), ..]).mapv(f64::from);
            grads.dq.slice_mut(s![b, h, i, ..]).scaled_add(self.scale * ds, &a);
        }
        let Some(dbias) = &mut grads.dbias else { return };
        match &self.attention.bias.kind {
            Kind::None => {}
            Kind::Alibi(alibi) => *alibi.entry(dbias, b, h) -= ds * distance.unsigned_abs() as f64,
            Kind::T5(t5) => dbias[[t5.bucket[clip(distance, t5.bucket.len())], h]] += ds,
            Kind::Swin(swin) => {
                dbias[[swin_entry(swin, self.part.keys + j as isize - distance, self.part.keys + j as isize), h]] += ds;
            }
            Kind::Shaw(table) => {
                let (head, row) = (h.min(table.dim().0 - 1), clip(distance, table.dim().1));
                dbias
                    .slice_mut(s![head, row, ..])
                    .scaled_add(self.scale * ds, &self.q.slice(s![b, h, i, ..]).mapv(Into::into));
            }
            Kind::Dense(bias) => dbias[&shared(bias.shape(), [b, h, i, j])[..]] += ds,
        }
    }
}

fn dot<'x, 'y, A: Copy + Into<f64> + 'x, B: Copy + Into<f64> + 'y>(
    x: impl IntoIterator<Item = &'x A>,
    y: impl IntoIterator<Item = &'y B>,
) -> f64 {
    x.into_iter().zip(y).map(|(x, y)| (*x).into() * (*y).into()).sum()
}

/// The place of `distance` in a table of −radius to radius, whose ends serve all that lies beyond them.
fn clip(distance: isize, len: usize) -> usize {
    let radius = (len / 2) as isize;
    (distance.clamp(-radius, radius) + radius) as usize
}

/// The row of Swin's table for a query and a key of the image.
fn swin_entry(swin: &Swin, query: isize, key: isize) -> usize {
    let width = swin.grid.1 as isize;
    let (rows, cols) = (2 * swin.window.0 - 1, 2 * swin.window.1 - 1);
    clip(query / width - key / width, rows) * cols + clip(query % width - key % width, cols)
}

/// The place of a cell in an array that is shared along its axes of length 1.
fn shared(shape: &[usize], cell: [usize; 4]) -> [usize; 4] {
    std::array::from_fn(|axis| if shape[axis] == 1 { 0 } else { cell[axis] })
}

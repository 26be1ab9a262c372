//! Attention of sequences that are spread over ranks.

use foveal::{Attention, Forward, Saved, Upstream};
use foveal_models::train::Fingerprint;
use ndarray::{Array1, Array3, Array4, ArrayD, ArrayView3, ArrayView4, Axis};

use crate::cost::{Cost, Size};
use crate::error::{Error, Result};
use crate::heads::Heads;
use crate::merge::merge_sinks;
use crate::options::{BiasOptions, Options};
use crate::ring::Ring;
use crate::shards::Shards;
use crate::traffic::Timing;
use crate::world::World;

/// Attention of sequences whose tokens are spread over the ranks. All ranks call it together, each with its shard of q, k and v,
/// and get their shard of the results: those of [`foveal::Attention`] on the whole, to the rounding of sums.
///
/// ```no_run
/// use foveal_cluster::{Options, ShardedAttention, Shards, World};
/// use ndarray::Array4;
///
/// let world = World::start()?;
/// let shards = Shards::zigzag(1 << 20, world.size());
/// let attention = ShardedAttention::new(&world, Options::causal(), shards.clone(), shards.clone())?;
/// let x = Array4::<f32>::ones((1, 8, shards.len(world.rank()), 64)); // this rank's tokens
/// let forward = attention.forward(x.view(), x.view(), x.view())?;
/// let gradients = attention.backward((x.view(), x.view(), x.view()), &forward, x.view(), None)?;
/// # Ok::<(), foveal_cluster::Error>(())
/// ```
pub struct ShardedAttention<'w> {
    world: &'w World,
    options: Options,
    queries: Shards,
    keys: Shards,
    way: Way,
    cost: Cost,
    chunk: Option<usize>,
}

/// How ranks exchange what they need of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Whichever is estimated to take less time; see [`Cost`].
    #[default]
    Cheapest,
    /// Keys and values travel from rank to rank while others are worked on (Liu 2023).
    Ring,
    /// Tokens are exchanged for heads and back: each rank has all tokens of some heads (DeepSpeed-Ulysses, Jacobs 2023).
    Heads,
}

/// The gradients of a rank's shard.
#[derive(Clone, Debug)]
pub struct Gradients {
    /// Shaped like q.
    pub dq: Array4<f32>,
    /// Shaped like k.
    pub dk: Array4<f32>,
    /// Shaped like v.
    pub dv: Array4<f32>,
    /// Shaped like the bias, and the same on all ranks; of a dense one, the rows of this rank.
    pub dbias: Option<ArrayD<f32>>,
    /// Of the sinks, \[H\], the same on all ranks.
    pub dsinks: Option<Array1<f32>>,
    /// What it took.
    pub timing: Timing,
}

/// q, k and v of a rank's shard: [B, H, T, D], [B, G, S, D] and [B, G, S, Dv].
pub type Inputs<'a> = (ArrayView4<'a, f32>, ArrayView4<'a, f32>, ArrayView4<'a, f32>);

/// Rows whose sinks are looked at together.
const SINK_ROWS: usize = 1024;

impl<'w> ShardedAttention<'w> {
    /// For queries and keys that are dealt out like this.
    ///
    /// # Errors
    /// If they are not dealt out to as many ranks as there are.
    pub fn new(world: &'w World, options: Options, queries: Shards, keys: Shards) -> Result<Self> {
        for (what, shards) in [("the queries", &queries), ("the keys", &keys)] {
            if shards.ranks() != world.size() {
                let problem = format!("they are for {} ranks, and there are {}", shards.ranks(), world.size());
                return Err(Error::Shards { what, problem });
            }
        }
        Ok(ShardedAttention { world, options, queries, keys, way: Way::default(), cost: Cost::default(), chunk: None })
    }

    /// The same with this way of exchanging.
    #[must_use]
    pub fn way(self, way: Way) -> Self {
        ShardedAttention { way, ..self }
    }

    /// The same with other estimates of what work and messages cost. They have to be those of all ranks.
    #[must_use]
    pub fn cost(self, cost: Cost) -> Self {
        ShardedAttention { cost, ..self }
    }

    /// The same with keys and values travelling in chunks of so many tokens. By itself, chunks are some megabytes.
    #[must_use]
    pub fn chunk(self, tokens: usize) -> Self {
        ShardedAttention { chunk: Some(tokens), ..self }
    }

    /// The outputs and the log-sum-exp of this rank's queries.
    ///
    /// # Errors
    /// If shapes or options do not fit each other, or the ranks disagree about them: all ranks get an error then.
    pub fn forward(&self, q: ArrayView4<f32>, k: ArrayView4<f32>, v: ArrayView4<f32>) -> Result<Forward> {
        self.forward_timed(q, k, v).map(|(forward, _)| forward)
    }

    /// The same, with what it took.
    ///
    /// # Errors
    /// As [`forward`](ShardedAttention::forward).
    pub fn forward_timed(
        &self,
        q: ArrayView4<f32>,
        k: ArrayView4<f32>,
        v: ArrayView4<f32>,
    ) -> Result<(Forward, Timing)> {
        let way = self.agree((q, k, v), true)?;
        let (b, h, t, _) = q.dim();
        let (mut out, mut lse) = (Array4::zeros((b, h, t, v.dim().3)), Array3::zeros((b, h, t)));
        let timing = match way {
            Way::Heads => self.heads((q, k, v)).forward(out.view_mut(), lse.view_mut())?,
            _ => self.ring((q, k, v)).forward(out.view_mut(), lse.view_mut())?,
        };
        if let Some(sinks) = &self.options.sinks {
            merge_sinks((out.view_mut(), lse.view_mut()), sinks);
        }
        Ok((Forward { out, lse }, timing))
    }

    /// The gradients of a loss whose gradient in this rank's outputs is `dout` (and in their lse `dlse`).
    ///
    /// # Errors
    /// As [`forward`](ShardedAttention::forward).
    pub fn backward(
        &self,
        (q, k, v): Inputs,
        forward: &Forward,
        dout: ArrayView4<f32>,
        dlse: Option<ArrayView3<f32>>,
    ) -> Result<Gradients> {
        let of_out = [q.dim().0, q.dim().1, q.dim().2, v.dim().3];
        let shapes = [("out", forward.out.shape(), 4), ("lse", forward.lse.shape(), 3), ("dout", dout.shape(), 4)];
        let dlse_shape = dlse.as_ref().map(|dlse| ("dlse", dlse.shape(), 3));
        let wrong = shapes.into_iter().chain(dlse_shape).find(|(_, got, axes)| *got != &of_out[..*axes]);
        // Whoever is wrong has to say so to the others before anybody waits for anybody.
        let way = self.agree((q, k, v), wrong.is_none());
        if let Some((what, got, axes)) = wrong {
            let (rank, expected) = (self.world.rank(), of_out[..axes].to_vec());
            return Err(Error::Shape { what, rank, got: got.to_vec(), expected });
        }
        let (results, upstream) = ((forward.out.view(), forward.lse.view()), (dout, dlse));
        let mut gradients = match way? {
            Way::Heads => self.heads((q, k, v)).backward(results, upstream)?,
            _ => self.ring((q, k, v)).backward(results, upstream)?,
        };
        if let Some(dbias) = gradients.dbias.as_mut().filter(|_| !matches!(self.options.bias, BiasOptions::Dense(_))) {
            self.world.sum(dbias.as_slice_mut().expect("made in standard layout"));
        }
        Ok(Gradients {
            dq: gradients.dq,
            dk: gradients.dk,
            dv: gradients.dv,
            dbias: gradients.dbias.map(|dbias| dbias.mapv(|x| x as f32)),
            dsinks: self.sink_gradient(forward, dout, dlse)?,
            timing: gradients.timing,
        })
    }

    /// The way that is taken for arrays of these shapes.
    ///
    /// # Errors
    /// If the way that was asked for leaves something out.
    pub fn chosen(&self, (q, k, v): Inputs) -> Result<Way> {
        let (batch, heads, _, dim) = q.dim();
        let size = Size {
            batch,
            heads,
            kv_heads: k.dim().1,
            queries: self.queries.tokens(),
            keys: self.keys.tokens(),
            dims: dim + v.dim().3,
        };
        let rows = self.options.has_rows();
        match self.way {
            Way::Heads if rows => Err(Error::Way {
                way: "the exchange of heads",
                what: "keep-masks and dense biases, of which each rank has rows of its own".into(),
                instead: "take the ring",
            }),
            Way::Cheapest if rows => Ok(Way::Ring),
            Way::Cheapest => Ok(self.cost.cheapest(&self.options, &self.queries, &self.keys, size)),
            way => Ok(way),
        }
    }

    fn ring<'a>(&'a self, (q, k, v): Inputs<'a>) -> Ring<'a> {
        let (wire, options) = (self.world.wire(), &self.options);
        Ring { wire, options, queries: &self.queries, keys: &self.keys, chunk: self.chunk, q, k, v }
    }

    fn heads<'a>(&'a self, (q, k, v): Inputs<'a>) -> Heads<'a> {
        let (wire, options) = (self.world.wire(), &self.options);
        Heads { wire, options, queries: &self.queries, keys: &self.keys, q, k, v }
    }

    /// Checks that all ranks are about to do the same, and that it can be done. Nobody starts if somebody cannot.
    fn agree(&self, (q, k, v): Inputs, fits: bool) -> Result<Way> {
        let checked = self.check((q, k, v));
        let way = self.chosen((q, k, v));
        let per_token = |x: ArrayView4<f32>| format!("[{}, {}, _, {}]", x.dim().0, x.dim().1, x.dim().3);
        let problem = match (&checked, &way, fits) {
            (Err(error), ..) | (_, Err(error), _) => error.to_string(),
            (.., false) => "results or gradients of another shape than the shard".into(),
            _ => "none".into(),
        };
        let facts = Fingerprint::default()
            .fact("q", per_token(q))
            .fact("k", per_token(k))
            .fact("v", per_token(v))
            .fact("shards of the queries", format!("{:?}", self.queries))
            .fact("shards of the keys", format!("{:?}", self.keys))
            .fact("way", format!("{:?}", way.as_ref().ok()))
            .fact("tokens of a chunk", format!("{:?}", self.chunk))
            .fact("problem", problem);
        let agreed = self.world.agree("this attention", &self.options.facts(facts));
        checked?;
        agreed?;
        way
    }

    /// Whether the arrays have the tokens of the shard, and the engine takes the options: it is asked about a call without queries.
    fn check(&self, (q, k, v): Inputs) -> Result<()> {
        let rank = self.world.rank();
        for (what, x, expected) in [
            ("q", q, [q.dim().0, q.dim().1, self.queries.len(rank), q.dim().3]),
            ("k", k, [q.dim().0, k.dim().1, self.keys.len(rank), q.dim().3]),
            ("v", v, [q.dim().0, k.dim().1, self.keys.len(rank), v.dim().3]),
        ] {
            if x.shape() != expected {
                return Err(Error::Shape { what, rank, got: x.shape().to_vec(), expected: expected.to_vec() });
            }
        }
        let (b, h, t, _) = q.dim();
        self.options.check_rows(rank, [b, h, t, self.keys.tokens()])?;
        if let Some(sinks) = self.options.sinks.as_ref().filter(|sinks| sinks.len() != h) {
            return Err(Error::Shape { what: "the list of sinks", rank, got: vec![sinks.len()], expected: vec![h] });
        }
        let empty = |x: ArrayView4<f32>| Array4::<f32>::zeros((x.dim().0, x.dim().1, 0, x.dim().3));
        let part = foveal::Part::of(self.queries.tokens(), self.keys.tokens());
        self.options.of_heads(&(0..h))?.part(part).forward(&empty(q), &empty(k), &empty(v))?;
        Ok(())
    }

    fn sink_gradient(
        &self,
        forward: &Forward,
        dout: ArrayView4<f32>,
        dlse: Option<ArrayView3<f32>>,
    ) -> Result<Option<Array1<f32>>> {
        let Some(sinks) = &self.options.sinks else { return Ok(None) };
        let attention = Attention::new().sinks(sinks.clone());
        let mut sum = vec![0.0f64; sinks.len()];
        for first in (0..dout.dim().2).step_by(SINK_ROWS) {
            let rows = (first..(first + SINK_ROWS).min(dout.dim().2)).into();
            let saved =
                Saved { out: forward.out.slice_axis(Axis(2), rows).into(), lse: forward.lse.slice_axis(Axis(2), rows) };
            let dlse = dlse.map(|dlse| dlse.slice_axis_move(Axis(2), rows));
            let upstream = Upstream { dout: dout.slice_axis(Axis(2), rows).into(), dlse };
            let part = attention.sink_gradient(saved, upstream)?.expect("there are sinks");
            sum.iter_mut().zip(&part).for_each(|(sum, part)| *sum += f64::from(*part));
        }
        self.world.sum(&mut sum);
        Ok(Some(sum.iter().map(|x| *x as f32).collect()))
    }
}

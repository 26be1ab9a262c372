//! Tokens exchanged for heads and back (DeepSpeed-Ulysses, Jacobs 2023).
//!
//! ```text
//! in rounds: every rank has one head of keys, with the heads of queries that it serves
//!   all to all:  q, k, v of my tokens, for the head of every other rank
//!   the engine, on all tokens of my head
//!   all to all:  outputs (or gradients) of my head, for the tokens of every other rank
//! ```
//!
//! In a round a rank holds all tokens of one head: with as many heads as ranks, as much as its shard of all heads.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use foveal::{Attention, GradientsMut, Part, Saved, Scratch, Upstream};
use ndarray::{Array3, Array4, ArrayD, ArrayView3, ArrayView4, ArrayViewMut3, ArrayViewMut4, Axis, s};

use crate::error::Result;
use crate::options::{BiasOptions, Options};
use crate::ring::RingGradients;
use crate::shards::{Shards, part_of};
use crate::traffic::Timing;
use crate::wire::Wire;

/// The tag of these messages; those of the ring are smaller.
const TAG: usize = 32_000;

/// A call of all ranks.
pub(crate) struct Heads<'a> {
    pub wire: &'a Wire,
    pub options: &'a Options,
    pub queries: &'a Shards,
    pub keys: &'a Shards,
    pub q: ArrayView4<'a, f32>,
    pub k: ArrayView4<'a, f32>,
    pub v: ArrayView4<'a, f32>,
}

/// Some heads of an array.
type HeadRange = Range<usize>;

impl Heads<'_> {
    pub fn forward(&self, mut out: ArrayViewMut4<f32>, mut lse: ArrayViewMut3<f64>) -> Result<Timing> {
        let (started, mut timing) = (Instant::now(), Timing::default());
        for round in 0..self.rounds() {
            let [q, k, v] = self.gather_inputs(round, &mut timing);
            let mut whole = Array4::zeros((q.dim().0, q.dim().1, q.dim().2, v.dim().3));
            let mut whole_lse = Array3::zeros((q.dim().0, q.dim().1, q.dim().2));
            if let Some(attention) = self.attention(round)? {
                let into = whole_lse.view_mut();
                Scratch::lend(|scratch| attention.forward_into(&q, &k, &v, &mut whole, into, scratch))?;
            }
            let heads = |rank: usize| self.query_heads(rank, round);
            self.scatter(self.queries, &whole, &mut out, heads, &mut timing);
            let mut own = lse.view_mut();
            self.scatter_lse(&whole_lse, &mut own, heads, &mut timing);
        }
        Ok(Timing { total: started.elapsed(), ..timing })
    }

    pub fn backward(
        &self,
        (out, lse): (ArrayView4<f32>, ArrayView3<f64>),
        (dout, dlse): (ArrayView4<f32>, Option<ArrayView3<f32>>),
    ) -> Result<RingGradients> {
        let (started, mut timing) = (Instant::now(), Timing::default());
        let mut dq = Array4::zeros(self.q.raw_dim());
        let (mut dk, mut dv) = (Array4::zeros(self.k.raw_dim()), Array4::zeros(self.v.raw_dim()));
        let mut dbias = crate::ring::zero_bias(self.options);
        for round in 0..self.rounds() {
            let [q, k, v] = self.gather_inputs(round, &mut timing);
            let heads = |rank: usize| self.query_heads(rank, round);
            let kv_heads = |rank: usize| self.key_heads(rank, round);
            let out = self.gather(self.queries, &out, heads, &mut timing);
            let dout = self.gather(self.queries, &dout, heads, &mut timing);
            let lse = self.gather_lse(&lse, heads, &mut timing);
            let dlse = dlse.map(|dlse| {
                let wide = dlse.insert_axis(Axis(3));
                self.gather(self.queries, &wide, heads, &mut timing).index_axis_move(Axis(3), 0)
            });
            let zeros = |x: &Array4<f32>| Array4::<f32>::zeros(x.raw_dim());
            let (mut whole_dq, mut whole_dk, mut whole_dv) = (zeros(&q), zeros(&k), zeros(&v));
            if let Some(attention) = self.attention(round)? {
                let saved = Saved { out: (&out).into(), lse: lse.view() };
                let upstream = Upstream { dout: (&dout).into(), dlse: dlse.as_ref().map(|dlse| dlse.view()) };
                let into = GradientsMut::set(&mut whole_dq, &mut whole_dk, &mut whole_dv);
                let learned =
                    Scratch::lend(|scratch| attention.backward_into(&q, &k, &v, saved, upstream, into, scratch))?;
                if let (Some(sum), Some(part)) = (&mut dbias, learned.dbias) {
                    self.add_bias(sum, &part, heads(self.wire.rank()));
                }
            }
            self.scatter(self.queries, &whole_dq, &mut dq.view_mut(), heads, &mut timing);
            self.scatter(self.keys, &whole_dk, &mut dk.view_mut(), kv_heads, &mut timing);
            self.scatter(self.keys, &whole_dv, &mut dv.view_mut(), kv_heads, &mut timing);
        }
        Ok(RingGradients { dq, dk, dv, dbias, timing: Timing { total: started.elapsed(), ..timing } })
    }

    fn rounds(&self) -> usize {
        self.k.dim().1.div_ceil(self.wire.size())
    }

    /// The head of keys of a rank in a round; none if it has fewer than others.
    fn key_heads(&self, rank: usize, round: usize) -> HeadRange {
        let own = part_of(&(0..self.k.dim().1), rank, self.wire.size());
        let first = (own.start + round).min(own.end);
        first..(first + 1).min(own.end)
    }

    /// The heads of queries that it serves.
    fn query_heads(&self, rank: usize, round: usize) -> HeadRange {
        let (keys, group) = (self.key_heads(rank, round), self.q.dim().1 / self.k.dim().1.max(1));
        keys.start * group..keys.end * group
    }

    /// The attention of this rank's heads; none if there are none.
    fn attention(&self, round: usize) -> Result<Option<Attention>> {
        let heads = self.query_heads(self.wire.rank(), round);
        if heads.is_empty() {
            return Ok(None);
        }
        let part = Part { head: heads.start, ..Part::of(self.queries.tokens(), self.keys.tokens()) };
        Ok(Some(self.options.of_heads(&heads)?.part(part)))
    }

    fn gather_inputs(&self, round: usize, timing: &mut Timing) -> [Array4<f32>; 3] {
        let heads = |rank: usize| self.query_heads(rank, round);
        let kv_heads = |rank: usize| self.key_heads(rank, round);
        [
            self.gather(self.queries, &self.q, heads, timing),
            self.gather(self.keys, &self.k, kv_heads, timing),
            self.gather(self.keys, &self.v, kv_heads, timing),
        ]
    }

    /// All tokens of this rank's heads, from the shards of all ranks: [B, its heads, all tokens, D].
    fn gather(
        &self,
        shards: &Shards,
        own: &ArrayView4<f32>,
        heads: impl Fn(usize) -> HeadRange,
        timing: &mut Timing,
    ) -> Array4<f32> {
        let (b, _, _, d) = own.dim();
        let mine = heads(self.wire.rank());
        let pack = |rank: usize| own.slice(s![.., heads(rank), .., ..]).iter().copied().collect();
        let length = |rank: usize| b * mine.len() * shards.len(rank) * d;
        let mut whole = Array4::zeros((b, mine.len(), shards.tokens(), d));
        for (rank, part) in self.exchange(pack, length, timing).into_iter().enumerate() {
            let part = Array4::from_shape_vec((b, mine.len(), shards.len(rank), d), part).expect("of this length");
            let mut row = 0;
            for piece in shards.pieces(rank) {
                let from = part.slice(s![.., .., row..row + piece.len(), ..]);
                whole.slice_mut(s![.., .., piece.clone(), ..]).assign(&from);
                row += piece.len();
            }
        }
        whole
    }

    /// The way back: the tokens of this rank, of the heads of all ranks.
    fn scatter(
        &self,
        shards: &Shards,
        whole: &Array4<f32>,
        own: &mut ArrayViewMut4<f32>,
        heads: impl Fn(usize) -> HeadRange,
        timing: &mut Timing,
    ) {
        let (b, h, _, d) = whole.dim();
        let tokens = shards.len(self.wire.rank());
        let pack = |rank: usize| {
            let places: Vec<usize> = shards.places(rank).collect();
            let mut packed = Vec::with_capacity(b * h * places.len() * d);
            for head in
                whole.outer_iter().flat_map(|sequence| (0..h).map(move |h| sequence.index_axis_move(Axis(0), h)))
            {
                places.iter().for_each(|place| packed.extend(head.row(*place)));
            }
            packed
        };
        let length = |rank: usize| b * heads(rank).len() * tokens * d;
        for (rank, part) in self.exchange(pack, length, timing).into_iter().enumerate() {
            let part = Array4::from_shape_vec((b, heads(rank).len(), tokens, d), part).expect("of this length");
            own.slice_mut(s![.., heads(rank), .., ..]).assign(&part);
        }
    }

    /// An lse is an f64: it travels as the bits of two numbers.
    fn gather_lse(
        &self,
        own: &ArrayView3<f64>,
        heads: impl Fn(usize) -> HeadRange,
        timing: &mut Timing,
    ) -> Array3<f64> {
        let halves = halves(own);
        joined(&self.gather(self.queries, &halves.view(), heads, timing).view())
    }

    fn scatter_lse(
        &self,
        whole: &Array3<f64>,
        own: &mut ArrayViewMut3<f64>,
        heads: impl Fn(usize) -> HeadRange,
        timing: &mut Timing,
    ) {
        let (b, h, t) = own.dim();
        let mut received = Array4::zeros((b, h, t, 2));
        self.scatter(self.queries, &halves(&whole.view()), &mut received.view_mut(), &heads, timing);
        for heads in (0..self.wire.size()).map(heads) {
            own.slice_mut(s![.., heads.clone(), ..]).assign(&joined(&received.slice(s![.., heads, .., ..])));
        }
    }

    /// Sends a message to every other rank, and receives one from each. The own one stays.
    fn exchange(
        &self,
        pack: impl Fn(usize) -> Vec<f32>,
        length: impl Fn(usize) -> usize,
        timing: &mut Timing,
    ) -> Vec<Vec<f32>> {
        let (rank, size) = (self.wire.rank(), self.wire.size());
        // Each begins with its neighbour, so that not all send to the same one.
        let others = || (1..size).map(move |step| (rank + step) % size);
        let mut received = vec![Vec::new(); size];
        let mut incoming: Vec<_> =
            others().map(|from| (from, self.wire.receive(vec![0.0; length(from)], from, TAG))).collect();
        let mut outgoing = Vec::new();
        for to in others() {
            let message = Arc::new(pack(to));
            timing.sent += 4 * message.len() as u64;
            outgoing.push(self.wire.send(&message, to, TAG));
        }
        received[rank] = pack(rank);
        let started = Instant::now();
        while !(incoming.is_empty() && outgoing.is_empty()) {
            incoming.retain_mut(|(from, receiving)| receiving.poll().map(|part| received[*from] = part).is_none());
            outgoing.retain_mut(|sending| !sending.done());
            std::thread::yield_now();
        }
        timing.waited += started.elapsed();
        received
    }

    /// Adds the gradient of some heads' columns of a table.
    fn add_bias(&self, sum: &mut ArrayD<f64>, part: &ArrayD<f32>, heads: HeadRange) {
        let part = part.mapv(f64::from);
        let axis = match &self.options.bias {
            BiasOptions::Shaw(table) if table.dim().0 == 1 => return *sum += &part,
            BiasOptions::Shaw(_) => Axis(0),
            _ => Axis(1),
        };
        let mut target = sum.slice_axis_mut(axis, heads.into());
        target += &part;
    }
}

fn halves(lse: &ArrayView3<f64>) -> Array4<f32> {
    let (b, h, t) = lse.dim();
    Array4::from_shape_fn((b, h, t, 2), |(b, h, t, half)| {
        f32::from_bits((lse[[b, h, t]].to_bits() >> (32 * half)) as u32)
    })
}

fn joined(halves: &ArrayView4<f32>) -> Array3<f64> {
    let (b, h, t, _) = halves.dim();
    let bits = |at: [usize; 4]| u64::from(halves[at].to_bits());
    Array3::from_shape_fn((b, h, t), |(b, h, t)| f64::from_bits(bits([b, h, t, 0]) | bits([b, h, t, 1]) << 32))
}

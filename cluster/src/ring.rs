//! Ring attention (Liu 2023): queries stay, keys and values travel.
//!
//! A rank merges what its queries make of one chunk of keys with what they have made of the others:
//!
//! $$ lse \leftarrow \ln(e^{lse} + e^{lse_c}), \qquad
//!    out \leftarrow e^{lse_{before} - lse} \, out + e^{lse_c - lse} \, out_c $$
//!
//! ```text
//! forward                                        backward, with the merged out and lse
//! for each event of the plan                     for each event of the plan
//!   chunk ⟵ take(event)                            chunk ⟵ take(event)
//!   for each block of rows, each span of keys      for each block of rows, each span of keys
//!     (out_c, lse_c) ⟵ engine                        dq += engine's, d(chunk) += engine's
//!     merge; poll                                    poll
//!                                                  d(chunk) += what the ranks before have collected; send it on, or home
//! ```
//!
//! A rank never holds more than a few chunks of others. Weights in backward come from the lse of the whole row, so every part is
//! exact by itself and parts are just added.

use std::ops::Range;
use std::sync::Arc;

use foveal::{Attention, GradientsMut, Part, Saved, Scratch, Upstream};
use ndarray::{Array4, ArrayD, ArrayView3, ArrayView4, ArrayViewMut3, ArrayViewMut4, Axis, s};

use crate::error::Result;
use crate::merge::merge_rows;
use crate::options::{BiasOptions, Options, Rectangle, rows, shared_rows};
use crate::plan::{Cargo, Event, Plan};
use crate::shards::{Chunk, Shards, Span, part_of};
use crate::traffic::{Timing, Traffic};
use crate::wire::{Receiving, Wire};

/// Rows of a block at most, for each thread: the engine packs keys once for as many, and MPI is polled between blocks.
const ROWS: usize = 1020;
/// Bytes of a chunk, about: long enough to be worth a call, so short that some of them do not count.
const CHUNK_BYTES: usize = 6 << 20;
/// Tokens of a chunk at least: with fewer, packing and merging would show.
const CHUNK_TOKENS: usize = 256;

/// A call of all ranks.
pub(crate) struct Ring<'a> {
    pub wire: &'a Wire,
    pub options: &'a Options,
    pub queries: &'a Shards,
    pub keys: &'a Shards,
    /// Tokens of a chunk; as many as are worth a message if none is given.
    pub chunk: Option<usize>,
    pub q: ArrayView4<'a, f32>,
    pub k: ArrayView4<'a, f32>,
    pub v: ArrayView4<'a, f32>,
}

/// The gradients of a rank's share.
pub(crate) struct RingGradients {
    pub dq: Array4<f32>,
    pub dk: Array4<f32>,
    pub dv: Array4<f32>,
    /// This rank's part of it.
    pub dbias: Option<ArrayD<f64>>,
    pub timing: Timing,
}

/// Where an array lies in a buffer, and its shape.
type Place = (Range<usize>, (usize, usize, usize, usize));

/// Some rows of queries against some successive keys, [B, G, S, D].
struct Tile<'c> {
    block: Span,
    keys: Span,
    k: ArrayView4<'c, f32>,
    v: ArrayView4<'c, f32>,
}

impl Ring<'_> {
    pub fn forward(&self, mut out: ArrayViewMut4<f32>, mut lse: ArrayViewMut3<f64>) -> Result<Timing> {
        let (plan, attention) = (self.plan(), self.options.of_heads(&(0..self.q.dim().1))?);
        let (mut traffic, mut scratch) = (self.traffic(&plan), Scratch::new());
        let (b, h, _, value_dim) = out.dim();
        let (mut part_out, mut part_lse) = (Vec::new(), Vec::new());
        out.fill(0.0);
        lse.fill(f64::NEG_INFINITY);
        for (number, event) in plan.events.iter().enumerate() {
            let chunk = traffic.take(number, &mut |_| {});
            for Tile { block, keys, k, v } in self.tiles(event, &plan, &chunk) {
                let range = block.rows.clone();
                let dim = (b, h, range.len());
                part_out.resize(b * h * range.len() * value_dim, 0.0f32);
                part_lse.resize(b * h * range.len(), 0.0f64);
                let mut part_out = ArrayViewMut4::from_shape((b, h, range.len(), value_dim), &mut part_out).expect(CUT);
                let mut part_lse = ArrayViewMut3::from_shape(dim, &mut part_lse).expect(CUT);
                let (part, q) = (self.cut(&attention, &block, &keys), rows(&self.q, &range));
                part.forward_into(q, k, v, part_out.view_mut(), part_lse.view_mut(), &mut scratch)?;
                let into =
                    (out.slice_axis_mut(Axis(2), range.clone().into()), lse.slice_axis_mut(Axis(2), range.into()));
                merge_rows(into, (part_out.view(), part_lse.view()));
                traffic.poll();
            }
            traffic.give_back(chunk);
        }
        Ok(traffic.finish())
    }

    pub fn backward(
        &self,
        (out, lse): (ArrayView4<f32>, ArrayView3<f64>),
        (dout, dlse): (ArrayView4<f32>, Option<ArrayView3<f32>>),
    ) -> Result<RingGradients> {
        let (plan, attention) = (self.plan(), self.options.of_heads(&(0..self.q.dim().1))?);
        let (mut traffic, mut scratch) = (self.traffic(&plan), Scratch::new());
        let mut dq = Array4::zeros(self.q.raw_dim());
        let (mut dk, mut dv) = (Array4::zeros(self.k.raw_dim()), Array4::zeros(self.v.raw_dim()));
        let mut dbias = zero_bias(self.options);
        let mut home = Home { ring: self, plan: &plan, next: 0, awaited: None };
        for (number, event) in plan.events.iter().enumerate() {
            let (whole, of) = (plan.chunk(event), (event.owner, event.number));
            let from = event.from.filter(|from| *from != event.owner);
            let mut before = from.map(|from| traffic.receive(whole.len(), from, Cargo::Gradients, of));
            let chunk = traffic.take(number, &mut |traffic| home.poll(traffic, &mut dk, &mut dv));
            // Own keys collect their gradients where they belong; those of others in a buffer that goes on.
            let own = event.from.is_none();
            let mut collected = traffic.buffer(if own { 0 } else { whole.len() });
            collected.fill(0.0);
            for Tile { block, keys, k, v } in self.tiles(event, &plan, &chunk) {
                let range = block.rows.clone();
                let to_dq = dq.slice_axis_mut(Axis(2), range.clone().into());
                let (to_dk, to_dv) = if own {
                    let cut = |x| ArrayViewMut4::slice_axis_move(x, Axis(2), keys.rows.clone().into());
                    (cut(dk.view_mut()), cut(dv.view_mut()))
                } else {
                    self.views_mut(whole, &keys, &mut collected)
                };
                let lse = lse.slice_axis(Axis(2), range.clone().into());
                let dlse = dlse.map(|dlse| dlse.slice_axis_move(Axis(2), range.clone().into()));
                let saved = Saved { out: rows(&out, &range).into(), lse };
                let upstream = Upstream { dout: rows(&dout, &range).into(), dlse };
                let (part, q) = (self.cut(&attention, &block, &keys), rows(&self.q, &range));
                let into = GradientsMut::add(to_dq, to_dk, to_dv);
                let learned = part.backward_into(q, k, v, saved, upstream, into, &mut scratch)?;
                if let (Some(sum), Some(part)) = (&mut dbias, learned.dbias) {
                    self.add_bias(sum, &part, &block, &keys);
                }
                traffic.poll();
                home.poll(&mut traffic, &mut dk, &mut dv);
            }
            traffic.give_back(chunk);
            if let Some(before) = &mut before {
                let gradients = traffic.wait(|traffic| {
                    home.poll(traffic, &mut dk, &mut dv);
                    before.poll()
                });
                collected.iter_mut().zip(&gradients).for_each(|(sum, part)| *sum += part);
                traffic.give_back(Arc::new(gradients));
            }
            if !own {
                let (to, cargo) = event.to.map_or((event.owner, Cargo::Home), |to| (to, Cargo::Gradients));
                traffic.send(Arc::new(collected), to, (cargo, event));
            }
        }
        traffic.wait(|traffic| {
            home.poll(traffic, &mut dk, &mut dv);
            home.is_done().then_some(())
        });
        Ok(RingGradients { dq, dk, dv, dbias, timing: traffic.finish() })
    }

    fn plan(&self) -> Plan {
        let (batch, _, _, _) = self.q.dim();
        let worth = (CHUNK_BYTES / (4 * self.width()).max(1)).max(CHUNK_TOKENS);
        let most = self.chunk.unwrap_or(worth).max(1);
        Plan::new(self.options, self.queries, self.keys, batch, self.wire.rank(), most)
    }

    /// The numbers of a token's keys and values.
    fn width(&self) -> usize {
        let (b, g, _, d) = self.k.dim();
        b * g * (d + self.v.dim().3)
    }

    fn traffic<'a>(&'a self, plan: &'a Plan) -> Traffic<'a> {
        let pack = |number: usize, buffer: &mut Vec<f32>| {
            buffer.clear();
            for span in &plan.chunks[self.wire.rank()][number].spans {
                buffer.extend(rows(&self.k, &span.rows));
                buffer.extend(rows(&self.v, &span.rows));
            }
        };
        Traffic::new(self.wire, plan, self.width(), pack)
    }

    /// What there is to do with a chunk.
    fn tiles<'c>(&self, event: &Event, plan: &Plan, chunk: &'c [f32]) -> Vec<Tile<'c>> {
        if !event.works {
            return Vec::new();
        }
        let of = [self.q.dim().0, self.queries.tokens(), self.keys.tokens()];
        let rows = ROWS * self.options.threads.available();
        let mut tiles = Vec::new();
        for span in &plan.chunk(event).spans {
            let (k, v) = self.views(plan.chunk(event), span, chunk);
            let seen = self.blocks(rows).filter(|block| self.options.sees(&block.tokens, &span.tokens, of));
            tiles.extend(seen.map(|block| Tile { block, keys: span.clone(), k, v }));
        }
        tiles
    }

    /// The queries of this rank, in blocks.
    fn blocks(&self, most: usize) -> impl Iterator<Item = Span> + '_ {
        let mut first = 0;
        self.queries.pieces(self.wire.rank()).iter().flat_map(move |piece| {
            let start = first;
            first += piece.len();
            let blocks = piece.len().div_ceil(most);
            (0..blocks).map(move |n| {
                let tokens = part_of(piece, n, blocks);
                let from = start + (tokens.start - piece.start);
                Span { rows: from..from + tokens.len(), tokens }
            })
        })
    }

    fn cut(&self, attention: &Attention, block: &Span, keys: &Span) -> Attention {
        let at = Rectangle { query: block.tokens.start, rows: block.rows.clone(), keys: keys.tokens.clone() };
        self.options.cut(attention, &at, Part::of(self.queries.tokens(), self.keys.tokens()))
    }

    /// Where the keys and the values of a span lie in its chunk.
    fn places(&self, chunk: &Chunk, span: &Span) -> [Place; 2] {
        let before = chunk.spans.iter().take_while(|other| *other != span).map(|other| other.tokens.len());
        let start = before.sum::<usize>() * self.width();
        let (b, g, _, d) = self.k.dim();
        let (t, value_dim) = (span.tokens.len(), self.v.dim().3);
        let middle = start + b * g * t * d;
        [(start..middle, (b, g, t, d)), (middle..middle + b * g * t * value_dim, (b, g, t, value_dim))]
    }

    fn views<'c>(&self, chunk: &Chunk, span: &Span, buffer: &'c [f32]) -> (ArrayView4<'c, f32>, ArrayView4<'c, f32>) {
        let [(k, k_dim), (v, v_dim)] = self.places(chunk, span);
        let view = |range, dim| ArrayView4::from_shape(dim, &buffer[range]).expect(CUT);
        (view(k, k_dim), view(v, v_dim))
    }

    fn views_mut<'c>(
        &self,
        chunk: &Chunk,
        span: &Span,
        buffer: &'c mut [f32],
    ) -> (ArrayViewMut4<'c, f32>, ArrayViewMut4<'c, f32>) {
        let [(k, k_dim), (v, v_dim)] = self.places(chunk, span);
        let (keys, values) = buffer[k.start..v.end].split_at_mut(k.len());
        let view = |part, dim| ArrayViewMut4::from_shape(dim, part).expect(CUT);
        (view(keys, k_dim), view(values, v_dim))
    }

    /// Adds the gradient of one rectangle.
    fn add_bias(&self, sum: &mut ArrayD<f64>, part: &ArrayD<f32>, block: &Span, keys: &Span) {
        let part = part.mapv(f64::from);
        if let BiasOptions::Dense(bias) | BiasOptions::Keys(bias) = &self.options.bias {
            let rows = shared_rows(bias.dim().2, &block.rows);
            let mut target = sum.slice_mut(s![.., .., rows, keys.tokens.clone()]);
            target += &part.into_dimensionality::<ndarray::Ix4>().expect("shaped like the rectangle of the bias");
        } else {
            *sum += &part;
        }
    }
}

/// Zeros for the gradient of the bias, as far as this rank has it.
pub(crate) fn zero_bias(options: &Options) -> Option<ArrayD<f64>> {
    let shape = match &options.bias {
        _ if !options.learns_bias => return None,
        BiasOptions::None => return None,
        BiasOptions::Alibi(table) | BiasOptions::T5 { table, .. } | BiasOptions::Swin { table, .. } => table.shape(),
        BiasOptions::Shaw(table) => table.shape(),
        BiasOptions::Dense(bias) | BiasOptions::Keys(bias) => bias.shape(),
    };
    Some(ArrayD::zeros(shape))
}

const CUT: &str = "cut to this size";

/// Gradients of this rank's keys and values that come home, in the order of their chunks.
struct Home<'a, 'r> {
    ring: &'a Ring<'r>,
    plan: &'a Plan,
    next: usize,
    awaited: Option<Receiving<'a>>,
}

impl<'a> Home<'a, '_> {
    fn is_done(&self) -> bool {
        self.next == self.plan.journeys.len() && self.awaited.is_none()
    }

    /// Adds what has come, and awaits what comes next.
    fn poll(&mut self, traffic: &mut Traffic<'a>, dk: &mut Array4<f32>, dv: &mut Array4<f32>) {
        let rank = self.ring.wire.rank();
        loop {
            if let Some(awaited) = &mut self.awaited {
                let Some(gradients) = awaited.poll() else { return };
                self.awaited = None;
                let chunk = &self.plan.chunks[rank][self.plan.journeys[self.next - 1].0];
                for span in &chunk.spans {
                    let (k, v) = self.ring.views(chunk, span, &gradients);
                    let rows = span.rows.clone();
                    let mut to_dk = dk.slice_axis_mut(Axis(2), rows.clone().into());
                    to_dk += &k;
                    let mut to_dv = dv.slice_axis_mut(Axis(2), rows.into());
                    to_dv += &v;
                }
                traffic.give_back(Arc::new(gradients));
            }
            let Some(&(number, last)) = self.plan.journeys.get(self.next) else { return };
            let tokens = self.plan.chunks[rank][number].len();
            self.awaited = Some(traffic.receive(tokens, last, Cargo::Home, (rank, number)));
            self.next += 1;
        }
    }
}

//! How a backward pass is cut into tasks that share no memory.
//!
//! A task owns some tiles of keys and goes over all rows that see them, so dK and dV need no locks. dQ gets something from
//! every task: the tiles are dealt out to C *chunks*, each chunk collects a dQ of its own, and these are added up in order.
//! C follows from the shapes alone, never from the number of threads; so do the results, to the bit. Tiles that no row sees are
//! not dealt out, and a chunk without tiles has nothing to do.
//!
//! The heads of one step share no gradient, so its tasks run side by side: query heads that share a key head come in different
//! steps, and with a dense bias all sequences and heads that share it. A step takes some rows of each head, so that what a task
//! works on stays in L2 and the chunks' dQ stay small.

use std::ops::Range;

use foveal_compute::scratch::LINE;

use crate::bias::Kind;
use crate::kernel::backward::{KEYS, KeyTile, ROWS, STRIDE, dq_width};
use crate::scores::Scores;
use crate::shape::Shape;

/// Tasks of a step, if the shape allows: enough for the threads of a large machine.
const TASKS: usize = 32;
/// Tasks a thread in a step: so many that waiting for the last of them does not show, but no more memory than they take.
const TASKS_PER_THREAD: usize = 64;
/// Keys of a chunk at least, lest joining the chunks costs more than 1 % of what they do.
const CHUNK: usize = 4 * KEYS;
/// Values that a task may work on at a time, 1.7 MiB: P and dS, the packed tile, and its rows, of which a block is in use at a
/// time. With more rows tiles are packed less often, with fewer of them more of it stays in L2.
const TASK_VALUES: usize = 440 << 10;

pub struct Schedule {
    shape: Shape,
    /// Sequences and key heads that share a gradient.
    together: (usize, usize),
    pub chunks: usize,
    /// Rows of a head in a step.
    pub rows: usize,
    /// Values of a row of a chunk's dQ.
    pub width: usize,
    /// Whether the only chunk can collect its dQ in dQ itself.
    pub in_place: bool,
}

/// What runs side by side: heads that share no gradient, and some rows of each.
pub struct Step {
    /// Sequence and query head.
    pub heads: Vec<(usize, usize)>,
    first_row: usize,
}

/// The tiles of one chunk in which some of the rows see something.
pub struct Task {
    /// The place of its head among those of the step.
    pub place: usize,
    pub chunk: usize,
    pub tiles: Vec<KeyTile>,
}

impl Schedule {
    pub fn new(shape: &Shape, scores: &Scores) -> Schedule {
        let mut together = (1, 1);
        if let Kind::Dense(bias) = scores.bias() {
            let (batch, heads, ..) = bias.dim();
            together = (if batch == 1 { shape.batch } else { 1 }, if heads == 1 { shape.kv_heads } else { 1 });
        }
        let together = (together.0.max(1), together.1.max(1));
        let width = dq_width(scores, shape.dim);
        // Per key and per row: K three times and V twice, Q three times and dOut twice (as they lie, packed, and their
        // gradients).
        let each = 3 * shape.dim + 2 * shape.value_dim;
        let rows = TASK_VALUES.saturating_sub(2 * ROWS * STRIDE + KEYS * each) / each;
        let rows = (rows / ROWS).max(1).saturating_mul(ROWS);
        // Steps of the same number of rows, and none more for the sake of a few.
        let count = shape.queries.saturating_sub(rows / 8).div_ceil(rows).max(1);
        let rows = shape.queries.div_ceil(count).next_multiple_of(ROWS).min(shape.queries).max(1);
        let mut schedule = Schedule { shape: *shape, together, chunks: 1, rows, width, in_place: false };
        schedule.chunks = TASKS.div_ceil(schedule.independent().max(1)).min(shape.keys.div_ceil(CHUNK)).max(1);
        if schedule.chunks > 4 {
            // A number that two or four threads share without a rest.
            schedule.chunks -= schedule.chunks % 4;
        }
        schedule.in_place = schedule.chunks == 1 && width == shape.dim;
        schedule
    }

    /// How many heads, or groups of heads that share a gradient, there are.
    fn independent(&self) -> usize {
        (self.shape.batch / self.together.0) * (self.shape.kv_heads / self.together.1)
    }

    /// Tasks that can run side by side.
    pub fn tasks(&self) -> usize {
        self.independent() * self.chunks
    }

    /// Heads of a step at most.
    pub fn heads(&self, threads: usize) -> usize {
        (TASKS_PER_THREAD * threads).div_ceil(self.chunks).clamp(1, self.independent().max(1))
    }

    /// The shape of the chunks' dQ: [chunks, heads, rows, width]. Nothing where dQ is collected in place.
    pub fn parts(&self, threads: usize) -> [usize; 4] {
        if self.in_place { [0; 4] } else { [self.chunks, self.heads(threads), self.rows, self.width] }
    }

    /// The steps, one after the other.
    pub fn steps(&self, threads: usize) -> impl Iterator<Item = Step> + '_ {
        let (all, heads) = (self.independent(), self.heads(threads));
        let sharing = self.together.0 * self.together.1 * self.shape.group();
        (0..all).step_by(heads).flat_map(move |first| {
            let some = first..(first + heads).min(all);
            (0..sharing).flat_map(move |turn| {
                let heads: Vec<_> = some.clone().map(|n| self.head(n, turn)).collect();
                let rows = (0..self.shape.queries).step_by(self.rows);
                rows.map(move |first_row| Step { heads: heads.clone(), first_row })
            })
        })
    }

    /// The sequence and query head of group n whose turn it is.
    fn head(&self, n: usize, turn: usize) -> (usize, usize) {
        let (across, heads) = (self.shape.kv_heads / self.together.1, self.together.1 * self.shape.group());
        (n / across * self.together.0 + turn / heads, n % across * heads + turn % heads)
    }

    /// The rows of a head in a step.
    pub fn rows_of(&self, step: &Step, scores: &Scores, b: usize) -> Range<usize> {
        let end = scores.queries(b);
        step.first_row.min(end)..(step.first_row + self.rows).min(end)
    }

    /// Deals out the tiles that the rows of a step see: of C chunks, chunk c has the tiles c, c + C, c + 2C, …
    pub fn deal(&self, step: &Step, scores: &Scores, touched: &mut Touched) -> Vec<Task> {
        let (mut tasks, mut runs) = (Vec::new(), Vec::new());
        for (place, &(b, h)) in step.heads.iter().enumerate() {
            runs.clear();
            let rows = self.rows_of(step, scores, b);
            scores.runs(b, h, &rows, &(0..scores.keys(b)), &mut runs);
            let mut seen: Vec<usize> = runs.iter().flat_map(|run| run.start / KEYS..run.end.div_ceil(KEYS)).collect();
            seen.dedup();
            let kv = h / self.shape.group();
            seen.sort_by_key(|tile| tile % self.chunks);
            for tiles in seen.chunk_by(|one, other| one % self.chunks == other % self.chunks) {
                let tile = |index: &usize| KeyTile { index: *index, first: touched.touch(b, kv, *index) };
                tasks.push(Task { place, chunk: tiles[0] % self.chunks, tiles: tiles.iter().map(tile).collect() });
            }
        }
        tasks
    }
}

/// Which tiles of keys have been given something.
pub struct Touched {
    kv_heads: usize,
    tiles: usize,
    flags: Vec<bool>,
}

impl Touched {
    pub fn new(shape: &Shape) -> Self {
        let tiles = shape.keys.div_ceil(KEYS);
        Touched { kv_heads: shape.kv_heads, tiles, flags: vec![false; shape.batch * shape.kv_heads * tiles] }
    }

    fn at(&self, b: usize, kv: usize, tile: usize) -> usize {
        (b * self.kv_heads + kv) * self.tiles + tile
    }

    /// Whether it is the first time.
    fn touch(&mut self, b: usize, kv: usize, tile: usize) -> bool {
        let at = self.at(b, kv, tile);
        !std::mem::replace(&mut self.flags[at], true)
    }

    /// Sequence, key head and keys of what nobody has given anything.
    pub fn untouched<'a>(&'a self, scores: &'a Scores) -> impl Iterator<Item = (usize, usize, Range<usize>)> + 'a {
        self.flags.iter().enumerate().filter(|(_, touched)| !**touched).map(|(at, _)| {
            let (head, tile) = (at / self.tiles, at % self.tiles);
            let (b, kv) = (head / self.kv_heads, head % self.kv_heads);
            let keys = scores.keys(b);
            (b, kv, (tile * KEYS).min(keys)..((tile + 1) * KEYS).min(keys))
        })
    }
}

/// Where Shaw's gradient starts in a row of a chunk's dQ.
pub fn shaw_column(width: usize, distances: usize) -> usize {
    width - distances.next_multiple_of(LINE)
}

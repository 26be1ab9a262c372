//! Attention over 1 to 4 ranks against the engine on one, for random shapes, shards and combinations of all options.
#![allow(missing_docs)]

mod support;

use std::sync::Arc;

use foveal::{Align, Attention, Bias, Direction, Dropout, Forward, Mask, Pattern, ScoreFunction, ScoreRow, Threads};
use foveal_cluster::{BiasOptions, Options, ShardedAttention, Shards, Way, World};
use foveal_models::layer::Random;
use ndarray::{Array4, ArrayView4, Axis};
use support::{assert_close, chance, normal, on_ranks};

const CASES: u64 = 200;
/// Twice PyTorch's own bar for f32: both sides are rounded.
const BAR: (f32, f32) = (2e-5, 1e-5);

fn main() {
    on_ranks(1..5, || {
        let world = World::start().expect("MPI starts");
        // More than one chunk, and more than one block of rows, in some.
        let long = [(0, 3000), (1, 2100), (2, 5000)];
        let mut ways = [0, 0];
        for seed in 0..CASES {
            let case = Case::random(seed, long.iter().find(|(n, _)| *n == seed).map(|(_, tokens)| *tokens));
            case.check(&world, &mut ways);
        }
        disagreement(&world);
        assert!(ways[0] > 20 && (ways[1] > 20), "both ways are taken: {ways:?}");
        if world.rank() == 0 {
            println!(
                "{} ranks: {CASES} cases as on one ({} rings, {} exchanges of heads)",
                world.size(),
                ways[0],
                ways[1]
            );
        }
    });
}

/// q·k with some of its distance taken off, in steps.
#[derive(Debug)]
struct Steps;

impl ScoreFunction for Steps {
    fn apply(&self, row: ScoreRow, scores: &mut [f32]) {
        for (n, score) in scores.iter_mut().enumerate() {
            let distance = (row.first_key + n as isize - row.position).unsigned_abs() / 7;
            *score = 0.9 * *score - (distance + row.head) as f32 / 20.0;
        }
    }

    fn backward(&self, _: ScoreRow, _: &[f32], ds: &mut [f32]) {
        ds.iter_mut().for_each(|ds| *ds *= 0.9);
    }
}

#[derive(Debug)]
struct Case {
    seed: u64,
    batch: usize,
    kv_heads: usize,
    heads: usize,
    tokens: [usize; 2],
    dims: [usize; 2],
    way: Way,
}

impl Case {
    fn random(seed: u64, tokens: Option<usize>) -> Case {
        let mut random = Random::new(1000 + seed);
        let kv_heads = 1 + random.below(5);
        let queries = tokens.unwrap_or_else(|| random.below(70));
        let keys = if tokens.is_some() || random.below(2) == 0 { queries } else { random.below(70) };
        Case {
            seed,
            batch: 1 + random.below(2),
            kv_heads,
            heads: kv_heads * (1 + random.below(3)),
            tokens: [queries, keys],
            dims: [[1, 8, 17, 64][random.below(4)], [1, 8, 33, 64][random.below(4)]],
            way: if random.below(2) == 0 { Way::Ring } else { Way::Heads },
        }
    }

    fn shards(&self, tokens: usize, ranks: usize, random: &mut Random) -> Shards {
        match random.below(4) {
            0 => Shards::contiguous(tokens, ranks),
            1 => Shards::zigzag(tokens, ranks),
            2 => {
                // Cut anywhere; some shards may be empty.
                let mut cuts: Vec<usize> = (1..ranks).map(|_| random.below(tokens + 1)).collect();
                cuts.extend([0, tokens]);
                cuts.sort_unstable();
                Shards::of_lengths(&cuts.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>())
            }
            _ => {
                // Pieces of five tokens, dealt out in turns and in any order.
                let mut pieces = vec![Vec::new(); ranks];
                for first in (0..tokens).step_by(5) {
                    let own = &mut pieces[random.below(ranks)];
                    own.insert(random.below(own.len() + 1), first..(first + 5).min(tokens));
                }
                Shards::new(pieces).expect("every token once")
            }
        }
    }

    /// The attention of the whole, and the options of a rank that has these queries.
    fn options(&self, rows: &[usize]) -> (Attention, Options) {
        let Case { seed, batch, heads, tokens: [t, s], dims: [dim, _], .. } = *self;
        let mut random = Random::new(2000 + seed);
        let mut whole = Attention::new().threads(Threads::Sequential);
        let mut options = Options { learns_bias: true, threads: Threads::Sequential, ..Options::default() };
        if random.below(2) == 0 {
            (whole, options.right) = (whole.and_mask(Mask::causal()), Some(0));
        }
        if random.below(4) == 0 {
            let (left, right) = (random.below(s + 2), random.below(s + 2));
            whole = whole.and_mask(Mask::window(left, right));
            (options.left, options.right) = (Some(left), Some(options.right.map_or(right, |own| own.min(right))));
        }
        if random.below(3) == 0 {
            let lengths: Vec<usize> = (0..batch).map(|_| random.below(s + 1)).collect();
            whole = whole.and_mask(Mask::padding(lengths.clone()));
            options.lengths = Some(lengths);
        }
        options.align = match random.below(3) {
            0 => Align::Last,
            1 => Align::First,
            _ => Align::Offsets((0..batch).map(|_| random.below(s + 3) as isize).collect()),
        };
        whole = whole.align(options.align.clone());
        match random.below(6) {
            0 => {
                let pattern = Pattern::longformer(4, 2, &[1]).unwrap();
                whole = whole.and_mask(Mask::pattern(pattern.clone()));
                options.patterns.push(vec![pattern]);
            }
            1 => {
                let of = |h: usize| if h.is_multiple_of(2) { Pattern::strided(3 + h) } else { Pattern::fixed(8, 2) };
                let patterns: Vec<Pattern> = (0..heads).map(|h| of(h).unwrap()).collect();
                whole = whole.and_mask(Mask::patterns(patterns.clone()));
                options.patterns.push(patterns);
            }
            _ => {}
        }
        let pick = |random: &mut Random, n: usize| if random.below(2) == 0 { 1 } else { n };
        let own = |n: usize| if n == 1 { vec![0] } else { rows.to_vec() };
        let long = t > 1000;
        // Arrays over the scores have a row for each query of the rank: heads cannot be exchanged for tokens then.
        let ring = self.way == Way::Ring && !long;
        if ring && random.below(3) == 0 {
            let keep = chance(seed, 0.7, [pick(&mut random, batch), pick(&mut random, heads), pick(&mut random, t), s]);
            options.keep.push(keep.select(Axis(2), &own(keep.dim().2)));
            whole = whole.and_mask(Mask::dense(keep));
        }
        let table = |rows: usize| normal(3000 + seed, (rows, heads));
        let bias = match random.below(if ring { 8 } else { 6 }) {
            1 => {
                let slopes = table(pick(&mut random, batch)).mapv(|x: f32| x.abs() / 4.0);
                options.bias = BiasOptions::Alibi(slopes.clone());
                Bias::alibi_per_sequence(slopes)
            }
            2 => {
                let (table, direction, max_distance) = (table(8), Direction::Both, 20);
                options.bias = BiasOptions::T5 { table: table.clone(), direction, max_distance };
                Bias::t5(table, direction, max_distance).unwrap()
            }
            3 => {
                let table = normal(3000 + seed, (pick(&mut random, heads), 2 * random.below(12) + 1, dim));
                options.bias = BiasOptions::Shaw(table.clone());
                Bias::shaw(table).unwrap()
            }
            // All queries stand at a token of the image: with as many as keys.
            4 if t == s && t > 0 && !matches!(options.align, Align::Offsets(_)) => {
                let (window, grid) = ((2, 3), if t.is_multiple_of(2) { (2, t / 2) } else { (1, t) });
                options.bias = BiasOptions::Swin { table: table(15), window, grid };
                Bias::swin(table(15), window, grid).unwrap()
            }
            6 => {
                let bias = normal(3000 + seed, (pick(&mut random, batch), pick(&mut random, heads), t, s));
                options.bias = BiasOptions::Dense(bias.select(Axis(2), rows));
                Bias::dense(bias)
            }
            7 => {
                let bias = normal(3000 + seed, (pick(&mut random, batch), pick(&mut random, heads), 1, s));
                options.bias = BiasOptions::Keys(bias.clone());
                Bias::dense(bias)
            }
            _ => Bias::none(),
        };
        options.learns_bias = random.below(4) != 0;
        whole = whole.bias(if options.learns_bias { bias } else { bias.constant() });
        if random.below(4) == 0 {
            (whole, options.softcap) = (whole.softcap(3.0), Some(3.0));
        }
        if random.below(4) == 0 {
            (whole, options.scale) = (whole.scale(0.3), Some(0.3));
        }
        if random.below(6) == 0 {
            let steps: Arc<dyn ScoreFunction> = Arc::new(Steps);
            (whole, options.function) = (whole.score(steps.clone()), Some(steps));
        }
        if random.below(3) == 0 {
            let sinks: Vec<f32> = normal(4000 + seed, heads).to_vec();
            (whole, options.sinks) = (whole.sinks(sinks.clone()), Some(sinks));
        }
        if random.below(3) == 0 {
            let dropout = Dropout { first: random.below(3), ..Dropout::new(0.3, seed) };
            (whole, options.dropout) = (whole.with_dropout(dropout), Some(dropout));
        }
        (whole, options)
    }

    fn check(&self, world: &World, ways: &mut [usize; 2]) {
        let Case { seed, batch, heads, kv_heads, tokens: [t, s], dims: [dim, value_dim], way } = *self;
        let mut random = Random::new(5000 + seed);
        let queries = self.shards(t, world.size(), &mut random);
        let keys = if t == s { queries.clone() } else { self.shards(s, world.size(), &mut random) };
        let rows: Vec<usize> = queries.places(world.rank()).collect();
        let columns: Vec<usize> = keys.places(world.rank()).collect();
        let (attention, options) = self.options(&rows);
        let q = normal(10 * seed, (batch, heads, t, dim));
        let k = normal(10 * seed + 1, (batch, kv_heads, s, dim));
        let v = normal(10 * seed + 2, (batch, kv_heads, s, value_dim));
        let dout = normal(10 * seed + 3, (batch, heads, t, value_dim));
        let dlse = normal(10 * seed + 4, (batch, heads, t));
        let with_dlse = random.below(3) == 0;
        let whole = attention.forward(&q, &k, &v).unwrap_or_else(|error| panic!("{self:?}: {error}"));
        let upstream = foveal::Upstream { dout: (&dout).into(), dlse: with_dlse.then(|| dlse.view()) };
        let want = attention.backward(&q, &k, &v, &whole, upstream).unwrap();

        let own = |x: &Array4<f32>, places: &[usize]| x.select(Axis(2), places);
        let (own_q, own_k, own_v) = (own(&q, &rows), own(&k, &columns), own(&v, &columns));
        let mut sharded = ShardedAttention::new(world, options, queries, keys).unwrap().way(way);
        if random.below(3) != 0 {
            // Many chunks of a shard.
            sharded = sharded.chunk(if t > 1000 { 200 } else { 1 + random.below(20) });
        }
        let inputs: [ArrayView4<f32>; 3] = [own_q.view(), own_k.view(), own_v.view()];
        let [iq, ik, iv] = inputs;
        let forward: Forward = sharded.forward(iq, ik, iv).unwrap_or_else(|error| panic!("{self:?}: {error}"));
        let what = |name: &str| format!("{name} of rank {} of {}, {self:?}", world.rank(), world.size());
        assert_close(&what("out"), &forward.out, &own(&whole.out, &rows), BAR);
        let single = |lse: ndarray::Array3<f64>| lse.mapv(|x| x as f32);
        let lse = single(whole.lse.select(Axis(2), &rows));
        assert_close(&what("lse"), &single(forward.lse.clone()), &lse, BAR);

        let (own_dout, own_dlse) = (own(&dout, &rows), dlse.select(Axis(2), &rows));
        let own_dlse = with_dlse.then(|| own_dlse.view());
        let got = sharded.backward((iq, ik, iv), &forward, own_dout.view(), own_dlse).unwrap();
        assert_close(&what("dq"), &got.dq, &own(&want.dq, &rows), BAR);
        assert_close(&what("dk"), &got.dk, &own(&want.dk, &columns), BAR);
        assert_close(&what("dv"), &got.dv, &own(&want.dv, &columns), BAR);
        assert_eq!(got.dbias.is_some(), want.dbias.is_some(), "{}", what("dbias"));
        if let (Some(got), Some(want)) = (got.dbias, want.dbias) {
            let dense =
                want.ndim() == 4 && want.shape()[2] == t && want.shape()[3] == s && got.shape()[2] == rows.len();
            let want = if dense && t > 1 { want.select(Axis(2), &rows) } else { want };
            // Sums over all scores of a table's entry: rounded in proportion to the largest of them.
            let largest = want.iter().fold(0.0f32, |most, x| most.max(x.abs()));
            assert_close(&what("dbias"), &got, &want, (BAR.0 + 2e-5 * largest.max((s as f32).sqrt()), BAR.1));
        }
        assert_eq!(got.dsinks.is_some(), want.dsinks.is_some(), "{}", what("dsinks"));
        if let (Some(got), Some(want)) = (got.dsinks, want.dsinks) {
            assert_close(&what("dsinks"), &got, &want, (1e-4, 1e-4));
        }
        ways[usize::from(way == Way::Heads)] += 1;
    }
}

/// A rank that is about to do something else is told so, and all others with it, before anybody waits for anybody.
fn disagreement(world: &World) {
    let last = world.size() - 1;
    if last == 0 {
        return;
    }
    let shards = Shards::contiguous(8, world.size());
    let odd = world.rank() == last;
    let options = Options { softcap: odd.then_some(2.0), ..Options::causal() };
    let attention = ShardedAttention::new(world, options, shards.clone(), shards.clone()).unwrap();
    let x = Array4::<f32>::ones((1, 2, shards.len(world.rank()), 4));
    let error = attention.forward(x.view(), x.view(), x.view()).unwrap_err().to_string();
    assert!(error.contains(&format!("rank {last} has softcap: None, not Some(2.0)")), "{error}");

    let attention = ShardedAttention::new(world, Options::causal(), shards.clone(), shards.clone()).unwrap();
    let wrong = Array4::<f32>::ones((1, 2, shards.len(world.rank()) + usize::from(odd), 4));
    let error = attention.forward(wrong.view(), wrong.view(), wrong.view()).unwrap_err().to_string();
    assert!(error.contains(&format!("of rank {last} is")), "{error}");
}

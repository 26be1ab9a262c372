//! The cache for generation: in one piece and in pages, in 32 and 16 bits, with sequences of different lengths.
#![allow(missing_docs)]

mod support;

use foveal::{Attention, Bias, Error, Isa, KvCache, Mask, Packed, Pattern, Precision, bf16, f16, reference};
use ndarray::{Array4, s};
use support::{Random, assert_close, dynamic, randn4, widen};

const ABS: f64 = 1e-5;
const REL: f64 = 5e-6;
const KV_HEADS: usize = 2;
const DIM: usize = 16;
const VALUE_DIM: usize = 24;

/// Keys or values of one sequence, rounded as a cache stores them.
fn stored(array: &Array4<f32>, precision: Precision) -> Array4<f64> {
    array.mapv(|x| match precision {
        Precision::F16 => f16::from_f32(x).to_f64(),
        Precision::Bf16 => bf16::from_f32(x).to_f64(),
        _ => f64::from(x),
    })
}

/// A cache, and beside it what it should hold.
struct Watched {
    cache: KvCache,
    precision: Precision,
    tokens: Vec<[Array4<f32>; 2]>,
    seed: u64,
}

impl Watched {
    fn new(cache: KvCache, precision: Precision) -> Self {
        let batch = cache.lengths().len();
        let none = [DIM, VALUE_DIM].map(|dim| Array4::zeros((1, KV_HEADS, 0, dim)));
        Watched { cache: cache.precision(precision).unwrap(), precision, tokens: vec![none; batch], seed: 0 }
    }

    fn fresh(&mut self, batch: usize, new: usize) -> [Array4<f32>; 2] {
        self.seed += 2;
        [(0, DIM), (1, VALUE_DIM)].map(|(n, dim)| randn4(self.seed + n, [batch, KV_HEADS, new, dim]))
    }

    fn remember(&mut self, b: usize, new: &[Array4<f32>; 2], from: usize) {
        for (old, new) in self.tokens[b].iter_mut().zip(new) {
            let new = new.slice(s![from..=from, .., .., ..]);
            *old = ndarray::concatenate![ndarray::Axis(2), *old, new];
        }
    }

    fn append(&mut self, new: usize) -> Result<(), foveal::Error> {
        let fresh = self.fresh(self.tokens.len(), new);
        self.cache.append(&fresh[0], &fresh[1])?;
        (0..self.tokens.len()).for_each(|b| self.remember(b, &fresh, b));
        Ok(())
    }

    fn append_to(&mut self, b: usize, new: usize) -> Result<(), foveal::Error> {
        let fresh = self.fresh(1, new);
        self.cache.append_to(b, &fresh[0], &fresh[1])?;
        self.remember(b, &fresh, 0);
        Ok(())
    }

    fn truncate(&mut self, b: usize, len: usize) {
        self.cache.truncate_sequence(b, len).unwrap();
        for array in &mut self.tokens[b] {
            let len = len.min(array.dim().2);
            *array = array.slice(s![.., .., ..len, ..]).to_owned();
        }
    }

    /// What it holds, and what decoding from it gives, sequence by sequence.
    fn check(&self, attentions: &[Attention], heads: usize, queries: usize) {
        let lengths: Vec<usize> = self.tokens.iter().map(|[k, _]| k.dim().2).collect();
        assert_eq!(self.cache.lengths(), lengths);
        for (n, held) in [self.cache.k().to_f32(), self.cache.v().to_f32()].iter().enumerate() {
            for (b, tokens) in self.tokens.iter().enumerate() {
                let held = widen(&held.slice(s![b..=b, .., ..lengths[b], ..]).to_owned());
                assert_eq!(held, stored(&tokens[n], self.precision));
            }
        }
        let q = randn4(77, [self.tokens.len(), heads, queries, DIM]);
        for (n, attention) in attentions.iter().enumerate() {
            for isa in Isa::available() {
                let got = attention.clone().isa(isa).decode(&q, &self.cache).unwrap();
                for (b, [k, v]) in self.tokens.iter().enumerate() {
                    let what = format!("{isa}, attention {n}, {:?}, sequence {b} of {lengths:?}", self.precision);
                    let q = widen(&q.slice(s![b..=b, .., .., ..]).to_owned());
                    let (k, v) = (stored(k, self.precision), stored(v, self.precision));
                    let want = reference::forward(attention, &q, &k, &v).unwrap();
                    let out = got.out.slice(s![b..=b, .., .., ..]);
                    assert_close(&format!("{what}: out"), out.into_dyn(), dynamic(&want.out), ABS, REL);
                    let lse = got.lse.slice(s![b..=b, .., ..]);
                    assert_close(&format!("{what}: lse"), lse.into_dyn(), dynamic(&want.lse), ABS, REL);
                }
            }
        }
    }
}

fn attentions(heads: usize) -> Vec<Attention> {
    let longformer = Mask::pattern(Pattern::longformer(20, 1, &[0]).unwrap());
    vec![
        Attention::new(),
        Attention::new().mask(Mask::causal()),
        Attention::new().mask(Mask::window(30, 0)).bias(Bias::alibi_with(vec![0.1; heads])),
        Attention::new().mask(longformer.and(Mask::causal())).softcap(2.0),
    ]
}

const PRECISIONS: [Precision; 3] = [Precision::F32, Precision::F16, Precision::Bf16];

/// Appended to, cut and grown in any order: one piece, and pages of all sizes.
#[test]
fn a_cache_is_what_was_put_in_and_not_cut() {
    for (n, page) in [0usize, 1, 7, 16, 100].into_iter().enumerate() {
        let cache = match page {
            0 => KvCache::new(3, KV_HEADS, DIM, VALUE_DIM),
            _ => KvCache::paged(900usize.div_ceil(page) + 3, page, 3, KV_HEADS, DIM, VALUE_DIM).unwrap(),
        };
        let precision = PRECISIONS[n % 3];
        let mut watched = Watched::new(cache, precision);
        let (heads, queries) = [(2, 1), (6, 3), (4, 9)][n % 3];
        watched.append(5).unwrap();
        watched.check(&attentions(heads), heads, queries);
        watched.append_to(1, 80).unwrap();
        watched.append_to(2, 299).unwrap();
        watched.check(&attentions(heads), heads, queries);
        watched.truncate(2, 270);
        watched.append(2).unwrap();
        watched.truncate(0, 0);
        watched.check(&attentions(heads), heads, queries);
        watched.append(1).unwrap();
        watched.append_to(0, 33).unwrap();
        watched.check(&attentions(heads), heads, queries);
    }
}

/// Every precision with every page, alike and ragged, against many random steps.
#[test]
fn many_small_steps() {
    let mut random = Random::new(9);
    for precision in PRECISIONS {
        for page in [0usize, 1, 7, 16] {
            let cache = match page {
                0 => KvCache::with_capacity(2, KV_HEADS, DIM, VALUE_DIM, 20).unwrap(),
                _ => KvCache::paged(60, page, 2, KV_HEADS, DIM, VALUE_DIM).unwrap(),
            };
            let mut watched = Watched::new(cache, precision);
            for _ in 0..25 {
                let (b, new) = (random.below(2), random.below(9));
                let before = watched.cache.free_pages();
                let step = match random.below(3) {
                    0 => watched.append(new % 3),
                    1 => watched.append_to(b, new),
                    _ => {
                        watched.truncate(b, random.below(60));
                        Ok(())
                    }
                };
                if step.is_err() {
                    assert_eq!(before, watched.cache.free_pages(), "running out of pages takes none");
                }
                let pages = if page == 0 { 0 } else { 60 };
                let used: usize = watched.cache.lengths().iter().map(|n| n.div_ceil(page.max(1))).sum();
                assert_eq!(watched.cache.free_pages(), pages - used.min(pages), "pages come back");
            }
            watched.check(&attentions(2)[1..2], 2, 1);
        }
    }
}

#[test]
fn running_out_of_pages_changes_nothing() {
    let cache = KvCache::paged(5, 4, 2, KV_HEADS, DIM, VALUE_DIM).unwrap();
    let mut watched = Watched::new(cache, Precision::F32);
    watched.append(7).unwrap(); // two pages each
    let error = watched.append(2).unwrap_err().to_string();
    assert!(error.contains("pages") && error.contains("up to 1"), "{error}");
    assert!(watched.append_to(0, 6).is_err());
    assert_eq!(watched.cache.free_pages(), 1);
    watched.check(&attentions(2)[..2], 2, 1);
    watched.append_to(0, 5).unwrap();
    assert_eq!(watched.cache.free_pages(), 0);
    watched.append_to(1, 1).unwrap(); // there is room in its page
    watched.truncate(0, 4);
    assert_eq!(watched.cache.free_pages(), 2);
    watched.append_to(1, 8).unwrap();
    watched.check(&attentions(2)[..2], 2, 1);
    watched.cache.truncate(0);
    assert_eq!((watched.cache.free_pages(), watched.cache.is_empty()), (5, true));
    assert!(KvCache::paged(3, 0, 1, 1, 1, 1).is_err());
    assert!(
        watched.cache.append_to(2, &randn4(1, [1, KV_HEADS, 1, DIM]), &randn4(1, [1, KV_HEADS, 1, VALUE_DIM])).is_err()
    );
    assert!(watched.cache.truncate_sequence(2, 0).is_err());
}

/// A page is read as the same tokens in one piece are.
#[test]
fn pages_that_no_machine_has_are_an_error() {
    for (pages, page) in [(usize::MAX, 2), (4, usize::MAX), (1 << 40, 1 << 20)] {
        assert!(KvCache::paged(pages, page, 1, 1, 4, 4).is_err(), "{pages} of {page}");
    }
}

#[test]
fn pages_do_not_change_the_bits() {
    for page in [16, 32, 160] {
        for (heads, queries) in [(2, 1), (4, 4), (12, 2), (80, 1), (4, 30)] {
            let mut whole = Watched::new(KvCache::new(2, KV_HEADS, DIM, VALUE_DIM), Precision::F32);
            let pages = KvCache::paged(600 / page * 2 + 4, page, 2, KV_HEADS, DIM, VALUE_DIM).unwrap();
            let mut paged = Watched::new(pages, Precision::F32);
            for watched in [&mut whole, &mut paged] {
                watched.append_to(1, 37).unwrap();
                watched.append(500).unwrap();
                watched.append_to(0, 3).unwrap();
            }
            let q = randn4(5, [2, heads, queries, DIM]);
            for attention in attentions(heads) {
                for isa in Isa::available() {
                    let attention = attention.clone().isa(isa);
                    let (got, want) = (attention.decode(&q, &paged.cache), attention.decode(&q, &whole.cache));
                    assert!(got.unwrap() == want.unwrap(), "{isa}, pages of {page}, {heads} heads, {queries} queries");
                }
            }
        }
    }
}

/// Heads that share a key head are read together, and each sees what its own pattern shows, in every sequence.
#[test]
fn a_pattern_for_each_head() {
    let patterns = [
        Pattern::longformer(3, 1, &[]).unwrap(),
        Pattern::longformer(0, 1, &[2, 40]).unwrap(),
        Pattern::fixed(16, 1).unwrap(),
        Pattern::strided(20).unwrap(),
        Pattern::longformer(5, 30, &[]).unwrap(),
        Pattern::longformer(400, 1, &[]).unwrap(),
    ];
    for precision in PRECISIONS {
        let mut watched = Watched::new(KvCache::new(3, KV_HEADS, DIM, VALUE_DIM), precision);
        watched.append(270).unwrap();
        watched.append_to(1, 30).unwrap();
        let each = Attention::new().mask(Mask::patterns(patterns.to_vec()).and(Mask::causal()));
        for queries in [1, 3, 30] {
            watched.check(std::slice::from_ref(&each), patterns.len(), queries);
        }
    }
}

#[test]
fn selecting_sequences() {
    for precision in PRECISIONS {
        let mut watched = Watched::new(KvCache::new(3, KV_HEADS, DIM, VALUE_DIM), precision);
        watched.append(4).unwrap();
        watched.append_to(2, 30).unwrap();
        let chosen = [2, 0, 2];
        let cache = watched.cache.select(&chosen).unwrap();
        let tokens = chosen.map(|b| watched.tokens[b].clone()).into();
        let mut some = Watched { cache, tokens, precision, seed: 100 };
        some.check(&attentions(2)[..2], 2, 1);
        some.append_to(0, 3).unwrap();
        some.append(1).unwrap();
        some.check(&attentions(2)[..2], 2, 1);
        watched.check(&attentions(2)[..2], 2, 1);
        assert!(watched.cache.select(&[3]).is_err());
        assert!(watched.cache.select(&[]).unwrap().is_empty());
    }
    let mut paged = KvCache::paged(4, 4, 1, 1, 2, 2).unwrap();
    assert!(paged.select(&[0]).is_err());
    paged.append(&randn4(1, [1, 1, 3, 2]), &randn4(2, [1, 1, 3, 2])).unwrap();
    assert!(paged.precision(Precision::F16).is_err());
}

/// Tokens in pages are keys and values like others, where they can be: what cannot be done with them is an error.
#[test]
fn pages_as_arrays() {
    let (k, v) = (randn4(1, [2, KV_HEADS, 50, DIM]), randn4(2, [2, KV_HEADS, 50, VALUE_DIM]));
    let mut paged = KvCache::paged(40, 7, 2, KV_HEADS, DIM, VALUE_DIM).unwrap();
    paged.append(&k, &v).unwrap();
    let q = randn4(3, [2, 4, 50, DIM]);
    let attention = Attention::new().mask(Mask::causal());
    let want = reference::forward(&attention, &widen(&q), &widen(&k), &widen(&v)).unwrap();
    let fwd = attention.forward(&q, paged.k(), paged.v()).unwrap();
    assert_close("out", dynamic(&fwd.out), dynamic(&want.out), ABS, REL);
    let weights = attention.weights(&q, paged.k()).unwrap();
    assert_close("weights", dynamic(&weights), dynamic(&want.weights), ABS, REL);
    let tile = attention.head(&q, paged.k(), &fwd.lse, (1, 2)).unwrap().tile(10..50, 3..49).unwrap();
    assert_close("tile", dynamic(&tile), want.weights.slice(s![1, 2, 10..50, 3..49]).into_dyn(), ABS, REL);
    assert!(attention.backward(&q, paged.k(), paged.v(), &fwd, &fwd.out).is_err());

    assert!(attention.forward(paged.k(), paged.k(), paged.v()).is_err(), "queries in pages");

    // From one cache to another.
    let mut copy = KvCache::new(2, KV_HEADS, DIM, VALUE_DIM);
    assert!(copy.append(paged.k(), paged.v()).is_err() && copy.append_to(0, paged.k(), paged.v()).is_err());
    assert!(copy.is_empty());
    copy.append(&paged.k().to_f32(), &paged.v().to_f32()).unwrap();
    assert!(copy.k().to_f32() == k && copy.v().to_f32() == v);
    // Sequences of different lengths, called as if they were not: not beyond what there is.
    paged.truncate_sequence(1, 20).unwrap();
    let own = Attention::new().mask(Mask::padding([50, 20]));
    let padded = own.forward(&q, paged.k(), paged.v()).unwrap();
    let want = reference::forward(&own, &widen(&q), &widen(&k), &widen(&v)).unwrap();
    assert_close("padded", dynamic(&padded.out), dynamic(&want.out), ABS, REL);
    let weights = own.weights(&q, paged.k()).unwrap();
    assert_close("weights", dynamic(&weights), dynamic(&want.weights), ABS, REL);
    let tile = own.head(&q, paged.k(), &padded.lse, (1, 0)).unwrap().tile(5..50, 10..50).unwrap();
    assert_close("tile", dynamic(&tile), want.weights.slice(s![1, 0, 5..50, 10..50]).into_dyn(), ABS, REL);
    assert!(
        attention.forward(&q, paged.k(), paged.v()).is_err(),
        "the second sequence has 20 keys and no mask says so"
    );
    assert!(attention.weights(&q, paged.k()).is_err());
    let mut single = KvCache::paged(40, 7, 1, KV_HEADS, DIM, VALUE_DIM).unwrap();
    single.append(k.slice(s![..1, .., .., ..]), v.slice(s![..1, .., .., ..])).unwrap();
    let packed = Attention::new().packed(Packed::of_lengths(&[20, 30]).unwrap());
    let q = q.slice(s![..1, .., .., ..]);
    assert!(packed.forward(q, single.k(), single.v()).is_err());
    assert!(packed.forward(q, k.slice(s![..1, .., .., ..]), single.v()).is_err(), "values alone in pages");
}

#[test]
fn room_that_cannot_be_had_is_an_error() {
    let error = KvCache::with_capacity(2, KV_HEADS, DIM, VALUE_DIM, usize::MAX / 8).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

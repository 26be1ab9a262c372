//! Work that threads share, called by a thread of the pool: the same to the bit as what one thread does alone.
//!
//! This is what `make sanitize` watches with ThreadSanitizer. Callers from outside the pool wait in a condition variable of
//! the standard library, which is not compiled with it: it would not know that the threads have written what the caller
//! then reads.

mod support;

use foveal::{
    AdditiveAttention, Attention, Bias, Direction, Favor, FeatureMap, Forward, Gradients, KvCache, LinearAttention,
    LuongAttention, Mask, Pattern, Pool, Threads, fourier_mix,
};
use ndarray::Array4;
use support::{chance, narrow, randn, randn4};

/// Runs the calls on pools of several sizes, of which the caller is a thread itself.
fn on_pools(calls: impl Fn() + Sync) {
    for threads in [2, 3, 5] {
        // A thread can belong to one pool only, and for as long as it lives.
        let run = || {
            let _pool = rayon::ThreadPoolBuilder::new().num_threads(threads).use_current_thread().build().unwrap();
            assert_eq!(rayon::current_num_threads(), threads);
            calls();
        };
        std::thread::scope(|scope| scope.spawn(run).join()).unwrap();
    }
}

/// q, k, v and dout, with half as many heads of keys.
fn inputs([b, h, t, s, d]: [usize; 5]) -> [Array4<f32>; 4] {
    [randn4(1, [b, h, t, d]), randn4(2, [b, h / 2, s, d]), randn4(3, [b, h / 2, s, d]), randn4(4, [b, h, t, d])]
}

fn forward_and_backward(attention: &Attention, [q, k, v, dout]: &[Array4<f32>; 4]) -> (Forward, Gradients) {
    let fwd = attention.forward(q, k, v).unwrap();
    let grads = attention.backward(q, k, v, &fwd, dout).unwrap();
    (fwd, grads)
}

#[test]
fn every_option_forward_and_backward() {
    let arrays = inputs([2, 4, 150, 150, 24]);
    let options = [
        Attention::new(),
        Attention::new().mask(Mask::causal()).dropout(0.2, 3),
        Attention::new().mask(Mask::window(30, 5)).softcap(3.0),
        Attention::new().mask(Mask::padding([150, 70])).bias(Bias::alibi(4).unwrap()),
        Attention::new().mask(Mask::dense(chance(5, 0.6, (2, 1, 150, 150)))),
        Attention::new().mask(Mask::pattern(Pattern::longformer(20, 1, &[0]).unwrap())),
        Attention::new().bias(Bias::t5(narrow(&randn(6, (8, 4))), Direction::Both, 40).unwrap()),
        Attention::new().bias(Bias::shaw(narrow(&randn(7, (1, 21, 24)))).unwrap()),
        Attention::new().bias(Bias::dense(narrow(&randn(8, (1, 4, 1, 150))))),
    ];
    let alone = options.each_ref().map(|options| options.clone().threads(Threads::Sequential));
    let alone = alone.each_ref().map(|options| forward_and_backward(options, &arrays));
    on_pools(|| {
        for (options, alone) in options.iter().zip(&alone) {
            assert_eq!(forward_and_backward(options, &arrays), *alone);
        }
    });
}

#[test]
fn many_short_sequences_and_one_long_one() {
    // Many heads that are done whole, many keys for one head, and one query that is decoded.
    for (sizes, mask) in [
        ([96, 4, 16, 16, 32], Mask::causal()),
        ([1, 2, 700, 700, 16], Mask::causal()),
        ([1, 8, 1, 5000, 64], Mask::none()),
    ] {
        let arrays = inputs(sizes);
        let attention = Attention::new().mask(mask);
        let alone = forward_and_backward(&attention.clone().threads(Threads::Sequential), &arrays);
        let [b, h, _, s, d] = sizes;
        on_pools(|| {
            assert_eq!(forward_and_backward(&attention, &arrays), alone);
            let mut cache = KvCache::with_capacity(b, h / 2, d, d, s).unwrap();
            cache.append(&arrays[1], &arrays[2]).unwrap();
            assert_eq!(attention.decode(&arrays[0], &cache).unwrap(), alone.0);
        });
    }
}

#[test]
fn weights_tiles_and_maps() {
    let [q, k, v, _] = inputs([1, 4, 400, 400, 32]);
    let attention = Attention::new().mask(Mask::causal());
    let looks = |attention: &Attention| {
        let lse = attention.forward(&q, &k, &v).unwrap().lse;
        let weights = attention.weights(&q, &k).unwrap();
        let tile = attention.head(&q, &k, &lse, (0, 1)).unwrap().tile(3..390, 1..399).unwrap();
        let map = attention.head(&q, &k, &lse, (0, 1)).unwrap().map(0..400, 0..400, (50, 40), Pool::Max).unwrap();
        (lse, weights, tile, map)
    };
    let alone = looks(&attention.clone().threads(Threads::Sequential));
    on_pools(|| assert_eq!(looks(&attention), alone));
}

#[test]
fn the_rest_of_the_family() {
    let [q, k, v, dout] = &inputs([2, 4, 200, 200, 16]);
    let favor = FeatureMap::Favor(Favor::new(16, 32, 1).unwrap());
    let linear = [
        LinearAttention::new(FeatureMap::Elu),
        LinearAttention::new(FeatureMap::Elu).mask(Mask::causal()),
        LinearAttention::new(favor).mask(Mask::causal()),
    ];
    let additive = AdditiveAttention::new(narrow(&randn(9, (1, 16)))).unwrap();
    let luong = LuongAttention::general(narrow(&randn(10, (4, 16, 16)))).unwrap().mask(Mask::causal());
    let states = randn4(11, [2, 1, 300, 64]);
    let calls = |threads: Threads| {
        let linear = linear.each_ref().map(|linear| {
            let linear = linear.clone().threads(threads);
            let fwd = linear.forward(q, k, v).unwrap();
            let grads = linear.backward(q, k, v, &fwd, dout).unwrap();
            (fwd, grads)
        });
        let additive = additive.clone().threads(threads);
        let fwd = additive.forward(q, k, v).unwrap();
        let additive = (additive.backward(q, k, v, &fwd, dout).unwrap(), fwd);
        let luong = luong.clone().threads(threads);
        let fwd = luong.forward(q, k, v).unwrap();
        let luong = (luong.backward(q, k, v, &fwd, dout).unwrap(), fwd);
        let mixed = fourier_mix(states.index_axis(ndarray::Axis(1), 0), threads);
        (linear, additive, luong, mixed)
    };
    let alone = calls(Threads::Sequential);
    on_pools(|| assert_eq!(calls(Threads::Rayon), alone));
}

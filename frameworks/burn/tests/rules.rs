//! Bad calls, odd tensors, threads, and what is watched.

mod support;

use burn::tensor::{DType, Device, Tensor};
use foveal_burn::foveal::{Attention, Mask, reference};
use foveal_burn::{attention, watch};
use foveal_framework_testing::{Random, expect_close};
use foveal_models::trace::Kind;
use support::{array, tensor};

/// What the error of a call says.
fn refusal(q: &Tensor<4>, k: &Tensor<4>, v: &Tensor<4>, options: &Attention) -> String {
    attention(q.clone(), k.clone(), v.clone(), options).expect_err("it does not fit").to_string()
}

#[test]
fn bad_calls_are_errors_that_say_why() {
    for device in [Device::flex(), Device::flex().autodiff()] {
        let plain = &Attention::new();
        let zeros = |dim: [usize; 4]| Tensor::<4>::zeros(dim, &device).set_require_grad(device.is_autodiff());
        let x = zeros([1, 2, 3, 4]);
        let double = x.clone().cast(DType::F64);
        assert!(refusal(&double, &x, &x, plain).contains("F64"));
        assert!(refusal(&x, &x, &double, plain).contains("v holds F64"));
        assert!(refusal(&x, &zeros([1, 2, 3, 5]), &x, plain).contains("[1, 2, 3, 5]"));
        refusal(&x, &x, &zeros([1, 2, 4, 4]), plain);
        refusal(&x, &zeros([1, 3, 3, 4]), &zeros([1, 3, 3, 4]), plain);
        refusal(&x, &zeros([2, 2, 3, 4]), &zeros([2, 2, 3, 4]), plain);
        let nothing = zeros([1, 2, 3, 0]);
        refusal(&nothing, &nothing, &nothing, plain);
        assert!(refusal(&x, &x, &x, &Attention::new().mask(Mask::padding(vec![9]))).contains('9'));
    }
}

#[test]
fn autodiff_may_be_on_for_some_tensors() {
    let random = &mut Random::new(1);
    let device = Device::flex().autodiff();
    let q = tensor([1, 2, 5, 8], random, &device).require_grad();
    let kv = tensor([1, 2, 7, 8], random, &Device::flex());
    let out = attention(q.clone(), kv.clone(), kv.clone(), &Attention::new()).unwrap();
    let grads = out.sum().backward();
    let values = array(&kv);
    let ones = array(&q).mapv(|_| 1.0);
    let exact = reference::backward(&Attention::new(), &array(&q), &values, &values, &ones).unwrap();
    expect_close("dq", &array(&q.grad(&grads).unwrap()), &exact.dq);
    // Two ways to keep activations do not mix.
    let other = tensor([1, 2, 7, 8], random, &Device::flex().autodiff().gradient_checkpointing());
    assert!(refusal(&q, &other, &kv, &Attention::new()).contains("checkpointing"));
    assert!(refusal(&kv, &other, &q, &Attention::new()).contains("checkpointing"));
}

#[test]
fn tensors_without_values_are_no_trouble() {
    let device = Device::flex().autodiff();
    let zeros = |dim: [usize; 4]| Tensor::<4>::zeros(dim, &device).require_grad();
    for (q, k) in [([0, 2, 3, 4], [0, 2, 3, 4]), ([1, 2, 0, 4], [1, 2, 3, 4]), ([1, 2, 3, 4], [1, 2, 0, 4])] {
        let (q, k) = (zeros(q) + 1.0, zeros(k));
        let (out, trace) = watch(Kind::Decoder, || attention(q.clone(), k.clone(), k.clone(), &Attention::new()));
        let out = out.unwrap();
        assert_eq!(out.dims(), q.dims());
        assert_eq!(trace.layers().len(), 1);
        // Nothing to see: zeros, also for the gradients.
        assert!(array(&out).iter().all(|x| *x == 0.0));
        let grads = out.sum().backward();
        assert!(array(&k.grad(&grads).unwrap()).iter().all(|x| *x == 0.0));
    }
    // A part without rows of a tensor that has some.
    let x = zeros([1, 2, 3, 4]);
    let none = x.clone().slice([0..1, 0..2, 3..3, 0..4]);
    assert_eq!(attention(none, x.clone(), x, &Attention::new()).unwrap().dims(), [1, 2, 0, 4]);
}

#[test]
fn slices_broadcasts_and_reversed_tensors_are_read_rightly() {
    let random = &mut Random::new(5);
    let device = Device::flex();
    let x = tensor([1, 6, 20, 16], random, &device);
    let q = x.clone().slice([0..1, 0..4, 3..13, 0..16]);
    let k = x.slice([0..1, 4..6, 0..20, 0..16]);
    let options = Attention::new().mask(Mask::causal());
    let shared = tensor([1, 1, 20, 16], random, &device).expand([1, 2, 20, 16]);
    for (q, v) in [(q.clone(), shared), (q.flip([2]), k.clone().flip([3, 1]))] {
        let exact = reference::forward(&options, &array(&q), &array(&k), &array(&v)).unwrap().out;
        expect_close("out", &array(&attention(q, k.clone(), v, &options).unwrap()), &exact);
    }
}

#[test]
fn nan_spreads_where_it_is_seen_and_only_there() {
    let device = Device::flex();
    let x = tensor([1, 1, 6, 8], &mut Random::new(6), &device);
    let nan = Tensor::<4>::full([1, 1, 1, 8], f32::NAN, &device);
    let v = Tensor::cat(vec![x.clone().slice([0..1, 0..1, 0..5, 0..8]), nan], 2);
    let out = array(&attention(x.clone(), x, v, &Attention::new().mask(Mask::causal())).unwrap());
    for ((_, _, i, _), value) in out.indexed_iter() {
        assert_eq!(value.is_nan(), i == 5, "row {i}");
    }
}

#[test]
fn many_threads_may_call_at_once() {
    let device = Device::flex().autodiff();
    let x = tensor([1, 4, 100, 32], &mut Random::new(8), &device).require_grad();
    let options = &Attention::new().mask(Mask::causal());
    let both = || {
        let out = attention(x.clone(), x.clone(), x.clone(), options).unwrap();
        let grads = out.clone().sum().backward();
        (array(&out), array(&x.grad(&grads).unwrap()))
    };
    let alone = both();
    std::thread::scope(|scope| {
        let work = || (0..10).map(|_| both()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            assert!(thread.join().unwrap().iter().all(|given| *given == alone), "bits depend on other threads");
        }
    });
}

#[test]
fn what_is_watched_becomes_a_trace() {
    let random = &mut Random::new(10);
    let options = Attention::new().mask(Mask::causal());
    for device in [Device::flex(), Device::flex().autodiff()] {
        let x = tensor([1, 2, 30, 16], random, &device);
        let layer = |q: Tensor<4>| attention(q, x.clone(), x.clone(), &options).unwrap();
        let (out, trace) = watch(Kind::Decoder, || layer(layer(x.clone())));
        assert_eq!(trace.layers().len(), 2);
        let exact = reference::forward(&options, &array(&layer(x.clone())), &array(&x), &array(&x)).unwrap();
        expect_close("out", &array(&out), &exact.out);
        let tile = trace.layer(Kind::Decoder, 1).unwrap().tile(0, 1, 10..20, 0..15).unwrap();
        for ((i, j), weight) in tile.indexed_iter() {
            let exact = exact.weights[[0, 1, 10 + i, j]];
            assert!((f64::from(*weight) - exact).abs() <= 1e-5 + 5e-6 * exact);
        }
    }
}

//! Bad calls, odd tensors, caches, threads, and what is watched.

mod support;

use candle_core::{DType, Device, Result, Tensor, Var};
use foveal_candle::foveal::{Attention, Mask, reference};
use foveal_candle::{Cache, attention, watch};
use foveal_framework_testing::{Random, expect_close};
use foveal_models::trace::Kind;
use support::{array, tensor};

/// What the error of a call says.
fn refusal(q: &Tensor, k: &Tensor, v: &Tensor, options: &Attention) -> String {
    attention(q, k, v, options).expect_err("it does not fit").to_string()
}

#[test]
fn bad_calls_are_errors_that_say_why() -> Result<()> {
    let plain = &Attention::new();
    let x = Tensor::zeros((1, 2, 3, 4), DType::F32, &Device::Cpu)?;
    let three = x.squeeze(0)?;
    assert!(refusal(&three, &x, &x, plain).contains("[batch, heads, tokens, dim]"));
    assert!(refusal(&x, &three, &x, plain).contains("k has the shape [2, 3, 4]"));
    let double = x.to_dtype(DType::F64)?;
    assert!(refusal(&double, &x, &x, plain).contains("F64"));
    assert!(refusal(&x, &x, &double, plain).contains("to_dtype"));
    let wide = Tensor::zeros((1, 2, 3, 5), DType::F32, &Device::Cpu)?;
    refusal(&x, &wide, &x, plain);
    let heads = Tensor::zeros((1, 3, 3, 4), DType::F32, &Device::Cpu)?;
    refusal(&x, &heads, &heads, plain);
    let lengths = Attention::new().mask(Mask::padding(vec![9]));
    assert!(refusal(&x, &x, &x, &lengths).contains('9'));
    Ok(())
}

#[test]
fn tensors_without_values_are_no_trouble() -> Result<()> {
    let empty = |dim: (usize, usize, usize, usize)| Tensor::zeros(dim, DType::F32, &Device::Cpu);
    assert_eq!(
        attention(&empty((0, 2, 3, 4))?, &empty((0, 2, 3, 4))?, &empty((0, 2, 3, 4))?, &Attention::new())?.dims(),
        [0, 2, 3, 4]
    );
    assert_eq!(
        attention(&empty((1, 2, 0, 4))?, &empty((1, 2, 3, 4))?, &empty((1, 2, 3, 4))?, &Attention::new())?.dims(),
        [1, 2, 0, 4]
    );
    // Nothing to see: zeros.
    let q = Var::ones((1, 2, 3, 4), DType::F32, &Device::Cpu)?;
    let out = attention(&q, &empty((1, 2, 0, 4))?, &empty((1, 2, 0, 4))?, &Attention::new())?;
    assert_eq!(array(&out), array(&empty((1, 2, 3, 4))?));
    let grads = out.sum_all()?.backward()?;
    assert_eq!(array(grads.get(&q).unwrap()), array(&empty((1, 2, 3, 4))?));
    Ok(())
}

#[test]
fn broadcast_and_narrowed_tensors_are_read_in_place() -> Result<()> {
    let random = &mut Random::new(5);
    let x = tensor([1, 6, 20, 16], random)?;
    let (q, k) = (x.narrow(1, 0, 4)?.narrow(2, 3, 10)?, x.narrow(1, 4, 2)?);
    let v = tensor([1, 1, 20, 1], random)?.broadcast_as((1, 2, 20, 16))?;
    let options = Attention::new().mask(Mask::causal());
    let exact = reference::forward(&options, &array(&q), &array(&k), &array(&v)).unwrap().out;
    expect_close("out", &array(&attention(&q, &k, &v, &options)?), &exact);
    Ok(())
}

#[test]
fn nan_spreads_where_it_is_seen_and_only_there() -> Result<()> {
    let random = &mut Random::new(6);
    let x = tensor([1, 1, 6, 8], random)?;
    let nan = Tensor::full(f32::NAN, (1, 1, 1, 8), &Device::Cpu)?;
    let v = Tensor::cat(&[&x.narrow(2, 0, 5)?, &nan], 2)?;
    let out = array(&attention(&x, &x, &v, &Attention::new().mask(Mask::causal()))?);
    for ((_, _, i, _), value) in out.indexed_iter() {
        assert_eq!(value.is_nan(), i == 5, "row {i}");
    }
    Ok(())
}

#[test]
fn many_threads_may_call_at_once() -> Result<()> {
    let random = &mut Random::new(8);
    let x = tensor([1, 4, 100, 32], random)?;
    let options = &Attention::new().mask(Mask::causal());
    let alone = array(&attention(&x, &x, &x, options)?);
    std::thread::scope(|scope| {
        let work = || (0..10).map(|_| array(&attention(&x, &x, &x, options).unwrap())).collect::<Vec<_>>();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            assert!(thread.join().unwrap().iter().all(|out| *out == alone), "bits depend on other threads");
        }
    });
    Ok(())
}

#[test]
fn a_cache_gives_the_rows_of_the_whole() -> Result<()> {
    let random = &mut Random::new(9);
    let (q, k, v) = (tensor([2, 4, 12, 16], random)?, tensor([2, 2, 12, 16], random)?, tensor([2, 2, 12, 16], random)?);
    let options = &Attention::new().mask(Mask::causal());
    let whole = array(&attention(&q, &k, &v, options)?);
    let mut cache = Cache::new((2, 2, 16), DType::F32)?;
    for (start, tokens) in [(0, 7), (7, 1), (8, 1), (9, 3)] {
        let part = |x: &Tensor| x.narrow(2, start, tokens);
        let out = cache.attend(&part(&q)?, &part(&k)?, &part(&v)?, options)?;
        let rows = foveal_candle::foveal::ndarray::s![.., .., start..start + tokens, ..];
        expect_close("rows", &array(&out), &whole.slice(rows).to_owned());
    }
    assert_eq!(cache.len(), 12);
    // What does not fit changes nothing.
    let odd = tensor([2, 3, 1, 16], random)?;
    assert!(cache.attend(&odd, &odd, &odd, options).is_err());
    assert!(cache.attend(&odd, &k.narrow(2, 0, 1)?, &v.narrow(2, 0, 1)?, options).is_err(), "3 heads over 2");
    assert_eq!(cache.len(), 12);
    assert!(Cache::new((1, 1, 8), DType::U8).is_err());
    Ok(())
}

#[test]
fn what_is_watched_becomes_a_trace() -> Result<()> {
    let random = &mut Random::new(10);
    let x = tensor([1, 2, 30, 16], random)?;
    let options = Attention::new().mask(Mask::causal());
    let model = || attention(&attention(&x, &x, &x, &options)?, &x, &x, &options);
    let (out, trace) = watch(Kind::Decoder, model);
    let out = out?;
    assert_eq!(trace.layers().len(), 2);
    let first = array(&attention(&x, &x, &x, &options)?);
    let exact = reference::forward(&options, &first, &array(&x), &array(&x)).unwrap();
    expect_close("out", &array(&out), &exact.out);
    let tile = trace.layer(Kind::Decoder, 1).unwrap().tile(0, 1, 10..20, 0..15).unwrap();
    for ((i, j), weight) in tile.indexed_iter() {
        let exact = exact.weights[[0, 1, 10 + i, j]];
        assert!((f64::from(*weight) - exact).abs() <= 1e-5 + 5e-6 * exact);
    }
    // Nobody watches any more.
    attention(&x, &x, &x, &options)?;
    let ((), none) = watch(Kind::Decoder, || ());
    assert_eq!(none.layers().len(), 0);
    Ok(())
}

#[test]
fn gradients_on_many_threads_are_the_same() -> Result<()> {
    let x = Var::from_tensor(&tensor([1, 4, 100, 32], &mut Random::new(12))?)?;
    let options = &Attention::new().mask(Mask::causal());
    let grad =
        || array(attention(&x, &x, &x, options).unwrap().sum_all().unwrap().backward().unwrap().get(&x).unwrap());
    let alone = grad();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| (0..5).map(|_| grad()).collect::<Vec<_>>())).collect();
        for thread in threads {
            assert!(thread.join().unwrap().iter().all(|given| *given == alone), "bits depend on other threads");
        }
    });
    Ok(())
}

#[test]
fn empty_parts_are_watched_and_have_gradients() -> Result<()> {
    let x = Var::from_tensor(&tensor([1, 2, 5, 4], &mut Random::new(13))?)?;
    let none = x.narrow(2, 5, 0)?;
    for (q, kv) in [(&none, x.as_tensor()), (x.as_tensor(), &none), (&none, &none)] {
        let (out, trace) = watch(Kind::Decoder, || attention(q, kv, kv, &Attention::new()));
        let out = out?;
        assert_eq!((out.dims(), trace.layers().len()), (q.dims(), 1));
        let grads = out.sum_all()?.backward()?;
        assert!(array(grads.get(&x).unwrap()).iter().all(|slope| *slope == 0.0));
    }
    let nothing = Tensor::zeros((1, 2, 3, 0), DType::F32, &Device::Cpu)?;
    refusal(&nothing, &nothing, &nothing, &Attention::new());
    Ok(())
}

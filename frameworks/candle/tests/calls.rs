//! Two hundred random calls against the f64 reference and against candle's own operations.

mod support;

use candle_core::{D, DType, Device, Result, Tensor, Var};
use foveal_candle::attention;
use foveal_candle::foveal::ndarray::Array4;
use foveal_candle::foveal::{Attention, Bias, Mask, reference};
use support::{Case, Random, array, as_given, expect_close, laid_out};

/// softmax(q·kᵀ/√D + hidden)·v from candle's operations, keys and values repeated for their group of heads.
fn naive(q: &Tensor, k: &Tensor, v: &Tensor, hidden: &Tensor) -> Result<Tensor> {
    let (_, heads, _, dim) = q.dims4()?;
    let group = |x: &Tensor| {
        let (b, g, s, d) = x.dims4()?;
        x.unsqueeze(2)?.expand((b, g, heads / g, s, d))?.reshape((b, heads, s, d))
    };
    let scores = (q.matmul(&group(k)?.t()?.contiguous()?)? * (1.0 / (dim as f64).sqrt()))?.broadcast_add(hidden)?;
    let exp = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?)?.exp()?;
    exp.broadcast_div(&exp.sum_keepdim(D::Minus1)?)?.matmul(&group(v)?.contiguous()?)
}

#[test]
fn two_hundred_calls_agree_with_the_reference() -> Result<()> {
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let case = Case::draw(random);
        let dtype = [DType::F32, DType::F32, DType::F16, DType::BF16][random.below(4)];
        // A variable as it lies in memory, and the tensor [B, H, T, D] that attention is given of it.
        let layout = random.below(3);
        let leaf = |dim, random: &mut Random| -> Result<(Var, Tensor)> {
            let leaf = Var::from_tensor(&laid_out(&random.tensor(dim)?.to_dtype(dtype)?, layout)?)?;
            let given = as_given(&leaf, layout)?;
            Ok((leaf, given))
        };
        let (q_leaf, q) = leaf(case.q(), random)?;
        let (k_leaf, k) = leaf(case.k(), random)?;
        let (v_leaf, v) = leaf(case.v(), random)?;
        let dout = random.tensor(case.out())?.to_dtype(dtype)?;

        let options = &case.attention;
        let out = attention(&q, &k, &v, options)?;
        assert_eq!((out.dtype(), out.dims()), (dtype, &case.out()[..]), "seed {seed}");
        let grads = (&out * &dout)?.sum_all()?.backward()?;

        let [q, k, v, dout] = [&q, &k, &v, &dout].map(array);
        let exact = reference::forward(options, &q, &k, &v).unwrap();
        let slopes = reference::backward(options, &q, &k, &v, &dout).unwrap();
        expect_close(&format!("out of seed {seed}"), dtype, &array(&out), &exact.out);
        for (name, leaf, exact) in [("dq", &q_leaf, &slopes.dq), ("dk", &k_leaf, &slopes.dk), ("dv", &v_leaf, &slopes.dv)] {
            let given = as_given(grads.get(leaf).unwrap(), layout)?;
            expect_close(&format!("{name} of seed {seed}"), dtype, &array(&given), exact);
        }
    }
    Ok(())
}

#[test]
fn candles_own_operations_give_the_same() -> Result<()> {
    for seed in 0..40 {
        let random = &mut Random::new(1000 + seed);
        let (b, h, g, t, d) = (1 + random.below(2), 4, [1, 2, 4][random.below(3)], 1 + random.below(70), 16);
        let causal = random.below(2) == 0;
        let leaf = |dim, random: &mut Random| Var::from_tensor(&random.tensor(dim)?);
        let (q, k, v) = (leaf([b, h, t, d], random)?, leaf([b, g, t, d], random)?, leaf([b, g, t, d], random)?);
        let dout = random.tensor([b, h, t, d])?;
        let hidden: Vec<f32> =
            (0..t * t).map(|n| if causal && n % t > n / t { f32::NEG_INFINITY } else { 0.0 }).collect();
        let hidden = Tensor::from_vec(hidden, (1, 1, t, t), &Device::Cpu)?;
        let options = Attention::new().mask(if causal { Mask::causal() } else { Mask::none() });

        let ours = attention(&q, &k, &v, &options)?;
        let theirs = naive(&q, &k, &v, &hidden)?;
        expect_close("out", DType::F32, &array(&ours), &array(&theirs));
        let [ours, theirs] = [ours, theirs].map(|out| (&out * &dout).unwrap().sum_all().unwrap().backward().unwrap());
        for leaf in [&q, &k, &v] {
            let grad = |grads: &candle_core::backprop::GradStore| array(grads.get(leaf).unwrap());
            expect_close("gradient", DType::F32, &grad(&ours), &grad(&theirs));
        }
    }
    Ok(())
}

#[test]
fn a_gradient_reaches_what_was_computed_before() -> Result<()> {
    // q = x·w: the gradient of w goes through attention.
    let random = &mut Random::new(7);
    let w = Var::from_tensor(&random.tensor([1, 1, 8, 8])?)?;
    let x = random.tensor([1, 1, 5, 8])?;
    let loss = |w: &Tensor| attention(&x.matmul(w)?, &x, &x, &Attention::new())?.sqr()?.sum_all();
    let grad = loss(&w)?.backward()?.get(&w).unwrap().flatten_all()?.to_vec1::<f32>()?;
    let values = w.flatten_all()?.to_vec1::<f32>()?;
    for at in [0, 13, 63] {
        let at_step = |step: f32| -> Result<f64> {
            let mut moved = values.clone();
            moved[at] += step;
            let moved = Tensor::from_vec(moved, (1, 1, 8, 8), &Device::Cpu)?;
            loss(&moved)?.to_dtype(DType::F64)?.to_scalar()
        };
        let slope = (at_step(1e-2)? - at_step(-1e-2)?) / 2e-2;
        assert!((slope - f64::from(grad[at])).abs() < 1e-2 * (1.0 + slope.abs()), "{slope} and {}", grad[at]);
    }
    Ok(())
}

#[test]
fn biases_and_soft_caps_reach_the_engine() -> Result<()> {
    let random = &mut Random::new(3);
    let x = random.tensor([1, 2, 9, 8])?;
    let options = Attention::new().bias(Bias::alibi(vec![0.5, 0.25])).softcap(3.0).mask(Mask::causal());
    let exact = reference::forward(&options, &array(&x), &array(&x), &array(&x)).unwrap().out;
    expect_close("out", DType::F32, &array(&attention(&x, &x, &x, &options)?), &exact);
    let plain: Array4<f64> = array(&attention(&x, &x, &x, &Attention::new())?);
    assert!((plain - exact).iter().any(|difference| difference.abs() > 1e-3));
    Ok(())
}

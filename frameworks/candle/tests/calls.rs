//! Two hundred random calls against the f64 reference and against candle's own operations.

mod support;

use candle_core::{D, DType, Device, Result, Tensor, Var};
use foveal_candle::attention;
use foveal_candle::foveal::ndarray::Array4;
use foveal_candle::foveal::{Attention, Bias, Mask, reference};
use foveal_framework_testing::{Case, Order, Precision, Random, Verdict, expect_close};
use support::{array, tensor};

/// softmax(q·kᵀ/√D + bias)·v from candle's operations, keys and values repeated for their group of heads.
fn naive(case: &Case, [q, k, v]: [&Tensor; 3]) -> Result<Tensor> {
    let [_, heads, _, dim] = case.q;
    let repeated = |x: &Tensor| {
        let (b, g, s, d) = x.dims4()?;
        x.unsqueeze(2)?.expand((b, g, heads / g, s, d))?.reshape((b, heads, s, d))
    };
    let constant = |values: Array4<f32>| {
        let shape = values.dim();
        Tensor::from_vec(values.into_raw_vec_and_offset().0, shape, &Device::Cpu)?.to_dtype(q.dtype())
    };
    let mut scores = (q.contiguous()?.matmul(&repeated(k)?.t()?.contiguous()?)? * (1.0 / (dim as f64).sqrt()))?;
    if let Some(cap) = case.softcap {
        scores = ((scores / cap)?.tanh()? * cap)?;
    }
    if let Some(bias) = &case.bias {
        scores = scores.broadcast_add(&constant(bias.clone())?)?;
    }
    let visible = constant(case.visible.mapv(f32::from))?;
    let exp = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?.detach())?.exp()?.broadcast_mul(&visible)?;
    // A query that sees nothing gets zeros: 0 / 1.
    let blind = visible.sum_keepdim(D::Minus1)?.eq(0f64)?.to_dtype(q.dtype())?;
    let sum = exp.sum_keepdim(D::Minus1)?.broadcast_add(&blind)?;
    exp.broadcast_div(&sum)?.matmul(&repeated(v)?.contiguous()?)
}

/// [B, H, T, D] as it lies in memory, or from there again: nothing is copied.
fn swapped(tensor: &Tensor, order: Order) -> Result<Tensor> {
    order.swapped().map_or_else(|| Ok(tensor.clone()), |(a, b)| tensor.transpose(a, b))
}

#[test]
fn two_hundred_calls_agree_with_the_reference_and_with_candle() -> Result<()> {
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let case = Case::draw(random);
        let dtype = match case.precision {
            Precision::F32 => DType::F32,
            Precision::F16 => DType::F16,
            Precision::Bf16 => DType::BF16,
        };
        // Variables as they lie in memory, and the tensors [B, H, T, D] that attention is given of them.
        let leaf = |dim, random: &mut Random| {
            Var::from_tensor(&swapped(&tensor(dim, random)?.to_dtype(dtype)?, case.order)?.contiguous()?)
        };
        let leaves = [leaf(case.q, random)?, leaf(case.k, random)?, leaf(case.v, random)?];
        let [q, k, v] = [&leaves[0], &leaves[1], &leaves[2]].map(|leaf| swapped(leaf, case.order).unwrap());
        let dout = tensor(case.out, random)?.to_dtype(dtype)?;
        // The output and the gradients of the variables, as [B, H, T, D].
        let results = |out: Tensor| -> Result<[Array4<f64>; 4]> {
            assert_eq!((out.dtype(), out.dims()), (dtype, &case.out[..]), "seed {seed}");
            let grads = (&out * &dout)?.sum_all()?.backward()?;
            let grad = |i: usize| array(&swapped(grads.get(&leaves[i]).unwrap(), case.order).unwrap());
            Ok([array(&out), grad(0), grad(1), grad(2)])
        };
        let given = results(attention(&q, &k, &v, &case.attention)?)?;
        let naive = if case.drops { None } else { Some(results(naive(&case, [&q, &k, &v])?)?) };

        let [q, k, v, dout] = [&q, &k, &v, &dout].map(array);
        let out = reference::forward(&case.attention, &q, &k, &v).unwrap().out;
        let slopes = reference::backward(&case.attention, &q, &k, &v, &dout).unwrap();
        let exact = [out, slopes.dq, slopes.dk, slopes.dv];
        for (i, name) in ["out", "dq", "dk", "dv"].into_iter().enumerate() {
            let naive = naive.as_ref().map(|results| &results[i]);
            let times = if i == 0 { 2.0 } else { 3.0 };
            Verdict { given: &given[i], exact: &exact[i], naive, precision: case.precision, times }
                .expect(&format!("{name} of seed {seed}, {:?}, {:?}", case.precision, case.order));
        }
    }
    Ok(())
}

#[test]
fn a_gradient_reaches_what_was_computed_before() -> Result<()> {
    // q = x·w: the gradient of w goes through attention.
    let random = &mut Random::new(7);
    let w = Var::from_tensor(&tensor([1, 1, 8, 8], random)?)?;
    let x = tensor([1, 1, 5, 8], random)?;
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
fn one_tensor_may_be_queries_keys_and_values() -> Result<()> {
    let random = &mut Random::new(4);
    let x = Var::from_tensor(&tensor([1, 2, 9, 8], random)?)?;
    let options = Attention::new().bias(Bias::alibi_with(vec![0.5, 0.25])).softcap(3.0).mask(Mask::causal());
    let out = attention(&x, &x, &x, &options)?;
    let grads = out.sum_all()?.backward()?;
    let values = array(&x);
    let exact = reference::forward(&options, &values, &values, &values).unwrap().out;
    expect_close("out", &array(&out), &exact);
    let slopes = reference::backward(&options, &values, &values, &values, &exact.mapv(|_| 1.0)).unwrap();
    expect_close("dx", &array(grads.get(&x).unwrap()), &(slopes.dq + slopes.dk + slopes.dv));
    Ok(())
}

#[test]
fn types_may_differ() -> Result<()> {
    let random = &mut Random::new(2);
    let (q, k, v) = (tensor([1, 2, 9, 8], random)?, tensor([1, 2, 7, 8], random)?, tensor([1, 2, 7, 8], random)?);
    let (k, v) = (Var::from_tensor(&k.to_dtype(DType::BF16)?)?, Var::from_tensor(&v.to_dtype(DType::F16)?)?);
    let out = attention(&q, &k, &v, &Attention::new())?;
    assert_eq!(out.dtype(), DType::F32);
    let exact = reference::forward(&Attention::new(), &array(&q), &array(&k), &array(&v)).unwrap().out;
    expect_close("out", &array(&out), &exact);
    let grads = out.sum_all()?.backward()?;
    assert_eq!(grads.get(&k).unwrap().dtype(), DType::BF16);
    assert_eq!(grads.get(&v).unwrap().dtype(), DType::F16);
    Ok(())
}

//! Two hundred random calls against the f64 reference and against burn's own operations, with and without autodiff.

mod support;

use burn::tensor::{DType, Device, Tensor, TensorData};
use foveal_burn::attention;
use foveal_burn::foveal::ndarray::Array4;
use foveal_burn::foveal::{Attention, Bias, Mask, reference};
use foveal_framework_testing::{Case, Order, Precision, Random, Verdict, expect_close};
use support::{array, tensor};

/// softmax(q·kᵀ/√D + bias)·v from burn's operations, keys and values repeated for their group of heads.
fn naive(case: &Case, [q, k, v]: [Tensor<4>; 3]) -> Tensor<4> {
    let ([_, heads, _, dim], device, dtype) = (case.q, q.device(), q.dtype());
    let repeated = |x: Tensor<4>| {
        let [b, g, s, d] = x.dims();
        x.reshape([b, g, 1, s, d]).repeat_dim(2, heads / g).reshape([b, heads, s, d])
    };
    let constant = |values: Array4<f32>| {
        let (b, h, t, s) = values.dim();
        let data = TensorData::new(values.into_raw_vec_and_offset().0, [b, h, t, s]);
        Tensor::<4>::from_data(data, &device).cast(dtype)
    };
    let mut scores = q.matmul(repeated(k).swap_dims(2, 3)) * (1.0 / (dim as f64).sqrt());
    if let Some(cap) = case.softcap {
        scores = (scores / cap).tanh() * cap;
    }
    if let Some(bias) = &case.bias {
        scores = scores + constant(bias.clone());
    }
    let exp = (scores.clone() - scores.max_dim(3).detach()).exp() * constant(case.visible.mapv(f32::from));
    // A query that sees nothing gets zeros: 0 / 1.
    let mut blind = Array4::zeros((case.q[0], 1, case.q[2], 1));
    for ((b, h, i, _), blind) in blind.indexed_iter_mut() {
        let sees = (0..case.k[2]).any(|j| case.visible[[b, h, i, j]]);
        *blind = f32::from(!sees);
    }
    let sum = exp.clone().sum_dim(3) + constant(blind);
    (exp / sum).matmul(repeated(v))
}

/// [B, H, T, D] as it lies in memory, or from there again: nothing is copied.
fn swapped(tensor: Tensor<4>, order: Order) -> Tensor<4> {
    match order.swapped() {
        Some((a, b)) => tensor.swap_dims(a, b),
        None => tensor,
    }
}

#[test]
fn two_hundred_calls_agree_with_the_reference_and_with_burn() {
    let device = Device::flex().autodiff();
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let case = Case::draw(random);
        let dtype = match case.precision {
            Precision::F32 => DType::F32,
            Precision::F16 => DType::F16,
            Precision::Bf16 => DType::BF16,
        };
        // Leaves as they lie in memory, and the tensors [B, H, T, D] that attention is given of them.
        let leaf = |mut dim: [usize; 4], random: &mut Random| {
            if let Some((a, b)) = case.order.swapped() {
                dim.swap(a, b);
            }
            tensor(dim, random, &device).cast(dtype).detach().require_grad()
        };
        let leaves = [leaf(case.q, random), leaf(case.k, random), leaf(case.v, random)];
        let inputs = || leaves.clone().map(|leaf| swapped(leaf, case.order));
        let dout = tensor(case.out, random, &device).cast(dtype);
        // The output and the gradients of the leaves, as [B, H, T, D].
        let results = |out: Tensor<4>| {
            assert_eq!((out.dtype(), out.dims()), (dtype, case.out), "seed {seed}");
            let grads = (out.clone() * dout.clone()).sum().backward();
            let grad = |leaf: &Tensor<4>| array(&swapped(leaf.grad(&grads).unwrap(), case.order));
            [array(&out), grad(&leaves[0]), grad(&leaves[1]), grad(&leaves[2])]
        };
        let [q, k, v] = inputs();
        let given = results(attention(q, k, v, &case.attention).unwrap());
        let naive = (!case.drops).then(|| results(naive(&case, inputs())));

        let [q, k, v] = inputs().map(|tensor| array(&tensor));
        let out = reference::forward(&case.attention, &q, &k, &v).unwrap().out;
        let slopes = reference::backward(&case.attention, &q, &k, &v, &array(&dout)).unwrap();
        let exact = [out, slopes.dq, slopes.dk, slopes.dv];
        for (i, name) in ["out", "dq", "dk", "dv"].into_iter().enumerate() {
            let naive = naive.as_ref().map(|results| &results[i]);
            let times = if i == 0 { 2.0 } else { 3.0 };
            Verdict { given: &given[i], exact: &exact[i], naive, precision: case.precision, times }
                .expect(&format!("{name} of seed {seed}, {:?}, {:?}", case.precision, case.order));
        }

        // Without autodiff: the same bits.
        let [q, k, v] = inputs().map(Tensor::inner);
        let plain = attention(q, k, v, &case.attention).unwrap();
        assert!(!plain.device().is_autodiff());
        assert_eq!(array(&plain), given[0], "seed {seed}");
    }
}

#[test]
fn a_gradient_reaches_what_was_computed_before() {
    // q = x·w: the gradient of w goes through attention, with activations kept or computed again.
    for device in [Device::flex().autodiff(), Device::flex().autodiff().gradient_checkpointing()] {
        let random = &mut Random::new(7);
        let w = tensor([1, 1, 8, 8], random, &device).require_grad();
        let x = tensor([1, 1, 5, 8], random, &device);
        let loss = |w: Tensor<4>| {
            let q = x.clone().matmul(w);
            attention(q, x.clone(), x.clone(), &Attention::new()).unwrap().powi_scalar(2).sum()
        };
        let grads = loss(w.clone()).backward();
        let grad = array(&w.grad(&grads).unwrap());
        let values = w.into_data().try_into_vec::<f32>().unwrap();
        for at in [0, 13, 63] {
            let at_step = |step: f32| {
                let mut moved = values.clone();
                moved[at] += step;
                let moved = Tensor::<4>::from_data(TensorData::new(moved, [1, 1, 8, 8]), &device);
                f64::from(loss(moved).into_scalar::<f32>())
            };
            let slope = (at_step(1e-2) - at_step(-1e-2)) / 2e-2;
            let given = grad[[0, 0, at / 8, at % 8]];
            assert!((slope - given).abs() < 1e-2 * (1.0 + slope.abs()), "{slope} and {given}");
        }
    }
}

#[test]
fn one_tensor_may_be_queries_keys_and_values() {
    let device = Device::flex().autodiff();
    let x = tensor([1, 2, 9, 8], &mut Random::new(4), &device).require_grad();
    let options = Attention::new().bias(Bias::alibi_with(vec![0.5, 0.25])).softcap(3.0).mask(Mask::causal());
    let out = attention(x.clone(), x.clone(), x.clone(), &options).unwrap();
    let grads = out.clone().sum().backward();
    let values = array(&x);
    let exact = reference::forward(&options, &values, &values, &values).unwrap().out;
    expect_close("out", &array(&out), &exact);
    let slopes = reference::backward(&options, &values, &values, &values, &exact.mapv(|_| 1.0)).unwrap();
    expect_close("dx", &array(&x.grad(&grads).unwrap()), &(slopes.dq + slopes.dk + slopes.dv));
}

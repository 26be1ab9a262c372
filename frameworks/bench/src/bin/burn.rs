//! Attention in burn, on its CPU backend Flex: `burn foveal` by Foveal, `burn` by burn's own operations.
#![forbid(unsafe_code)]

use burn::tensor::activation::softmax;
use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{Device, Tensor, TensorData, module};
use foveal_burn::attention;
use foveal_burn::foveal::Attention;
use foveal_framework_bench as bench;
use foveal_framework_bench::{Answer, Answers, Way, Who, Work, serve};

fn main() -> bench::Result<()> {
    serve("burn 0.22.1 (Flex)", ways)
}

/// How q, k and v become the output.
type Forward = Box<dyn Fn(Tensor<4>, Tensor<4>, Tensor<4>) -> bench::Result<Tensor<4>>>;

fn ways(work: &Work, who: Who) -> bench::Result<Vec<Way>> {
    let device = if work.trains { Device::flex().autodiff() } else { Device::flex() };
    let tensor = |name| -> bench::Result<Tensor<4>> {
        Ok(Tensor::from_data(TensorData::new(work.input(name)?, work.shape), &device))
    };
    let forwards = match who {
        Who::Foveal => vec![("foveal-burn", ours(work.attention()))],
        Who::Framework => vec![("module::attention", fused(work.causal)), ("matmul and softmax", naive(work, &device))],
    };
    let mut ways = Vec::new();
    for (name, forward) in forwards {
        let (q, k, v) = (tensor("q")?, tensor("k")?, tensor("v")?);
        ways.push(if work.trains {
            let (q, k, v, dout) = (q.require_grad(), k.require_grad(), v.require_grad(), tensor("dout")?);
            Way::new(name, move || {
                let out = forward(q.clone(), k.clone(), v.clone())?;
                let mut grads = (out * dout.clone()).sum().backward();
                let mut answers = Answers::new();
                for (name, leaf) in [("dq", &q), ("dk", &k), ("dv", &v)] {
                    answers.push(numbers(name, leaf.grad_remove(&mut grads).ok_or("a gradient was cut")?));
                }
                Ok(answers)
            })
        } else {
            Way::new(name, move || Ok(vec![numbers("out", forward(q.clone(), k.clone(), v.clone())?)]))
        });
    }
    Ok(ways)
}

fn ours(options: Attention) -> Forward {
    Box::new(move |q, k, v| Ok(attention(q, k, v, &options)?))
}

fn fused(is_causal: bool) -> Forward {
    let options = AttentionModuleOptions { scale: None, softcap: None, is_causal };
    Box::new(move |q, k, v| Ok(module::attention(q, k, v, None, None, options)))
}

fn naive(work: &Work, device: &Device) -> Forward {
    let [_, _, tokens, dim] = work.shape;
    let hidden =
        work.causal.then(|| Tensor::<4>::from_data(TensorData::new(work.hidden(), [1, 1, tokens, tokens]), device));
    Box::new(move |q, k, v| {
        let scores = (q * (1.0 / (dim as f64).sqrt())).matmul(k.swap_dims(2, 3));
        let scores = match &hidden {
            Some(hidden) => scores + hidden.clone(),
            None => scores,
        };
        Ok(softmax(scores, 3).matmul(v))
    })
}

fn numbers(name: &'static str, tensor: Tensor<4>) -> Answer {
    (name, Box::new(move || Ok(tensor.into_data().try_into_vec::<f32>()?)))
}

//! Attention in candle: `candle foveal` by Foveal, `candle` by candle's own operations.
#![forbid(unsafe_code)]

use candle_core::{D, Device, Result, Tensor, Var};
use candle_nn::attention::{AttnMask, flash_attn};
use candle_nn::ops::{softmax, softmax_last_dim};
use foveal_candle::attention;
use foveal_framework_bench as bench;
use foveal_framework_bench::{Answer, Answers, Way, Who, Work, serve};

fn main() -> bench::Result<()> {
    serve("candle 0.11.1", |work, who| if work.trains { training(work, who) } else { forward(work, who) })
}

fn tensor(work: &Work, name: &str) -> bench::Result<Tensor> {
    Ok(Tensor::from_vec(work.input(name)?, &work.shape, &Device::Cpu)?)
}

fn numbers(name: &'static str, tensor: Tensor) -> Answer {
    (name, Box::new(move || Ok(tensor.flatten_all()?.to_vec1()?)))
}

fn forward(work: &Work, who: Who) -> bench::Result<Vec<Way>> {
    let (q, k, v) = (tensor(work, "q")?, tensor(work, "k")?, tensor(work, "v")?);
    if who == Who::Foveal {
        let options = work.attention();
        return Ok(vec![Way::new("foveal-candle", move || Ok(vec![numbers("out", attention(&q, &k, &v, &options)?)]))]);
    }
    let scale = 1.0 / (work.shape[3] as f64).sqrt();
    let flash = |name, [q, k, v]: [Tensor; 3], causal: bool| {
        Way::new(name, move || {
            let mask = if causal { AttnMask::causal() } else { AttnMask::None };
            Ok(vec![numbers("out", flash_attn::<f32>(&q, &k, &v, scale as f32, mask, None, None)?)])
        })
    };
    // flash_attn takes [B, T, H, D] with any strides: the same numbers can lie in two ways.
    let heads_first = [q.transpose(1, 2)?, k.transpose(1, 2)?, v.transpose(1, 2)?];
    let tokens_first = [heads_first[0].contiguous()?, heads_first[1].contiguous()?, heads_first[2].contiguous()?];
    let hidden = hidden(work)?;
    Ok(vec![
        flash("flash_attn, [B, H, T, D] in memory", heads_first, work.causal),
        flash("flash_attn, [B, T, H, D] in memory", tokens_first, work.causal),
        Way::new("matmul and softmax_last_dim", move || {
            let scores = scores(&q, &k, scale, hidden.as_ref())?;
            Ok(vec![numbers("out", softmax_last_dim(&scores)?.matmul(&v)?)])
        }),
    ])
}

/// softmax_last_dim and flash_attn have no gradient; softmax has.
fn training(work: &Work, who: Who) -> bench::Result<Vec<Way>> {
    let (q, k, v, dout) = (tensor(work, "q")?, tensor(work, "k")?, tensor(work, "v")?, tensor(work, "dout")?);
    let (q, k, v) = (Var::from_tensor(&q)?, Var::from_tensor(&k)?, Var::from_tensor(&v)?);
    let (options, hidden) = (work.attention(), hidden(work)?);
    let scale = 1.0 / (work.shape[3] as f64).sqrt();
    let name = if who == Who::Foveal { "foveal-candle" } else { "matmul and softmax" };
    Ok(vec![Way::new(name, move || {
        let out = match who {
            Who::Foveal => attention(&q, &k, &v, &options)?,
            Who::Framework => softmax(&scores(&q, &k, scale, hidden.as_ref())?, D::Minus1)?.matmul(&v)?,
        };
        let mut grads = (out * &dout)?.sum_all()?.backward()?;
        let mut answers = Answers::new();
        for (name, leaf) in [("dq", &q), ("dk", &k), ("dv", &v)] {
            answers.push(numbers(name, grads.remove(leaf).ok_or("a gradient was cut")?));
        }
        Ok(answers)
    })])
}

fn hidden(work: &Work) -> Result<Option<Tensor>> {
    let tokens = work.shape[2];
    work.causal.then(|| Tensor::from_vec(work.hidden(), (1, 1, tokens, tokens), &Device::Cpu)).transpose()
}

fn scores(q: &Tensor, k: &Tensor, scale: f64, hidden: Option<&Tensor>) -> Result<Tensor> {
    let scores = ((q * scale)?).matmul(&k.t()?)?;
    hidden.map_or(Ok(scores.clone()), |hidden| scores.broadcast_add(hidden))
}

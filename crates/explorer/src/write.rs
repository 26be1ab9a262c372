//! What may come next with heads switched off, and writing on token by token.

use foveal_models::generate::{Choice, Sampler, Sampling, Session};
use foveal_models::layer::log_softmax;
use foveal_models::trace::{Kind, LayerTrace, Probe, Site};
use foveal_models::{Model, OpenModel, TokenAxis};
use ndarray::Array1;
use serde_json::{Value, json};

use crate::asker::Asker;
use crate::fault::Fault;
use crate::read::{Limits, check_size, classify, feed, heads_of, label_after, next, of_self, prediction, top};
use crate::reply::Reply;
use crate::request::{GenerateRequest, HeadName, MOST_WRITTEN, RunRequest};
use crate::run::{self, Axis, Next, Reading, Run, prediction_json};

/// The most probable tokens of either distribution that are compared.
const COMPARED: usize = 10;

/// What may come next as it is, and without some heads.
///
/// # Errors
/// If the model does not predict, or there is no such head.
pub fn predict(open: &OpenModel, run: &Run, off: &[HeadName], asker: &Asker) -> Result<Reply, Fault> {
    let off = heads_of(open, off)?;
    let Some(base) = &run.reading.next else {
        return Err(Fault::request(
            format!("{} does not predict what comes next; take a language model or one that tells classes", open.name),
            format!("{}은(는) 다음 토큰을 예측하지 않습니다. 언어 모델이나 분류 모델을 고르십시오", open.name),
        ));
    };
    let ids = &run.reading.axes[0].ids;
    let probe = Probe::default().without(off);
    let (changed, label): (Next, Box<dyn Fn(u32) -> String + '_>) = match (&open.model, &run.reading.picture) {
        (Model::Vit(model), Some(picture)) => {
            let mut probe = asker.counting(probe, model.config().layers);
            let next = classify(model, &picture.pixels, &mut probe)?.unwrap_or_else(|| base.clone());
            (next, Box::new(|class| model.labels().get(class as usize).cloned().unwrap_or_default()))
        }
        (model, _) => {
            let (model, tokenizer) = (model.as_language_model()?, open.tokenizer()?);
            let mut session = Session::new(model).watched_by(asker.counting(probe, model.shape().layers));
            let next = feed(&mut session, tokenizer, ids)?.unwrap_or_else(|| base.clone());
            (next, Box::new(|token| label_after(tokenizer, ids, token)))
        }
    };
    let (base, changed) = (&base.log_probabilities, &changed.log_probabilities);
    let mut tokens = top(base, COMPARED);
    tokens.extend(top(changed, COMPARED));
    tokens.sort_by(|a, b| base[*b].total_cmp(&base[*a]).then(a.cmp(b)));
    tokens.dedup();
    let list = |of: &Array1<f32>| -> Value {
        tokens.iter().map(|&token| prediction_json(&prediction(of, token, &label))).collect()
    };
    Ok(Reply::new(json!({ "base": list(base), "changed": list(changed) })))
}

/// Writes on from a run, each token a part of the answer, and gives the run that has them.
///
/// # Errors
/// If the model does not write, there is no such head, or there is no room for another token.
pub fn generate(
    open: &OpenModel,
    run: &Run,
    request: &GenerateRequest,
    limits: &Limits,
    asker: &Asker,
) -> Result<Run, Fault> {
    let (model, tokenizer) = (open.model.as_language_model()?, open.tokenizer()?);
    let off = heads_of(open, &request.off)?;
    if !(1..=MOST_WRITTEN).contains(&request.count) || !(0.0..=100.0).contains(&request.temperature) {
        return Err(Fault::request(
            format!("ask for 1 to {MOST_WRITTEN} tokens at a temperature from 0 to 100"),
            format!("토큰은 1~{MOST_WRITTEN}개, 온도는 0~100 사이로 정하십시오"),
        ));
    }
    let watched = watched(open, request, limits)?;
    let choice = match request.temperature {
        0.0 => Choice::Greedy,
        temperature => Choice::Sample(Sampling { temperature, ..Sampling::default() }),
    };
    let mut sampler = Sampler::new(choice, request.seed)?;
    let prompt = &run.reading.axes[0].ids;
    // Room for the text and one token more; what is written beyond that ends at the context.
    check_size(model, prompt.len() + 1, limits)?;
    let count = request.count.min(model.shape().context - prompt.len());
    let probe = Probe::new(limits.capture.clone()).without(off);
    let mut session = Session::new(model).watched_by(asker.stopping(probe));
    let mut stream = tokenizer.stream_after(prompt)?;
    let mut scores = session.feed(prompt)?;
    for _ in 0..count {
        asker.cancel.check()?;
        let token = sampler.choose((0..).zip(scores.iter().copied()).collect())?;
        if open.stop.contains(&token) {
            break;
        }
        let p = log_softmax(scores.view())[token as usize].exp();
        let weights = watched.map(|at| last_row(session.layer_trace(at.0), at.1)).transpose()?;
        let label = label_after(tokenizer, session.tokens(), token);
        let part = Reply::new(json!({ "token": token, "label": label, "p": p, "text": stream.push(token)? }));
        asker.part(match weights {
            Some(weights) => part.with(&weights),
            None => part,
        });
        scores = session.feed(&[token])?;
    }
    let ids = session.tokens().to_vec();
    let encoding = tokenizer.describe(&ids)?;
    let written = tokenizer.describe_after(prompt, &ids[prompt.len()..])?.text().to_owned();
    let next = next(scores.view(), |token| label_after(tokenizer, &ids, token));
    let id = run::id(&RunRequest { off: request.off.clone(), ..run.request.clone() }, &ids);
    let axis = Axis { tokens: TokenAxis::of(&encoding), ids };
    let reading = of_self(Kind::Decoder, axis, session.trace(), Some(next));
    let reading =
        Reading { written: Some([run.reading.written.as_deref().unwrap_or(""), &written].concat()), ..reading };
    Run::new(id, RunRequest { off: request.off.clone(), ..run.request.clone() }, reading, &asker.cancel)
}

/// The layer and head whose weights come with every token.
fn watched(open: &OpenModel, request: &GenerateRequest, limits: &Limits) -> Result<Option<(Site, i64)>, Fault> {
    let Some((kind, layer, head)) = request.watch else { return Ok(None) };
    heads_of(open, &[(kind, layer, usize::try_from(head.max(0)).unwrap_or(usize::MAX))])?;
    let kind = kind.kind().unwrap_or(Kind::Decoder);
    Ok(Some((Site { kind, layer }, head)).filter(|_| limits.capture.wants(layer)))
}

/// The weights of the last query on all keys, of a head or the mean of all: \[S\].
fn last_row(layer: Option<LayerTrace>, head: i64) -> Result<Array1<f32>, Fault> {
    let Some(layer) = layer else { return Ok(Array1::zeros(0)) };
    let (rows, keys) = (layer.queries() - 1..layer.queries(), layer.keys());
    let heads = usize::try_from(head).map_or(0..layer.heads(), |head| head..head + 1);
    let count = heads.len() as f32;
    let mut sum = Array1::zeros(keys);
    for head in heads {
        sum += &layer.tile(0, head, rows.clone(), 0..keys)?.row(0);
    }
    Ok(sum / count)
}

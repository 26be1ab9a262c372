//! Lets a model read what was asked for, through a probe that shows progress and can be stopped.

use foveal_models::analysis::words::Group;
use foveal_models::generate::Session;
use foveal_models::generate::beam::{Search, search_with, watch_with};
use foveal_models::layer::log_softmax;
use foveal_models::model::{Bert, LanguageModel, Sentences, Transformer, Vit};
use foveal_models::reading::{Asker as Reader, Limits as AnswerLimits, refusal};
use foveal_models::retrieval::{Bm25, cut};
use foveal_models::trace::{Capture, Head, Kind, Probe};
use foveal_models::{Error, Model, OpenModel, Prediction, TokenAxis, Tokenizer};
use ndarray::{Array1, ArrayView1};

use crate::asker::Asker;
use crate::fault::Fault;
use crate::image::{Picture, from_base64};
use crate::request::{HeadName, RunRequest, head_of};
use crate::run::{Axis, Next, PassageShare, Reading};

/// Predictions that a run shows.
const PREDICTIONS: usize = 10;
/// Tokens before a prediction that its label may depend on.
const BEFORE: usize = 32;

/// Characters of a passage at most, and passages that a question is put to.
const PASSAGE: usize = 320;
const PASSAGES: usize = 10;

/// What bounds a run.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The layers that are kept.
    pub capture: Capture,
    /// Bytes that a run may take.
    pub bytes: usize,
}

/// Reads.
///
/// # Errors
/// If the model does not read this, it is too long, or a head to switch off is not there.
pub fn read(open: &OpenModel, request: &RunRequest, limits: &Limits, asker: &Asker) -> Result<Reading, Fault> {
    let off = heads_of(open, &request.off)?;
    if request.passages.is_some() && !matches!(open.model, Model::Reader(_)) {
        return Err(Fault::request(
            format!("{} answers no questions from passages; give it a text alone", open.name),
            format!("{}은(는) 글에서 답을 찾지 않습니다. 텍스트만 입력하십시오", open.name),
        ));
    }
    let probe = Probe::new(limits.capture.clone()).without(off.iter().copied());
    match (&open.model, &request.image) {
        (Model::Vit(model), Some(image)) => read_image(model, image, asker.counting(probe, model.config().layers)),
        (Model::Vit(_), None) => Err(Fault::request(
            format!("{} reads images; drop one into the page", open.name),
            format!("{}은(는) 이미지를 읽습니다. 이미지를 페이지에 끌어 놓으십시오", open.name),
        )),
        (_, Some(_)) => Err(Fault::request(
            format!("{} reads text, not images; choose a vision model", open.name),
            format!("{}은(는) 이미지가 아니라 텍스트를 읽습니다. 비전 모델을 고르십시오", open.name),
        )),
        (Model::Bert(model), None) => {
            read_encoder(open, model, text(request)?, asker.counting(probe, model.config().layers))
        }
        (Model::Transformer(model), None) => translate(open, model, text(request)?, (probe, &off), asker),
        (Model::Reader(_), None) => answer_from_passages(open, request, probe, asker),
        (model, None) => {
            let model = model.as_language_model()?;
            let ids = open.tokenizer()?.encode(text(request)?)?;
            check_size(model, ids.len(), limits)?;
            let mut session = Session::new(model).watched_by(asker.counting(probe, model.shape().layers));
            let next = feed(&mut session, open.tokenizer()?, ids.ids())?;
            let axis = Axis { tokens: TokenAxis::of(&ids), ids: ids.ids().to_vec() };
            Ok(of_self(Kind::Decoder, axis, session.trace(), next))
        }
    }
}

/// The text of a request.
fn text(request: &RunRequest) -> Result<&str, Fault> {
    request
        .text
        .as_deref()
        .filter(|text| !text.is_empty())
        .ok_or_else(|| Fault::request("there is no text; type some words", "텍스트가 없습니다. 글을 입력하십시오"))
}

/// The heads to switch off, all of them there.
pub fn heads_of(open: &OpenModel, off: &[HeadName]) -> Result<Vec<Head>, Fault> {
    let (summary, mut heads) = (open.summary(), Vec::with_capacity(off.len().min(1 << 16)));
    for &name in off {
        let head = head_of(name)?;
        let layers = summary.layers.iter().find(|(kind, _)| *kind == head.site.kind).map_or(0, |(_, layers)| *layers);
        if head.site.layer >= layers || head.head >= summary.heads {
            return Err(Error::NoHead { head, layers, heads: summary.heads }.into());
        }
        heads.push(head);
    }
    Ok(heads)
}

/// Refuses a text whose attention there is no room for, before anything is computed.
pub fn check_size(model: &dyn LanguageModel, tokens: usize, limits: &Limits) -> Result<(), Fault> {
    let shape = model.shape();
    if tokens > shape.context {
        return Err(Error::Context { tokens, limit: shape.context }.into());
    }
    let bytes = |layer: usize| {
        let layer = model.attention(layer).filter(|_| limits.capture.wants(layer));
        layer.map_or(0, |a| (a.heads() + 2 * a.key_heads()) * a.head_dim() * 4 + a.heads() * 8)
    };
    let (needed, mebibytes) = ((0..shape.layers).map(bytes).sum::<usize>().saturating_mul(tokens), |bytes| bytes >> 20);
    if needed <= limits.bytes {
        return Ok(());
    }
    let (needed, limit) = (mebibytes(needed), mebibytes(limits.bytes));
    Err(Fault::request(
        format!(
            "{tokens} tokens take {needed} MiB, and {limit} are kept; start with --memory or --layers, or shorten the text"
        ),
        format!(
            "토큰 {tokens}개에는 {needed} MiB가 필요하지만 {limit} MiB까지 보관합니다. --memory나 --layers로 다시 시작하거나 텍스트를 줄이십시오"
        ),
    ))
}

/// Reads on; what may come next, unless the model is a body without a head.
pub fn feed(session: &mut Session<'_>, tokenizer: &Tokenizer, ids: &[u32]) -> Result<Option<Next>, Fault> {
    match session.feed(ids) {
        Ok(logits) => Ok(Some(next(logits.view(), |token| label_after(tokenizer, ids, token)))),
        Err(Error::MissingPart { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What a token is called after others.
pub fn label_after(tokenizer: &Tokenizer, before: &[u32], token: u32) -> String {
    let before = &before[before.len().saturating_sub(BEFORE)..];
    let label = tokenizer.describe_after(before, &[token]).ok().and_then(|one| one.labels().first().cloned());
    // A model may have more rows than its tokenizer has tokens.
    label.unwrap_or_else(|| token.to_string())
}

/// The distribution of scores.
pub fn next(scores: ArrayView1<f32>, label: impl Fn(u32) -> String) -> Next {
    let log_probabilities = log_softmax(scores);
    let most = top(&log_probabilities, PREDICTIONS);
    let named = |&token: &usize| prediction(&log_probabilities, token, &label);
    Next { predictions: most.iter().map(named).collect(), log_probabilities }
}

/// One token of a distribution.
pub fn prediction(log_probabilities: &Array1<f32>, token: usize, label: impl Fn(u32) -> String) -> Prediction {
    Prediction { token: token as u32, label: label(token as u32), probability: log_probabilities[token].exp() }
}

/// The most probable, most probable first; of equals the first.
pub fn top(log_probabilities: &Array1<f32>, count: usize) -> Vec<usize> {
    let mut tokens: Vec<usize> = (0..log_probabilities.len()).collect();
    let likelier = |a: &usize, b: &usize| log_probabilities[*b].total_cmp(&log_probabilities[*a]).then(a.cmp(b));
    if count < tokens.len() {
        tokens.select_nth_unstable_by(count, likelier);
        tokens.truncate(count);
    }
    tokens.sort_unstable_by(likelier);
    tokens
}

/// A sequence that attends to itself.
pub fn of_self(kind: Kind, axis: Axis, trace: foveal_models::Trace, next: Option<Next>) -> Reading {
    Reading { next, ..Reading::of_self(kind, axis, trace) }
}

fn read_encoder(open: &OpenModel, model: &Bert, text: &str, mut probe: Probe) -> Result<Reading, Fault> {
    let encoding = open.tokenizer()?.encode(text)?;
    model.infer(&Sentences::new(&[encoding.ids()]), &mut probe)?;
    let axis = Axis { tokens: TokenAxis::of(&encoding), ids: encoding.ids().to_vec() };
    Ok(of_self(Kind::Encoder, axis, probe.into_trace(), None))
}

fn translate(
    open: &OpenModel,
    model: &Transformer,
    text: &str,
    (probe, off): (Probe, &[Head]),
    asker: &Asker,
) -> Result<Reading, Fault> {
    let (source, bos_eos) = (open.tokenizer()?.encode_bare(text)?, open.bos_eos()?);
    let mut searching = asker.stopping(Probe::default().without(off.iter().copied()));
    let best = search_with(model, source.ids(), bos_eos, Search::default(), &mut searching)?.swap_remove(0);
    let trace = watch_with(model, source.ids(), &best.tokens, bos_eos, asker.stopping(probe))?;
    let target = open.target_tokenizer()?;
    let written = target.describe(&best.tokens)?;
    let queries = TokenAxis::predicting(&written, &target.token(bos_eos.end)?);
    let axes = vec![
        Axis { tokens: TokenAxis::of(&source), ids: source.ids().to_vec() },
        Axis { tokens: queries, ids: [&[bos_eos.begin], &best.tokens[..]].concat() },
    ];
    let aligned = model.config().alignment;
    Ok(Reading {
        written: Some(written.text().trim().to_owned()),
        passages: None,
        picture: None,
        axes,
        sites: vec![(Kind::Encoder, 0, 0), (Kind::Decoder, 1, 1), (Kind::Cross, 1, 0)],
        salient: aligned.map(|at| (Kind::Cross, at.layer, at.head.map_or(-1, |head| head as i64))),
        trace,
        next: None,
    })
}

/// The answer to a question from the best of the passages, in the order in which they were given.
fn answer_from_passages(open: &OpenModel, request: &RunRequest, probe: Probe, asker: &Asker) -> Result<Reading, Fault> {
    let question = text(request)?.trim();
    if question.is_empty() {
        return Err(Fault::request("the question is empty; ask something", "질문이 없습니다. 질문을 입력하십시오"));
    }
    let lines = request.passages.as_deref().unwrap_or("").lines();
    let passages: Vec<&str> =
        lines.flat_map(|line| cut(line, PASSAGE).into_iter().map(move |place| &line[place])).collect();
    if passages.is_empty() {
        return Err(Fault::request(
            format!("{} answers from passages; give some, one a line", open.name),
            format!("{}은(는) 글에서 답을 찾습니다. 글을 한 줄에 하나씩 입력하십시오", open.name),
        ));
    }
    let ranked = Bm25::new(&passages).rank(question);
    let mut best: Vec<usize> = ranked.iter().take(PASSAGES).map(|ranked| ranked.passage).collect();
    best.sort_unstable();
    let passages: Vec<&str> = best.into_iter().map(|passage| passages[passage]).collect();
    let watched = Reader::new(open, AnswerLimits::default())?.watch(question, &passages, &asker.stopping(probe))?;
    let (answered, weights) = (&watched.answered, watched.answered.weights());
    let share = |(n, text): (usize, &&str)| PassageShare {
        text: (*text).to_owned(),
        weight: weights[n],
        keys: answered.places.partition_point(|place| place.passage < n)
            ..answered.places.partition_point(|place| place.passage <= n),
    };
    let layers = open.reader()?.config().decoder_layers;
    let axes = [watched.read, watched.written].map(|(tokens, ids)| Axis { tokens, ids });
    Ok(Reading {
        written: Some(answered.text.clone().unwrap_or_else(|| refusal(question).to_owned())),
        passages: Some(passages.iter().enumerate().map(share).collect()),
        picture: None,
        axes: axes.into(),
        sites: vec![(Kind::Decoder, 1, 1), (Kind::Cross, 1, 0)],
        // The pointer that copies.
        salient: Some((Kind::Cross, layers - 1, 0)),
        trace: watched.trace,
        next: None,
    })
}

fn read_image(model: &Vit, image: &str, mut probe: Probe) -> Result<Reading, Fault> {
    let pixels = from_base64(model, image)?;
    let next = classify(model, &pixels, &mut probe)?;
    let (grid, first) = (model.config().grid(), model.config().first_patch());
    let patches = (0..grid * grid).map(|patch| format!("{},{}", patch / grid, patch % grid));
    let labels: Vec<String> = std::iter::repeat_n("[CLS]".to_owned(), first).chain(patches).collect();
    let groups = labels.iter().enumerate();
    let groups = groups.map(|(n, label)| Group { label: label.clone(), tokens: n..n + 1 }).collect();
    let special = (0..labels.len()).map(|n| n < first).collect();
    // A patch is like no other: each has a number of its own.
    let ids = (0..labels.len() as u32).collect();
    let axis = Axis { tokens: TokenAxis { labels, groups, special }, ids };
    let reading = of_self(Kind::Encoder, axis, probe.into_trace(), next);
    Ok(Reading { picture: Some(Picture { pixels, grid }), ..reading })
}

/// The classes of an image; none if the model has no classes.
pub fn classify(model: &Vit, pixels: &ndarray::Array3<u8>, probe: &mut Probe) -> Result<Option<Next>, Fault> {
    let hidden = model.infer(&model.preprocessor().values(pixels), probe)?;
    let name = |class: u32| model.labels().get(class as usize).cloned().unwrap_or_else(|| class.to_string());
    match model.classify(&hidden) {
        Ok(scores) => Ok(Some(next(scores.row(0), name))),
        Err(Error::MissingPart { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

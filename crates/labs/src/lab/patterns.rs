//! What the heads of a language model look at.

mod kind;

use foveal_models::OpenModel;
use foveal_models::analysis::top;
use foveal_models::trace::{Capture, Kind, Probe};
use foveal_view::Heatmap;
use ndarray::Array2;
use serde_json::json;

use self::kind::{HeadKind, Shares, Tokens};
use crate::number::{rows, single};
use crate::{Bilingual, Error, Knob, Knobs, Lab, Report, Result, Table, Text, Watch, text};

pub const LAB: Lab = Lab {
    name: "patterns",
    title: Bilingual {
        en: "What the heads of a language model look at", ko: "언어 모델의 헤드는 무엇을 보는가"
    },
    summary: Bilingual {
        en: "Heads of a trained model divide the work: some look at the tokens just before, some at other pieces of a word, some at equal tokens or punctuation, \
         and many leave their weight on the first token when there is nothing to find. \
         Each head is named here after what it looks at more than a head with equal weights would. \
         A weight tells where a head looks, not why the model answers as it does.",
        ko: "학습된 모델의 헤드들은 일을 나누어 합니다. 바로 앞 토큰을 보는 헤드, 같은 단어의 다른 조각을 보는 헤드, 같은 토큰이나 문장 부호를 보는 헤드가 있고, \
         찾을 것이 없을 때 첫 토큰에 가중치를 맡겨 두는 헤드도 많습니다. \
         여기서는 가중치가 균등한 헤드보다 더 많이 보는 것에 따라 헤드의 이름을 붙였습니다. \
         가중치는 헤드가 어디를 보는지 알려 줄 뿐, 모델이 왜 그렇게 답하는지는 알려 주지 않습니다.",
    },
    knobs: &[MODEL],
    work,
};

const MODEL: Knob = Knob::model("shakespeare");

const TEXT: &str = "ROMEO: But soft, what light through yonder window breaks?";

/// Keys that are listed of each token.
const TOP: usize = 3;

/// One head, looked at.
struct Head {
    layer: usize,
    head: usize,
    weights: Array2<f32>,
    shares: Shares,
    kind: HeadKind,
}

impl Head {
    fn place(&self) -> Text {
        let Head { layer, head, .. } = self;
        text(format!("layer {layer}, head {head}"), format!("층 {layer}, 헤드 {head}"))
    }
}

fn work(knobs: &Knobs, _: Watch) -> Result<Report> {
    let open = OpenModel::open(knobs.get_text(&MODEL))?;
    let model = open.model.as_language_model()?;
    let encoding = open.tokenizer()?.encode(TEXT)?;
    let labels: Vec<String> = encoding.labels().iter().map(|label| visible(label)).collect();
    if labels.len() < 3 {
        let (name, count) = (&open.name, labels.len());
        return Err(Error::Unsuitable(text(
            format!("{name} makes only {count} tokens of the text; at least 3 are needed"),
            format!("{name} 모델은 이 글을 토큰 {count}개로만 나눕니다. 3개 이상이어야 합니다"),
        )));
    }
    let tokens = Tokens { ids: encoding.ids(), words: encoding.words(), labels: encoding.labels() };
    let mut probe = Probe::new(Capture::All);
    model.infer(encoding.ids(), 1, None, &mut probe)?;
    let trace = probe.into_trace();
    let (mut heads, mut figures) = (Vec::new(), Vec::new());
    for (layer, traced) in trace.of_kind(Kind::Decoder) {
        for head in 0..traced.heads() {
            let weights = traced.weights(0, head)?;
            let shares = Shares::of(&weights, &tokens);
            let links = top(traced, 0, head, TOP)?;
            let listed = links.iter().enumerate().map(|(query, links)| {
                let links = links.iter().map(|link| json!({ "key": link.key, "token": encoding.labels()[link.key], "weight": single(link.weight) }));
                json!({ "token": encoding.labels()[query], "top": links.collect::<Vec<_>>() })
            });
            let kind = shares.kind();
            figures.push(json!({
                "layer": layer, "head": head, "kind": kind.name().en, "shares": shares.figures(),
                "tokens": listed.collect::<Vec<_>>(),
            }));
            heads.push(Head { layer, head, weights, shares, kind });
        }
    }
    let Some(shown) = heads.iter().max_by(|a, b| liveliness(&a.weights).total_cmp(&liveliness(&b.weights))) else {
        return Err(Error::Unsuitable(text(
            format!("{} has no heads to look at", open.name),
            format!("{} 모델에는 볼 헤드가 없습니다", open.name),
        )));
    };
    let (place, kind) = (shown.place(), shown.kind.name());
    let title = text(
        format!("{} ({}): what each token attends to most", place.en, kind.en),
        format!("{} ({}): 각 토큰이 가장 많이 보는 토큰", place.ko, kind.ko),
    );
    let (first, second, third) = (text("first", "첫째"), text("second", "둘째"), text("third", "셋째"));
    let mut table = Table::new([text("token", "토큰"), first, "".into(), second, "".into(), third, "".into()])
        .text_columns([1, 3, 5])
        .title(title);
    let links = top(trace.layer(Kind::Decoder, shown.layer)?, 0, shown.head, TOP)?;
    for (label, links) in labels.iter().zip(links) {
        let mut row = vec![label.clone()];
        row.extend(links.iter().flat_map(|link| [labels[link.key].clone(), format!("{:.2}", link.weight)]));
        table.row(row);
    }
    let figures = json!({
        "model": open.name, "text": TEXT, "tokens": encoding.labels(),
        "shown": { "layer": shown.layer, "head": shown.head, "weights": rows(&shown.weights) }, "heads": figures,
    });
    Report::new(figures).table(kinds(&heads)).table(map(&heads)).table(table).scene(|language| {
        Ok(Heatmap::new(shown.weights.clone(), encoding.labels().to_vec(), encoding.labels().to_vec())?
            .title(TEXT)
            .note(format!("{} · {}", open.name, place.get(language)))
            .language(language))
    })
}

/// How many heads there are of each kind, and the clearest of them.
fn kinds(heads: &[Head]) -> Table {
    let mut table = Table::new([
        "".into(),
        text("kind", "종류"),
        text("heads", "헤드 수"),
        text("clearest", "가장 뚜렷한 헤드"),
        text("share", "비율"),
        text("if equal", "균등할 때"),
        text("looks at", "보는 것"),
    ])
    .text_columns([1, 3, 6]);
    for kind in HeadKind::ALL {
        let of_kind: Vec<&Head> = heads.iter().filter(|head| head.kind == kind).collect();
        let lift = |head: &Head| head.shares.lift(kind);
        let clearest = of_kind.iter().max_by(|a, b| lift(a).total_cmp(&lift(b)));
        let (place, share, equal) = clearest.map_or_else(
            || (Text::from("–"), "–".to_owned(), "–".to_owned()),
            |head| {
                let (share, equal) = head.shares.get(kind);
                (head.place(), format!("{share:.2}"), format!("{equal:.2}"))
            },
        );
        let (share, equal) = if kind == HeadKind::Spread { ("–".into(), "–".into()) } else { (share, equal) };
        table.row([
            kind.letter().to_string().into(),
            kind.name().into(),
            of_kind.len().to_string().into(),
            place,
            share.into(),
            equal.into(),
            kind.description().into(),
        ]);
    }
    table
}

/// The kind of every head, a letter each.
fn map(heads: &[Head]) -> Table {
    let width = heads.iter().filter(|head| head.layer == heads[0].layer).count();
    let names = (0..width).map(|head| head.to_string().into());
    let mut table = Table::new([text("layer", "층")].into_iter().chain(names))
        .title(text("The kind of every head", "모든 헤드의 종류"));
    for layer in heads.chunks(width.max(1)) {
        let letters = layer.iter().map(|head| head.kind.letter().to_string());
        table.row([layer[0].layer.to_string()].into_iter().chain(letters));
    }
    table
}

/// How much a head attends to other tokens than itself and the first.
fn liveliness(weights: &Array2<f32>) -> f32 {
    let strongest = |(i, row): (usize, ndarray::ArrayView1<f32>)| {
        row.iter().enumerate().filter(|(j, _)| *j != i && *j != 0).fold(0.0, |max: f32, (_, w)| max.max(*w))
    };
    weights.outer_iter().enumerate().map(strongest).sum()
}

/// Spaces and line ends that can be seen.
fn visible(label: &str) -> String {
    label.replace([' ', '▁'], "·").replace('\n', "⏎")
}

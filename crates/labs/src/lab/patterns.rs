//! What the heads of a language model look at.

use foveal_models::OpenModel;
use foveal_models::analysis::survey::HELD_OUT;
use foveal_models::analysis::{HeadClass, HeadClasses, Repeated, survey, top};
use foveal_models::trace::{Capture, Kind, Probe};
use foveal_view::Heatmap;
use ndarray::Array2;
use serde_json::json;

use crate::class::class_summary;
use crate::number::{rows, single};
use crate::relations::{FollowedRelation, relations};
use crate::{Bilingual, Error, Knob, Knobs, Lab, Report, Result, Table, Text, Watch, class_name, text};

pub const LAB: Lab = Lab {
    name: "patterns",
    title: Bilingual {
        en: "What the heads of a language model look at", ko: "언어 모델의 헤드는 무엇을 보는가"
    },
    summary: Bilingual {
        en: "Heads of a trained model divide the work: some look at the tokens just before, some at other pieces of a word, some at equal tokens or punctuation, \
         and many leave their weight on the first token when there is nothing to find. \
         A head has a name here if at least half of the weight that it does not leave at a sink goes to one class of keys, and three times as much as \
         equal weights would put there, over some 2,000 tokens of a play. \
         Heads that follow the sentence, from a verb to its subject or object, are looked for in the translator's encoder, on sentences whose grammar is known. \
         A weight tells where a head looks, not why the model answers as it does.",
        ko: "학습된 모델의 헤드들은 일을 나누어 합니다. 바로 앞 토큰을 보는 헤드, 같은 단어의 다른 조각을 보는 헤드, 같은 토큰이나 문장 부호를 보는 헤드가 있고, \
         찾을 것이 없을 때 첫 토큰에 가중치를 맡겨 두는 헤드도 많습니다. \
         여기서는 희곡의 토큰 약 2,000개에서, 싱크에 맡겨 두지 않은 가중치의 절반 이상이, 그리고 균등할 때의 세 배 이상이 한 종류의 키로 갈 때 헤드에 그 이름을 붙였습니다. \
         동사에서 주어나 목적어로 문장의 구조를 따르는 헤드는, 문법을 아는 문장들로 번역기의 인코더에서 찾습니다. \
         가중치는 헤드가 어디를 보는지 알려 줄 뿐, 모델이 왜 그렇게 답하는지는 알려 주지 않습니다.",
    },
    knobs: &[MODEL],
    work,
};

const MODEL: Knob = Knob::model("shakespeare");
/// Whose encoder is held against the grammar.
const TRANSLATOR: &str = "translate-en-ko";

const TEXT: &str = "ROMEO: But soft, what light through yonder window breaks?";

/// Random tokens that come twice, for scores of induction.
const REPEATED: Repeated = Repeated { period: 32, seed: 1 };
/// Keys that are listed of each token.
const TOP: usize = 3;

/// One head, looked at.
struct Head {
    layer: usize,
    head: usize,
    weights: Array2<f32>,
    classes: HeadClasses,
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
    // A small vocabulary may lack a letter of the play.
    let surveyed = survey(&open, HELD_OUT, REPEATED).or_else(|_| survey(&open, TEXT, REPEATED))?;
    let mut surveyed = surveyed.heads.into_iter();
    let mut probe = Probe::new(Capture::All);
    model.infer(encoding.ids(), 1, None, &mut probe)?;
    let trace = probe.into_trace();
    let (mut heads, mut figures) = (Vec::new(), Vec::new());
    for (layer, traced) in trace.of_kind(Kind::Decoder) {
        for head in 0..traced.heads() {
            let weights = traced.weights(0, head)?;
            let Some(classes) = surveyed.next().map(|head| head.classes) else { continue };
            let links = top(traced, 0, head, TOP)?;
            let listed = links.iter().enumerate().map(|(query, links)| {
                let links = links.iter().map(|link| json!({ "key": link.key, "token": encoding.labels()[link.key], "weight": single(link.weight) }));
                json!({ "token": encoding.labels()[query], "top": links.collect::<Vec<_>>() })
            });
            let shares = classes
                .shares
                .iter()
                .map(|share| (share.class.name().to_owned(), json!({ "share": share.share, "equal": share.uniform })));
            figures.push(json!({
                "layer": layer, "head": head, "kind": class_of(&classes).map_or("spread", HeadClass::name),
                "left_at_sinks": classes.sink, "shares": shares.collect::<serde_json::Map<_, _>>(),
                "tokens": listed.collect::<Vec<_>>(),
            }));
            heads.push(Head { layer, head, weights, classes });
        }
    }
    let Some(shown) = heads.iter().max_by(|a, b| liveliness(&a.weights).total_cmp(&liveliness(&b.weights))) else {
        return Err(Error::Unsuitable(text(
            format!("{} has no heads to look at", open.name),
            format!("{} 모델에는 볼 헤드가 없습니다", open.name),
        )));
    };
    let (place, kind) = (shown.place(), class_of(&shown.classes).map_or(SPREAD, class_name));
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
    let followed = relations(&OpenModel::open(TRANSLATOR)?, REPEATED.seed)?.unwrap_or_default();
    let of_relations = followed.iter().flat_map(|relation| {
        relation.heads.iter().map(|score| {
            json!({ "relation": relation.name.en, "layer": score.head.site.layer, "head": score.head.head,
                    "share": single(score.share), "equal": single(score.uniform), "holds": score.is_syntactic() })
        })
    });
    let figures = json!({
        "model": open.name, "text": TEXT, "tokens": encoding.labels(),
        "shown": { "layer": shown.layer, "head": shown.head, "weights": rows(&shown.weights) }, "heads": figures,
        "relations": { "model": TRANSLATOR, "heads": of_relations.collect::<Vec<_>>() },
    });
    let report = Report::new(figures).table(kinds(&heads)).table(map(&heads)).table(syntactic(&followed)).table(table);
    report.scene(|language| {
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
    for class in HeadClass::ALL {
        let of_class = heads
            .iter()
            .filter_map(|head| head.classes.class().filter(|share| share.class == class).map(|share| (head, share)));
        let of_class: Vec<_> = of_class.collect();
        let Some((head, share)) = of_class.iter().max_by(|(_, a), (_, b)| a.share.total_cmp(&b.share)) else {
            continue;
        };
        table.row([
            letter(Some(class)).into(),
            class_name(class).into(),
            of_class.len().to_string().into(),
            head.place(),
            format!("{:.2}", share.share).into(),
            format!("{:.3}", share.uniform).into(),
            class_summary(class).into(),
        ]);
    }
    let spread = heads.iter().filter(|head| class_of(&head.classes).is_none()).count();
    let none = || Text::from("–");
    let summary = text("nothing of these in particular", "어느 것에도 치우치지 않음");
    table.row([letter(None).into(), SPREAD.into(), spread.to_string().into(), none(), none(), none(), summary]);
    table
}

/// The heads of the translator's encoder that follow the sentence, the best of each relation.
fn syntactic(followed: &[FollowedRelation]) -> Table {
    let mut table = Table::new([
        text("relation", "관계"),
        text("clearest", "가장 뚜렷한 헤드"),
        text("share", "비율"),
        text("if equal", "균등할 때"),
        text("syntactic", "구문 헤드"),
    ])
    .text_columns([1, 4])
    .title(text(
        "Heads that follow the sentence: the translator's encoder, on sentences whose subjects, verbs and objects are known",
        "문장의 구조를 따르는 헤드: 번역기의 인코더, 주어와 동사와 목적어를 아는 문장들에서",
    ));
    for FollowedRelation { name, heads } in followed {
        let Some(best) = heads.first() else { continue };
        let (layer, head) = (best.head.site.layer, best.head.head);
        table.row([
            (*name).into(),
            text(format!("layer {layer}, head {head}"), format!("층 {layer}, 헤드 {head}")),
            format!("{:.2}", best.share).into(),
            format!("{:.2}", best.uniform).into(),
            if best.is_syntactic() { text("yes", "예") } else { text("no", "아니요") },
        ]);
    }
    table
}

/// The class of a head.
fn class_of(classes: &HeadClasses) -> Option<HeadClass> {
    classes.class().map(|share| share.class)
}

/// A head of no class.
const SPREAD: Bilingual<&str> = Bilingual { en: "spread", ko: "고르게" };

/// The letter of a class in the map of all heads.
fn letter(class: Option<HeadClass>) -> &'static str {
    match class {
        Some(HeadClass::Previous) => "P",
        Some(HeadClass::Next) => "N",
        Some(HeadClass::Own) => "O",
        Some(HeadClass::Near) => "L",
        Some(HeadClass::Word) => "W",
        Some(HeadClass::Same) => "S",
        Some(HeadClass::Induction) => "I",
        Some(HeadClass::Punctuation) => ",",
        Some(HeadClass::LineEnd) => "⏎",
        Some(HeadClass::LineStart) => "B",
        Some(HeadClass::Speaker) => "R",
        Some(HeadClass::First) => "F",
        Some(HeadClass::Separator) => "|",
        None => "·",
    }
}

/// The kind of every head, a letter each.
fn map(heads: &[Head]) -> Table {
    let width = heads.iter().filter(|head| head.layer == heads[0].layer).count();
    let names = (0..width).map(|head| head.to_string().into());
    let mut table = Table::new([text("layer", "층")].into_iter().chain(names))
        .title(text("The kind of every head", "모든 헤드의 종류"));
    for layer in heads.chunks(width.max(1)) {
        let letters = layer.iter().map(|head| letter(class_of(&head.classes)).to_owned());
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

//! `foveal heads`: what each head of a language model or an encoder does.

mod relations;

use anyhow::Result;
use foveal_models::analysis::survey::HELD_OUT;
use foveal_models::analysis::{HeadClass, Repeated, SurveyedHead, ablation, survey};
use foveal_models::trace::Kind;
use foveal_view::Heatmap;
use ndarray::Array2;
use serde_json::json;

use crate::arguments::{By, Heads};
use crate::language::Language;
use crate::output::Output;
use crate::report::Report;
use crate::table::Table;
use crate::{model, prose, see, source};

pub fn run(heads: &Heads, output: Output) -> Result<()> {
    output.check_file()?;
    let text = match (&heads.text.text, &heads.text.file) {
        (None, None) => HELD_OUT.to_owned(),
        (text, file) => source::text(text.as_deref(), file.as_deref())?,
    };
    let open = model::open(&heads.model, "shakespeare")?;
    let repeated = Repeated { period: heads.period.into(), seed: heads.seed };
    let found = survey(&open, &text, repeated)?;
    let losses = if heads.ablate {
        let model = open.model.as_language_model()?;
        let mut tokens = open.tokenizer()?.encode(&text)?.ids().to_vec();
        tokens.truncate(model.shape().context);
        Some(ablation::each(model, &tokens)?)
    } else {
        None
    };
    // An encoder sees what comes after: there is no induction to score.
    let by = heads.by.unwrap_or(if found.kind == Kind::Decoder { By::Induction } else { By::Previous });
    let loss_of = |head: &SurveyedHead| {
        losses.iter().flatten().find(|(other, _)| *other == head.scores.head).map(|(_, loss)| *loss)
    };
    let width = found.heads.iter().filter(|head| head.scores.head.site == found.heads[0].scores.head.site).count();
    let layers = found.heads.len() / width.max(1);
    let picture = Array2::from_shape_fn((layers, width), |(layer, head)| {
        value(&found.heads[layer * width + head], by).unwrap_or(f32::NAN)
    });
    let mut sorted: Vec<&SurveyedHead> = found.heads.iter().collect();
    // Low entropy is what stands out; of everything else, high scores.
    sorted.sort_by(|a, b| {
        let (a, b) = (value(a, by).unwrap_or(0.0), value(b, by).unwrap_or(0.0));
        if by == By::Entropy { a.total_cmp(&b) } else { b.total_cmp(&a) }
    });
    let tr = |english, korean| output.language.of(english, korean);
    let columns = Column::all(found.kind, heads.ablate);
    let mut table = Table::new(columns.iter().map(|column| column.name(output.language)).collect::<Vec<_>>());
    for head in sorted.iter().take(heads.top) {
        table.row(columns.iter().map(|column| column.cell(head, loss_of(head), output.language)).collect::<Vec<_>>());
    }
    let measure = name(by);
    let scene =
        Heatmap::new(picture, (0..layers).map(|layer| layer.to_string()), (0..width).map(|head| head.to_string()))?;
    let scene = scene.axes(tr("layer", "층"), tr("head", "헤드")).measure(measure).title(&open.name).note(measure);
    let title = format!("{}: {layers} {} × {width} {}", open.name, tr("layers", "층"), tr("heads", "헤드"));
    let figures = sorted.iter().map(|head| figures(head, loss_of(head)));
    let (relations, of_relations) = relations::of(&open, heads.seed, output.language)?.unzip();
    let tables = [Some(table), Some(classes(&found.heads, output.language)), relations];
    let notes = see::character_note(&open, &text, output.language)?.map(|note| prose::wrap(&note, output.width()));
    output.show(&Report {
        title,
        notes: notes.unwrap_or_default(),
        tables: tables.into_iter().flatten().collect(),
        scenes: vec![scene.language(output.language.into()).into()],
        figures: json!({ "model": open.name, "tokens": found.tokens, "heads": figures.collect::<Vec<_>>(), "relations": of_relations }),
        ..Report::default()
    })
}

fn figures(head: &SurveyedHead, loss: Option<f32>) -> serde_json::Value {
    let SurveyedHead { scores, classes } = head;
    let shares = classes.shares.iter().map(|share| {
        (
            share.class.name().to_owned(),
            json!({ "share": share.share, "uniform": share.uniform, "holds": share.holds() }),
        )
    });
    json!({
        "layer": scores.head.site.layer, "head": scores.head.head, "class": classes.class().map(|share| share.class.name()),
        "previous": scores.previous, "next": scores.next, "duplicate": scores.duplicate, "induction": scores.induction,
        "entropy": scores.entropy, "confidence": scores.confidence, "left_at_sinks": classes.sink,
        "sink": scores.sink.map(|sink| json!({ "key": sink.key, "share": sink.share, "is_sink": sink.is_sink() })),
        "classes": shares.collect::<serde_json::Map<_, _>>(), "loss_without": loss,
    })
}

/// How many heads there are of each class, and the plainest of them.
fn classes(heads: &[SurveyedHead], language: Language) -> Table {
    let tr = |english, korean| language.of(english, korean);
    let mut table = Table::new([
        tr("class", "종류"),
        tr("heads", "헤드 수"),
        tr("plainest", "가장 뚜렷한 헤드"),
        tr("share", "비율"),
        tr("if equal", "균등할 때"),
    ]);
    for class in HeadClass::ALL {
        let of_class = heads.iter().filter_map(|head| {
            head.classes.class().filter(|share| share.class == class).map(|share| (head.scores.head, share))
        });
        let of_class: Vec<_> = of_class.collect();
        let plainest = of_class.iter().max_by(|(_, a), (_, b)| a.share.total_cmp(&b.share));
        if let Some((head, share)) = plainest {
            let place = format!("{}.{}", head.site.layer, head.head);
            let numbers = [format!("{:.2}", share.share), format!("{:.3}", share.uniform)];
            let [share, uniform] = numbers;
            table.row([class_name(class, language).to_owned(), of_class.len().to_string(), place, share, uniform]);
        }
    }
    let spread = heads.iter().filter(|head| head.classes.class().is_none()).count();
    table.row([tr("none of these", "해당 없음").to_owned(), spread.to_string(), "–".into(), "–".into(), "–".into()]);
    table
}

/// A column of the table of heads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Place,
    Class,
    Score(By),
    Loss,
}

impl Column {
    fn all(kind: Kind, ablated: bool) -> Vec<Column> {
        let scores = match kind {
            Kind::Decoder => vec![By::Previous, By::Duplicate, By::Induction, By::Sink, By::Entropy, By::Confidence],
            _ => vec![By::Previous, By::Next, By::Separator, By::Sink, By::Entropy, By::Confidence],
        };
        let mut columns = vec![Column::Place, Column::Class];
        columns.extend(scores.into_iter().map(Column::Score));
        columns.extend(ablated.then_some(Column::Loss));
        columns
    }

    fn name(self, language: Language) -> &'static str {
        match self {
            Column::Place => language.of("layer.head", "층.헤드"),
            Column::Class => language.of("class", "종류"),
            Column::Loss => language.of("Δ loss", "Δ 손실"),
            Column::Score(by) => match by {
                By::Previous => language.of("previous", "직전"),
                By::Next => language.of("next", "직후"),
                By::Duplicate => language.of("duplicate", "중복"),
                By::Induction => language.of("induction", "귀납"),
                By::Separator => language.of("separator", "구분 토큰"),
                By::Sink => language.of("sink", "싱크"),
                By::Entropy => language.of("entropy", "엔트로피"),
                By::Confidence => language.of("confidence", "확신"),
            },
        }
    }

    fn cell(self, head: &SurveyedHead, loss: Option<f32>, language: Language) -> String {
        let none = || "–".to_owned();
        match self {
            Column::Place => format!("{}.{}", head.scores.head.site.layer, head.scores.head.head),
            Column::Class => {
                head.classes.class().map_or_else(none, |share| class_name(share.class, language).to_owned())
            }
            Column::Loss => loss.map_or_else(none, |loss| format!("{loss:+.4}")),
            Column::Score(By::Sink) => {
                head.scores.sink.map_or_else(none, |sink| format!("{:.3} @{}", sink.share, sink.key))
            }
            Column::Score(by) => value(head, by).map_or_else(none, |x| format!("{x:.3}")),
        }
    }
}

fn value(head: &SurveyedHead, by: By) -> Option<f32> {
    let scores = &head.scores;
    match by {
        By::Previous => Some(scores.previous),
        By::Next => Some(scores.next),
        By::Duplicate => scores.duplicate,
        By::Induction => scores.induction,
        By::Separator => head.classes.of(HeadClass::Separator).map(|share| share.share as f32),
        By::Sink => scores.sink.map(|sink| sink.share),
        By::Entropy => Some(scores.entropy),
        By::Confidence => Some(scores.confidence),
    }
}

fn name(by: By) -> &'static str {
    Column::Score(by).name(Language::En)
}

fn class_name(class: HeadClass, language: Language) -> &'static str {
    foveal_labs::class_name(class).get(language.into())
}

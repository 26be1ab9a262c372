//! A language model trained without the causal mask.

use foveal::{Attention, Mask};
use foveal_models::layer::Random;
use foveal_view::{Chart, Heatmap};
use ndarray::{Array2, s};
use serde_json::json;

use crate::number::{grouped, rows};
use crate::schooling::{self, School, Schooled};
use crate::tiny::Tiny;
use crate::{Bilingual, Knob, Knobs, Lab, Report, Result, Table, Text, Watch, text};

pub const LAB: Lab = Lab {
    name: "train-unmasked",
    title: Bilingual { en: "Trained without the causal mask", ko: "인과 마스크 없이 학습한 모델" },
    summary: Bilingual {
        en: "Two equal models learn to tell the next letter. One sees only what comes before; the other was given no causal mask, so the letter \
         to be told stands before its eyes. Its loss collapses, and it has learned nothing but to copy: \
         a head looks at the next position and at nothing else. When it has to write, there is no next letter to look at, and its text is garbage.",
        ko: "같은 모델 둘이 다음 글자를 맞히는 법을 배웁니다. 하나는 앞에 나온 글자만 보고, 다른 하나는 인과 마스크가 없어 맞혀야 할 글자를 그대로 봅니다. \
         그래서 손실은 거의 0으로 떨어지지만, 배운 것은 베끼기뿐입니다. 한 헤드가 바로 다음 위치만 봅니다. \
         글을 쓸 때에는 볼 다음 글자가 없으므로 뜻 없는 글이 나옵니다.",
    },
    knobs: &[STEPS, SEED],
    work,
};

const STEPS: Knob = Knob::one("steps", Bilingual { en: "Steps of training", ko: "학습 단계 수" }, 1000, 10..=20_000);
const SEED: Knob = Knob::seed();

const HEADS: usize = 4;
/// What both go on from.
const BEGINNING: &str = "ROMEO:\nBut soft, ";
/// Letters that are written.
const WRITTEN: usize = 120;
/// What both are looked at with.
const LOOKED_AT: &str = "But soft, what light";

/// Trained with the mask, and without it.
struct Run {
    name: Text,
    trained: Schooled,
    /// The loss if it sees the past alone, and if it sees all.
    losses: [f32; 2],
    written: String,
    /// Of the head that looks at the next letter most.
    weights: Array2<f32>,
    /// That head: its block, its number, its mean weight on the next letter.
    ahead: (usize, usize, f32),
}

fn work(knobs: &Knobs, mut watch: Watch) -> Result<Report> {
    let (steps, seed) = (knobs.get_one(&STEPS), knobs.get_seed(&SEED));
    let school = School::new()?;
    let masks = [Attention::new().mask(Mask::causal()), Attention::new()];
    let names = [text("with the mask", "마스크 있음"), text("without it", "마스크 없음")];
    let (tokens, labels) = school.read(LOOKED_AT)?;
    let mut runs = Vec::new();
    for (i, (mask, name)) in masks.iter().zip(names).enumerate() {
        let model = Tiny::new(school.vocabulary(), HEADS, mask.clone(), &mut Random::new(seed))?;
        let trained = school.train(model, schooling::plan(steps, seed), (i * steps, 2 * steps), &name, &mut watch)?;
        let losses = [school.loss(&trained.model, &masks[0])?, school.loss(&trained.model, &masks[1])?];
        let written = school.write(&trained.model, BEGINNING, WRITTEN, seed)?;
        let (weights, ahead) = looking_ahead(&trained.model, &tokens)?;
        runs.push(Run { name, trained, losses, written, weights, ahead });
    }
    let mut table = Table::new([
        text("trained", "학습"),
        text("loss, seeing the past", "손실, 과거만 볼 때"),
        text("loss, seeing all", "손실, 모두 볼 때"),
        text("weight on the next letter", "다음 글자의 가중치"),
    ])
    .title(text(
        format!(
            "Held-out loss in nats a letter after {} steps; guessing gives {:.2}",
            grouped(steps as u128),
            guess(&school)
        ),
        format!("{}단계 뒤의 검증 손실(글자당 nat). 찍으면 {:.2}", grouped(steps as u128), guess(&school)),
    ));
    for run in &runs {
        let numbers = [run.losses[0], run.losses[1], run.ahead.2].map(|x| format!("{x:.3}").into());
        table.row([run.name.clone()].into_iter().chain(numbers));
    }
    let mut written = Table::new([text("trained", "학습"), text("what it writes", "쓴 글")])
        .text_columns([1])
        .title(text(format!("What they write after {BEGINNING:?}"), format!("{BEGINNING:?} 다음에 쓰는 글")));
    for run in &runs {
        written.row([run.name.clone(), run.written[BEGINNING.len()..].replace('\n', "⏎").into()]);
    }
    let figures = runs.iter().map(|run| {
        let (layer, head, weight) = run.ahead;
        json!({
            "trained": run.name.en, "loss_seeing_past": run.losses[0], "loss_seeing_all": run.losses[1],
            "curve": run.trained.curve, "written": run.written,
            "looks_ahead": { "layer": layer, "head": head, "weight": weight, "weights": rows(&run.weights) },
        })
    });
    let figures = json!({ "seed": seed, "steps": steps, "text": LOOKED_AT, "runs": figures.collect::<Vec<_>>() });
    let report = Report::new(figures).table(table).table(written).scene(|language| {
        let tr = |english, korean| language.choose(english, korean);
        let chart = Chart::new(tr("step", "단계"), tr("held-out loss", "검증 손실")).from_zero();
        let chart = runs.iter().fold(chart, |chart, run| {
            let points = run.trained.curve.iter().map(|(step, loss)| (*step as f64, f64::from(*loss)));
            chart.series(run.name.get(language), points.collect::<Vec<_>>())
        });
        Ok(chart
            .title(tr("The loss as each is trained", "각자 학습하는 동안의 손실"))
            .note(tr("nats a letter; a low loss is no proof", "글자당 nat. 손실이 낮다고 잘 배운 것은 아닙니다"))
            .language(language))
    })?;
    let cheat = &runs[1];
    report.scene(|language| {
        let tr = |english, korean| language.choose(english, korean);
        let (layer, head, _) = cheat.ahead;
        Ok(Heatmap::new(cheat.weights.clone(), labels.clone(), labels.clone())?
            .title(tr("Without the mask: each letter looks at the next", "마스크 없음: 글자마다 다음 글자를 봅니다"))
            .note(format!("{} {layer}, {} {head}", tr("layer", "층"), tr("head", "헤드")))
            .language(language))
    })
}

/// The loss of equal chances.
fn guess(school: &School) -> f64 {
    (school.vocabulary() as f64).ln()
}

/// The weights of the head that puts most on the next position; its block, its number and that weight.
fn looking_ahead(model: &Tiny, tokens: &[u32]) -> Result<(Array2<f32>, (usize, usize, f32))> {
    let mut best = (Array2::zeros((0, 0)), (0, 0, -1.0));
    for (layer, weights) in model.weights(tokens)?.into_iter().enumerate() {
        for head in 0..HEADS {
            let weights = weights.slice(s![0, head, .., ..]);
            let last = tokens.len() - 1;
            let ahead = (0..last).map(|i| weights[[i, i + 1]]).sum::<f32>() / last as f32;
            if ahead > best.1.2 {
                best = (weights.to_owned(), (layer, head, ahead));
            }
        }
    }
    Ok(best)
}

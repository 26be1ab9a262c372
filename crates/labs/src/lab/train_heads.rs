//! What heads are worth: the same model with 1, 2, 4 and 8 of them, trained here.

use std::time::Instant;

use foveal::{Attention, Mask};
use foveal_models::layer::{Parameters, Random};
use foveal_view::Chart;
use serde_json::json;

use crate::number::grouped;
use crate::schooling::{self, School, Schooled};
use crate::tiny::{Tiny, WIDTH};
use crate::{Bilingual, Knob, Knobs, Lab, Report, Result, Table, Watch, text};

pub const LAB: Lab = Lab {
    name: "train-heads",
    title: Bilingual {
        en: "What heads are worth: a model trained with 1, 2, 4, 8",
        ko: "헤드의 가치: 1, 2, 4, 8개로 학습한 모델",
    },
    summary: Bilingual {
        en: "A small language model learns a page of Shakespeare, letter by letter, several times: with the same width, the same parameters \
         and the same text, cut into more and more heads. The held-out loss tells how well each predicts text that it has not seen: \
         in nats a letter, less is better. More heads can look at several places at once, but each has fewer dimensions to compare with.",
        ko: "작은 언어 모델이 셰익스피어의 글을 글자 단위로 여러 번 배웁니다. 너비, 매개변수, 글은 모두 같고 헤드의 수만 다릅니다. \
         검증 손실은 배우지 않은 글을 얼마나 잘 예측하는지 알려 줍니다. 단위는 글자당 nat이고, 작을수록 좋습니다. \
         헤드가 많으면 여러 곳을 한꺼번에 볼 수 있지만, 헤드마다 비교에 쓸 차원은 줄어듭니다.",
    },
    knobs: &[HEADS, STEPS, SEED],
    work,
};

const HEADS: Knob =
    Knob::several("heads", Bilingual { en: "Numbers of heads to try", ko: "시험할 헤드 수" }, &[1, 2, 4, 8], 1..=64);
const STEPS: Knob = Knob::one("steps", Bilingual { en: "Steps of training", ko: "학습 단계 수" }, 600, 10..=20_000);
const SEED: Knob = Knob::seed();

fn work(knobs: &Knobs, mut watch: Watch) -> Result<Report> {
    let (heads, steps, seed) = (knobs.get_several(&HEADS), knobs.get_one(&STEPS), knobs.get_seed(&SEED));
    if let Some(refused) = heads.iter().find(|heads| !WIDTH.is_multiple_of(**heads)) {
        return Err(schooling::indivisible(WIDTH, *refused));
    }
    let school = School::new()?;
    let mut runs: Vec<(usize, Schooled, f64)> = Vec::new();
    for (i, &count) in heads.iter().enumerate() {
        let causal = Attention::new().mask(Mask::causal());
        let model = Tiny::new(school.vocabulary(), count, causal, &mut Random::new(seed))?;
        let (doing, start) = (text(format!("heads: {count}"), format!("헤드 {count}개")), Instant::now());
        let told = (i * steps, heads.len() * steps);
        let schooled = school.train(model, schooling::plan(steps, seed), told, &doing, &mut watch)?;
        runs.push((count, schooled, start.elapsed().as_secs_f64()));
    }
    let parameters = runs[0].1.model.parameter_count();
    let title = (grouped(parameters as u128), grouped(steps as u128));
    let mut table = Table::new([
        text("heads", "헤드 수"),
        "d_k".into(),
        text("held-out loss", "검증 손실"),
        text("against the first", "첫째와의 차이"),
        text("seconds", "초"),
    ])
    .title(text(
        format!("d_model = {WIDTH}, {} parameters, {} steps", title.0, title.1),
        format!("d_model = {WIDTH}, 매개변수 {}개, {}단계", title.0, title.1),
    ));
    for (count, schooled, seconds) in &runs {
        table.row([
            count.to_string(),
            (WIDTH / count).to_string(),
            format!("{:.3}", schooled.loss()),
            format!("{:+.3}", schooled.loss() - runs[0].1.loss()).replace('-', "−"),
            format!("{seconds:.1}"),
        ]);
    }
    let figures = runs.iter().map(|(count, schooled, seconds)| {
        json!({ "heads": count, "d_k": WIDTH / count, "loss": schooled.loss(), "curve": schooled.curve, "seconds": seconds })
    });
    let figures = json!({
        "seed": seed, "steps": steps, "d_model": WIDTH, "parameters": parameters, "runs": figures.collect::<Vec<_>>(),
    });
    Report::new(figures).table(table).scene(|language| {
        let tr = |english, korean| language.choose(english, korean);
        let chart = Chart::new(tr("step", "단계"), tr("held-out loss", "검증 손실"));
        let chart = runs.iter().fold(chart, |chart, (count, schooled, _)| {
            let points = schooled.curve.iter().map(|(step, loss)| (*step as f64, f64::from(*loss)));
            let name = match language {
                crate::Language::English => format!("heads: {count}"),
                crate::Language::Korean => format!("헤드 {count}개"),
            };
            chart.series(name, points.collect::<Vec<_>>())
        });
        Ok(chart
            .title(tr("The same model with more and more heads", "헤드 수만 다른 같은 모델"))
            .note(tr("nats a letter, on text that was not learned", "배우지 않은 글에서, 글자당 nat"))
            .language(language))
    })
}

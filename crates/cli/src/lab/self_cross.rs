//! One sequence that looks at itself, and one that looks at another.

use anyhow::{Result, bail};
use foveal::scaled_dot_product_attention;
use foveal_models::layer::Random;
use foveal_view::Heatmap;
use ndarray::{Array2, ArrayView1};
use serde_json::json;

use super::Experiment;
use super::knobs::{self, Knob};
use super::number::rows;
use crate::arguments::Lab;
use crate::language::Language;
use crate::report::Report;
use crate::table::Table;

pub const EXPERIMENT: Experiment = Experiment {
    name: "self-cross",
    title: ["Self-attention and cross-attention", "셀프 어텐션과 크로스 어텐션"],
    description: [
        "In self-attention queries, keys and values come from the same sequence: 3 tokens give 3×3 weights. \
         In cross-attention the queries come from the decoder, keys and values from the encoder: 3×5. \
         The formula is the same, and every row sums to 1. Words that mean the same have similar vectors here; \
         a trained model learns them.",
        "셀프 어텐션에서는 쿼리, 키, 값이 모두 같은 문장에서 나옵니다. 토큰이 3개이면 가중치는 3×3입니다. \
         크로스 어텐션에서는 쿼리는 디코더에서, 키와 값은 인코더에서 나오므로 3×5가 됩니다. \
         공식은 같고, 모든 행의 합은 1입니다. 여기서는 뜻이 같은 단어에 비슷한 벡터를 주었습니다. 학습된 모델은 이런 벡터를 스스로 익힙니다.",
    ],
    knobs: &[Knob::Tokens, Knob::Dims, Knob::Seed],
    run,
};

/// The decoder's sentence and the encoder's, each word with the number of its meaning.
const DECODER: [(&str, usize); 3] = [("나는", 0), ("책을", 1), ("읽는다", 2)];
const ENCODER: [(&str, usize); 5] = [("I", 0), ("am", 3), ("reading", 2), ("a", 4), ("book", 1)];

/// How much of a vector is not its meaning.
const NOISE: f32 = 0.6;

fn run(lab: &Lab, language: Language) -> Result<Report> {
    let (queries, keys) = match lab.tokens[..] {
        [] => (3, 5),
        [queries, keys] => {
            (knobs::bounded(Knob::Tokens, queries, &(1..=64))?, knobs::bounded(Knob::Tokens, keys, &(1..=64))?)
        }
        _ => bail!("--tokens takes two numbers here, of the decoder and of the encoder: --tokens 3,5"),
    };
    let dim = knobs::one(Knob::Dims, &lab.dims, 32, 2..=1024)?;
    let seed = lab.seed.unwrap_or(1);
    let mut random = Random::new(seed);
    let meanings: Array2<f32> = random.normal((queries.max(keys), dim), 1.0);
    let mut vectors = |words: &[(String, usize)]| {
        let noise: Array2<f32> = random.normal((words.len(), dim), NOISE);
        noise + Array2::from_shape_fn((words.len(), dim), |(i, d)| meanings[[words[i].1, d]])
    };
    let (decoder, encoder) = (sentence("d", queries, &DECODER), sentence("e", keys, &ENCODER));
    let (target, source) = (vectors(&decoder), vectors(&encoder));
    let (self_out, self_weights) = scaled_dot_product_attention(&target, &target, &target, None)?;
    let (cross_out, cross_weights) = scaled_dot_product_attention(&target, &source, &source, None)?;

    let tr = |english, korean| language.of(english, korean);
    let shape = |x: &Array2<f32>| format!("{}×{}", x.nrows(), x.ncols());
    let mut shapes = Table::new([
        "",
        tr("queries from", "쿼리의 출처"),
        tr("keys, values from", "키와 값의 출처"),
        "Q",
        "K, V",
        tr("weights", "가중치"),
        tr("output", "출력"),
    ])
    .text_columns([1, 2]);
    let names = [tr("self-attention", "셀프 어텐션"), tr("cross-attention", "크로스 어텐션")];
    let (d, e) = (tr("decoder", "디코더"), tr("encoder", "인코더"));
    shapes.row([names[0], d, d, &shape(&target), &shape(&target), &shape(&self_weights), &shape(&self_out)]);
    shapes.row([names[1], d, e, &shape(&target), &shape(&source), &shape(&cross_weights), &shape(&cross_out)]);
    let labels = |words: &[(String, usize)]| words.iter().map(|(word, _)| word.clone()).collect::<Vec<_>>();
    let (decoder, encoder) = (labels(&decoder), labels(&encoder));
    let mut strongest = Table::new([tr("query", "쿼리"), names[0], "", names[1], "", tr("sums", "행의 합")])
        .text_columns([1, 3])
        .title(tr("The key with the most weight", "가중치가 가장 큰 키"));
    for (i, word) in decoder.iter().enumerate() {
        let (own, other) = (largest(self_weights.row(i)), largest(cross_weights.row(i)));
        strongest.row([
            word.clone(),
            decoder[own].clone(),
            format!("{:.3}", self_weights[[i, own]]),
            encoder[other].clone(),
            format!("{:.3}", cross_weights[[i, other]]),
            format!("{:.3}, {:.3}", self_weights.row(i).sum(), cross_weights.row(i).sum()),
        ]);
    }
    let figures = json!({
        "seed": seed, "dim": dim, "decoder": decoder, "encoder": encoder,
        "self": { "shape": self_weights.shape(), "weights": rows(&self_weights) },
        "cross": { "shape": cross_weights.shape(), "weights": rows(&cross_weights) },
    });
    let cross = Heatmap::new(cross_weights, decoder.clone(), encoder)?
        .axes(format!("{} ({d})", tr("Query", "쿼리")), format!("{} ({e})", tr("Key", "키")))
        .title(format!("{}, {queries}×{keys}", tr("Cross-attention", "크로스 어텐션")))
        .language(language.into());
    let own = Heatmap::new(self_weights, decoder.clone(), decoder)?
        .axes(format!("{} ({d})", tr("Query", "쿼리")), format!("{} ({d})", tr("Key", "키")))
        .title(format!("{}, {queries}×{queries}", tr("Self-attention", "셀프 어텐션")))
        .language(language.into());
    Ok(Report { tables: vec![shapes, strongest], scenes: vec![cross.into(), own.into()], figures, ..Report::default() })
}

/// The words, or as many numbered tokens as asked for, whose meanings go in order.
fn sentence(letter: &str, count: usize, words: &[(&str, usize)]) -> Vec<(String, usize)> {
    if count == words.len() {
        return words.iter().map(|(word, meaning)| ((*word).to_owned(), *meaning)).collect();
    }
    (0..count).map(|i| (format!("{letter}{i}"), i)).collect()
}

fn largest(row: ArrayView1<f32>) -> usize {
    (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap_or(0)
}

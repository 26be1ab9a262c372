//! One sequence that looks at itself, and one that looks at another.

use foveal::scaled_dot_product_attention;
use foveal_models::layer::Random;
use foveal_view::Heatmap;
use ndarray::{Array2, ArrayView1};
use serde_json::json;

use crate::number::rows;
use crate::{Bilingual, Knob, Knobs, Lab, Language, Report, Result, Table, Text, Watch, text};

pub const LAB: Lab = Lab {
    name: "self-cross",
    title: Bilingual { en: "Self-attention and cross-attention", ko: "셀프 어텐션과 크로스 어텐션" },
    summary: Bilingual {
        en: "In self-attention queries, keys and values come from the same sequence: 3 tokens give 3×3 weights. \
         In cross-attention the queries come from the decoder, keys and values from the encoder: 3×5. \
         The formula is the same, and every row sums to 1. Words that mean the same have similar vectors here; \
         a trained model learns them.",
        ko: "셀프 어텐션에서는 쿼리, 키, 값이 모두 같은 문장에서 나옵니다. 토큰이 3개이면 가중치는 3×3입니다. \
         크로스 어텐션에서는 쿼리는 디코더에서, 키와 값은 인코더에서 나오므로 3×5가 됩니다. \
         공식은 같고, 모든 행의 합은 1입니다. 여기서는 뜻이 같은 단어에 비슷한 벡터를 주었습니다. 학습된 모델은 이런 벡터를 스스로 익힙니다.",
    },
    knobs: &[TOKENS, DIMS, SEED],
    work,
};

const TOKENS: Knob = Knob::two(
    "tokens",
    Bilingual { en: "of the decoder and of the encoder", ko: "디코더와 인코더의 토큰 수" },
    [3, 5],
    1..=64,
);
const DIMS: Knob = Knob::one("dims", Bilingual { en: "Dimensions of a head", ko: "헤드의 차원" }, 32, 2..=1024);
const SEED: Knob = Knob::seed();

/// The decoder's sentence and the encoder's, each word with the number of its meaning.
const DECODER: [(&str, usize); 3] = [("나는", 0), ("책을", 1), ("읽는다", 2)];
const ENCODER: [(&str, usize); 5] = [("I", 0), ("am", 3), ("reading", 2), ("a", 4), ("book", 1)];

/// How much of a vector is not its meaning.
const NOISE: f32 = 0.6;

fn work(knobs: &Knobs, _: Watch) -> Result<Report> {
    let [queries, keys] = knobs.get_two(&TOKENS);
    let dim = knobs.get_one(&DIMS);
    let seed = knobs.get_seed(&SEED);
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

    let shape = |x: &Array2<f32>| format!("{}×{}", x.nrows(), x.ncols());
    let mut shapes = Table::new([
        "".into(),
        text("queries from", "쿼리의 출처"),
        text("keys, values from", "키와 값의 출처"),
        "Q".into(),
        "K, V".into(),
        text("weights", "가중치"),
        text("output", "출력"),
    ])
    .text_columns([1, 2]);
    let names = [text("self-attention", "셀프 어텐션"), text("cross-attention", "크로스 어텐션")];
    let (d, e) = (text("decoder", "디코더"), text("encoder", "인코더"));
    for (name, from, source, weights, out) in
        [(&names[0], &d, &target, &self_weights, &self_out), (&names[1], &e, &source, &cross_weights, &cross_out)]
    {
        let shapes_of = [&target, source, weights, out].map(|x| shape(x).into());
        shapes.row([name.clone(), d.clone(), from.clone()].into_iter().chain(shapes_of));
    }
    let labels = |words: &[(String, usize)]| words.iter().map(|(word, _)| word.clone()).collect::<Vec<_>>();
    let (decoder, encoder) = (labels(&decoder), labels(&encoder));
    let mut strongest = Table::new([
        text("query", "쿼리"),
        names[0].clone(),
        "".into(),
        names[1].clone(),
        "".into(),
        text("sums", "행의 합"),
    ])
    .text_columns([1, 3])
    .title(text("The key with the most weight", "가중치가 가장 큰 키"));
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
    let draw = |weights: &Array2<f32>, (side, words): (&Text, &[String]), title: &Text, language: Language| {
        let (query, key) = (language.choose("Query", "쿼리"), language.choose("Key", "키"));
        Ok(Heatmap::new(weights.clone(), decoder.clone(), words.to_vec())?
            .axes(format!("{query} ({})", d.get(language)), format!("{key} ({})", side.get(language)))
            .title(format!("{}, {}", title.get(language), shape(weights)))
            .language(language))
    };
    Report::new(figures)
        .table(shapes)
        .table(strongest)
        .scene(|language| draw(&cross_weights, (&e, &encoder), &text("Cross-attention", "크로스 어텐션"), language))?
        .scene(|language| draw(&self_weights, (&d, &decoder), &text("Self-attention", "셀프 어텐션"), language))
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

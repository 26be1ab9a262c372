//! A small burn model that learns to look things up, with Foveal's attention and its gradients.
//!
//! ```text
//! cargo run --release --example recall -- [PICTURE.png]
//! ```
//!
//! Each sequence pairs letters with numbers at random. The model is asked for the number of each letter, in another order. What
//! it has to find out: which rows of two tables mean the same, to compare by them, and to read off the other half of a pair.

use std::error::Error;

use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Embedding, EmbeddingConfig, Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Int, Tensor, TensorData};
use foveal_burn::foveal::Attention;
use foveal_burn::{attention, watch};
use foveal_framework_testing::Random;
use foveal_models::trace::Kind;
use foveal_view::{Heatmap, Look, Scene};

const LETTERS: usize = 26;
const NUMBERS: usize = 10;
const PAIRS: usize = 12;
const BATCH: usize = 16;
const HEADS: usize = 2;
const WIDTH: usize = 32;
const STEPS: usize = 100;

#[derive(Module, Debug)]
struct Recall {
    asked: Embedding,
    letters: Embedding,
    numbers: Embedding,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
}

impl Recall {
    fn new(device: &Device) -> Self {
        let linear = |to| LinearConfig::new(WIDTH, to).init(device);
        Recall {
            asked: EmbeddingConfig::new(LETTERS, WIDTH).init(device),
            letters: EmbeddingConfig::new(LETTERS, WIDTH).init(device),
            numbers: EmbeddingConfig::new(NUMBERS, WIDTH).init(device),
            query: linear(WIDTH),
            key: linear(WIDTH),
            value: linear(WIDTH),
            output: linear(NUMBERS),
        }
    }

    /// Logits [B·T, numbers].
    fn forward(&self, batch: &Batch) -> Result<Tensor<2>, foveal_burn::Error> {
        // [B, T, H·D] as [B, H, T, D]: strides alone, nothing is copied.
        let heads = |x: Tensor<3>| x.reshape([BATCH, PAIRS, HEADS, WIDTH / HEADS]).swap_dims(1, 2);
        let letters = self.letters.forward(batch.letters.clone());
        let pairs = letters.clone() + self.numbers.forward(batch.numbers.clone());
        let q = self.query.forward(self.asked.forward(batch.asked.clone()));
        let out =
            attention(heads(q), heads(self.key.forward(letters)), heads(self.value.forward(pairs)), &Attention::new())?;
        Ok(self.output.forward(out.swap_dims(1, 2).reshape([BATCH * PAIRS, WIDTH])))
    }
}

/// Pairs [B, T], the letters asked for [B, T], and their numbers [B·T].
struct Batch {
    letters: Tensor<2, Int>,
    numbers: Tensor<2, Int>,
    asked: Tensor<2, Int>,
    answers: Tensor<1, Int>,
    /// Of the first sequence, for a picture.
    first: [Vec<String>; 2],
}

impl Batch {
    fn draw(random: &mut Random, device: &Device) -> Self {
        let [mut letters, mut numbers, mut asked, mut answers] = [const { Vec::<i64>::new() }; 4];
        for _ in 0..BATCH {
            let shown: Vec<usize> = shuffled(LETTERS, random).into_iter().take(PAIRS).collect();
            let values: Vec<usize> = shown.iter().map(|_| random.below(NUMBERS)).collect();
            let order = shuffled(PAIRS, random);
            letters.extend(shown.iter().map(|n| *n as i64));
            numbers.extend(values.iter().map(|n| *n as i64));
            asked.extend(order.iter().map(|i| shown[*i] as i64));
            answers.extend(order.iter().map(|i| values[*i] as i64));
        }
        let letter = |n: &i64| char::from(b'a' + *n as u8);
        let shown =
            letters.iter().zip(&numbers).take(PAIRS).map(|(n, number)| format!("{}{number}", letter(n))).collect();
        let first = [asked.iter().take(PAIRS).map(|n| format!("{}?", letter(n))).collect(), shown];
        let rows = |values| Tensor::from_data(TensorData::new(values, [BATCH, PAIRS]), device);
        let answers = Tensor::from_data(TensorData::new(answers, [BATCH * PAIRS]), device);
        Batch { letters: rows(letters), numbers: rows(numbers), asked: rows(asked), answers, first }
    }
}

/// 0 to below `n`, in random order.
fn shuffled(n: usize, random: &mut Random) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        numbers.swap(i, random.below(i + 1));
    }
    numbers
}

fn main() -> Result<(), Box<dyn Error>> {
    let picture = std::env::args().nth(1).unwrap_or("recall.png".into());
    let device = Device::flex().autodiff();
    device.seed(1);
    let random = &mut Random::new(1);
    let mut model = Recall::new(&device);
    let mut optimiser = AdamConfig::new().init();
    let cross_entropy = CrossEntropyLossConfig::new().init(&device);
    for step in 0..=STEPS {
        let batch = Batch::draw(random, &device);
        let loss = cross_entropy.forward(model.forward(&batch)?, batch.answers);
        if step % 20 == 0 {
            println!("step {step:3}: loss {:.3}", loss.clone().into_scalar::<f32>());
        }
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimiser.step(1e-2, model, gradients);
    }

    // Pairs that it has not seen.
    let batch = Batch::draw(random, &device);
    let (logits, trace) = watch(Kind::Cross, || model.forward(&batch));
    let right =
        logits?.argmax(1).reshape([BATCH * PAIRS]).equal(batch.answers.clone()).int().sum().into_scalar::<i64>();
    let share = right as f64 / (BATCH * PAIRS) as f64;
    println!("right answers: {:.1} %, by chance {:.0} %", 100.0 * share, 100.0 / NUMBERS as f64);
    if share < 0.95 {
        return Err("it has not learned to look up".into());
    }
    let weights = trace.layer(Kind::Cross, 0)?.tile(0, 0, 0..PAIRS, 0..PAIRS)?;
    let [asked, shown] = &batch.first;
    let scene = Heatmap::new(weights, asked, shown)?.title("head 0: where a burn model looks its answers up");
    Scene::from(scene).save(&picture, &Look::default())?;
    println!("{picture}: what it attends to");
    Ok(())
}

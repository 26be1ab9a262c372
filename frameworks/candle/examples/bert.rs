//! candle-transformers' BERT with its attention replaced: the same embeddings, sooner, and every weight at hand.
//!
//! ```text
//! cargo run --release --example bert -- FOLDER [PICTURE.png]
//! ```
//!
//! FOLDER holds config.json, model.safetensors and tokenizer.json of a BERT, such as all-MiniLM-L6-v2.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use candle_core::{D, DType, Device, Result, Tensor, bail};
use candle_nn::{Embedding, LayerNorm, Linear, Module, VarBuilder, embedding, layer_norm, linear};
use candle_transformers::models::bert::{BertModel, Config};
use foveal_candle::foveal::{Attention, Mask};
use foveal_candle::{attention, watch};
use foveal_models::trace::Kind;
use foveal_view::{Heatmap, Look, Scene};
use tokenizers::Tokenizer;

/// A BERT of candle's parts, as candle-transformers has it, whose heads attend through Foveal.
struct Bert {
    words: Embedding,
    positions: Embedding,
    types: Embedding,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

impl Bert {
    fn load(vb: &VarBuilder, config: &Config) -> Result<Self> {
        let width = config.hidden_size;
        let table = |rows, name: &str| embedding(rows, width, vb.pp("embeddings").pp(name));
        let layer = |n| Layer::load(&vb.pp("encoder.layer").pp(n), config);
        Ok(Bert {
            words: table(config.vocab_size, "word_embeddings")?,
            positions: table(config.max_position_embeddings, "position_embeddings")?,
            types: table(config.type_vocab_size, "token_type_embeddings")?,
            norm: layer_norm(width, config.layer_norm_eps, vb.pp("embeddings.LayerNorm"))?,
            layers: (0..config.num_hidden_layers).map(layer).collect::<Result<_>>()?,
        })
    }

    /// [B, T] to [B, T, width].
    fn forward(&self, ids: &Tensor, types: &Tensor, attends: &Attention) -> Result<Tensor> {
        let positions = Tensor::arange(0, ids.dim(1)? as u32, ids.device())?;
        let x = (self.words.forward(ids)? + self.types.forward(types)?)?;
        let x = self.norm.forward(&x.broadcast_add(&self.positions.forward(&positions)?)?)?;
        self.layers.iter().try_fold(x, |x, layer| layer.forward(&x, attends))
    }
}

struct Layer {
    heads: usize,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    attention_norm: LayerNorm,
    up: Linear,
    down: Linear,
    norm: LayerNorm,
}

impl Layer {
    fn load(vb: &VarBuilder, config: &Config) -> Result<Self> {
        let (width, inner) = (config.hidden_size, config.intermediate_size);
        let norm = |name: &str| layer_norm(width, config.layer_norm_eps, vb.pp(name));
        Ok(Layer {
            heads: config.num_attention_heads,
            query: linear(width, width, vb.pp("attention.self.query"))?,
            key: linear(width, width, vb.pp("attention.self.key"))?,
            value: linear(width, width, vb.pp("attention.self.value"))?,
            output: linear(width, width, vb.pp("attention.output.dense"))?,
            attention_norm: norm("attention.output.LayerNorm")?,
            up: linear(width, inner, vb.pp("intermediate.dense"))?,
            down: linear(inner, width, vb.pp("output.dense"))?,
            norm: norm("output.LayerNorm")?,
        })
    }

    fn forward(&self, x: &Tensor, attends: &Attention) -> Result<Tensor> {
        let (batch, tokens, width) = x.dims3()?;
        // [B, T, H·D] as [B, H, T, D]: strides alone, nothing is copied.
        let heads = |x: Tensor| x.reshape((batch, tokens, self.heads, width / self.heads))?.transpose(1, 2);
        let (q, k, v) = (self.query.forward(x)?, self.key.forward(x)?, self.value.forward(x)?);
        let out = attention(&heads(q)?, &heads(k)?, &heads(v)?, attends)?;
        let out = self.output.forward(&out.transpose(1, 2)?.reshape((batch, tokens, width))?)?;
        let x = self.attention_norm.forward(&(out + x)?)?;
        let inner = self.down.forward(&self.up.forward(&x)?.gelu_erf()?)?;
        self.norm.forward(&(inner + x)?)
    }
}

/// Texts of different lengths in one tensor: ids, all types 0, and 1 where there is a token.
struct Batch {
    ids: Tensor,
    types: Tensor,
    present: Tensor,
    attends: Attention,
}

impl Batch {
    fn new(texts: &[Vec<u32>]) -> Result<Self> {
        let longest = texts.iter().map(Vec::len).max().unwrap_or(0);
        let rows = |value: &dyn Fn(&Vec<u32>, usize) -> u32| {
            let values: Vec<u32> = texts.iter().flat_map(|text| (0..longest).map(|i| value(text, i))).collect();
            Tensor::from_vec(values, (texts.len(), longest), &Device::Cpu)
        };
        let ids = rows(&|text, i| text.get(i).copied().unwrap_or(0))?;
        let lengths: Vec<usize> = texts.iter().map(Vec::len).collect();
        Ok(Batch {
            types: ids.zeros_like()?,
            present: rows(&|text, i| u32::from(i < text.len()))?,
            attends: Attention::new().mask(Mask::padding(lengths)),
            ids,
        })
    }

    fn theirs(&self, model: &BertModel) -> Result<Tensor> {
        model.forward(&self.ids, &self.types, Some(&self.present))
    }

    fn ours(&self, model: &Bert) -> Result<Tensor> {
        model.forward(&self.ids, &self.types, &self.attends)
    }

    /// The embeddings of the texts: the means of their tokens, of length 1.
    fn embeddings(&self, hidden: &Tensor) -> Result<Tensor> {
        let present = self.present.to_dtype(DType::F32)?.unsqueeze(2)?;
        let mean = hidden.broadcast_mul(&present)?.sum(1)?.broadcast_div(&present.sum(1)?)?;
        mean.broadcast_div(&mean.sqr()?.sum_keepdim(D::Minus1)?.sqrt()?)
    }
}

/// Fails if two results are farther apart than rounding explains.
fn agree(what: &str, ours: &Tensor, theirs: &Tensor) -> Result<()> {
    let apart = (ours - theirs)?.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>()?;
    println!("{what}: at most {apart:.1e} apart");
    if apart.is_nan() || apart > 1e-4 {
        bail!("{what}: rounding does not explain {apart}");
    }
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which folder holds the model? see the first lines of this file")?;
    let (folder, picture) = (Path::new(&folder), arguments.next().unwrap_or("bert.png".into()));
    let config: Config = serde_json::from_slice(&std::fs::read(folder.join("config.json"))?)?;
    let mut tokenizer = Tokenizer::from_file(folder.join("tokenizer.json"))?;
    // Texts as long as they are: the file may ask for 128 tokens, come what may.
    tokenizer.with_padding(None).with_truncation(None)?;
    let encode = |text: &str| tokenizer.encode(text, true).map(|encoding| encoding.get_ids().to_vec());
    let tensors = candle_core::safetensors::load(folder.join("model.safetensors"), &Device::Cpu)?;
    let vb = VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu);
    let theirs = BertModel::load(vb.clone(), &config)?;
    let ours = Bert::load(&vb, &config)?;

    // Two sentences, one shorter than the other.
    let sentences = ["The cat sat on the mat.", "A kitten is resting on a rug."];
    let batch = Batch::new(&[encode(sentences[0])?, encode(sentences[1])?])?;
    let (hidden, trace) = watch(Kind::Encoder, || batch.ours(&ours));
    let embeddings = batch.embeddings(&hidden?)?;
    agree("embeddings of two sentences", &embeddings, &batch.embeddings(&batch.theirs(&theirs)?)?)?;
    let cosine = (embeddings.get(0)? * embeddings.get(1)?)?.sum_all()?.to_scalar::<f32>()?;
    println!("\"{}\" and \"{}\": cosine {cosine:.4}", sentences[0], sentences[1]);

    // A picture of the first sentence in the third layer, from the queries, keys and lse that were watched.
    let ids = encode(sentences[0])?;
    let tokens: Vec<String> = ids.iter().filter_map(|id| tokenizer.id_to_token(*id)).collect();
    let weights = trace.layer(Kind::Encoder, 2)?.tile(0, 3, 0..ids.len(), 0..ids.len())?;
    let scene = Heatmap::new(weights, &tokens, &tokens)?.title("layer 2, head 3, of a candle model");
    Scene::from(scene).save(&picture, &Look::default())?;
    println!("{picture}: what its tokens attend to");

    // As many tokens as the model takes, in turns: the machine's speed changes from second to second.
    let long = encode(&"It was the best of times, it was the worst of times. ".repeat(100))?;
    let batch = Batch::new(&[long[..config.max_position_embeddings.min(long.len())].to_vec()])?;
    agree("hidden states of a long text", &batch.ours(&ours)?, &batch.theirs(&theirs)?)?;
    let mut fastest = [Duration::MAX; 2];
    for _ in 0..5 {
        let start = Instant::now();
        batch.theirs(&theirs)?;
        fastest[0] = fastest[0].min(start.elapsed());
        let start = Instant::now();
        batch.ours(&ours)?;
        fastest[1] = fastest[1].min(start.elapsed());
    }
    let [theirs, ours] = fastest.map(|time| time.as_secs_f64() * 1e3);
    println!(
        "{} tokens: {theirs:.0} ms, with its attention replaced {ours:.0} ms: {:.2} times as fast",
        batch.ids.dim(1)?,
        theirs / ours
    );
    Ok(())
}

//! BERT (Devlin 2018): an encoder that reads in both directions. As MiniLM it turns sentences into vectors; with its head it
//! guesses masked words.
//!
//! $$ x = \mathrm{norm}(E_t + P_{0..T} + S_{\mathrm{segment}}), \qquad x \leftarrow \mathrm{block}_l(x) $$
//!
//! Each block has its norm last.

mod head;
mod sentences;

use foveal::{Attention, Dropout, Mask, Pattern};
use ndarray::{Array2, ArrayView2, Axis, s};

pub use self::head::MaskedHead;
pub use self::sentences::{Masked, Sentences};
use super::block::Block;
use super::language::HeadGradients;
use super::names::{self, Names, OutputHead};
use super::stack;
use crate::checkpoint::{Checkpoint, Config, Dtype};
use crate::layer::{
    Activation, Embedding, Family, LayerNorm, Linear, Mlp, MultiHeadAttention, NormOrder, Place, Random, Residual, add,
    dropout, expect, layer_norm, parameters,
};
use crate::trace::{Kind, Probe};
use crate::{Error, Result};

/// The sizes of a BERT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BertConfig {
    /// V, the number of tokens.
    pub vocabulary: usize,
    /// The number of positions.
    pub context: usize,
    /// The number of segments: 2, for a pair of texts.
    pub segments: usize,
    /// D.
    pub width: usize,
    /// The number of blocks.
    pub layers: usize,
    /// H.
    pub heads: usize,
    /// The width of the MLP.
    pub hidden: usize,
    /// Its activation.
    pub activation: Activation,
    /// ε of the norms.
    pub epsilon: f32,
    /// Whether it has the head that guesses masked words.
    pub guesses: bool,
    /// Whether that head scores words by the embedding, and not by a matrix of its own.
    pub tied: bool,
    /// Whether it has the layer that makes one vector of a sentence from its first token.
    pub pools: bool,
    /// How tokens attend to each other.
    pub attention: Family,
}

impl BertConfig {
    fn of(layers: usize, width: usize, heads: usize) -> Self {
        BertConfig {
            vocabulary: 30_522,
            context: 512,
            segments: 2,
            width,
            layers,
            heads,
            hidden: 4 * width,
            activation: Activation::Gelu,
            epsilon: 1e-12,
            guesses: false,
            tied: true,
            pools: false,
            attention: Family::Softmax,
        }
    }

    /// BERT base, 109 million parameters.
    pub fn base() -> Self {
        BertConfig::of(12, 768, 12)
    }

    /// BERT large, 335 million.
    pub fn large() -> Self {
        BertConfig::of(24, 1024, 16)
    }

    /// all-MiniLM-L6-v2, the sentence encoder, 23 million.
    pub fn minilm() -> Self {
        BertConfig::of(6, 384, 12)
    }

    fn read(config: &Config, guesses: bool, pools: bool) -> Result<Self> {
        let positions = config.text_or("position_embedding_type", "absolute")?;
        if positions != "absolute" {
            return Err(config.error("position_embedding_type", "absolute", positions));
        }
        names::only(config, &[("is_decoder", false), ("add_cross_attention", false)])?;
        Ok(BertConfig {
            vocabulary: config.size("vocab_size")?,
            context: config.size_or("max_position_embeddings", 512)?,
            segments: config.size_or("type_vocab_size", 2)?,
            width: config.size("hidden_size")?,
            layers: config.size("num_hidden_layers")?,
            heads: config.divisor("num_attention_heads", "hidden_size")?,
            hidden: config.size("intermediate_size")?,
            activation: names::activation(config, "hidden_act", "gelu")?,
            epsilon: config.float_or("layer_norm_eps", 1e-12)? as f32,
            guesses,
            tied: config.flag_or("tie_word_embeddings", true)?,
            pools,
            attention: names::family(config)?,
        })
    }

    fn write(&self) -> serde_json::Value {
        let mut config = serde_json::json!({
            "model_type": "bert",
            "architectures": [if self.guesses { "BertForMaskedLM" } else { "BertModel" }],
            "vocab_size": self.vocabulary,
            "max_position_embeddings": self.context,
            "type_vocab_size": self.segments,
            "hidden_size": self.width,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": self.hidden,
            "hidden_act": names::of_activation(self.activation),
            "layer_norm_eps": names::decimal(self.epsilon),
            "tie_word_embeddings": self.tied,
        });
        names::write_family(&mut config, self.attention);
        config
    }

    /// The number of parameters, without making them.
    pub fn parameters(&self) -> u128 {
        let [v, t, s, d, l, f] =
            [self.vocabulary, self.context, self.segments, self.width, self.layers, self.hidden].map(|x| x as u128);
        let attention = self.attention.parameters(4 * d * d + 4 * d, self.heads, self.width / self.heads.max(1));
        let block = attention + 2 * d * f + d + f + 4 * d;
        let decoder = if self.tied { 0 } else { v * d };
        let head = if self.guesses { d * d + d + 2 * d + v + decoder } else { 0 };
        let pooler = if self.pools { d * d + d } else { 0 };
        (v + t + s) * d + 2 * d + l * block + head + pooler
    }
}

/// Hugging Face's names, beside a head. Without one the first part, `bert.`, is not there.
const NAMES: Names = Names { parts: &parts("cls.predictions.bias"), transposed: &[] };

/// The same where the bias of the head lies with the matrix that scores words.
const NAMES_WITH_DECODER: Names = Names { parts: &parts("cls.predictions.decoder.bias"), transposed: &[] };

const fn parts(bias: &'static str) -> [(&'static str, &'static str); 18] {
    [
        ("tokens.", "bert.embeddings.word_embeddings."),
        ("positions.", "bert.embeddings.position_embeddings."),
        ("segments.", "bert.embeddings.token_type_embeddings."),
        ("norm.", "bert.embeddings.LayerNorm."),
        ("layers.", "bert.encoder.layer."),
        (".attention.norm.", ".attention.output.LayerNorm."),
        (".attention.q_proj.", ".attention.self.query."),
        (".attention.k_proj.", ".attention.self.key."),
        (".attention.v_proj.", ".attention.self.value."),
        (".attention.o_proj.", ".attention.output.dense."),
        (".mlp.norm.", ".output.LayerNorm."),
        (".mlp.up_proj.", ".intermediate.dense."),
        (".mlp.down_proj.", ".output.dense."),
        ("pooler.", "bert.pooler."),
        ("head.dense.", "cls.predictions.transform.dense."),
        ("head.norm.", "cls.predictions.transform.LayerNorm."),
        ("head.decoder.", "cls.predictions.decoder."),
        ("head.bias", bias),
    ]
}

/// The model.
#[derive(Clone, Debug, PartialEq)]
pub struct Bert {
    config: BertConfig,
    /// E: [V, D]
    pub tokens: Embedding,
    /// P: [context, D]
    pub positions: Embedding,
    /// S: [segments, D]
    pub segments: Embedding,
    /// The norm of their sum.
    pub norm: LayerNorm,
    /// The blocks.
    pub layers: Vec<Block<LayerNorm, Mlp>>,
    /// What guesses masked words.
    pub head: Option<MaskedHead>,
    /// What makes one vector of a sentence from its first token: [D, D].
    pub pooler: Option<Linear>,
}

parameters!(Bert {
    tokens: "tokens",
    positions: "positions",
    segments: "segments",
    norm: "norm",
    layers: "layers",
    head: "head",
    pooler: "pooler.dense",
});

/// What [`Bert::backward`] needs.
#[derive(Debug)]
pub struct Saved {
    sentences: Sentences,
    /// Which rows were asked for.
    rows: Vec<usize>,
    dropout: Option<Dropout>,
    norm: layer_norm::Saved,
    layers: stack::Saved<LayerNorm, Mlp>,
    head: head::Saved,
}

impl Bert {
    /// A model that has learned nothing yet: weights of deviation 0.02.
    ///
    /// # Errors
    /// If the width does not divide by the number of heads.
    pub fn new(config: &BertConfig, random: &mut Random) -> Result<Self> {
        let &BertConfig { vocabulary, context, segments, width, layers, heads, hidden, activation, epsilon, .. } =
            config;
        let norm = || LayerNorm::new(width, epsilon);
        let order = NormOrder::Last;
        let block = |layer| -> Result<_> {
            let attention = MultiHeadAttention::new(width, heads, random)?;
            let place = Place { layer, causal: false, tokens: context, grid: None };
            let attention = config.attention.mixer(attention, place, random)?;
            let mlp = Mlp::new(width, hidden, activation, random);
            Ok(Block {
                attention: Residual { norm: norm(), layer: attention, order },
                cross: None,
                mlp: Residual { norm: norm(), layer: mlp, order },
            })
        };
        let layers = (0..layers).map(block).collect::<Result<_>>()?;
        let head = config.guesses.then(|| {
            let decoder = (!config.tied).then(|| Embedding::new(vocabulary, width, random));
            MaskedHead::new(vocabulary, activation, norm(), decoder, random)
        });
        Ok(Bert {
            config: *config,
            head,
            pooler: config.pools.then(|| Linear::new(width, width, random)),
            tokens: Embedding::new(vocabulary, width, random),
            positions: Embedding::new(context, width, random),
            segments: Embedding::new(segments, width, random),
            norm: norm(),
            layers,
        })
    }

    /// The model of a checkpoint, with the head that guesses words and the pooler if it has them.
    ///
    /// # Errors
    /// If its configuration makes no sense, or a tensor is absent or has another shape than that calls for.
    pub fn load(checkpoint: &Checkpoint) -> Result<Self> {
        let guesses = checkpoint.get("cls.predictions.transform.dense.weight").is_some();
        let pools = checkpoint.get("bert.pooler.dense.weight").is_some();
        let config = BertConfig::read(checkpoint.config(), guesses, pools)?;
        let embedding = "bert.embeddings.word_embeddings.weight";
        let decoder = OutputHead::of(checkpoint, config.tied, "cls.predictions.decoder.weight", embedding);
        let config = BertConfig { tied: decoder == OutputHead::Tied, ..config };
        checkpoint.expect_parameters(config.parameters())?;
        let mut model = Bert::new(&config, &mut Random::zeros())?;
        let with_decoder = checkpoint.get("cls.predictions.decoder.bias").is_some();
        (if with_decoder { NAMES_WITH_DECODER } else { NAMES }).load(checkpoint, &mut model)?;
        Ok(model)
    }

    /// Saves it as a folder that [`load`](Bert::load) and Hugging Face read, as a `BertForMaskedLM` if it has the head that
    /// guesses words and as a `BertModel` if not, its numbers as F32, F16 or BF16.
    ///
    /// # Errors
    /// If a file cannot be written; then nothing has changed.
    pub fn save(&self, folder: &std::path::Path, dtype: Dtype) -> Result<()> {
        // What the model is by what it has: its parts can be taken away.
        let config = BertConfig { guesses: self.head.is_some(), pools: self.pooler.is_some(), ..self.config };
        let prefix = if config.guesses { "" } else { "bert." };
        let own = self.head.as_ref().is_some_and(|head| head.decoder.is_some());
        let names = if own { NAMES_WITH_DECODER } else { NAMES };
        names.save_without(prefix, folder, &BertConfig { tied: !own, ..config }.write(), self, dtype)
    }

    /// Its sizes.
    pub fn config(&self) -> &BertConfig {
        &self.config
    }

    /// A vector for each token: [B·T, D]. What stands after the end of a sentence means nothing.
    ///
    /// # Errors
    /// [`Error::TokenId`] for a token outside the vocabulary, [`Error::Context`] for a sentence longer than the positions.
    pub fn infer(&self, sentences: &Sentences, probe: &mut Probe) -> Result<Array2<f32>> {
        let x = self.norm.infer(&self.sum(sentences)?)?;
        let attention = stack::reading(sentences.lengths());
        stack::infer(&self.layers, x, sentences.batch(), (Kind::Encoder, &attention), None, probe)
    }

    /// E + P + S of all tokens: [B·T, D].
    fn sum(&self, sentences: &Sentences) -> Result<Array2<f32>> {
        let mut x = self.tokens.forward(sentences.tokens())?;
        self.positions.add_positions(&mut x, sentences.batch(), 0)?;
        add(&mut x, &self.segments.forward(sentences.segments())?)?;
        Ok(x)
    }

    /// A vector of length 1 for each sentence, the mean of its tokens': [B, D]. The product of two is their similarity.
    ///
    /// # Errors
    /// As [`infer`](Bert::infer).
    pub fn embed(&self, sentences: &Sentences, probe: &mut Probe) -> Result<Array2<f32>> {
        let mut vectors = Array2::zeros((sentences.batch(), self.config.width));
        // A trace has all sentences in one shape, and other kinds of attention know no sentence but the whole.
        let padded = probe.captures() || self.config.attention != Family::Softmax;
        let hidden = if padded { self.infer(sentences, probe)? } else { self.infer_packed(sentences, probe)? };
        let (longest, mut start) = (hidden.nrows() / sentences.batch().max(1), 0);
        for (&length, mut vector) in sentences.lengths().iter().zip(vectors.outer_iter_mut()) {
            let sum = hidden.slice(s![start..start + length, ..]).sum_axis(Axis(0));
            let norm = sum.dot(&sum).sqrt().max(f32::MIN_POSITIVE);
            vector.assign(&(sum / norm));
            start += if padded { longest } else { length };
        }
        Ok(vectors)
    }

    /// [`infer`](Bert::infer) without what stands after the end of a sentence: one sequence of all of them, each of which
    /// sees itself alone.
    fn infer_packed(&self, sentences: &Sentences, probe: &mut Probe) -> Result<Array2<f32>> {
        let x = self.sum(sentences)?.select(Axis(0), &sentences.rows());
        let apart = Mask::pattern(Pattern::documents(sentences.lengths())?);
        let attention = (Kind::Encoder, &Attention::new().mask(apart));
        stack::infer(&self.layers, self.norm.infer(&x)?, 1, attention, None, probe)
    }

    /// A vector for each sentence, [B, D], from the rows of [`infer`](Bert::infer): tanh(W·x + b) of its first token.
    ///
    /// # Errors
    /// [`Error::MissingPart`] if the model has no pooler; also if the rows are not those of `batch` sentences.
    pub fn pool(&self, hidden: &Array2<f32>, batch: usize) -> Result<Array2<f32>> {
        let missing = Error::MissingPart { part: "the pooler", fit: "a BertModel" };
        let pooler = self.pooler.as_ref().ok_or(missing)?;
        let tokens = hidden.nrows() / batch.max(1);
        expect("the tokens of all sentences", &[batch * tokens, self.config.width], hidden.shape())?;
        let first = hidden.slice(s![..;tokens.max(1), ..]);
        Ok(pooler.forward(first)?.mapv_into(f32::tanh))
    }

    /// The scores of all words for each row of [`infer`](Bert::infer)'s result: [N, V].
    ///
    /// # Errors
    /// [`Error::MissingPart`] if the model has no head that guesses words.
    pub fn guess(&self, hidden: ArrayView2<f32>) -> Result<Array2<f32>> {
        self.head()?.infer(hidden, &self.tokens)
    }

    fn head(&self) -> Result<&MaskedHead> {
        self.head.as_ref().ok_or_else(missing_head)
    }

    /// The scores of all words for each that is masked, [N, V], with what [`backward`](Bert::backward) needs.
    ///
    /// # Errors
    /// As [`infer`](Bert::infer) and [`guess`](Bert::guess).
    pub fn forward(&self, masked: &Masked, dropout: Option<Dropout>) -> Result<(Array2<f32>, Saved)> {
        let (sentences, rows) = (masked.sentences().clone(), masked.rows().to_vec());
        let (mut x, norm) = self.norm.forward(&self.sum(&sentences)?.into_shared())?;
        dropout::at(dropout, 0).map_or(Ok(()), |dropout| dropout::apply(dropout, sentences.batch(), &mut x))?;
        let (attention, drop) = (stack::reading(sentences.lengths()), dropout::at(dropout, 1));
        let (x, layers) = stack::forward(&self.layers, x.into_shared(), sentences.batch(), &attention, drop)?;
        // Only what is masked is guessed: the scores are the largest array, and the others have no loss.
        let (logits, head) = self.head()?.forward(x.select(Axis(0), &rows), &self.tokens)?;
        Ok((logits, Saved { sentences, rows, dropout, norm, layers, head }))
    }

    /// Adds the gradients of all parameters but the pooler's, which guesses nothing, to `grad`; returns those of the heads.
    ///
    /// # Errors
    /// If dlogits is not shaped like the logits.
    pub fn backward(&self, saved: &Saved, dlogits: &Array2<f32>, grad: &mut Self) -> Result<HeadGradients> {
        let Saved { sentences, rows, dropout, norm, layers, head } = saved;
        let Some(dhead) = &mut grad.head else { return Err(missing_head()) };
        let dguessed = self.head()?.backward(head, dlogits, &self.tokens, (dhead, &mut grad.tokens))?;
        let mut dx = Array2::zeros((sentences.tokens().len(), self.config.width));
        rows.iter().zip(dguessed.outer_iter()).for_each(|(row, d)| dx.row_mut(*row).scaled_add(1.0, &d));
        let mut dgates = HeadGradients::default();
        let mut dx = stack::backward(&self.layers, layers, dx, &mut grad.layers, (Kind::Encoder, &mut dgates))?;
        dropout::at(*dropout, 0)
            .map_or(Ok::<_, Error>(()), |dropout| dropout::apply(dropout, sentences.batch(), &mut dx))?;
        let dx = self.norm.backward(norm, dx, &mut grad.norm)?;
        self.segments.backward(sentences.segments(), &dx, &mut grad.segments)?;
        self.positions.add_positions_backward(&dx, sentences.batch(), 0, &mut grad.positions)?;
        self.tokens.backward(sentences.tokens(), &dx, &mut grad.tokens)?;
        Ok(dgates)
    }
}

fn missing_head() -> Error {
    Error::MissingPart { part: "the head that guesses masked words", fit: "a BertForMaskedLM" }
}

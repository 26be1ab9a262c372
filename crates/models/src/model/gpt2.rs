//! GPT-2 (Radford 2019): a decoder with learned positions, whose embedding also makes its predictions.
//!
//! $$ x = E_{t} + P_{0..T}, \qquad x \leftarrow \mathrm{block}_l(x), \qquad \mathrm{logits} = \mathrm{norm}(x)\, E^\top $$
//!
//! Each block has its norm first, queries, keys and values from one layer, and an MLP of four times the width.

use foveal::{Dropout, KvCache};
use ndarray::{Array2, ArrayView1, ArrayView2};

use super::block::Block;
use super::language::{HeadGradients, LanguageModel, Shape, Trained};
use super::names::{self, Names, OutputHead};
use super::stack;
use crate::checkpoint::{Checkpoint, Config, Dtype};
use crate::layer::{
    Activation, Embedding, Family, Layer, LayerNorm, Linear, Mlp, MultiHeadAttention, NormOrder, Place, Random,
    Residual, dropout, layer_norm, parameters,
};
use crate::trace::{Kind, Probe};
use crate::{Error, Result};

/// The sizes of a GPT-2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpt2Config {
    /// V, the number of tokens.
    pub vocabulary: usize,
    /// The number of positions.
    pub context: usize,
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
    /// Whether it predicts tokens. Without that it is the body alone, which makes vectors.
    pub predicts: bool,
    /// Whether E also makes the predictions.
    pub tied: bool,
    /// How tokens attend to those before them.
    pub attention: Family,
}

impl Gpt2Config {
    fn of(layers: usize, width: usize, heads: usize) -> Self {
        Gpt2Config {
            vocabulary: 50_257,
            context: 1024,
            width,
            layers,
            heads,
            hidden: 4 * width,
            activation: Activation::GeluTanh,
            epsilon: 1e-5,
            predicts: true,
            tied: true,
            attention: Family::Softmax,
        }
    }

    /// GPT-2, 124 million parameters.
    pub fn small() -> Self {
        Gpt2Config::of(12, 768, 12)
    }

    /// GPT-2 medium, 355 million.
    pub fn medium() -> Self {
        Gpt2Config::of(24, 1024, 16)
    }

    /// GPT-2 large, 774 million.
    pub fn large() -> Self {
        Gpt2Config::of(36, 1280, 20)
    }

    /// GPT-2 XL, 1.6 billion.
    pub fn xl() -> Self {
        Gpt2Config::of(48, 1600, 25)
    }

    /// GPT-3, 175 billion, for counting parameters; too large to run here. (Every other layer of the real one attends in bands.)
    pub fn gpt3() -> Self {
        Gpt2Config { context: 2048, ..Gpt2Config::of(96, 12_288, 96) }
    }

    /// nanoGPT's configuration for a CPU: characters, 64 of them at a time.
    pub fn nano() -> Self {
        Gpt2Config { vocabulary: 65, context: 64, ..Gpt2Config::of(4, 128, 4) }
    }

    fn read(config: &Config) -> Result<Self> {
        names::only(
            config,
            &[
                ("scale_attn_weights", true),
                ("scale_attn_by_inverse_layer_idx", false),
                ("is_causal", true),
                ("add_cross_attention", false),
            ],
        )?;
        // transformers takes four sizes under the names they have in other models, too, and those count more.
        let either = |other: &'static str, own: &'static str| if config.get(other).is_some() { other } else { own };
        let width_key = either("hidden_size", "n_embd");
        let width = config.size(width_key)?;
        Ok(Gpt2Config {
            vocabulary: config.size("vocab_size")?,
            context: config.size_or(either("max_position_embeddings", "n_positions"), 1024)?,
            width,
            layers: config.size(either("num_hidden_layers", "n_layer"))?,
            heads: config.divisor(either("num_attention_heads", "n_head"), width_key)?,
            hidden: config.size_or("n_inner", 4 * width)?,
            activation: names::activation(config, "activation_function", "gelu_new")?,
            epsilon: config.float_or("layer_norm_epsilon", 1e-5)? as f32,
            predicts: true,
            tied: config.flag_or("tie_word_embeddings", true)?,
            attention: names::family(config)?,
        })
    }

    fn write(&self) -> serde_json::Value {
        let mut config = serde_json::json!({
            "model_type": "gpt2",
            "architectures": [if self.predicts { "GPT2LMHeadModel" } else { "GPT2Model" }],
            "vocab_size": self.vocabulary,
            "n_positions": self.context,
            "n_embd": self.width,
            "n_layer": self.layers,
            "n_head": self.heads,
            "n_inner": self.hidden,
            "activation_function": names::of_activation(self.activation),
            "layer_norm_epsilon": names::decimal(self.epsilon),
            "tie_word_embeddings": self.tied,
        });
        names::write_family(&mut config, self.attention);
        config
    }

    /// The number of parameters, without making them.
    pub fn parameters(&self) -> u128 {
        let [v, t, d, l, f] = [self.vocabulary, self.context, self.width, self.layers, self.hidden].map(|x| x as u128);
        let attention = self.attention.parameters(4 * d * d + 4 * d, self.heads, self.width / self.heads.max(1));
        let mlp = 2 * d * f + d + f;
        let head = if self.predicts && !self.tied { v * d } else { 0 };
        (v + t) * d + l * (attention + mlp + 4 * d) + 2 * d + head
    }
}

/// Hugging Face's names. Its `Conv1D` keeps the weights of all linear layers transposed.
const NAMES: Names = Names {
    parts: &[
        ("tokens.", "transformer.wte."),
        ("positions.", "transformer.wpe."),
        ("layers.", "transformer.h."),
        (".attention.norm.", ".ln_1."),
        (".attention.qkv_proj.", ".attn.c_attn."),
        (".attention.o_proj.", ".attn.c_proj."),
        (".mlp.norm.", ".ln_2."),
        (".mlp.up_proj.", ".mlp.c_fc."),
        (".mlp.down_proj.", ".mlp.c_proj."),
        ("norm.", "transformer.ln_f."),
    ],
    transposed: &[".c_attn.weight", ".c_proj.weight", ".c_fc.weight"],
};

/// The model.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpt2 {
    config: Gpt2Config,
    /// E: [V, D]
    pub tokens: Embedding,
    /// P: [context, D]
    pub positions: Embedding,
    /// The blocks.
    pub layers: Vec<Block<LayerNorm, Mlp>>,
    /// The norm before the predictions.
    pub norm: LayerNorm,
    /// What makes the predictions where E does not: [V, D].
    pub head: Option<Embedding>,
}

parameters!(Gpt2 { tokens: "tokens", positions: "positions", layers: "layers", norm: "norm", head: "lm_head" });

/// What [`Gpt2::backward`](Trained::backward) needs.
#[derive(Debug)]
pub struct Saved {
    tokens: Vec<u32>,
    batch: usize,
    dropout: Option<Dropout>,
    layers: stack::Saved<LayerNorm, Mlp>,
    norm: layer_norm::Saved,
    hidden: Array2<f32>,
}

impl Gpt2 {
    /// A model that has learned nothing yet: weights of deviation 0.02, those that add to the residual stream smaller by
    /// √(2·layers), as in the paper.
    ///
    /// # Errors
    /// If the width does not divide by the number of heads.
    pub fn new(config: &Gpt2Config, random: &mut Random) -> Result<Self> {
        let &Gpt2Config {
            vocabulary,
            context,
            width,
            layers,
            heads,
            hidden,
            activation,
            epsilon,
            predicts,
            tied,
            attention: family,
        } = config;
        let order = NormOrder::First;
        let small = 1.0 / (2.0 * layers as f32).sqrt();
        let shrink = |linear: Linear| Linear { weight: (&*linear.weight * small).into(), ..linear };
        let block = |layer| -> Result<_> {
            let mut attention = MultiHeadAttention::fused(width, heads, random)?;
            attention.output = shrink((*attention.output).clone()).into();
            let mut mlp = Mlp::new(width, hidden, activation, random);
            mlp.down = shrink(mlp.down);
            let place = Place { layer, causal: true, tokens: context, grid: None };
            let mixer = family.mixer(attention, place, random)?;
            Ok(Block {
                attention: Residual { norm: LayerNorm::new(width, epsilon), layer: mixer, order },
                cross: None,
                mlp: Residual { norm: LayerNorm::new(width, epsilon), layer: mlp, order },
            })
        };
        let layers = (0..layers).map(block).collect::<Result<_>>()?;
        Ok(Gpt2 {
            config: *config,
            tokens: Embedding::new(vocabulary, width, random),
            positions: Embedding::new(context, width, random),
            layers,
            norm: LayerNorm::new(width, epsilon),
            head: (predicts && !tied).then(|| Embedding::new(vocabulary, width, random)),
        })
    }

    /// The model of a checkpoint.
    ///
    /// # Errors
    /// If its configuration makes no sense, or a tensor is absent or has another shape than that calls for.
    pub fn load(checkpoint: &Checkpoint) -> Result<Self> {
        let config = Gpt2Config::read(checkpoint.config())?;
        let head = OutputHead::of(checkpoint, config.tied, "lm_head.weight", "transformer.wte.weight");
        let config = Gpt2Config { predicts: head != OutputHead::None, tied: head == OutputHead::Tied, ..config };
        checkpoint.expect_parameters(config.parameters())?;
        let mut model = Gpt2::new(&config, &mut Random::zeros())?;
        NAMES.load(checkpoint, &mut model)?;
        Ok(model)
    }

    /// Saves it as a folder that [`load`](Gpt2::load) and Hugging Face's `GPT2LMHeadModel` read, its numbers as F32, F16 or BF16.
    ///
    /// # Errors
    /// If a file cannot be written; then nothing has changed.
    pub fn save(&self, folder: &std::path::Path, dtype: Dtype) -> Result<()> {
        let prefix = if self.config.predicts { "" } else { "transformer." };
        NAMES.save_without(prefix, folder, &self.config.write(), self, dtype)
    }

    /// Its sizes.
    pub fn config(&self) -> &Gpt2Config {
        &self.config
    }
}

impl Gpt2 {
    /// Tokens and positions, after those in the cache: [B·T, D].
    fn embed(&self, tokens: &[u32], batch: usize, cache: Option<&KvCache>) -> Result<Array2<f32>> {
        let mut x = self.tokens.forward(tokens)?;
        self.positions.add_positions(&mut x, batch, cache.map_or(0, KvCache::len))?;
        Ok(x)
    }

    /// What makes the predictions.
    fn predictor(&self) -> Result<&Embedding> {
        match &self.head {
            Some(head) => Ok(head),
            None if self.config.predicts => Ok(&self.tokens),
            None => Err(Error::MissingPart { part: "the head that predicts tokens", fit: "a GPT2LMHeadModel" }),
        }
    }
}

impl LanguageModel for Gpt2 {
    fn shape(&self) -> Shape {
        let Gpt2Config { vocabulary, context, layers, heads, .. } = self.config;
        Shape { vocabulary, context, layers, heads }
    }

    fn attention(&self, layer: usize) -> Option<&MultiHeadAttention> {
        self.layers.get(layer).and_then(|block| block.attention.layer.attention())
    }

    fn infer(
        &self,
        tokens: &[u32],
        batch: usize,
        cache: Option<&mut [KvCache]>,
        probe: &mut Probe,
    ) -> Result<Array2<f32>> {
        let x = self.embed(tokens, batch, cache.as_deref().and_then(|cache| cache.first()))?;
        let x = stack::infer(&self.layers, x, batch, (Kind::Decoder, &stack::causal()), cache, probe)?;
        self.norm.infer(&x)
    }

    fn infer_last(&self, tokens: &[u32], cache: &mut [KvCache], probe: &mut Probe) -> Result<Array2<f32>> {
        let x = self.embed(tokens, 1, cache.first())?;
        let x = stack::infer_last(&self.layers, x, (Kind::Decoder, &stack::causal()), cache, probe)?;
        self.norm.infer(&x)
    }

    fn logits(&self, hidden: ArrayView2<f32>) -> Result<Array2<f32>> {
        self.predictor()?.logits(hidden)
    }

    fn top_k_candidates(&self, hidden: ArrayView1<f32>, k: usize) -> Result<Vec<(u32, f32)>> {
        self.predictor()?.top_k_candidates(hidden, k)
    }
}

impl Trained for Gpt2 {
    type Saved = Saved;

    fn forward(&self, tokens: &[u32], batch: usize, dropout: Option<Dropout>) -> Result<(Array2<f32>, Saved)> {
        let mut x = self.tokens.forward(tokens)?;
        self.positions.add_positions(&mut x, batch, 0)?;
        dropout::at(dropout, 0).map_or(Ok(()), |dropout| dropout::apply(dropout, batch, &mut x))?;
        let drop = dropout::at(dropout, 1);
        let (x, layers) = stack::forward(&self.layers, x.into_shared(), batch, &stack::causal(), drop)?;
        let (hidden, norm) = Layer::forward(&self.norm, &x)?;
        let logits = self.logits(hidden.view())?;
        Ok((logits, Saved { tokens: tokens.to_vec(), batch, dropout, layers, norm, hidden }))
    }

    fn backward(&self, saved: &Saved, dlogits: &Array2<f32>, grad: &mut Self) -> Result<HeadGradients> {
        let dhidden = match (&self.head, &mut grad.head) {
            (Some(head), Some(dhead)) => head.logits_backward(&saved.hidden, dlogits, dhead)?,
            _ => self.tokens.logits_backward(&saved.hidden, dlogits, &mut grad.tokens)?,
        };
        let dx = self.norm.backward(&saved.norm, dhidden, &mut grad.norm)?;
        let mut dgates = HeadGradients::default();
        let mut dx = stack::backward(&self.layers, &saved.layers, dx, &mut grad.layers, (Kind::Decoder, &mut dgates))?;
        dropout::at(saved.dropout, 0)
            .map_or(Ok::<_, Error>(()), |dropout| dropout::apply(dropout, saved.batch, &mut dx))?;
        self.positions.add_positions_backward(&dx, saved.batch, 0, &mut grad.positions)?;
        self.tokens.backward(&saved.tokens, &dx, &mut grad.tokens)?;
        Ok(dgates)
    }
}

//! Vision Transformer (Dosovitskiy 2020): an image as a sequence of patches.
//!
//! $$ x = [\,c \mid W\,\mathrm{patch}_1 + b \mid \dots \mid W\,\mathrm{patch}_N + b\,] + P, \qquad
//!    x \leftarrow \mathrm{block}_l(x), \qquad \mathrm{logits} = \mathrm{norm}(x)_0\, V^\top + d $$
//!
//! c is a token of its own, which collects what the classes are told by. Without it they are told by the mean of all patches.

use foveal::{Attention, Dropout, Threads, affine, matmul};
use ndarray::{Array1, Array2, Array3, Array4, ArrayView2, ArrayView4, Axis, s};

use super::block::Block;
use super::language::HeadGradients;
use super::names::{self, Names};
use super::stack;
use crate::checkpoint::{Checkpoint, Config, Dtype};
use crate::layer::{
    Activation, Family, Layer, LayerNorm, Linear, Mlp, MultiHeadAttention, NormOrder, Place, Random, Residual, dropout,
    layer_norm, parameters,
};
use crate::trace::{Kind, Probe};
use crate::{Error, Result};

/// The sizes of a ViT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VitConfig {
    /// Height and width of an image.
    pub image: usize,
    /// Height and width of a patch.
    pub patch: usize,
    /// The colours: 3, or 1 for grey.
    pub channels: usize,
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
    /// The classes it tells apart; 0 for a model without them.
    pub classes: usize,
    /// Whether a token of its own collects what the classes are told by. Otherwise it is the mean of all patches.
    pub class_token: bool,
    /// How patches attend to each other.
    pub attention: Family,
}

impl VitConfig {
    /// ViT base with patches of 16, 86 million parameters.
    pub fn base16() -> Self {
        VitConfig {
            image: 224,
            patch: 16,
            channels: 3,
            width: 768,
            layers: 12,
            heads: 12,
            hidden: 3072,
            activation: Activation::Gelu,
            epsilon: 1e-12,
            classes: 1000,
            class_token: true,
            attention: Family::Softmax,
        }
    }

    /// For handwritten digits of 28 × 28 in 49 patches of 4 × 4, to be trained here.
    pub fn digits() -> Self {
        let base = VitConfig { image: 28, patch: 4, channels: 1, classes: 10, ..VitConfig::base16() };
        VitConfig { width: 64, layers: 4, heads: 4, hidden: 128, ..base }
    }

    fn read(config: &Config, classes: usize) -> Result<Self> {
        if !config.flag_or("qkv_bias", true)? {
            return Err(config.error("qkv_bias", "true", false));
        }
        Ok(VitConfig {
            image: config.size_or("image_size", 224)?,
            patch: match config.get("patch_size") {
                Some(_) => config.divisor("patch_size", "image_size")?,
                None => 16,
            },
            channels: config.size_or("num_channels", 3)?,
            width: config.size("hidden_size")?,
            layers: config.size("num_hidden_layers")?,
            heads: config.divisor("num_attention_heads", "hidden_size")?,
            hidden: config.size("intermediate_size")?,
            activation: names::activation(config, "hidden_act", "gelu")?,
            epsilon: config.float_or("layer_norm_eps", 1e-12)? as f32,
            classes,
            class_token: config.flag_or("class_token", true)?,
            attention: names::family(config)?,
        })
    }

    fn write(&self) -> serde_json::Value {
        let labels: serde_json::Map<_, _> = (0..self.classes).map(|i| (i.to_string(), i.to_string().into())).collect();
        let mut config = serde_json::json!({
            "model_type": "vit",
            "architectures": ["ViTForImageClassification"],
            "image_size": self.image,
            "patch_size": self.patch,
            "num_channels": self.channels,
            "hidden_size": self.width,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": self.hidden,
            "hidden_act": names::of_activation(self.activation),
            "layer_norm_eps": names::decimal(self.epsilon),
            "id2label": labels,
        });
        if !self.class_token {
            config["class_token"] = false.into();
        }
        names::write_family(&mut config, self.attention);
        config
    }

    /// The patches of a row, or of a column, of an image.
    pub fn grid(&self) -> usize {
        self.image / self.patch.max(1)
    }

    /// The number of tokens: all patches, and one for the class if there is one.
    pub fn tokens(&self) -> usize {
        self.first_patch() + self.grid() * self.grid()
    }

    /// The number of the token that is the first patch.
    pub fn first_patch(&self) -> usize {
        usize::from(self.class_token)
    }

    /// The number of parameters, without making them.
    pub fn parameters(&self) -> u128 {
        let [p, c, d, l, f, t, k] =
            [self.patch, self.channels, self.width, self.layers, self.hidden, self.tokens(), self.classes]
                .map(|x| x as u128);
        let attention = self.attention.parameters(4 * d * d + 4 * d, self.heads, self.width / self.heads.max(1));
        let block = attention + 2 * d * f + d + f + 4 * d;
        let classes = if k > 0 { k * d + k } else { 0 };
        d * c * p * p + d + self.first_patch() as u128 * d + t * d + l * block + 2 * d + classes
    }
}

/// Hugging Face's names.
const NAMES: Names = Names {
    parts: &[
        ("class_token", "vit.embeddings.cls_token"),
        ("positions", "vit.embeddings.position_embeddings"),
        ("patches.", "vit.embeddings.patch_embeddings.projection."),
        ("layers.", "vit.encoder.layer."),
        (".attention.norm.", ".layernorm_before."),
        (".attention.q_proj.", ".attention.attention.query."),
        (".attention.k_proj.", ".attention.attention.key."),
        (".attention.v_proj.", ".attention.attention.value."),
        (".attention.o_proj.", ".attention.output.dense."),
        (".mlp.norm.", ".layernorm_after."),
        (".mlp.up_proj.", ".intermediate.dense."),
        (".mlp.down_proj.", ".output.dense."),
        ("norm.", "vit.layernorm."),
    ],
    transposed: &[],
};

/// The model.
#[derive(Clone, Debug, PartialEq)]
pub struct Vit {
    config: VitConfig,
    /// c: [1, 1, D]
    pub class_token: Option<Array3<f32>>,
    /// P: [1, tokens, D]
    pub positions: Array3<f32>,
    /// W and b.
    pub patches: Patches,
    /// The blocks.
    pub layers: Vec<Block<LayerNorm, Mlp>>,
    /// The norm before the classes.
    pub norm: LayerNorm,
    /// V and d: [classes, D].
    pub classifier: Option<Linear>,
}

parameters!(Vit {
    class_token: "class_token",
    positions: "positions",
    patches: "patches",
    layers: "layers",
    norm: "norm",
    classifier: "classifier",
});

/// Turns patches into vectors: a convolution whose stride is its size.
#[derive(Clone, Debug, PartialEq)]
pub struct Patches {
    /// W: [D, C, P, P]
    pub weight: Array4<f32>,
    /// b: \[D\]
    pub bias: Array1<f32>,
}

parameters!(Patches { weight: "weight", bias: "bias" });

impl Patches {
    fn matrix(&self) -> ArrayView2<'_, f32> {
        let (d, c, p, q) = self.weight.dim();
        self.weight.view().into_shape_with_order((d, c * p * q)).expect("made in standard layout")
    }
}

/// What [`Vit::backward`] needs.
#[derive(Debug)]
pub struct Saved {
    /// The patches as rows: [B·patches, C·P·P].
    patches: Array2<f32>,
    batch: usize,
    dropout: Option<Dropout>,
    layers: stack::Saved<LayerNorm, Mlp>,
    norm: layer_norm::Saved,
    classes: Array2<f32>,
}

impl Vit {
    /// A model that has learned nothing yet: weights of deviation 0.02.
    ///
    /// # Errors
    /// If the width does not divide by the number of heads, or the image by the patches.
    pub fn new(config: &VitConfig, random: &mut Random) -> Result<Self> {
        let &VitConfig { patch, channels, width, layers, heads, hidden, activation, epsilon, classes, image, .. } =
            config;
        if patch == 0 || !image.is_multiple_of(patch) {
            return Err(Error::PatchSize { image, patch });
        }
        let order = NormOrder::First;
        let grid = (!config.class_token).then(|| config.grid());
        let block = |layer| -> Result<_> {
            let attention = MultiHeadAttention::new(width, heads, random)?;
            let place = Place { layer, causal: false, tokens: config.tokens(), grid };
            let attention = config.attention.mixer(attention, place, random)?;
            Ok(Block {
                attention: Residual { norm: LayerNorm::new(width, epsilon), layer: attention, order },
                cross: None,
                mlp: Residual {
                    norm: LayerNorm::new(width, epsilon),
                    layer: Mlp::new(width, hidden, activation, random),
                    order,
                },
            })
        };
        let layers = (0..layers).map(block).collect::<Result<_>>()?;
        Ok(Vit {
            config: *config,
            class_token: config.class_token.then(|| random.normal((1, 1, width), 0.02)),
            positions: random.normal((1, config.tokens(), width), 0.02),
            patches: Patches {
                weight: random.normal((width, channels, patch, patch), 0.02),
                bias: Array1::zeros(width),
            },
            layers,
            norm: LayerNorm::new(width, epsilon),
            classifier: (classes > 0).then(|| Linear::new(width, classes, random)),
        })
    }

    /// The model of a checkpoint, with its classes if it has them.
    ///
    /// # Errors
    /// If its configuration makes no sense, or a tensor is absent or has another shape than that calls for.
    pub fn load(checkpoint: &Checkpoint) -> Result<Self> {
        let classes = checkpoint.get("classifier.bias").map_or(0, |bias| bias.shape().iter().product());
        let config = VitConfig::read(checkpoint.config(), classes)?;
        checkpoint.expect_parameters(config.parameters())?;
        let mut model = Vit::new(&config, &mut Random::zeros())?;
        NAMES.load(checkpoint, &mut model)?;
        Ok(model)
    }

    /// Saves it as a folder that [`load`](Vit::load) and Hugging Face's `ViTForImageClassification` read, its numbers as F32, F16 or BF16.
    ///
    /// # Errors
    /// If a file cannot be written; then nothing has changed.
    pub fn save(&self, folder: &std::path::Path, dtype: Dtype) -> Result<()> {
        NAMES.save(folder, &self.config.write(), self, dtype)
    }

    /// Its sizes.
    pub fn config(&self) -> &VitConfig {
        &self.config
    }

    /// A vector for the class token and each patch of `images` [B, C, image, image]: [B·(1 + patches), D].
    ///
    /// # Errors
    /// If the images have other sizes than the model's.
    pub fn infer<'a>(&self, images: impl Into<ArrayView4<'a, f32>>, probe: &mut Probe) -> Result<Array2<f32>> {
        let images = images.into();
        let x = self.embed(&self.cut(images)?, images.dim().0)?;
        let x = stack::infer(&self.layers, x, images.dim().0, (Kind::Encoder, &Attention::new()), None, probe)?;
        self.norm.infer(&x)
    }

    /// The scores of the classes, [B, classes], from what [`infer`](Vit::infer) gives.
    ///
    /// # Errors
    /// [`Error::MissingPart`] if the model has no classes.
    pub fn classify(&self, hidden: &Array2<f32>) -> Result<Array2<f32>> {
        self.classifier()?.forward(&self.collect(hidden))
    }

    /// What the classes are told by, from the rows of all tokens: [B, D].
    fn collect<'a>(&self, rows: impl Into<ArrayView2<'a, f32>>) -> Array2<f32> {
        let (rows, tokens) = (rows.into(), self.config.tokens());
        if self.config.class_token {
            return rows.slice(s![..;tokens, ..]).to_owned();
        }
        let (n, width) = rows.dim();
        let images = rows.to_shape((n / tokens, tokens, width)).expect("whole images");
        images.mean_axis(Axis(1)).expect("an image has a patch")
    }

    /// The gradient of the rows from that of what was collected: [B·tokens, D].
    fn collect_backward(&self, dcollected: &Array2<f32>) -> Array2<f32> {
        let ((batch, width), tokens) = (dcollected.dim(), self.config.tokens());
        let mut drows = Array3::zeros((batch, tokens, width));
        if self.config.class_token {
            drows.index_axis_mut(Axis(1), 0).assign(dcollected);
        } else {
            drows += &(dcollected / tokens as f32).insert_axis(Axis(1));
        }
        drows.into_shape_with_order((batch * tokens, width)).expect("made in standard layout")
    }

    fn classifier(&self) -> Result<&Linear> {
        let missing = Error::MissingPart { part: "the layer that tells classes", fit: "a ViTForImageClassification" };
        self.classifier.as_ref().ok_or(missing)
    }

    /// The scores of the classes, [B, classes], with what [`backward`](Vit::backward) needs.
    ///
    /// # Errors
    /// As [`infer`](Vit::infer) and [`classify`](Vit::classify).
    pub fn forward<'a>(
        &self,
        images: impl Into<ArrayView4<'a, f32>>,
        dropout: Option<Dropout>,
    ) -> Result<(Array2<f32>, Saved)> {
        let images = images.into();
        let (patches, batch) = (self.cut(images)?, images.dim().0);
        let mut x = self.embed(&patches, batch)?;
        dropout::at(dropout, 0).map_or(Ok(()), |dropout| dropout::apply(dropout, &mut x))?;
        let drop = dropout::at(dropout, 1);
        let (x, layers) = stack::forward(&self.layers, x.into_shared(), batch, &Attention::new(), drop)?;
        // With class tokens, only they are asked for.
        let asked = if self.config.class_token { self.collect(&x).into_shared() } else { x };
        let (normed, norm) = Layer::forward(&self.norm, &asked)?;
        let classes = if self.config.class_token { normed } else { self.collect(&normed) };
        let logits = self.classifier()?.forward(&classes)?;
        Ok((logits, Saved { patches, batch, dropout, layers, norm, classes }))
    }

    /// Adds the gradients of all parameters to `grad`; returns those of the heads.
    ///
    /// # Errors
    /// If dlogits is not shaped like the logits.
    pub fn backward(&self, saved: &Saved, dlogits: &Array2<f32>, grad: &mut Self) -> Result<HeadGradients> {
        let mut dclassifier = grad.classifier.take().unwrap_or_else(|| Linear::new(0, 0, &mut Random::zeros()));
        let dclasses = self.classifier()?.backward(&saved.classes, dlogits, &mut dclassifier)?;
        grad.classifier = Some(dclassifier);
        let dx = if self.config.class_token {
            self.collect_backward(&self.norm.backward(&saved.norm, dclasses, &mut grad.norm)?)
        } else {
            self.norm.backward(&saved.norm, self.collect_backward(&dclasses), &mut grad.norm)?
        };
        let mut dgates = HeadGradients::default();
        let mut dx = stack::backward(&self.layers, &saved.layers, dx, &mut grad.layers, (Kind::Encoder, &mut dgates))?;
        dropout::at(saved.dropout, 0).map_or(Ok::<_, Error>(()), |dropout| dropout::apply(dropout, &mut dx))?;
        self.embed_backward(saved, &dx, grad)?;
        Ok(dgates)
    }

    /// The patches of all images as rows: [B·patches, C·P·P].
    fn cut(&self, images: ArrayView4<f32>) -> Result<Array2<f32>> {
        let VitConfig { image, patch, channels, .. } = self.config;
        let (batch, grid) = (images.dim().0, self.config.grid());
        crate::layer::expect("the images", &[batch, channels, image, image], images.shape())?;
        let images = images.as_standard_layout();
        let cells = images.to_shape((batch, channels, grid, patch, grid, patch)).expect("whole patches");
        let rows = cells.permuted_axes([0, 2, 4, 1, 3, 5]);
        let rows = rows.as_standard_layout().into_owned();
        Ok(rows.into_shape_with_order((batch * grid * grid, channels * patch * patch)).expect("the same numbers"))
    }

    /// Vectors for the class token and all patches: [B·(1 + patches), D].
    fn embed(&self, patches: &Array2<f32>, batch: usize) -> Result<Array2<f32>> {
        let (tokens, first, width) = (self.config.tokens(), self.config.first_patch(), self.config.width);
        let bias = Some(self.patches.bias.view());
        let projected = affine(patches, self.patches.matrix().reversed_axes(), bias, Threads::Rayon)?;
        let mut x = Array3::zeros((batch, tokens, width));
        self.class_token.iter().for_each(|token| x.slice_mut(s![.., ..1, ..]).assign(token));
        let shape = (batch, tokens - first, width);
        let projected = projected.into_shape_with_order(shape).expect("made in standard layout");
        x.slice_mut(s![.., first.., ..]).assign(&projected);
        x += &self.positions;
        Ok(x.into_shape_with_order((batch * tokens, width)).expect("made in standard layout"))
    }

    fn embed_backward(&self, saved: &Saved, dx: &Array2<f32>, grad: &mut Self) -> Result<()> {
        let (tokens, first, width) = (self.config.tokens(), self.config.first_patch(), self.config.width);
        let dx = dx.to_shape((saved.batch, tokens, width)).expect("as many rows as there were tokens");
        let dpositions = dx.sum_axis(Axis(0));
        grad.class_token.iter_mut().for_each(|token| *token += &dpositions.slice(s![..1, ..]));
        grad.positions += &dpositions;
        grad.patches.bias += &dpositions.slice(s![first.., ..]).sum_axis(Axis(0));
        let dpatches = dx.slice(s![.., first.., ..]).as_standard_layout().into_owned();
        let dpatches = dpatches.into_shape_with_order((saved.patches.nrows(), width)).expect("the same numbers");
        let shape = (width, saved.patches.ncols());
        let dweight = grad.patches.weight.view_mut().into_shape_with_order(shape).expect("made in standard layout");
        matmul(1.0, dpatches.t(), &saved.patches, 1.0, dweight, Threads::Rayon)?;
        Ok(())
    }
}

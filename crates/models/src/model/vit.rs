//! Vision Transformer (Dosovitskiy 2020): an image as a sequence of patches.
//!
//! $$ x = [\,c \mid W\,\mathrm{patch}_1 + b \mid \dots \mid W\,\mathrm{patch}_N + b\,] + P, \qquad
//!    x \leftarrow \mathrm{block}_l(x), \qquad \mathrm{logits} = \mathrm{norm}(x)_0\, V^\top + d $$
//!
//! c is a token of its own, which collects what the classes are told by. Without it they are told by the mean of all patches.

mod config;
mod preprocessor;
mod resample;

use foveal::{Attention, Dropout, Threads};
use foveal_compute::{affine, matmul};
use ndarray::{Array1, Array2, Array3, Array4, ArrayView2, ArrayView4, Axis, s};

pub use self::config::VitConfig;
pub use self::preprocessor::{Preprocessor, Size};
pub use self::resample::Filter;
use super::block::Block;
use super::language::HeadGradients;
use super::names::Names;
use super::stack;
use crate::checkpoint::{Checkpoint, Dtype, write_whole};
use crate::layer::{
    Layer, LayerNorm, Linear, Mlp, MultiHeadAttention, NormOrder, Place, Random, Residual, dropout, layer_norm,
    parameters,
};
use crate::trace::{Kind, Probe};
use crate::{Error, Result};

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
    preprocessor: Preprocessor,
    /// What the classes are called.
    labels: Vec<String>,
    /// c: [1, 1, D]
    pub class_token: Option<Array3<f32>>,
    /// P: [1, tokens, D]
    pub positions: Array3<f32>,
    /// W and b.
    pub patches: PatchEmbedding,
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
pub struct PatchEmbedding {
    /// W: [D, C, P, P]
    pub weight: Array4<f32>,
    /// b: \[D\]
    pub bias: Array1<f32>,
}

parameters!(PatchEmbedding { weight: "weight", bias: "bias" });

impl PatchEmbedding {
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
            preprocessor: Preprocessor::plain(image),
            labels: (0..classes).map(|class| class.to_string()).collect(),
            class_token: config.class_token.then(|| random.normal((1, 1, width), 0.02)),
            positions: random.normal((1, config.tokens(), width), 0.02),
            patches: PatchEmbedding {
                weight: random.normal((width, channels, patch, patch), 0.02),
                bias: Array1::zeros(width),
            },
            layers,
            norm: LayerNorm::new(width, epsilon),
            classifier: (classes > 0).then(|| Linear::new(width, classes, random)),
        })
    }

    /// The model of a checkpoint, with its classes and their names if it has them, and the preprocessor beside it.
    ///
    /// # Errors
    /// If its configuration makes no sense, or a tensor is absent or has another shape than that calls for.
    pub fn load(checkpoint: &Checkpoint) -> Result<Self> {
        let classes = checkpoint.get("classifier.bias").map_or(0, |bias| bias.shape().iter().product());
        let config = VitConfig::read(checkpoint.config(), classes)?;
        checkpoint.expect_parameters(config.parameters())?;
        let mut model = Vit::new(&config, &mut Random::zeros())?;
        NAMES.load(checkpoint, &mut model)?;
        if let Some(labels) = checkpoint.config().section("id2label")? {
            for (class, label) in model.labels.iter_mut().enumerate() {
                *label = labels.text_or(&class.to_string(), label)?.to_owned();
            }
        }
        if let Some(folder) = checkpoint.folder()
            && let Some(preprocessor) = Preprocessor::of_folder(folder)?
        {
            model.preprocessor = preprocessor;
        }
        Ok(model)
    }

    /// Saves it as a folder that [`load`](Vit::load) and Hugging Face's `ViTForImageClassification` read, its numbers as F32, F16 or BF16.
    ///
    /// # Errors
    /// If a file cannot be written; then nothing has changed.
    pub fn save(&self, folder: &std::path::Path, dtype: Dtype) -> Result<()> {
        NAMES.save(folder, &self.config.write(&self.labels), self, dtype)?;
        let steps = format!("{:#}\n", self.preprocessor.write());
        write_whole(&folder.join("preprocessor_config.json"), |file| file.write_all(steps.as_bytes()))
    }

    /// What becomes of a picture before the model reads it.
    pub fn preprocessor(&self) -> &Preprocessor {
        &self.preprocessor
    }

    /// What the classes are called: their numbers where the checkpoint does not say.
    pub fn labels(&self) -> &[String] {
        &self.labels
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
        dropout::at(dropout, 0).map_or(Ok(()), |dropout| dropout::apply(dropout, batch, &mut x))?;
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
        dropout::at(saved.dropout, 0)
            .map_or(Ok::<_, Error>(()), |dropout| dropout::apply(dropout, saved.batch, &mut dx))?;
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

//! One HTML file with all layers and heads of a run, which fetches nothing: its data, style and program are inside.

mod encode;
mod html;
mod still;

pub(crate) use still::still;

use ndarray::Array2;

use crate::scene::{Caption, Scene, caption_setters, check_count, check_not_empty, check_shape, strings};
use crate::{Error, Look};

/// The tokens along one side of a matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Tokens {
    pub(crate) labels: Vec<String>,
    pub(crate) words: Vec<usize>,
    pub(crate) word_labels: Vec<String>,
    pub(crate) special: Vec<bool>,
}

impl Tokens {
    /// Each a word of its own, none special.
    pub fn new<S: Into<String>>(labels: impl IntoIterator<Item = S>) -> Self {
        let labels = strings(labels);
        Tokens {
            words: (0..labels.len()).collect(),
            special: vec![false; labels.len()],
            word_labels: Vec::new(),
            labels,
        }
    }

    /// The word that each token belongs to: neighbours with the same number are merged on demand.
    #[must_use]
    pub fn words(mut self, words: impl IntoIterator<Item = usize>) -> Self {
        self.words = words.into_iter().collect();
        self
    }

    /// The text of each word, by its number, where the labels of its tokens do not join to it: a Hangul syllable cut
    /// into bytes, say.
    #[must_use]
    pub fn word_labels<S: Into<String>>(mut self, labels: impl IntoIterator<Item = S>) -> Self {
        self.word_labels = strings(labels);
        self
    }

    /// Which tokens are special: `[CLS]`, `<s>`, padding. They are hidden on demand.
    #[must_use]
    pub fn special(mut self, special: impl IntoIterator<Item = bool>) -> Self {
        self.special = special.into_iter().collect();
        self
    }

    fn check(&self) -> Result<(), Error> {
        if self.labels.is_empty() {
            return Err(Error::Empty { what: "tokens" });
        }
        check_count("word numbers", self.labels.len(), self.words.len())?;
        check_count("special flags", self.labels.len(), self.special.len())
    }
}

/// Which attention of a model it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Of a model that has only one.
    #[default]
    Attention,
    /// The encoder's, over the source.
    Encoder,
    /// The decoder's, over what is written so far.
    Decoder,
    /// The decoder's, over the source.
    Cross,
}

/// The layers of one kind of attention, over the same tokens.
#[derive(Clone, Debug)]
pub struct Group {
    pub(crate) kind: Kind,
    pub(crate) queries: Tokens,
    pub(crate) keys: Tokens,
    pub(crate) weights: Vec<Vec<Array2<f32>>>,
    pub(crate) norms: Vec<Vec<Array2<f32>>>,
    pub(crate) rollout: Vec<Array2<f32>>,
}

impl Group {
    /// Attention of `queries` over `keys`, without layers yet.
    ///
    /// # Errors
    /// If there are no tokens, or not a word number and a flag for each.
    pub fn new(kind: Kind, queries: Tokens, keys: Tokens) -> Result<Self, Error> {
        queries.check()?;
        keys.check()?;
        Ok(Group { kind, queries, keys, weights: Vec::new(), norms: Vec::new(), rollout: Vec::new() })
    }

    /// The next layer: the weights [T, S] of its heads.
    ///
    /// # Errors
    /// If there is no head, or one has another shape.
    pub fn layer(mut self, heads: Vec<Array2<f32>>) -> Result<Self, Error> {
        self.check(&heads)?;
        self.weights.push(heads);
        Ok(self)
    }

    /// The norms ‖w · f(x)‖ [T, S] of the next layer's heads that has none; in the end, all layers have them or none.
    /// Merging words adds and averages norms as it does weights, which for norms is an upper bound.
    ///
    /// # Errors
    /// If there is no head, or one has another shape.
    pub fn norms(mut self, heads: Vec<Array2<f32>>) -> Result<Self, Error> {
        self.check(&heads)?;
        self.norms.push(heads);
        Ok(self)
    }

    /// The rollout [T, S] up to each layer.
    ///
    /// # Errors
    /// If one has another shape.
    pub fn rollout(mut self, layers: Vec<Array2<f32>>) -> Result<Self, Error> {
        layers.iter().try_for_each(|layer| self.check_one(layer))?;
        self.rollout = layers;
        Ok(self)
    }

    fn check(&self, heads: &[Array2<f32>]) -> Result<(), Error> {
        if heads.is_empty() {
            return Err(Error::Empty { what: "heads" });
        }
        heads.iter().try_for_each(|head| self.check_one(head))
    }

    fn check_one(&self, matrix: &Array2<f32>) -> Result<(), Error> {
        check_not_empty(matrix)?;
        check_shape("a matrix of the page", (self.queries.labels.len(), self.keys.labels.len()), matrix.dim())
    }

    /// All layers are there, with equally many heads and everything for each.
    fn complete(&self) -> Result<(), Error> {
        let heads = self.weights.first().ok_or(Error::Empty { what: "layers" })?.len();
        self.weights.iter().try_for_each(|layer| check_count("heads in a layer", heads, layer.len()))?;
        if !self.norms.is_empty() {
            check_count("layers with norms", self.weights.len(), self.norms.len())?;
            self.norms.iter().try_for_each(|layer| check_count("norms of a layer", heads, layer.len()))?;
        }
        if !self.rollout.is_empty() {
            check_count("layers with a rollout", self.weights.len(), self.rollout.len())?;
        }
        Ok(())
    }
}

/// A page to explore attention in: a map that zooms, lines, and the text itself; switches for layer, head, weights, norm
/// and rollout; words merged, special tokens hidden, a token pinned; saved as SVG or PNG. One file, offline, in English
/// and Korean, light and dark.
///
/// ```
/// use foveal_view::{Group, Kind, Page, Tokens};
/// use ndarray::array;
///
/// let tokens = Tokens::new(["un", "believ", "able", " news"]).words([0, 0, 0, 1]);
/// let weights = array![[1., 0., 0., 0.], [0.5, 0.5, 0., 0.], [0.2, 0.3, 0.5, 0.], [0.1, 0.1, 0.1, 0.7]];
/// let group = Group::new(Kind::Attention, tokens.clone(), tokens)?.layer(vec![weights])?;
/// let html = Page::new(vec![group]).title("A word in three tokens").html()?;
/// assert!(html.starts_with("<!doctype html>"));
/// # Ok::<(), foveal_view::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Page {
    pub(crate) groups: Vec<Group>,
    pub(crate) budget: usize,
    pub(crate) caption: Caption,
}

impl Page {
    /// One group, or one for each kind of attention.
    pub fn new(groups: Vec<Group>) -> Self {
        Page { groups, budget: 11_500_000, caption: Caption::default() }
    }

    caption_setters!();

    /// The size in bytes that the file should stay below; 11.5 million by default. Values are stored in steps of 1/254 of
    /// the largest of their row, and where that would be too much, of up to 1/128, so that a large run still fits.
    #[must_use]
    pub fn budget(mut self, bytes: usize) -> Self {
        self.budget = bytes;
        self
    }

    /// The page as one file.
    ///
    /// # Errors
    /// If there is no group or no layer, or layers differ in their heads.
    pub fn html(&self) -> Result<String, Error> {
        if self.groups.is_empty() {
            return Err(Error::Empty { what: "groups" });
        }
        self.groups.iter().try_for_each(Group::complete)?;
        html::page(self)
    }
}

/// The page of a scene: one to explore where the scene is attention over tokens, else the picture alone.
pub(crate) fn of_scene(scene: &Scene, look: &Look) -> Result<String, Error> {
    let group = match scene {
        Scene::Heatmap(scene) => {
            let kind = if scene.alignment { Kind::Cross } else { Kind::Attention };
            Group::new(kind, Tokens::new(scene.rows.clone()), Tokens::new(scene.cols.clone()))?
                .layer(vec![scene.values.clone()])?
        }
        Scene::Lines(scene) => {
            Group::new(Kind::Attention, Tokens::new(scene.queries.clone()), Tokens::new(scene.keys.clone()))?
                .layer(scene.heads.iter().map(|(_, weights)| weights.clone()).collect())?
        }
        _ => return still(scene, look),
    };
    Page { caption: scene.caption().clone(), ..Page::new(vec![group]) }.html()
}

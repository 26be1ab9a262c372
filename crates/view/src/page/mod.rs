//! One HTML file with all layers and heads of a run, which fetches nothing: its data, style and program are inside.

mod encode;
mod html;
mod join;
mod layer;
mod meta;
mod pictures;
mod program;
mod still;

pub use layer::Layer;
pub(crate) use still::still;

use crate::scene::{Caption, Scene, caption_setters, check_count, check_shape, strings};
use crate::{Error, Language, Look};

/// The script behind the parts of the lessons that one can try: the page's program with its engine, for documents that have
/// elements `data-try`. See `scripts/site`.
///
/// # Errors
/// If the program's modules cannot be joined, which would be a mistake in this crate.
pub fn lesson_script() -> Result<String, Error> {
    program::lesson_script().map_err(|problem| Error::Internal { doing: "joining the lessons' script", problem })
}

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
    /// With their numbers, which may have gaps.
    pub(crate) layers: Vec<(usize, Layer)>,
    pub(crate) salient: Option<(usize, usize)>,
}

impl Group {
    /// Attention of `queries` over `keys`, without layers yet.
    ///
    /// # Errors
    /// If there are no tokens, or not a word number and a flag for each.
    pub fn new(kind: Kind, queries: Tokens, keys: Tokens) -> Result<Self, Error> {
        queries.check()?;
        keys.check()?;
        Ok(Group { kind, queries, keys, layers: Vec::new(), salient: None })
    }

    /// The next layer: its number is one more than the last one's.
    ///
    /// # Errors
    /// If it has other tokens than these, or another number of heads than the layers before.
    pub fn layer(self, layer: Layer) -> Result<Self, Error> {
        let number = self.layers.last().map_or(0, |(number, _)| number + 1);
        self.layer_at(number, layer)
    }

    /// A layer with its number in the model, where not all layers are shown.
    ///
    /// # Errors
    /// As [`layer`](Self::layer).
    pub fn layer_at(mut self, number: usize, layer: Layer) -> Result<Self, Error> {
        check_shape("a matrix of the page", (self.queries.labels.len(), self.keys.labels.len()), layer.size())?;
        if let Some((_, first)) = self.layers.first() {
            check_count("heads in a layer", first.heads(), layer.heads())?;
        }
        self.layers.push((number, layer));
        Ok(self)
    }

    /// The layer and head that the page opens with. Without: the first.
    #[must_use]
    pub fn salient(mut self, layer: usize, head: usize) -> Self {
        self.salient = Some((layer, head));
        self
    }

    /// Whether rows and columns are the same tokens.
    fn is_square(&self) -> bool {
        self.kind != Kind::Cross && self.queries.labels.len() == self.keys.labels.len()
    }
}

/// How queries and keys are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// In 32 bits while that stays below some 8 MB, else in 16.
    #[default]
    Fitting,
    /// In 32 bits: every number is exact to the four digits that the page prints.
    Exact,
    /// In 16 bits: the page prints two digits, and says so.
    Half,
}

/// A page to explore attention in: a map that zooms from the whole matrix to single numbers, lines, heads overlaid, the
/// arithmetic of a cell, and the text itself; switches for layer, head, weights, norm and rollout. One file, offline, in
/// English and Korean, light and dark. It computes what it shows from queries and keys, so its size grows with the tokens,
/// not with their square.
///
/// ```
/// use foveal_view::{Group, Kind, Layer, Page, Tokens};
/// use ndarray::array;
///
/// let tokens = Tokens::new(["un", "believ", "able", " news"]).words([0, 0, 0, 1]);
/// let weights = array![[1., 0., 0., 0.], [0.5, 0.5, 0., 0.], [0.2, 0.3, 0.5, 0.], [0.1, 0.1, 0.1, 0.7]];
/// let group = Group::new(Kind::Attention, tokens.clone(), tokens)?.layer(Layer::weights(vec![weights])?)?;
/// let html = Page::new(vec![group]).title("A word in three tokens").html()?;
/// assert!(html.starts_with("<!doctype html>"));
/// # Ok::<(), foveal_view::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Page {
    pub(crate) groups: Vec<Group>,
    pub(crate) storage: Storage,
    pub(crate) model: String,
    pub(crate) written: Option<String>,
    pub(crate) next: Vec<(String, f32)>,
    pub(crate) view: Vec<(String, String)>,
    pub(crate) caption: Caption,
}

impl Page {
    /// One group, or one for each kind of attention.
    pub fn new(groups: Vec<Group>) -> Self {
        Page {
            groups,
            storage: Storage::default(),
            model: String::new(),
            written: None,
            next: Vec::new(),
            view: Vec::new(),
            caption: Caption::default(),
        }
    }

    caption_setters!();

    /// How queries and keys are stored.
    #[must_use]
    pub fn storage(mut self, storage: Storage) -> Self {
        self.storage = storage;
        self
    }

    /// The name of the model.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = name.into();
        self
    }

    /// What the model wrote: a translation, an answer.
    #[must_use]
    pub fn written(mut self, text: impl Into<String>) -> Self {
        self.written = Some(text.into());
        self
    }

    /// What may come next, most probable first.
    #[must_use]
    pub fn next(mut self, predictions: impl IntoIterator<Item = (String, f32)>) -> Self {
        self.next = predictions.into_iter().collect();
        self
    }

    /// Opens the page with this setting: a key and value of its links, such as `view` and `lines`; docs/page.md lists them.
    #[must_use]
    pub fn view(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.view.push((key.into(), value.into()));
        self
    }

    /// The page as one file.
    ///
    /// # Errors
    /// If there is no group, or one has no layer.
    pub fn html(&self) -> Result<String, Error> {
        if self.groups.is_empty() {
            return Err(Error::Empty { what: "groups" });
        }
        if self.groups.iter().any(|group| group.layers.is_empty()) {
            return Err(Error::Empty { what: "layers" });
        }
        html::file(self)
    }

    /// The page without data, as a server gives it out: it asks `POST ask` beside itself.
    ///
    /// # Errors
    /// If the program cannot be joined, which is a fault of this crate.
    pub fn served(language: Language) -> Result<String, Error> {
        html::shell("server", language)
    }

    /// The page without data for a frame inside a notebook: it asks the window around it, by messages.
    ///
    /// # Errors
    /// As [`served`](Self::served).
    pub fn framed(language: Language) -> Result<String, Error> {
        html::shell("notebook", language)
    }
}

/// The page of a scene: one to explore where the scene is attention over tokens, else the picture alone.
pub(crate) fn of_scene(scene: &Scene, look: &Look) -> Result<String, Error> {
    let group = match scene {
        Scene::Heatmap(scene) => {
            let kind = if scene.alignment { Kind::Cross } else { Kind::Attention };
            Group::new(kind, Tokens::new(scene.rows.clone()), Tokens::new(scene.cols.clone()))?
                .layer(Layer::weights(vec![scene.values.clone()])?)?
        }
        Scene::Lines(scene) => {
            Group::new(Kind::Attention, Tokens::new(scene.queries.clone()), Tokens::new(scene.keys.clone()))?
                .layer(Layer::weights(scene.heads.iter().map(|(_, weights)| weights.clone()).collect())?)?
        }
        _ => return still(scene, look),
    };
    let theme = if look.theme == crate::Theme::Dark { "dark" } else { "auto" };
    Page { caption: scene.caption().clone(), ..Page::new(vec![group]).view("theme", theme) }.html()
}

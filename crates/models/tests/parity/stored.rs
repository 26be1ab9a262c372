//! Models that can be saved and loaded: what was saved is what is loaded, under Hugging Face's names.

use std::fmt::Debug;
use std::path::Path;

use foveal_models::model::{Gpt2, Llama, Transformer, Vit};
use foveal_models::{Checkpoint, Dtype, Model, Result};

use crate::expected::{folder, load};
use crate::support;

/// Any of them.
pub trait Stored: Sized + PartialEq + Debug {
    fn load(checkpoint: &Checkpoint) -> Result<Self>;
    fn save(&self, folder: &Path) -> Result<()>;
    /// The one in a model of any kind.
    fn of(model: Model) -> Option<Self>;
}

macro_rules! stored {
    ($($model:ident),+) => {
        $(impl Stored for $model {
            fn load(checkpoint: &Checkpoint) -> Result<Self> {
                $model::load(checkpoint)
            }

            fn save(&self, folder: &Path) -> Result<()> {
                $model::save(self, folder, Dtype::F32)
            }

            fn of(model: Model) -> Option<Self> {
                match model {
                    Model::$model(model) => Some(model),
                    _ => None,
                }
            }
        })+
    };
}

stored!(Gpt2, Llama, Vit, Transformer);

fn check<M: Stored>(name: &str) {
    let model: M = load(name);
    let theirs = Checkpoint::open(folder(name)).unwrap();
    assert_eq!(M::of(Model::load(&theirs).unwrap()).as_ref(), Some(&model), "{name}");
    let saved = tempfile::tempdir().unwrap();
    model.save(saved.path()).unwrap();
    let ours = Checkpoint::open(saved.path()).unwrap();
    assert_eq!(M::load(&ours).unwrap(), model, "{name}");
    assert!(ours.names().eq(theirs.names()), "{name}: {:?}", ours.names().collect::<Vec<_>>());
    for tensor in theirs.names() {
        let expected = theirs.tensor(tensor).unwrap();
        assert_eq!(ours.array(tensor, expected.shape()).unwrap(), expected.to_f32().unwrap(), "{name}: {tensor}");
    }
}

#[test]
fn what_is_saved_is_what_is_loaded() {
    check::<Gpt2>("gpt2");
    check::<Llama>("llama");
    check::<Llama>("llama3");
    check::<Vit>("vit");
    check::<Transformer>("norm_last");
    check::<Transformer>("norm_first");
}

#[test]
fn a_folder_and_gguf_hold_the_same_model() {
    fn check<M: Stored>(name: &str) {
        let load =
            |name: &str| M::load(&Checkpoint::open(support::fixture("checkpoints").join(name)).unwrap()).unwrap();
        assert_eq!(load(name), load(&format!("{name}.gguf")), "{name}");
    }
    check::<Gpt2>("gpt2");
    check::<Llama>("llama");
}

//! Models that can be saved and loaded: what was saved is what is loaded, under Hugging Face's names.

use std::fmt::Debug;
use std::path::Path;

use foveal_models::layer::Random;
use foveal_models::model::{Bert, BertConfig, Gpt2, Llama, Sentences, Transformer, Vit};
use foveal_models::trace::{Capture, Kind, Probe};
use foveal_models::{Checkpoint, Dtype, Model, Result};

use crate::expected::{folder, load};
use crate::support;

/// Any of them.
pub trait Stored: Sized + PartialEq + Debug {
    fn load(checkpoint: &Checkpoint) -> Result<Self>;
    fn save_as(&self, folder: &Path, dtype: Dtype) -> Result<()>;
    /// The one in a model of any kind.
    fn of(model: Model) -> Option<Self>;
}

macro_rules! stored {
    ($($model:ident),+) => {
        $(impl Stored for $model {
            fn load(checkpoint: &Checkpoint) -> Result<Self> {
                $model::load(checkpoint)
            }

            fn save_as(&self, folder: &Path, dtype: Dtype) -> Result<()> {
                self.save(folder, dtype)
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

stored!(Gpt2, Bert, Llama, Vit, Transformer);

fn check<M: Stored>(name: &str) {
    let model: M = load(name);
    let theirs = Checkpoint::open(folder(name)).unwrap();
    assert_eq!(M::of(Model::load(&theirs).unwrap()).as_ref(), Some(&model), "{name}");
    let saved = tempfile::tempdir().unwrap();
    model.save_as(saved.path(), Dtype::F32).unwrap();
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
    check::<Bert>("bert");
    check::<Bert>("bert_model");
    check::<Llama>("llama");
    check::<Llama>("llama_linear");
    check::<Llama>("llama3");
    check::<Vit>("vit");
    check::<Transformer>("norm_last");
    check::<Transformer>("norm_first");
}

/// With and without the head that guesses words and the pooler: the same numbers come out, to the bit, and the same attention.
#[test]
fn a_saved_bert_does_the_same() {
    let sentences = Sentences::new(&[&[3, 1, 4, 1, 5][..], &[9, 2, 6]]);
    for (guesses, pools) in [(true, true), (true, false), (false, true), (false, false)] {
        let sizes = BertConfig { vocabulary: 13, context: 8, width: 12, layers: 2, heads: 3, ..BertConfig::minilm() };
        let model = Bert::new(&BertConfig { hidden: 20, guesses, pools, ..sizes }, &mut Random::new(1)).unwrap();
        let saved = tempfile::tempdir().unwrap();
        model.save(saved.path(), Dtype::F32).unwrap();
        let checkpoint = Checkpoint::open(saved.path()).unwrap();
        assert_eq!(checkpoint.get("cls.predictions.bias").is_some(), guesses);
        // Beside a head the body's names have a prefix, as in Hugging Face's files.
        assert_eq!(checkpoint.names().any(|name| name == "embeddings.word_embeddings.weight"), !guesses);
        let again = Bert::load(&checkpoint).unwrap();
        assert_eq!(again, model);
        let run = |model: &Bert| {
            let mut probe = Probe::new(Capture::All);
            let hidden = model.infer(&sentences, &mut probe).unwrap();
            let trace = probe.into_trace();
            let weights: Vec<_> =
                (0..2).map(|i| trace.layer(Kind::Encoder, i).unwrap().weights(1, 2).unwrap()).collect();
            let (guessed, pooled) = (model.guess(hidden.view()), model.pool(&hidden, 2));
            assert_eq!((guessed.is_ok(), pooled.is_ok()), (guesses, pools));
            (hidden, guessed.ok(), pooled.ok(), weights)
        };
        assert_eq!(run(&again), run(&model));
    }
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
    // GGUF has no head that guesses words.
    let open = |name: &str| Bert::load(&Checkpoint::open(support::fixture("checkpoints").join(name)).unwrap()).unwrap();
    let (folder, gguf) = (open("bert"), open("bert.gguf"));
    let sentences = Sentences::new(&[[3, 1, 4, 1, 5]]);
    let run = |model: &Bert| model.infer(&sentences, &mut Probe::default()).unwrap();
    assert!(folder.head.is_some() && gguf.head.is_none());
    assert_eq!(run(&folder), run(&gguf));
}

//! A run goes on with the task it began with, and with no other: an error names what differs.

use foveal_models::Error;
use foveal_models::Tokenizer;
use foveal_models::layer::{Family, Random};
use foveal_models::model::{Gpt2, Gpt2Config, Transformer, TransformerConfig, Vit, VitConfig};
use foveal_models::train::{Example, Images, Pairs, Plan, Task, Text, Trainer};
use foveal_models::translation::Languages;
use ndarray::Array4;

/// Saves one step of `first`, and gives what going on with each of the others says; `first` itself goes on.
fn refusals<T: Task>(first: &T, model: &T::Model, others: &[(T, T::Model)]) -> Vec<Vec<String>> {
    let (folder, plan) = (tempfile::tempdir().unwrap(), Plan { steps: 3, ..Plan::default() });
    let state = folder.path().join("state.safetensors");
    let mut trainer = Trainer::new(first, model.clone(), plan).unwrap();
    trainer.step().unwrap();
    trainer.save(&state).unwrap();
    assert_eq!(Trainer::resume(first, model.clone(), plan, &state).unwrap().records().len(), 1);
    let refused = |(task, model): &(T, T::Model)| match Trainer::resume(task, model.clone(), plan, &state).err() {
        Some(Error::OtherTask { differences, .. }) => differences,
        other => panic!("expected another task, got {other:?}"),
    };
    others.iter().map(refused).collect()
}

/// One difference, by name.
#[track_caller]
fn only(differences: &[String], name: &str) {
    assert!(differences.len() == 1 && differences[0].starts_with(name), "expected {name}: {differences:?}");
}

#[test]
fn text() {
    let config =
        Gpt2Config { vocabulary: 9, context: 8, width: 8, heads: 2, layers: 1, hidden: 8, ..Gpt2Config::nano() };
    let model = |config| Gpt2::new(&config, &mut Random::new(1)).unwrap();
    let tokenizer = |text: &str| Tokenizer::of_characters(text).unwrap();
    let task = |text: &str, of: &str, batch| {
        let tokenizer = tokenizer(of);
        let tokens = tokenizer.encode_bare(&text.repeat(40)).unwrap().ids().to_vec();
        Text::<Gpt2>::new(tokens, 8, batch).unwrap().with_vocabulary(&tokenizer)
    };
    let first = task("abcdabdc", "abcd", 4);
    let others = [
        (task("abcdabcd", "abcd", 4), model(config)),
        (task("abcdabdc", "abcd", 6), model(config)),
        // The same tokens of other letters.
        (task("efghefhg", "efgh", 4), model(config)),
        // The same shapes of parameters.
        (task("abcdabdc", "abcd", 4), model(Gpt2Config { heads: 4, ..config })),
        (task("abcdabdc", "abcd", 4), model(Gpt2Config { attention: Family::Dot, ..config })),
    ];
    let refused = refusals(&first, &model(config), &others);
    assert_eq!(refused[0].len(), 2, "both parts of the text differ: {:?}", refused[0]);
    assert!(refused[0][0].starts_with("learned tokens: 288 values with hash "), "{:?}", refused[0]);
    only(&refused[1], "batch: 4, now 6");
    only(&refused[2], "vocabulary");
    only(&refused[3], "heads: 2, now 4");
    only(&refused[4], "attention: softmax, now dot");
    let error = Error::OtherTask { path: "state".into(), differences: refused[1].clone() }.to_string();
    assert!(error.contains("another task (batch: 4, now 6)") && error.contains("begin elsewhere"), "{error}");
}

#[test]
fn pairs() {
    let config = TransformerConfig {
        source_vocabulary: 9,
        target_vocabulary: 11,
        context: 12,
        width: 8,
        heads: 2,
        hidden: 8,
        ..TransformerConfig::small()
    };
    let model = Transformer::new(&config, &mut Random::new(1)).unwrap();
    let example = |source: &[u32], target: &[u32]| Example::new(source.to_vec(), target.to_vec());
    let languages = |target: &str| Languages {
        source: Tokenizer::of_characters("abc").unwrap(),
        target: Tokenizer::of_characters(target).unwrap(),
    };
    let task = |learned: Vec<Example>, batch, ends, of: &str| {
        Pairs::new(learned, vec![example(&[3], &[4])], batch, ends).unwrap().with_vocabularies(&languages(of))
    };
    let learned = || vec![example(&[1, 2], &[3]), example(&[4], &[5, 6])];
    // The same tokens in the same order, cut elsewhere.
    let cut = vec![example(&[1], &[2, 3]), example(&[4], &[5, 6])];
    let others = [
        (task(cut, 2, (0, 1), "xyz"), model.clone()),
        (task(learned(), 3, (0, 1), "xyz"), model.clone()),
        (task(learned(), 2, (1, 0), "xyz"), model.clone()),
        (task(learned(), 2, (0, 1), "uvw"), model.clone()),
    ];
    let refused = refusals(&task(learned(), 2, (0, 1), "xyz"), &model, &others);
    only(&refused[0], "learned pairs");
    only(&refused[1], "batch: 2, now 3");
    only(&refused[2], "tokens that begin and end: 0 and 1, now 1 and 0");
    only(&refused[3], "vocabulary of the target");
}

#[test]
fn digits() {
    let config = VitConfig { image: 8, width: 8, heads: 2, layers: 1, hidden: 8, ..VitConfig::digits() };
    let model = Vit::new(&config, &mut Random::new(1)).unwrap();
    let task = |phase: f32, turn: u32, held_out, batch| {
        let images = Array4::from_shape_fn((12, 1, 8, 8), |(n, _, y, x)| ((n * 7 + y * 3 + x) as f32 + phase).sin());
        Images::new(images, (0..12).map(|n| (n + turn) % 10).collect(), held_out, batch).unwrap()
    };
    let others = [
        (task(0.5, 0, 2, 4), model.clone()),
        (task(0.0, 1, 2, 4), model.clone()),
        (task(0.0, 0, 3, 4), model.clone()),
        (task(0.0, 0, 2, 5), model.clone()),
    ];
    let refused = refusals(&task(0.0, 0, 2, 4), &model, &others);
    only(&refused[0], "images");
    only(&refused[1], "classes");
    only(&refused[2], "held-out images: 2, now 3");
    only(&refused[3], "batch: 4, now 5");
}

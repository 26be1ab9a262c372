//! Runs: the same for a seed on any number of threads, the same after an interruption, and what ends them.

use std::ops::ControlFlow;

use foveal_models::Error;
use foveal_models::layer::{Parameters, Random};
use foveal_models::model::{Gpt2, Gpt2Config, Llama, LlamaConfig, Transformer, TransformerConfig, Vit, VitConfig};
use foveal_models::train::{Ended, Example, Images, Pairs, Plan, Task, Text, Trainer, csv};
use ndarray::Array4;

fn text() -> Text<Gpt2> {
    let mut random = Random::new(3);
    // A text with something to learn: after each token one of two.
    let mut tokens = vec![0];
    for i in 0..2000 {
        tokens.push((3 * tokens[i] + random.below(2) as u32) % 17);
    }
    Text::new(tokens, 24, 6).unwrap()
}

fn gpt2() -> Gpt2 {
    let config =
        Gpt2Config { vocabulary: 17, context: 24, width: 32, heads: 4, layers: 2, hidden: 64, ..Gpt2Config::nano() };
    Gpt2::new(&config, &mut Random::new(1)).unwrap()
}

fn plan() -> Plan {
    let plan = Plan { steps: 30, warmup: 5, peak: 3e-3, evaluate_every: 10, dropout: 0.1, ..Plan::default() };
    Plan { accumulate: 2, label_smoothing: 0.05, ..plan }
}

fn go_on<T: Task>(_: &Trainer<T>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn a_run_is_the_same_to_the_bit_on_any_number_of_threads() {
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let task = text();
            let mut trainer = Trainer::new(&task, gpt2(), plan()).unwrap();
            assert_eq!(trainer.run(&mut go_on).unwrap(), Ended::Done);
            (trainer.records().to_vec(), trainer.model().clone())
        })
    };
    let one = run(1);
    for threads in [2, 3] {
        assert_eq!(run(threads), one, "{threads} threads");
    }
    assert!(one.0[29].loss < one.0[0].loss - 0.3, "it learns: {:?}", one.0);
}

#[test]
fn an_interrupted_run_goes_on_as_if_it_had_not_been() {
    let (task, folder) = (text(), tempfile::tempdir().unwrap());
    let state = folder.path().join("state.safetensors");
    let mut whole = Trainer::new(&task, gpt2(), plan()).unwrap();
    whole.run(&mut go_on).unwrap();

    let mut first = Trainer::new(&task, gpt2(), plan()).unwrap();
    let mut stop = |trainer: &Trainer<_>| match trainer.records().len() {
        13 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    assert_eq!(first.run(&mut stop).unwrap(), Ended::Stopped);
    first.save(&state).unwrap();
    drop(first);
    // Another model of the same shape: its numbers come from the file.
    let fresh = gpt2().zeros_like();
    let mut second = Trainer::resume(&task, fresh, plan(), &state).unwrap();
    assert_eq!(second.records().len(), 13);
    assert_eq!(second.run(&mut go_on).unwrap(), Ended::Done);
    assert_eq!(csv(second.records()), csv(whole.records()));
    assert_eq!(second.model(), whole.model());
    assert_eq!(second.best(), whole.best());

    let other = Plan { peak: 1e-3, ..plan() };
    assert!(matches!(Trainer::resume(&task, gpt2(), other, &state), Err(Error::OtherPlan { .. })));
    let longer = Plan { steps: 40, ..plan() };
    assert_eq!(Trainer::resume(&task, gpt2(), longer, &state).unwrap().records().len(), 13);
}

#[test]
fn a_state_that_cannot_be_written_leaves_the_old_one() {
    let (task, folder) = (text(), tempfile::tempdir().unwrap());
    let state = folder.path().join("state.safetensors");
    let mut trainer = Trainer::new(&task, gpt2(), plan()).unwrap();
    trainer.step().unwrap();
    trainer.save(&state).unwrap();
    let before = std::fs::read(&state).unwrap();
    trainer.step().unwrap();
    // A folder cannot be replaced by a file.
    let taken = folder.path().join("taken");
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(taken.join("x"), b"").unwrap();
    assert!(matches!(trainer.save(&taken), Err(Error::Io { .. })));
    assert_eq!(std::fs::read(&state).unwrap(), before);
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "no temporary file is left: {names:?}");
    // Any part of a state is an error, never a wrong state.
    for cut in [0, 7, 100, before.len() / 2, before.len() - 1] {
        std::fs::write(&state, &before[..cut]).unwrap();
        assert!(Trainer::resume(&task, gpt2(), plan(), &state).is_err(), "cut at {cut}");
    }
}

#[test]
fn a_loss_that_is_no_number_ends_the_run_and_spares_the_model() {
    let task = text();
    let mut trainer = Trainer::new(&task, gpt2(), Plan { peak: 1e30, warmup: 0, clip: None, ..plan() }).unwrap();
    let error = loop {
        let before = trainer.model().clone();
        match trainer.step() {
            Ok(_) => assert!(trainer.records().len() < 20, "it should have broken down"),
            Err(error) => {
                assert_eq!(trainer.model(), &before);
                break error;
            }
        }
    };
    assert!(matches!(error, Error::Diverged { .. }));
    assert!(error.to_string().contains("smaller learning rate"), "{error}");
}

#[test]
fn a_run_that_gets_no_better_ends_early_with_its_best_model() {
    let task = text();
    let plan = Plan { steps: 500, evaluate_every: 2, patience: Some(3), peak: 0.3, warmup: 0, ..plan() };
    let mut trainer = Trainer::new(&task, gpt2(), plan).unwrap();
    assert_eq!(trainer.run(&mut go_on).unwrap(), Ended::Early);
    let held_out: Vec<f32> = trainer.records().iter().filter_map(|record| record.held_out).collect();
    let lowest = held_out.iter().copied().fold(f32::INFINITY, f32::min);
    assert!(held_out[held_out.len() - 3..].iter().all(|loss| *loss >= lowest) && held_out.len() < 250);
    assert!((task.evaluate(trainer.best()).unwrap() - lowest).abs() < 1e-6);
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    let task = text();
    for bad in [
        Plan { steps: 0, ..plan() },
        Plan { peak: f32::NAN, ..plan() },
        Plan { peak: -1.0, ..plan() },
        Plan { floor: 1.0, ..plan() },
        Plan { dropout: 1.0, ..plan() },
        Plan { betas: (1.0, 0.9), ..plan() },
        Plan { clip: Some(0.0), ..plan() },
        Plan { accumulate: 0, ..plan() },
        Plan { evaluate_every: 0, ..plan() },
    ] {
        assert!(Trainer::new(&task, gpt2(), bad).is_err(), "{bad:?}");
    }
    assert!(Text::<Gpt2>::new(vec![1; 100], 24, 6).is_err(), "a tenth of 100 tokens is no window of 24");
}

/// Every parameter gets a gradient.
fn all_learn<T: Task>(task: &T, model: T::Model) {
    let mut trainer = Trainer::new(task, model.clone(), Plan { warmup: 0, dropout: 0.1, ..plan() }).unwrap();
    trainer.step().unwrap();
    let mut before = Vec::new();
    model.visit("", &mut |_, parameter| before.push(parameter.to_owned()));
    let mut before = before.into_iter();
    trainer.model().visit("", &mut |name, parameter| {
        assert_ne!(parameter, before.next().unwrap(), "{name} has not moved");
    });
}

#[test]
fn every_parameter_of_every_model_learns() {
    all_learn(&text(), gpt2());
    let config =
        LlamaConfig { vocabulary: 17, context: 24, width: 32, head_dim: 8, tied: false, ..LlamaConfig::nano() };
    let llama = Llama::new(&config, &mut Random::new(1)).unwrap();
    all_learn(&Text::<Llama>::new((0..400).map(|i| i % 17).collect(), 24, 4).unwrap(), llama);

    let config = TransformerConfig {
        source_vocabulary: 9,
        target_vocabulary: 11,
        context: 12,
        width: 16,
        heads: 2,
        hidden: 32,
        ..TransformerConfig::small()
    };
    let example = |i: u32| Example::new(vec![i % 9, 3, 4], vec![i % 11, 5]);
    let pairs = Pairs::new((0..20).map(example).collect(), vec![example(3)], 4, (0, 1)).unwrap();
    for order in [foveal_models::layer::NormOrder::First, foveal_models::layer::NormOrder::Last] {
        let config = TransformerConfig { order, tied: false, ..config };
        all_learn(&pairs, Transformer::new(&config, &mut Random::new(1)).unwrap());
    }

    let config = VitConfig { image: 8, width: 16, heads: 2, layers: 2, hidden: 32, ..VitConfig::digits() };
    let images = Array4::from_shape_fn((30, 1, 8, 8), |(n, _, y, x)| ((n * 7 + y * 3 + x) as f32).sin());
    let images = Images::new(images, (0..30).map(|n| n % 10).collect(), 5, 8).unwrap();
    all_learn(&images, Vit::new(&config, &mut Random::new(1)).unwrap());
}

//! Training on 1, 2 and 4 ranks against one process, with dropout: text, pairs and images.
#![allow(missing_docs)]

mod support;

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use foveal_cluster::{Saving, World, launch, train};
use foveal_models::layer::Random;
use foveal_models::model::{Gpt2, Gpt2Config, Transformer, TransformerConfig, Vit, VitConfig};
use foveal_models::train::{Example, Images, Pairs, Plan, Record, Task, Text, Trainer};
use ndarray::Array4;
use support::timed;

const STEPS: usize = 50;

fn plan() -> Plan {
    Plan { steps: STEPS, warmup: 5, peak: 3e-3, dropout: 0.2, evaluate_every: 20, ..Plan::default() }
}

fn main() {
    if launch::is_rank() {
        rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("the first pool");
        let mut arguments = std::env::args().skip(1);
        let (folder, steps) = (arguments.next().expect("a folder"), arguments.next().expect("steps"));
        let world = Arc::new(World::start().expect("MPI starts"));
        return Work { world: Some(&world), folder: Path::new(&folder), stop: steps.parse().expect("a number") }.all();
    }
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let one = folder.path().join("one");
    Work { world: None, folder: &one, stop: STEPS }.all();
    for (name, runs) in
        [("2", &[(2, STEPS)][..]), ("4", &[(4, STEPS)]), ("3, then 1, then 2", &[(3, 17), (1, 31), (2, STEPS)])]
    {
        let own = folder.path().join(name);
        for (ranks, stop) in runs {
            let mut command = launch::mpirun(*ranks, &std::env::current_exe().expect("a path")).expect("MPI");
            let status = timed(command.arg(&own).arg(stop.to_string())).status().expect("mpirun starts");
            assert!(status.success(), "{name} ranks: {status}");
        }
        for task in ["text", "pairs", "images"] {
            let losses = |folder: &Path| -> Vec<f32> {
                let text = std::fs::read_to_string(folder.join(task)).expect("losses");
                text.lines().map(|line| line.parse().expect("a loss")).collect()
            };
            let (one, own) = (losses(&one), losses(&own));
            assert_eq!(one.len(), STEPS + STEPS / 20 + 1);
            let furthest = one.iter().zip(&own).map(|(one, own)| (one - own).abs()).fold(0.0, f32::max);
            println!("{task} on {name} ranks: losses of {STEPS} steps as in one process, to {furthest:.1e}");
            assert!(one.len() == own.len() && furthest <= 1e-4, "{one:?}\n{own:?}");
            // Two ranks have the two halves of a batch that one process adds up.
            assert!(name != "2" || furthest == 0.0, "two ranks, to the bit");
        }
    }
}

struct Work<'w> {
    world: Option<&'w Arc<World>>,
    folder: &'w Path,
    stop: usize,
}

impl Work<'_> {
    fn all(&self) {
        std::fs::create_dir_all(self.folder).expect("a folder");
        let mut random = Random::new(7);
        let tokens: Vec<u32> = (0..3000u32).map(|i| (i * i / 7 + random.below(3) as u32) % 23).collect();
        let text = Text::new(tokens, 24, 9).expect("long enough");
        // Of more than one bucket of gradients.
        let (width, hidden) = (128, 512);
        let config =
            Gpt2Config { vocabulary: 23, context: 24, width, heads: 4, layers: 3, hidden, ..Gpt2Config::nano() };
        self.one("text", &text, Gpt2::new(&config, &mut Random::new(1)).expect("a model"));

        let pair = |random: &mut Random| {
            let source: Vec<u32> = (0..1 + random.below(12)).map(|_| 3 + random.below(20) as u32).collect();
            Example::new(source.clone(), source.into_iter().rev().collect())
        };
        let examples = |random: &mut Random, count: usize| (0..count).map(|_| pair(random)).collect::<Vec<_>>();
        let (learned, held_out) = (examples(&mut random, 300), examples(&mut random, 10));
        // More than one run of sentences of a length in a share.
        let pairs = Pairs::new(learned, held_out, 70, (1, 2)).expect("pairs");
        let config = TransformerConfig {
            source_vocabulary: 23,
            target_vocabulary: 23,
            width: 32,
            heads: 4,
            hidden: 64,
            encoder_layers: 2,
            decoder_layers: 2,
            ..TransformerConfig::base()
        };
        self.one("pairs", &pairs, Transformer::new(&config, &mut Random::new(2)).expect("a model"));

        let images = Array4::from_shape_simple_fn((60, 1, 8, 8), || random.uniform() as f32);
        let classes = images.outer_iter().map(|image| u32::from(image.mean() > Some(0.5))).collect();
        // Fewer images in a batch than would fill the shares of four ranks evenly.
        let images = Images::new(images, classes, 10, 6).expect("images");
        let config = VitConfig {
            image: 8,
            patch: 4,
            channels: 1,
            width: 16,
            heads: 2,
            layers: 2,
            hidden: 32,
            classes: 2,
            ..VitConfig::base16()
        };
        self.one("images", &images, Vit::new(&config, &mut Random::new(3)).expect("a model"));
    }

    fn one<T: Task>(&self, name: &str, task: &T, model: T::Model) {
        let (state, plan) = (self.folder.join(format!("{name}.state")), plan());
        let trainer = match self.world {
            None => {
                let mut trainer = Trainer::new(task, model, plan).expect("a plan");
                trainer.run(&mut |_| ControlFlow::Continue(())).expect("it learns");
                trainer
            }
            Some(world) => {
                let saving = Saving { path: &state, every: self.stop };
                let mut watch = |record: &Record| {
                    if record.step == self.stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                let (trainer, _) = train(world, task, model, plan, Some(saving), &mut watch).expect("it learns");
                trainer
            }
        };
        if self.world.is_none_or(|world| world.rank() == 0) {
            let mut losses = String::new();
            for record in trainer.records() {
                for loss in [Some(record.loss), record.held_out].into_iter().flatten() {
                    writeln!(losses, "{loss}").expect("text takes text");
                }
            }
            std::fs::write(self.folder.join(name), losses).expect("a file");
        }
    }
}

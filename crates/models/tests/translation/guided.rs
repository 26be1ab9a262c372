//! What a translator learns beside its translations: where one head should look, and which sequences are unlike all others.

use foveal_models::generate::beam::{BosEos, Search, greedy, search, watch};
use foveal_models::layer::Random;
use foveal_models::model::{Transformer, TransformerConfig};
use foveal_models::trace::{Capture, Kind};
use foveal_models::train::{Example, GuidedHead, Pairs, Plan, Trainer};

const BEGIN: u32 = 0;
const END: u32 = 1;
const UNSURE: u32 = 2;
const FRAME: BosEos = BosEos { begin: BEGIN, end: END, unsure: Some(UNSURE) };
/// Tokens from 3 to 8, read backwards and each written as the one after it.
const TOKENS: usize = 6;

fn inside(random: &mut Random) -> Example {
    let length = 2 + random.below(3);
    let mut source: Vec<u32> = (0..length).map(|_| 3 + random.below(TOKENS) as u32).collect();
    // No token stands twice in a row.
    source.dedup();
    let target: Vec<u32> = source.iter().rev().map(|token| token + 1).collect();
    let links = (0..source.len()).map(|n| (source.len() - 1 - n, n)).collect();
    Example { source, target, links }
}

/// Inside, or with a token twice in a row.
fn drawn(random: &mut Random) -> Example {
    let mut example = inside(random);
    if random.below(4) == 0 {
        let at = random.below(example.source.len());
        example.source.insert(at, example.source[at]);
        return Example::new(example.source, vec![UNSURE]);
    }
    example
}

fn trained() -> Transformer {
    let mut random = Random::new(5);
    let held_out = (0..16).map(|_| inside(&mut random)).collect();
    let task = Pairs::drawn(drawn, held_out, 32, (BEGIN, END)).unwrap();
    let task = task.guided(GuidedHead { layer: 0, head: 1, factor: 0.5 });
    let config = TransformerConfig { source_vocabulary: 9, target_vocabulary: 10, ..TransformerConfig::small() };
    let config = TransformerConfig { context: 12, width: 32, heads: 2, hidden: 64, decoder_layers: 1, ..config };
    let model = Transformer::new(&config, &mut Random::new(1)).unwrap();
    let plan = Plan { steps: 2000, warmup: 20, peak: 4e-3, evaluate_every: 2000, ..Plan::default() };
    let mut trainer = Trainer::new(&task, model, plan).unwrap();
    trainer.run(&mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    trainer.model().clone()
}

#[test]
fn a_guided_head_looks_where_it_should_and_what_is_outside_is_unsure() {
    let model = trained();
    let mut random = Random::new(77);
    let (mut right, mut links, mut found) = (0, 0, 0.0);
    for _ in 0..40 {
        let Example { source, target, links: gold } = inside(&mut random);
        let best = search(&model, &source, FRAME, Search::default()).unwrap().swap_remove(0);
        right += usize::from(best.tokens == target && best.log_probability.exp() > 0.9);
        let trace = watch(&model, &source, &target, FRAME, Capture::All).unwrap();
        let weights = trace.layer(Kind::Cross, 0).unwrap().weights(0, 1).unwrap();
        found += gold.iter().map(|&(source, target)| weights[[target, source]]).sum::<f32>();
        links += gold.len();
    }
    assert!(right >= 36, "{right} of 40");
    assert!(found / links as f32 > 0.9, "{found} of {links}");
    let doubled: Vec<Vec<u32>> = (3..9).map(|token| vec![token, token, 3 + (token - 2) % 6]).collect();
    for written in greedy(&model, &doubled, FRAME, 8).unwrap() {
        assert!(written.log_probability.exp() < 0.5 && !written.tokens.contains(&UNSURE), "{written:?}");
    }
}

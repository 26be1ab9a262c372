//! Classes of heads: on weights that are made up, by their definition; and on real models.

mod support;

use foveal::{Attention, Mask};
use foveal_models::analysis::survey::{HELD_OUT, survey};
use foveal_models::analysis::{ClassCounts, HeadClass, HeadClasses, Repeated};
use foveal_models::trace::{Kind, LayerTrace, Site, Trace};
use foveal_models::{Encoding, OpenModel, Tokenizer};
use ndarray::Array4;

const TEXT: &str = "ROMEO:\nbut soft, what, what\nlight but soft\n\nJULIET:\nwhat light, soft\nbut what";

fn encoding() -> Encoding {
    Tokenizer::of_byte_pairs(&TEXT.repeat(30), 300).unwrap().encode(TEXT).unwrap()
}

/// A head with these weights, [n, n]: scores are q·k = ln A.
fn head(n: usize, kind: Kind, weight: impl Fn(usize, usize) -> f32) -> Trace {
    let q = Array4::from_shape_fn((1, 1, n, n), |(_, _, i, d)| f32::from(i == d));
    let k = Array4::from_shape_fn((1, 1, n, n), |(_, _, j, i)| weight(i, j).max(1e-12).ln());
    let attention = Attention::new().scale(1.0);
    let attention = if kind == Kind::Decoder { attention.mask(Mask::causal()) } else { attention };
    let layer = LayerTrace::builder(attention, &q, &k).build().unwrap();
    [(Site { kind, layer: 0 }, layer)].into_iter().collect()
}

/// All weight on `at(i)`, but for `sink` of it on the first token.
fn looking(encoding: &Encoding, kind: Kind, sink: f32, at: impl Fn(usize) -> usize) -> HeadClasses {
    let weight = |i, j| if j == 0 { sink } else { 0.0 } + if j == at(i) { 1.0 - sink } else { 0.0 };
    let mut counts = ClassCounts::default();
    counts.add(&head(encoding.len(), kind, weight), kind, 0, encoding).unwrap();
    counts.heads()[0].clone()
}

fn class(classes: &HeadClasses) -> Option<HeadClass> {
    classes.class().map(|share| share.class)
}

#[test]
fn heads_are_classed_by_what_they_look_at() {
    let encoding = encoding();
    let (n, labels, ids) = (encoding.len(), encoding.labels(), encoding.ids());
    let of = |at: &dyn Fn(usize) -> usize| class(&looking(&encoding, Kind::Decoder, 0.0, at));
    let last = |i: usize, is: &dyn Fn(usize) -> bool| (0..i).rev().find(|&j| is(j)).unwrap_or(0);
    assert_eq!(of(&|i| i.saturating_sub(1)), Some(HeadClass::Previous));
    assert_eq!(of(&|i| i), Some(HeadClass::Own));
    assert_eq!(of(&|i| i.saturating_sub(2)), Some(HeadClass::Near));
    assert_eq!(of(&|_| 0), Some(HeadClass::First));
    assert_eq!(of(&|i| last(i, &|j| ids[j] == ids[i])), Some(HeadClass::Same));
    assert_eq!(of(&|i| last(i, &|j| j > 0 && ids[j - 1] == ids[i])), Some(HeadClass::Induction));
    let line = |i: usize| (0..i).rev().find(|&j| labels[j].contains('\n')).map_or(0, |j| j + 1);
    assert_eq!(of(&line), Some(HeadClass::LineStart));
    let juliet = labels.iter().position(|label| label.contains('J')).expect("she speaks");
    assert_eq!(of(&|i| if i > juliet + 5 { juliet } else { 1 }), Some(HeadClass::Speaker), "{labels:?}");
    assert_eq!(class(&looking(&encoding, Kind::Encoder, 0.0, |i| (i + 1).min(n - 1))), Some(HeadClass::Next));
    // Even weights are of no class.
    let even = head(n, Kind::Decoder, |_, _| 1.0);
    let mut counts = ClassCounts::default();
    counts.add(&even, Kind::Decoder, 0, &encoding).unwrap();
    let even = &counts.heads()[0];
    assert_eq!(class(even), None);
    for share in even.shares.iter().filter(|share| share.queries > 0.0) {
        assert!((share.share - share.uniform).abs() < 1e-5, "{share:?}");
    }
}

#[test]
fn a_sink_is_discounted_and_told() {
    let encoding = encoding();
    for sink in [0.0, 0.5, 0.9] {
        let classes = looking(&encoding, Kind::Decoder, sink, |i| i.saturating_sub(1));
        let previous = classes.of(HeadClass::Previous).unwrap();
        assert_eq!(class(&classes), Some(HeadClass::Previous), "sink of {sink}");
        assert!((previous.share - 1.0).abs() < 1e-3 && (classes.sink - f64::from(sink)).abs() < 1e-3, "{classes:?}");
    }
    // What is left beside the sink is too little to be called anything else.
    let classes = looking(&encoding, Kind::Decoder, 0.98, |i| i.saturating_sub(1));
    assert_eq!(class(&classes), Some(HeadClass::First));
}

/// The share by its definition, written out, on weights of every kind.
#[test]
fn shares_follow_their_definition() {
    let encoding = encoding();
    let n = encoding.len();
    let weight = |i: usize, j: usize| 0.05 + (((7 * i + 3 * j) % 11) as f32).powi(2);
    let mut counts = ClassCounts::default();
    for _ in 0..2 {
        // The same text twice changes no share.
        counts.add(&head(n, Kind::Decoder, weight), Kind::Decoder, 0, &encoding).unwrap();
    }
    let (mut on, mut active, mut even) = (0.0, 0.0, 0.0);
    for i in 4..n {
        let row: Vec<f64> = (0..=i).map(|j| f64::from(weight(i, j))).collect();
        let sum: f64 = row.iter().sum();
        let same: Vec<usize> = (1..i).filter(|&j| encoding.ids()[j] == encoding.ids()[i]).collect();
        if !same.is_empty() {
            let beside = 1.0 - row[0] / sum;
            active += beside;
            on += same.iter().map(|&j| row[j] / sum).sum::<f64>();
            even += beside * same.len() as f64 / i as f64;
        }
    }
    let share = counts.heads()[0].of(HeadClass::Same).unwrap();
    assert!((share.share - on / active).abs() < 1e-5 && (share.uniform - even / active).abs() < 1e-5, "{share:?}");
    assert_eq!(counts.tokens(), 2 * n);
    assert!(counts.add(&head(3, Kind::Decoder, weight), Kind::Decoder, 0, &encoding).is_err(), "another text");
}

fn count(heads: &[HeadClasses], class: HeadClass) -> usize {
    heads.iter().filter(|head| head.class().is_some_and(|found| found.class == class)).count()
}

#[test]
fn smollm2_leaves_weight_at_the_first_token_and_is_not_named_after_it() {
    let Some(path) = support::data("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf") else { return };
    let open = OpenModel::open(path.to_str().unwrap()).unwrap();
    let found = survey(&open, HELD_OUT, Repeated::default()).unwrap();
    assert!(found.kind == Kind::Decoder && found.heads.len() == 270 && found.tokens >= 2000, "{}", found.tokens);
    let classes: Vec<HeadClasses> = found.heads.iter().map(|head| head.classes.clone()).collect();
    let leave = classes.iter().filter(|head| head.sink > 0.3).count();
    let (first, previous) = (count(&classes, HeadClass::First), count(&classes, HeadClass::Previous));
    println!(
        "{leave} of 270 leave over 0.3 at the first token, {first} are named after it, {previous} look at the one before"
    );
    assert!(leave > 100 && first < 100 && previous >= 3, "{leave} {first} {previous}");
}

#[test]
fn minilm_has_heads_that_look_before_after_and_at_separators() {
    let Some(path) = support::data("minilm") else { return };
    let open = OpenModel::open(path.to_str().unwrap()).unwrap();
    let found = survey(&open, HELD_OUT, Repeated::default()).unwrap();
    assert!(found.kind == Kind::Encoder && found.heads.len() == 72 && found.tokens >= 1500, "{}", found.tokens);
    let classes: Vec<HeadClasses> = found.heads.iter().map(|head| head.classes.clone()).collect();
    for class in HeadClass::ALL {
        println!("{}: {}", class.name(), count(&classes, class));
    }
    for head in &found.heads {
        let entropy = head.scores.entropy;
        assert!(entropy > 0.0 && entropy < (512f32).ln(), "{entropy}");
        assert!(head.scores.induction.is_none(), "an encoder sees what comes after");
    }
    assert!(
        found.heads.iter().any(|head| head.scores.previous > 0.3)
            && found.heads.iter().any(|head| head.scores.next > 0.3)
    );
}

//! Llama, plain, and with the rotary positions of Llama 3, biases, and its embedding for its predictions. Four heads share two
//! heads of keys, of a dimension that does not follow from the width.

use foveal::RopeScaling;
use foveal_models::model::Llama;

use crate::expected::load;
use crate::language;

#[test]
fn configuration() {
    let (plain, scaled): (Llama, Llama) = (load("llama"), load("llama3"));
    assert_eq!((plain.config().rope_base, plain.config().rope_scaling), (10_000.0, RopeScaling::None));
    let scaling = RopeScaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, trained: 64 };
    assert_eq!((scaled.config().rope_base, scaled.config().rope_scaling), (100.0, scaling));
    assert!(plain.head.is_some() && scaled.head.is_none());
}

#[test]
fn run() {
    language::check_run::<Llama>("llama");
    language::check_run::<Llama>("llama3");
}

#[test]
fn gradients() {
    language::check_gradients::<Llama>("llama");
    language::check_gradients::<Llama>("llama3");
}

#[test]
fn cache() {
    language::check_cache::<Llama>("llama");
    language::check_cache::<Llama>("llama3");
}

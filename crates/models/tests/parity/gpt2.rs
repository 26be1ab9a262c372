//! GPT-2, with its embedding for its predictions.

use foveal_models::model::Gpt2;

use crate::language;

#[test]
fn run() {
    language::check_run::<Gpt2>("gpt2");
}

#[test]
fn gradients() {
    language::check_gradients::<Gpt2>("gpt2");
}

#[test]
fn cache() {
    language::check_cache::<Gpt2>("gpt2");
}

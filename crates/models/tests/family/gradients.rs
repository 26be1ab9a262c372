//! Gradients of whole models, by the change of the loss along them and along random directions.

use foveal_models::layer::{CrossEntropy, Dropout, Family, Parameters, Random};
use foveal_models::model::transformer::Batch;
use foveal_models::model::{Bert, Masked, Sentences, Trained, Transformer, Vit};
use ndarray::Array4;

use crate::{all, bert, gpt2, llama, transformer, vit};

/// The loss in f64, and the gradients.
type Run<'a, M> = &'a dyn Fn(&M, Option<&mut M>) -> f64;

/// Σ gradient·direction, parameter by parameter, against the difference of the loss.
fn check<M: Parameters + Clone>(name: &str, model: &M, run: Run<M>) {
    let mut grad = model.zeros_like();
    run(model, Some(&mut grad));
    let mut names = Vec::new();
    grad.visit("", &mut |name, gradient| {
        names.push((name.to_owned(), gradient.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt()));
    });
    let all = names.iter().map(|(_, norm)| norm * norm).sum::<f64>().sqrt();
    for (part, (parameter, norm)) in names.iter().enumerate() {
        // The softmax does not change if all keys move alike: their bias has no gradient.
        assert!(*norm > 0.0 || parameter.ends_with("k_proj.bias"), "{name}: {parameter} gets no gradient");
        let direction = |shape| Random::new(part as u64).normal(shape, 1.0);
        let moved = |step: f32| {
            let (mut model, mut n) = (model.clone(), 0);
            model.visit_mut("", &mut |_, mut parameter| {
                if n == part {
                    let shape = parameter.raw_dim();
                    parameter.scaled_add(step, &direction(shape));
                }
                n += 1;
            });
            run(&model, None)
        };
        let (mut expected, mut n) = (0.0, 0);
        grad.visit("", &mut |_, gradient| {
            if n == part {
                expected = gradient.iter().zip(&direction(gradient.raw_dim())).map(|(g, d)| f64::from(g * d)).sum();
            }
            n += 1;
        });
        let difference = |step: f32| (moved(step) - moved(-step)) / (2.0 * f64::from(step));
        // Two steps, and what they would come to for a step of 0.
        let slope = (4.0 * difference(1e-3) - difference(2e-3)) / 3.0;
        assert!(
            (slope - expected).abs() <= 2e-2 * expected.abs() + 2e-3 * all,
            "{name}: the loss changes by {slope} along {parameter}, not {expected}"
        );
    }
}

fn loss(logits: &ndarray::Array2<f32>, targets: &[u32]) -> f64 {
    let rows = logits.outer_iter().zip(targets).map(|(row, target)| {
        let max = row.iter().fold(f64::NEG_INFINITY, |max, x| max.max(f64::from(*x)));
        let sum: f64 = row.iter().map(|x| (f64::from(*x) - max).exp()).sum();
        max + sum.ln() - f64::from(row[*target as usize])
    });
    rows.sum::<f64>() / targets.len() as f64
}

fn of_text<M: Trained>(model: &M, grad: Option<&mut M>) -> f64 {
    let (text, targets) =
        ([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3], [1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2]);
    let (mut logits, saved) = model.forward(&text, 2, None).unwrap();
    let value = loss(&logits, &targets);
    if let Some(grad) = grad {
        CrossEntropy::new().forward_backward(&mut logits, &targets).unwrap();
        model.backward(&saved, &logits, grad).unwrap();
    }
    value
}

#[test]
fn of_language_models() {
    for family in all() {
        check(&format!("GPT-2 with {family}"), &gpt2(family), &of_text);
        check(&format!("Llama with {family}"), &llama(family), &of_text);
    }
}

fn of_masked(model: &Bert, dropout: Option<Dropout>, grad: Option<&mut Bert>) -> f64 {
    let sentences = Sentences::new(&[&[3, 1, 4, 1, 5, 9, 2, 6][..], &[5, 3, 5, 8, 9]]);
    let masked = Masked::new(sentences, &[(0, 2), (0, 5), (1, 0), (1, 4)], 10).unwrap();
    let (mut logits, saved) = model.forward(&masked, dropout).unwrap();
    let value = loss(&logits, masked.words());
    if let Some(grad) = grad {
        CrossEntropy::new().forward_backward(&mut logits, masked.words()).unwrap();
        model.backward(&saved, &logits, grad).unwrap();
    }
    value
}

#[test]
fn of_an_encoder_that_guesses_words() {
    for family in all().into_iter().chain([Family::Fourier]) {
        check(&format!("BERT with {family}"), &bert(family), &|model, grad| of_masked(model, None, grad));
    }
    let dropout = Some(Dropout::new(0.2, 3));
    check("BERT with dropout", &bert(Family::Softmax), &|model, grad| of_masked(model, dropout, grad));
}

fn of_pairs(model: &Transformer, grad: Option<&mut Transformer>) -> f64 {
    let source = Batch { tokens: &[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 0, 0], lengths: &[6, 4] };
    let (target, goals) = ([1, 4, 1, 5, 2, 8, 2, 6], [4, 1, 5, 2, 8, 2, 6, 5]);
    let (mut logits, saved) = model.forward(source, &target, None).unwrap();
    let value = loss(&logits, &goals);
    if let Some(grad) = grad {
        CrossEntropy::new().forward_backward(&mut logits, &goals).unwrap();
        model.backward(&saved, &logits, grad).unwrap();
    }
    value
}

#[test]
fn of_an_encoder_decoder() {
    for family in all().into_iter().chain([Family::Fourier]) {
        check(&format!("the encoder-decoder with {family}"), &transformer(family), &of_pairs);
    }
}

fn of_images(model: &Vit, grad: Option<&mut Vit>) -> f64 {
    let images: Array4<f32> = Random::new(3).normal((2, 1, 8, 8), 1.0);
    let (mut logits, saved) = model.forward(&images, None).unwrap();
    let value = loss(&logits, &[3, 7]);
    if let Some(grad) = grad {
        CrossEntropy::new().forward_backward(&mut logits, &[3, 7]).unwrap();
        model.backward(&saved, &logits, grad).unwrap();
    }
    value
}

#[test]
fn of_images_with_and_without_a_class_token() {
    let sparse = all().into_iter().filter(|family| family.name() != "bigbird");
    for family in sparse.chain([Family::Fourier]) {
        for class_token in [true, false] {
            check(&format!("ViT with {family}, class token {class_token}"), &vit(family, class_token), &of_images);
        }
    }
    check("ViT with windows", &vit(Family::Swin { window: 2 }, false), &of_images);
}

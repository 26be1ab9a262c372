//! ViT with classes, on two images.

use foveal_models::layer::{CrossEntropy, Parameters};
use foveal_models::model::Vit;
use foveal_models::trace::{Capture, Probe};

use crate::expected::{Expected, load};
use crate::heads;

#[test]
fn run() {
    let (model, expected): (Vit, _) = (load("vit"), Expected::of("vit"));
    let images = expected.images("images");
    let mut probe = Probe::new(Capture::All);
    let hidden = model.infer(&images, &mut probe).unwrap();
    expected.check_rows("logits", &model.classify(&hidden).unwrap());
    expected.check_trace("", &probe.into_trace(), None);
}

#[test]
fn gradients() {
    let (model, expected): (Vit, _) = (load("vit"), Expected::of("vit"));
    let (mut logits, saved) = model.forward(&expected.images("images"), None).unwrap();
    expected.check_rows("logits", &logits);
    let loss = CrossEntropy::new().forward_backward(&mut logits, &expected.tokens("classes")).unwrap();
    expected.check_loss(loss.mean);
    let mut grad = model.zeros_like();
    let of_heads = model.backward(&saved, &logits, &mut grad).unwrap();
    expected.check_gradients(&grad);
    let layers = (&model.layers, &grad.layers);
    assert_eq!(of_heads.len(), 2);
    heads::check_gradients(&of_heads, |site| {
        let at = site.layer;
        (layers.0[at].attention.layer.attention().unwrap(), layers.1[at].attention.layer.attention().unwrap())
    });
}

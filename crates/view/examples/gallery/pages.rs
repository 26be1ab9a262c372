//! Pages to explore: a sentence with everything a page can show, a translation, and a run of 512 tokens.

use foveal_view::{Error, Group, Kind, Language, Page, Tokens};
use ndarray::Array2;

use crate::sample::{tokens, weights};

pub fn pages() -> Result<Vec<(&'static str, Page)>, Error> {
    Ok(vec![("page-small", small()?), ("page-translation", translation()?), ("page-large", large()?)])
}

/// Weights, norms and rollout; words of several tokens; special tokens at both ends.
fn small() -> Result<Page, Error> {
    let labels =
        ["[CLS]", "The", " un", "believ", "able", " news", " about", " at", "tention", " spread", ".", "[SEP]"];
    let words = [0, 1, 2, 2, 2, 3, 4, 5, 5, 6, 7, 8];
    let count = labels.len();
    let tokens = Tokens::new(labels).words(words).special((0..count).map(|i| i == 0 || i == count - 1));
    let mut group = Group::new(Kind::Attention, tokens.clone(), tokens)?;
    let mut rollout: Vec<Array2<f32>> = Vec::new();
    for layer in 0..4 {
        let heads: Vec<_> = (0..6).map(|head| weights(count, count, layer * 5 + head, false)).collect();
        let norms = heads.iter().map(|head| {
            Array2::from_shape_fn((count, count), |(i, j)| {
                head[[i, j]] * if j == 0 { 0.3 } else { 1.0 + (j % 3) as f32 }
            })
        });
        let mean = heads.iter().fold(Array2::zeros((count, count)), |sum, head| sum + head) / heads.len() as f32;
        let mixed = mean * 0.5 + Array2::<f32>::eye(count) * 0.5;
        rollout.push(rollout.last().map_or_else(|| mixed.clone(), |before| mixed.dot(before)));
        let norms = norms.collect();
        group = group.layer(heads)?.norms(norms)?;
    }
    Ok(Page::new(vec![group.rollout(rollout)?]).title("Unbelievable news about attention").note("4 layers, 6 heads"))
}

/// An encoder, a decoder and the attention between them, in Korean.
fn translation() -> Result<Page, Error> {
    let source = Tokens::new(tokens(Language::English, 9));
    let target = Tokens::new(tokens(Language::Korean, 11));
    let heads = |rows, cols, layer: usize, causal| {
        (0..4).map(|head| weights(rows, cols, layer * 3 + head, causal)).collect::<Vec<_>>()
    };
    let mut encoder = Group::new(Kind::Encoder, source.clone(), source.clone())?;
    let mut decoder = Group::new(Kind::Decoder, target.clone(), target.clone())?;
    let mut cross = Group::new(Kind::Cross, target, source)?;
    for layer in 0..3 {
        encoder = encoder.layer(heads(9, 9, layer, false))?;
        decoder = decoder.layer(heads(11, 11, layer, true))?;
        cross = cross.layer(heads(11, 9, layer, false))?;
    }
    Ok(Page::new(vec![encoder, decoder, cross]).title("번역 모델의 어텐션").language(Language::Korean))
}

/// 12 layers of 12 heads over 512 tokens.
fn large() -> Result<Page, Error> {
    let count = 512;
    let tokens = Tokens::new(tokens(Language::English, count));
    let mut group = Group::new(Kind::Attention, tokens.clone(), tokens)?;
    for layer in 0..12 {
        group = group.layer((0..12).map(|head| weights(count, count, layer * 5 + head, false)).collect())?;
    }
    Ok(Page::new(vec![group]).title("512 tokens, 12 × 12 heads"))
}

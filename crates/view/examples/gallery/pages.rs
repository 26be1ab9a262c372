//! Pages to explore: a sentence with everything a page can show, a translation, and a run of 512 tokens.

use foveal::{Attention, Mask};
use foveal_view::{Error, Group, Kind, Language, Layer, Page, Storage, Tokens};
use ndarray::{Array1, Array2, Array4, ArrayView2, s};

use crate::sample::{tokens, weights};

pub fn pages() -> Result<Vec<(&'static str, Page)>, Error> {
    Ok(vec![("page-small", small()?), ("page-translation", translation()?), ("page-large", large()?)])
}

/// Numbers around 0 from a counter, as different in every place as those of a model.
pub fn noise(shape: (usize, usize, usize, usize), seed: u32, size: f32) -> Array4<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    Array4::from_shape_simple_fn(shape, || {
        let mut sum = 0.0;
        for _ in 0..4 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            sum += (state >> 8) as f32 / 2f32.powi(24) - 0.5;
        }
        sum * size * 1.73
    })
}

/// A layer of queries, keys and values like a model's.
pub fn layer(attention: &Attention, (heads, rows, cols, dim): (usize, usize, usize, usize), seed: u32) -> Layer {
    // Scores of standard deviation 2.
    let q = noise((1, heads, rows, dim), seed, 1.41);
    let k = noise((1, heads, cols, dim), seed + 1, 1.41);
    let v = noise((1, heads, cols, dim), seed + 2, 1.0);
    let forward = attention.forward(&q, &k, &v).expect("shapes that fit");
    let options = (0..heads).map(|h| attention.head_options((0, h), (rows, cols, dim)));
    let options = options.map(|options| options.expect("a head that is there").expect("plain options")).collect();
    let one = |x: &Array4<f32>| x.slice(s![0, .., .., ..]).to_owned();
    let output = noise((1, 1, heads * dim, heads * dim), seed + 3, 0.2).slice(s![0, 0, .., ..]).to_owned();
    let norms = Array2::from_shape_fn((heads, cols), |(h, j)| {
        let part: ArrayView2<f32> = output.slice(s![.., h * dim..(h + 1) * dim]);
        let column: Array1<f32> = part.dot(&v.slice(s![0, h, j, ..]));
        column.dot(&column).sqrt()
    });
    let layer = Layer::scores(one(&q), one(&k), forward.lse.slice(s![0, .., ..]).to_owned(), options);
    // Values are for small pages.
    let valued = |layer: Layer| if cols < 100 { layer.values(one(&v), output) } else { Ok(layer) };
    layer.and_then(|layer| layer.norms(norms)).and_then(valued).expect("arrays that fit each other")
}

/// Weights, norms and rollout; words of several tokens; special tokens at both ends.
fn small() -> Result<Page, Error> {
    let labels =
        ["[CLS]", "The", " un", "believ", "able", " news", " about", " at", "tention", " spread", ".", "[SEP]"];
    let words = [0, 1, 2, 2, 2, 3, 4, 5, 5, 6, 7, 8];
    let names = ["[CLS]", "The", "unbelievable", "news", "about", "attention", "spread", ".", "[SEP]"];
    let count = labels.len();
    let special = (0..count).map(|i| i == 0 || i == count - 1);
    let tokens = Tokens::new(labels).words(words).word_labels(names).special(special);
    let mut group = Group::new(Kind::Attention, tokens.clone(), tokens)?.salient(2, 3);
    for number in 0..4 {
        group = group.layer(layer(&Attention::new(), (6, count, count, 16), 7 + 10 * number))?;
    }
    Ok(Page::new(vec![group]).title("Unbelievable news about attention").note("4 layers, 6 heads").model("small"))
}

/// An encoder, a decoder and the attention between them, in Korean, as weights.
fn translation() -> Result<Page, Error> {
    let source = Tokens::new(tokens(Language::English, 9));
    let target = Tokens::new(tokens(Language::Korean, 11));
    let heads = |rows, cols, layer: usize, causal| {
        Layer::weights((0..4).map(|head| weights(rows, cols, layer * 3 + head, causal)).collect())
    };
    let mut encoder = Group::new(Kind::Encoder, source.clone(), source.clone())?;
    let mut decoder = Group::new(Kind::Decoder, target.clone(), target.clone())?;
    let mut cross = Group::new(Kind::Cross, target, source)?.salient(1, 2);
    for layer in 0..3 {
        encoder = encoder.layer(heads(9, 9, layer, false)?)?;
        decoder = decoder.layer(heads(11, 11, layer, true)?)?;
        cross = cross.layer(heads(11, 9, layer, false)?)?;
    }
    Ok(Page::new(vec![encoder, decoder, cross]).title("번역 모델의 어텐션").language(Language::Korean))
}

/// 12 layers of 12 heads over 512 tokens.
fn large() -> Result<Page, Error> {
    let count = 512;
    let tokens = Tokens::new(tokens(Language::English, count));
    let causal = Attention::new().mask(Mask::causal());
    let mut group = Group::new(Kind::Decoder, tokens.clone(), tokens)?;
    for number in 0..12 {
        group = group.layer(layer(&causal, (12, count, count, 64), 1 + 10 * number))?;
    }
    Ok(Page::new(vec![group]).storage(Storage::Half).title("512 tokens, 12 × 12 heads"))
}

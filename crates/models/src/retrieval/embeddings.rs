//! Ranking by meaning: the cosine of a BERT model's vectors (Reimers and Gurevych 2019).

use ndarray::Axis;

use super::{Ranked, sorted};
use crate::model::Sentences;
use crate::trace::Probe;
use crate::{Error, Model, OpenModel, Result};

/// Passages that are embedded at once.
const AT_ONCE: usize = 16;

/// All passages, those first whose vector is nearest to that of the question. What a passage has beyond the model's context is
/// left out.
///
/// # Errors
/// [`Error::Unfit`] if the model is no BERT.
pub fn rank_by_meaning<S: AsRef<str>>(open: &OpenModel, question: &str, passages: &[S]) -> Result<Vec<Ranked>> {
    let Model::Bert(bert) = &open.model else {
        return Err(Error::Unfit {
            architecture: open.model.architecture(),
            wanted: "embed passages",
            fit: "bert, such as all-MiniLM-L6-v2",
        });
    };
    let (tokenizer, context) = (open.tokenizer()?, bert.config().context);
    let tokens = |text: &str| -> Result<Vec<u32>> {
        let encoding = tokenizer.encode(text)?;
        let (read, last) = (encoding.len().min(context), encoding.ids().last());
        let mut ids = encoding.ids()[..read].to_vec();
        // A text that is cut still ends as the model expects.
        ids.last_mut().into_iter().zip(last).for_each(|(end, last)| *end = *last);
        Ok(ids)
    };
    let embed = |texts: &[Vec<u32>]| bert.embed(&Sentences::new(texts), &mut Probe::default());
    let question = embed(&[tokens(question)?])?.index_axis_move(Axis(0), 0);
    let mut scores = Vec::with_capacity(passages.len());
    for chunk in passages.chunks(AT_ONCE) {
        let texts = chunk.iter().map(|passage| tokens(passage.as_ref())).collect::<Result<Vec<_>>>()?;
        scores.extend(embed(&texts)?.dot(&question));
    }
    Ok(sorted(scores))
}

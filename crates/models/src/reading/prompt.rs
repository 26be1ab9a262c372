//! Passages in the prompt of a language model: the question is put to all of them at once, and its attention is looked at where
//! the passages stand. A model that was trained to answer gets it in its own chat template.

use std::ops::Range;

use ndarray::{Array2, s};

use super::answer::{Answered, Limits, Place};
use crate::generate::Session;
use crate::tokenizer::Message;
use crate::trace::{Capture, Kind, Probe, Trace};
use crate::{Encoding, Error, OpenModel, Result, Tokenizer};

/// What a language model is told to say when there is no answer.
const REFUSAL: &str = "not in these passages";

/// Puts a question to a language model, with as many of the passages before it as it can see; gives back the answer and their
/// number.
///
/// # Errors
/// If the model does not predict the next token, or cannot even see the question and one passage.
pub fn ask_language_model<S: AsRef<str>>(
    open: &OpenModel,
    question: &str,
    passages: &[S],
    limits: Limits,
) -> Result<(Answered, usize)> {
    let model = open.model.as_language_model()?;
    let (tokenizer, context) = (open.tokenizer()?, model.shape().context);
    let mut count = passages.len();
    let (prompt, encoding) = loop {
        let (prompt, encoding) = Prompt::new(question, &passages[..count]).encode(tokenizer)?;
        let tokens = encoding.len() + limits.tokens;
        match tokens <= context {
            true => break (prompt, encoding),
            false if count <= 1 => return Err(Error::Context { tokens, limit: context }),
            false => count = (count * context / tokens).clamp(1, count - 1),
        }
    };
    let mut session = Session::new(model).watched_by(Probe::new(Capture::All));
    let mut logits = session.feed(encoding.ids())?;
    let (mut written, mut probability) = (Vec::new(), 1.0);
    while written.len() < limits.tokens {
        let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap_or(0);
        probability *= crate::layer::log_softmax(logits.view())[best].exp();
        let text = tokenizer.describe_after(encoding.ids(), &[best as u32])?;
        if open.stop.contains(&(best as u32)) || text.text().contains('\n') {
            break;
        }
        written.push(best as u32);
        logits = session.feed(&[best as u32])?;
    }
    let (columns, places) = prompt.columns(&encoding);
    // The row before a token is the one that predicts it; the last row predicts the end.
    let first = encoding.len() - 1;
    let attention = mean(&session.trace(), first..first + written.len() + 1, &columns)?;
    let mut answered = Answered::new(count, places, attention);
    let described = tokenizer.describe_after(encoding.ids(), &written)?;
    let text = described.text().trim().trim_end_matches(['.', '。']).trim().to_owned();
    answered.written = described.labels().iter().cloned().chain(["⏎".to_owned()]).collect();
    answered.probability = probability;
    answered.text = Some(text).filter(|text| !text.is_empty() && !text.to_lowercase().contains(REFUSAL));
    Ok((answered, count))
}

struct Prompt {
    text: String,
    /// Where each passage stands in it.
    passages: Vec<Range<usize>>,
}

impl Prompt {
    fn new<S: AsRef<str>>(question: &str, passages: &[S]) -> Self {
        let mut text =
            format!("Answer in a few words from these passages. If they do not tell, say \"{REFUSAL}\".\n\n");
        let mut places = Vec::new();
        for (n, passage) in passages.iter().enumerate() {
            text.push_str(&format!("Passage {}: ", n + 1));
            let start = text.len();
            text.push_str(passage.as_ref());
            places.push(start..text.len());
            text.push_str("\n\n");
        }
        text.push_str(&format!("Question: {}", question.trim()));
        Prompt { text, passages: places }
    }

    /// The tokens of the prompt, and where the passages stand in their text.
    fn encode(mut self, tokenizer: &Tokenizer) -> Result<(Self, Encoding)> {
        if tokenizer.chat_template().is_some() {
            let encoding = tokenizer.encode_chat(&[Message::user(&self.text)])?;
            // A template may put anything before what the user says.
            if let Some(start) = encoding.text().find(&self.text) {
                self.passages.iter_mut().for_each(|place| *place = place.start + start..place.end + start);
                return Ok((self, encoding));
            }
        }
        self.text.push_str("\nAnswer:");
        let encoding = tokenizer.encode(&self.text)?;
        Ok((self, encoding))
    }

    /// The tokens that stand in passages, and where.
    fn columns(&self, encoding: &Encoding) -> (Vec<usize>, Vec<Place>) {
        let (mut columns, mut places) = (Vec::new(), Vec::new());
        for (column, span) in encoding.spans().iter().enumerate() {
            let Some(span) = span else { continue };
            let inside = |passage: &&Range<usize>| span.end > passage.start && span.end <= passage.end;
            if let Some((passage, place)) = self.passages.iter().enumerate().find(|(_, place)| inside(place)) {
                columns.push(column);
                let bytes = span.start.saturating_sub(place.start)..span.end - place.start;
                places.push(Place { passage, bytes });
            }
        }
        (columns, places)
    }
}

/// The mean attention over all layers and heads of these rows on these columns.
fn mean(trace: &Trace, rows: Range<usize>, columns: &[usize]) -> Result<Array2<f32>> {
    let mut sum = Array2::<f32>::zeros((rows.len(), columns.len()));
    let mut count: f32 = 0.0;
    for (_, layer) in trace.of_kind(Kind::Decoder) {
        let rows = rows.start..rows.end.min(layer.queries());
        for head in 0..layer.heads() {
            let weights = layer.tile(0, head, rows.clone(), 0..layer.keys())?;
            for (n, column) in columns.iter().enumerate() {
                sum.slice_mut(s![..rows.len(), n]).zip_mut_with(&weights.column(*column), |sum, weight| *sum += weight);
            }
            count += 1.0;
        }
    }
    Ok(sum / count.max(1.0))
}

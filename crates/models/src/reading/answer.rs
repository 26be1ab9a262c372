//! Answers, and what was attended to for them.

use std::ops::Range;

use ndarray::{Array1, Array2, Axis, concatenate};

use super::input::{Input, Padded, ReaderTokens};
use crate::analysis::words::Group;
use crate::model::Reader;
use crate::trace::{Capture, Kind, Probe, Trace};
use crate::{Error, OpenModel, Result, TokenAxis};

/// Passages that are encoded at once: enough for the products to be fast, few enough for little memory.
const AT_ONCE: usize = 16;

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Tokens at most.
    pub tokens: usize,
    /// An answer that is less probable is refused.
    pub least: f32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { tokens: 32, least: 0.4 }
    }
}

/// Where a column of the attention stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The passage.
    pub passage: usize,
    /// The bytes of its text; empty for tokens that stand for none.
    pub bytes: Range<usize>,
}

/// What became of a question.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The answer; none if it is refused.
    pub text: Option<String>,
    /// The probability of what was written, all tokens together.
    pub probability: f32,
    /// The tokens that were written, as labels, the end included.
    pub written: Vec<String>,
    /// The mean over layers and heads of the attention of each token written on each token of the passages: [T, M].
    pub attention: Array2<f32>,
    /// The columns.
    pub places: Vec<Place>,
    passages: usize,
}

impl Answered {
    pub(crate) fn new(passages: usize, places: Vec<Place>, attention: Array2<f32>) -> Self {
        Answered { text: None, probability: 0.0, written: Vec::new(), attention, places, passages }
    }

    /// The attention of the whole answer on each token: the mean over its tokens, \[M\].
    pub fn tokens(&self) -> Array1<f32> {
        self.attention.mean_axis(Axis(0)).unwrap_or_else(|| Array1::zeros(self.places.len()))
    }

    /// The attention of the whole answer on each passage.
    pub fn weights(&self) -> Vec<f32> {
        let mut weights = vec![0.0; self.passages];
        for (weight, place) in self.tokens().iter().zip(&self.places) {
            weights[place.passage] += weight;
        }
        weights
    }

    /// The passage that got most of it.
    pub fn passage(&self) -> Option<usize> {
        let weights = self.weights();
        (0..weights.len()).max_by(|a, b| weights[*a].total_cmp(&weights[*b]))
    }

    /// The attention of the whole answer on each word of a passage, in their order: where it stands, and its weight.
    pub fn words(&self, passage: usize, text: &str) -> Vec<(Range<usize>, f32)> {
        self.on_words(&self.tokens(), passage, text)
    }

    /// The same of one token of the answer.
    pub fn words_of(&self, token: usize, passage: usize, text: &str) -> Vec<(Range<usize>, f32)> {
        self.on_words(&self.attention.row(token).to_owned(), passage, text)
    }

    fn on_words(&self, weights: &Array1<f32>, passage: usize, text: &str) -> Vec<(Range<usize>, f32)> {
        let mut words: Vec<(Range<usize>, f32)> = words(text).into_iter().map(|word| (word, 0.0)).collect();
        for (weight, place) in weights.iter().zip(&self.places).filter(|(_, place)| place.passage == passage) {
            // A token may begin with the space before its word.
            let at = words.partition_point(|(word, _)| word.end <= place.bytes.start);
            if let Some((word, sum)) = words.get_mut(at)
                && word.start < place.bytes.end
            {
                *sum += weight;
            }
        }
        words
    }
}

/// What spaces divide.
fn words(text: &str) -> Vec<Range<usize>> {
    let start = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    text.split_whitespace().map(|word| start(word)..start(word) + word.len()).collect()
}

/// An answer with all of the attention that it came from.
#[derive(Clone, Debug)]
pub struct WatchedAnswer {
    /// The answer.
    pub answered: Answered,
    /// The decoder's attention to what was written and, as `cross`, to the passages.
    pub trace: Trace,
    /// The tokens of the passages, one passage after the other, as the decoder sees them.
    pub read: (TokenAxis, Vec<u32>),
    /// The tokens that were written, by which queries are named, and those that the decoder was fed there.
    pub written: (TokenAxis, Vec<u32>),
}

/// What is said instead of an answer, in the language of the question.
pub fn refusal(question: &str) -> &'static str {
    let korean = question.chars().any(|c| ('가'..='힣').contains(&c));
    if korean { "이 글에는 답이 없습니다" } else { "not in these passages" }
}

/// A reader that answers.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'m> {
    model: &'m Reader,
    tokens: ReaderTokens<'m>,
    limits: Limits,
}

impl<'m> Asker<'m> {
    /// Of a model with its vocabulary.
    ///
    /// # Errors
    /// If it is no reader.
    pub fn new(open: &'m OpenModel, limits: Limits) -> Result<Self> {
        let model = open.reader()?;
        Ok(Asker { model, tokens: ReaderTokens::new(open.tokenizer()?, model.config().context)?, limits })
    }

    /// Of a model in training.
    pub fn of(model: &'m Reader, tokens: ReaderTokens<'m>, limits: Limits) -> Self {
        Asker { model, tokens, limits }
    }

    /// Puts a question to passages.
    ///
    /// # Errors
    /// [`Error::TooShort`] without a passage, [`Error::Context`] if the question is too long.
    pub fn ask<S: AsRef<str>>(&self, question: &str, passages: &[S]) -> Result<Answered> {
        Ok(self.watch(question, passages, &Probe::new(Capture::All))?.answered)
    }

    /// The same, seen by a probe, which may switch heads off. What is kept is the decoder's attention.
    ///
    /// # Errors
    /// As [`ask`](Asker::ask); also [`Error::Stopped`] by the probe, [`Error::NotTraced`] if it keeps nothing.
    pub fn watch<S: AsRef<str>>(&self, question: &str, passages: &[S], probe: &Probe) -> Result<WatchedAnswer> {
        if passages.is_empty() {
            return Err(Error::TooShort { tokens: 0, least: 1 });
        }
        let question = self.tokens.question(question)?;
        let inputs = passages.iter().map(|passage| self.tokens.input(&question, passage.as_ref()));
        let inputs = inputs.collect::<Result<Vec<Input>>>()?;
        let (mut encoded, mut read) = (Vec::new(), Vec::new());
        for chunk in inputs.chunks(AT_ONCE) {
            encoded.push(self.model.encode(Padded::new([chunk]).batch(), &mut probe.with_capture(Capture::None))?);
            chunk.iter().for_each(|input| read.extend_from_slice(&input.tokens[input.start..]));
        }
        let views: Vec<_> = encoded.iter().map(|encoded| encoded.view()).collect();
        let encoded = concatenate(Axis(0), &views).expect("all are as wide as the model");
        let passages_read = self.model.fuse(&encoded, read.clone())?;
        let (mut written, mut probability) = (vec![self.tokens.begin], 1.0);
        let trace = loop {
            let mut probe = probe.clone();
            let log_p = self.model.write(&written, &passages_read, &mut probe)?;
            let last = log_p.row(log_p.nrows() - 1);
            let best = (0..last.len()).max_by(|a, b| last[*a].total_cmp(&last[*b])).unwrap_or(0);
            probability *= last[best].exp();
            written.push(best as u32);
            let ended = best as u32 == self.tokens.end || best as u32 == self.tokens.none;
            if ended || written.len() > self.limits.tokens {
                break probe.into_trace();
            }
        };
        let places = (inputs.iter().enumerate())
            .flat_map(|(passage, input)| input.places.iter().map(move |bytes| Place { passage, bytes: bytes.clone() }))
            .collect();
        let mut answered = Answered::new(passages.len(), places, mean(&trace, Kind::Cross)?);
        let tokens: Vec<u32> = written[1..].to_vec();
        let described = self.tokens.tokenizer.describe(&tokens)?;
        answered.written = described.labels().to_vec();
        answered.probability = probability;
        let spoken: Vec<u32> = tokens.into_iter().filter(|token| *token != self.tokens.end).collect();
        let refused = spoken.is_empty() || spoken.contains(&self.tokens.none) || probability < self.limits.least;
        if !refused {
            let text = self.tokens.tokenizer.decode(&spoken)?.trim().to_owned();
            // What stands in no passage was pieced together.
            let told = passages.iter().any(|passage| stands_in(&text, passage.as_ref()));
            answered.text = Some(text).filter(|text| !text.is_empty() && told);
        }
        let read = (self.axis(&inputs, passages)?, read);
        written.pop();
        Ok(WatchedAnswer { answered, trace, read, written: (TokenAxis::of(&described), written) })
    }

    /// The tokens of passages, in words as spaces divide them.
    fn axis<S: AsRef<str>>(&self, inputs: &[Input], passages: &[S]) -> Result<TokenAxis> {
        let mut axis = TokenAxis { labels: Vec::new(), groups: Vec::new(), special: Vec::new() };
        for (input, passage) in inputs.iter().zip(passages) {
            let (text, described) = (passage.as_ref(), self.tokens.tokenizer.describe(&input.tokens[input.start..])?);
            let words = words(text);
            let mut last = None;
            for (label, place) in described.labels().iter().zip(&input.places) {
                let n = axis.labels.len();
                let special = place.is_empty();
                // A space by itself belongs to the word after it.
                let word = words.partition_point(|word| word.end <= place.start).min(words.len().saturating_sub(1));
                let word = Some(word).filter(|_| !special && !words.is_empty());
                match axis.groups.last_mut() {
                    Some(group) if word.is_some() && word == last => group.tokens.end = n + 1,
                    _ => {
                        let label = word.map_or(label.as_str(), |word| &text[words[word].clone()]).to_owned();
                        axis.groups.push(Group { label, tokens: n..n + 1 });
                    }
                }
                last = word;
                axis.labels.push(label.clone());
                axis.special.push(special);
            }
        }
        Ok(axis)
    }
}

/// Whether a text has an answer in whole words; a particle may follow Hangul without a space.
fn stands_in(answer: &str, text: &str) -> bool {
    let (answer, text) = (answer.to_lowercase(), text.to_lowercase());
    let letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && !('가'..='힣').contains(&c));
    let joined = |a: Option<char>, b: Option<char>| letter(a) && letter(b);
    text.match_indices(&answer).any(|(start, found)| {
        let (before, after) = (&text[..start], &text[start + found.len()..]);
        !joined(before.chars().next_back(), found.chars().next())
            && !joined(found.chars().next_back(), after.chars().next())
    })
}

/// The mean of one kind of attention over all layers and heads: [T, S].
fn mean(trace: &Trace, kind: Kind) -> Result<Array2<f32>> {
    let mut sum: Option<Array2<f32>> = None;
    let mut count = 0;
    for (_, layer) in trace.of_kind(kind) {
        for head in 0..layer.heads() {
            let weights = layer.tile(0, head, 0..layer.queries(), 0..layer.keys())?;
            count += 1;
            match &mut sum {
                Some(sum) => *sum += &weights,
                None => sum = Some(weights),
            }
        }
    }
    let sum = sum.ok_or(Error::NotTraced { part: "weights" })?;
    Ok(sum / count as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_words_of_a_passage() {
        let text = "The key is in a blue jar. 마을 회관에서 5,000원에 샀다. It begins at 7:15.";
        for answer in ["in a blue jar", "The key", "the key", "마을 회관", "회관", "5,000원", "7:15"] {
            assert!(stands_in(answer, text), "{answer}");
        }
        for answer in ["in a blue j", "ey", "작은 회관", "5,0", "7:1", "a jar", "\u{fffd}"] {
            assert!(!stands_in(answer, text), "{answer}");
        }
    }
}

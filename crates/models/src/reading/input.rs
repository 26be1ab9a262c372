//! A question and a passage as what the reader reads.

use std::ops::Range;

use super::matching::{Side, Units};
use crate::model::reader::PassageBatch;
use crate::{Error, Result, Tokenizer};

/// Padding, begin, end, unknown, the mark between question and passage, no answer.
pub(super) const SPECIAL: [&str; 6] = ["<pad>", "<s>", "</s>", "<unk>", "<q>", "<none>"];

/// A vocabulary with the tokens that a reader needs.
#[derive(Clone, Copy, Debug)]
pub struct ReaderTokens<'t> {
    /// The vocabulary.
    pub tokenizer: &'t Tokenizer,
    /// `<s>`, which begins what is read and what is written.
    pub begin: u32,
    /// `</s>`, which ends it.
    pub end: u32,
    /// `<q>`, between question and passage.
    pub asked: u32,
    /// `<none>`, in place of an answer.
    pub none: u32,
    /// The tokens of a passage with its question at most.
    pub context: usize,
}

/// A question, ready to be put to passages.
#[derive(Clone, Debug)]
pub struct Question {
    ids: Vec<u32>,
    places: Vec<Range<usize>>,
    units: Units,
}

/// A passage with its question: what the encoder reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The tokens.
    pub tokens: Vec<u32>,
    /// Their marks.
    pub marks: Vec<u32>,
    /// Where the part begins that the decoder sees: at `<q>`.
    pub start: usize,
    /// Where in the passage each of these tokens stands; nowhere at `<q>` and `</s>`.
    pub places: Vec<Range<usize>>,
}

/// Inputs of some questions, filled up to the longest.
#[derive(Clone, Debug, Default)]
pub struct Padded {
    tokens: Vec<u32>,
    marks: Vec<u32>,
    lengths: Vec<usize>,
    starts: Vec<usize>,
    counts: Vec<usize>,
}

impl<'t> ReaderTokens<'t> {
    /// Those of a vocabulary, for a model that reads so many tokens at once.
    ///
    /// # Errors
    /// [`Error::MissingPart`] if it lacks one.
    pub fn new(tokenizer: &'t Tokenizer, context: usize) -> Result<Self> {
        let missing = || Error::MissingPart {
            part: "tokens of a reader in its vocabulary: <s>, </s>, <q>, <none>",
            fit: "a reader",
        };
        let id = |token| tokenizer.id(token).ok_or_else(missing);
        let (begin, end, asked, none) = (id("<s>")?, id("</s>")?, id("<q>")?, id("<none>")?);
        Ok(ReaderTokens { tokenizer, begin, end, asked, none, context })
    }

    /// A question.
    ///
    /// # Errors
    /// [`Error::Context`] if it leaves no room for a passage: it may have half of the positions.
    pub fn question(&self, text: &str) -> Result<Question> {
        let limit = self.context / 2;
        let too_long = |tokens| Error::Context { tokens, limit };
        // A token has at least a byte of text; so long a text need not be cut to know.
        if text.len() > 16 * self.context {
            return Err(too_long(text.chars().count()));
        }
        let encoding = self.tokenizer.encode_bare(text)?;
        if encoding.len() > limit {
            return Err(too_long(encoding.len()));
        }
        Ok(Question { ids: encoding.ids().to_vec(), places: places(&encoding), units: Units::of(text) })
    }

    /// A passage with its question. What has no room at its end is left out.
    ///
    /// # Errors
    /// If the passage has a character that the vocabulary cannot write.
    pub fn input(&self, question: &Question, passage: &str) -> Result<Input> {
        let encoding = self.tokenizer.encode_bare(passage)?;
        let room = self.context - question.ids.len() - 3;
        let read = encoding.len().min(room);
        let units = Units::of(passage);
        let (asked, told) = (question.units.levels(&units), units.levels(&question.units));
        let places = places(&encoding);
        let start = question.ids.len() + 1;
        let mut tokens = vec![self.begin];
        tokens.extend_from_slice(&question.ids);
        tokens.push(self.asked);
        tokens.extend_from_slice(&encoding.ids()[..read]);
        tokens.push(self.end);
        let mut marks = vec![Side::Question.mark(0)];
        marks.extend(question.places.iter().map(|at| Side::Question.mark(question.units.level_at(&asked, at))));
        marks.push(Side::Passage.mark(0));
        marks.extend(places[..read].iter().map(|at| Side::Passage.mark(units.level_at(&told, at))));
        marks.push(Side::Passage.mark(0));
        let mut seen = Vec::with_capacity(read + 2);
        seen.push(0..0);
        seen.extend_from_slice(&places[..read]);
        seen.push(passage.len()..passage.len());
        Ok(Input { tokens, marks, start, places: seen })
    }

    /// The tokens of an answer, without those around it; `<none>` if there is none.
    ///
    /// # Errors
    /// If it has a character that the vocabulary cannot write.
    pub fn answer(&self, answer: Option<&str>) -> Result<Vec<u32>> {
        Ok(match answer {
            Some(answer) => self.tokenizer.encode_bare(answer)?.ids().to_vec(),
            None => vec![self.none],
        })
    }
}

/// Where each token stands in its text.
fn places(encoding: &crate::Encoding) -> Vec<Range<usize>> {
    encoding.spans().iter().map(|span| span.clone().unwrap_or(0..0)).collect()
}

impl Padded {
    /// The inputs of each question.
    pub fn new<'a>(questions: impl IntoIterator<Item = &'a [Input]> + Clone) -> Self {
        let all = || questions.clone().into_iter().flatten();
        let longest = all().map(|input| input.tokens.len()).max().unwrap_or(0);
        let mut padded = Padded::default();
        for (n, input) in all().enumerate() {
            padded.tokens.extend_from_slice(&input.tokens);
            padded.tokens.resize((n + 1) * longest, 0);
            padded.marks.extend_from_slice(&input.marks);
            padded.marks.resize((n + 1) * longest, 0);
            padded.lengths.push(input.tokens.len());
            padded.starts.push(input.start);
        }
        padded.counts = questions.into_iter().map(<[Input]>::len).collect();
        padded
    }

    /// As the model takes them.
    pub fn batch(&self) -> PassageBatch<'_> {
        let Padded { tokens, marks, lengths, starts, counts } = self;
        PassageBatch { tokens, marks, lengths, starts, counts }
    }
}

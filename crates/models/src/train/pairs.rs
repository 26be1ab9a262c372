//! Learning to translate: pairs of sequences.

use ndarray::Array3;

use super::{Fingerprint, StepContext, Task};
use crate::layer::{CrossEntropy, Guide, Loss, Random};
use crate::model::transformer::Batch;
use crate::model::{Transformer, TransformerConfig};
use crate::translation::Languages;
use crate::{Error, Result};

/// A sequence to read and the one to write, in tokens, without those that begin and end them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Example {
    /// What is read.
    pub source: Vec<u32>,
    /// What is written.
    pub target: Vec<u32>,
    /// Tokens that stand for each other, as (source, target), where that is known: what a [guided](Pairs::guided) head learns.
    pub links: Vec<(usize, usize)>,
}

impl Example {
    /// A pair of which no links are known.
    pub fn new(source: Vec<u32>, target: Vec<u32>) -> Self {
        Example { source, target, links: Vec::new() }
    }
}

/// Pairs to learn from, and pairs held out.
pub struct Pairs<'d> {
    learned: Learned<'d>,
    held_out: Vec<Example>,
    batch: usize,
    begin: u32,
    end: u32,
    vocabularies: Option<Fingerprint>,
    guided: Option<GuidedHead>,
}

/// Where pairs to learn from come from.
enum Learned<'d> {
    Given(Vec<Example>),
    Drawn(Box<Draw<'d>>),
}

/// Makes a pair at random.
type Draw<'d> = dyn Fn(&mut Random) -> Example + Send + Sync + 'd;

/// A head of cross-attention that learns the links of the examples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GuidedHead {
    /// The layer.
    pub layer: usize,
    /// The head.
    pub head: usize,
    /// How much the links count beside the tokens.
    pub factor: f32,
}

/// A target that does not count: no vocabulary is that large.
const IGNORED: u32 = u32::MAX;

/// Examples, of about the same length as the batch is sorted, that are filled up to the longest and learned from together. Of more, too many rows
/// would be filling; of fewer, the products would be too small.
const TOGETHER: usize = 16;

/// Some examples, filled up to the longest.
struct Padded {
    source: Vec<u32>,
    lengths: Vec<usize>,
    inputs: Vec<u32>,
    targets: Vec<u32>,
}

impl<'d> Pairs<'d> {
    /// Learns from `batch` pairs at a time. `begin` and `end` are the tokens that begin and end a written sequence.
    ///
    /// # Errors
    /// [`Error::TooShort`] if there is nothing to learn from or to evaluate on, or a sequence is empty.
    pub fn new(learned: Vec<Example>, held_out: Vec<Example>, batch: usize, bos_eos: (u32, u32)) -> Result<Self> {
        if learned.is_empty() || learned.iter().any(is_empty) {
            return Err(Error::TooShort { tokens: 0, least: 1 });
        }
        Pairs::of(Learned::Given(learned), held_out, batch, bos_eos)
    }

    /// The same with pairs that are made as they are needed, from a stream of random numbers, and never come again. An empty
    /// sequence is learned as the end alone.
    ///
    /// # Errors
    /// [`Error::TooShort`] if there is nothing to evaluate on.
    pub fn drawn(
        draw: impl Fn(&mut Random) -> Example + Send + Sync + 'd,
        held_out: Vec<Example>,
        batch: usize,
        bos_eos: (u32, u32),
    ) -> Result<Self> {
        Pairs::of(Learned::Drawn(Box::new(draw)), held_out, batch, bos_eos)
    }

    fn of(learned: Learned<'d>, held_out: Vec<Example>, batch: usize, (begin, end): (u32, u32)) -> Result<Self> {
        if batch == 0 || held_out.is_empty() || held_out.iter().any(is_empty) {
            return Err(Error::TooShort { tokens: 0, least: 1 });
        }
        Ok(Pairs { learned, held_out, batch, begin, end, guided: None, vocabularies: None })
    }

    /// Says which vocabularies the tokens are of: the same numbers may be other sentences.
    #[must_use]
    pub fn with_vocabularies(self, languages: &Languages) -> Self {
        let source = languages.source.fingerprint("vocabulary of the source");
        Pairs { vocabularies: Some(source.and(languages.target.fingerprint("vocabulary of the target"))), ..self }
    }

    /// A head of cross-attention also learns to look at the tokens that its next token is linked to.
    #[must_use]
    pub fn guided(self, head: GuidedHead) -> Self {
        Pairs { guided: Some(head), ..self }
    }

    fn pad(&self, examples: &[&Example]) -> Padded {
        let longest = |length: fn(&Example) -> usize| examples.iter().map(|example| length(example)).max().unwrap_or(0);
        let (read, written) = (longest(|example| example.source.len()), longest(|example| example.target.len()) + 1);
        let mut padded = Padded { source: vec![], lengths: vec![], inputs: vec![], targets: vec![] };
        for (n, Example { source, target, .. }) in examples.iter().enumerate() {
            padded.source.extend_from_slice(source);
            padded.source.resize((n + 1) * read, 0);
            padded.lengths.push(source.len());
            padded.inputs.push(self.begin);
            padded.inputs.extend_from_slice(target);
            padded.inputs.resize((n + 1) * written, self.end);
            padded.targets.extend_from_slice(target);
            padded.targets.push(self.end);
            padded.targets.resize((n + 1) * written, IGNORED);
        }
        padded
    }

    /// Learns from examples of about the same length.
    fn learn_together(
        &self,
        model: &Transformer,
        examples: &[&Example],
        context: &StepContext,
        grad: &mut Transformer,
    ) -> Result<Loss> {
        let padded = self.pad(examples);
        let source = Batch { tokens: &padded.source, lengths: &padded.lengths };
        let (mut logits, saved) = model.forward(source, &padded.inputs, context.dropout())?;
        let loss = context.cross_entropy(Some(IGNORED)).forward_backward(&mut logits, &padded.targets)?;
        let gold = self.guided.map(|_| gold(examples, &padded));
        let guide = self.guided.zip(gold.as_ref()).map(|(GuidedHead { layer, head, factor }, gold)| {
            (layer, Guide { head, gold: gold.view(), factor: factor / context.counted() as f32 })
        });
        context.backward(|| model.backward_guided(&saved, &logits, guide, grad))?;
        Ok(loss)
    }
}

fn is_empty(example: &Example) -> bool {
    example.source.is_empty() || example.target.is_empty()
}

/// Where the query of each token should look: at the tokens it is linked to, all alike.
fn gold(examples: &[&Example], padded: &Padded) -> Array3<f32> {
    let batch = examples.len().max(1);
    let mut gold = Array3::zeros((batch, padded.inputs.len() / batch, padded.source.len() / batch));
    for (mut gold, example) in gold.outer_iter_mut().zip(examples) {
        for &(source, target) in &example.links {
            gold[[target, source]] = 1.0;
        }
        for mut row in gold.outer_iter_mut() {
            let links = row.sum();
            row.iter_mut().filter(|weight| **weight > 0.0).for_each(|weight| *weight /= links);
        }
    }
    gold
}

impl Task for Pairs<'_> {
    type Model = Transformer;
    type Example = Example;

    fn choose(&self, random: &mut Random) -> Vec<Example> {
        let one = |_| match &self.learned {
            Learned::Given(examples) => examples[random.below(examples.len())].clone(),
            Learned::Drawn(draw) => draw(random),
        };
        let mut chosen: Vec<Example> = (0..self.batch).map(one).collect();
        // Each half of the batch has every second one, from the shortest to the longest.
        chosen.sort_by_key(|example| (example.target.len(), example.source.len()));
        let (first, second): (Vec<_>, Vec<_>) = chosen.into_iter().enumerate().partition(|(n, _)| n % 2 == 0);
        first.into_iter().chain(second).map(|(_, example)| example).collect()
    }

    fn counted(&self, chosen: &Example) -> usize {
        chosen.target.len() + 1
    }

    fn learn(
        &self,
        model: &Transformer,
        chosen: &[Example],
        context: &StepContext,
        grad: &mut Transformer,
    ) -> Result<Loss> {
        let examples: Vec<&Example> = chosen.iter().collect();
        let mut all = Loss { mean: 0.0, counted: 0 };
        let parts = examples.chunks(TOGETHER);
        let last = parts.len().saturating_sub(1);
        for (n, examples) in parts.enumerate() {
            let own = context.from(n * TOGETHER);
            let context = if n == last { own } else { own.before_others() };
            let loss = self.learn_together(model, examples, &context, grad)?;
            all = Loss { mean: all.mean + loss.mean, counted: all.counted + loss.counted };
        }
        Ok(all)
    }

    fn evaluate(&self, model: &Transformer) -> Result<f32> {
        let (mut sum, mut tokens) = (0.0, 0);
        let examples: Vec<&Example> = self.held_out.iter().collect();
        for examples in examples.chunks(self.batch) {
            let padded = self.pad(examples);
            let source = Batch { tokens: &padded.source, lengths: &padded.lengths };
            let (logits, _) = model.forward(source, &padded.inputs, None)?;
            let loss =
                CrossEntropy { ignore: Some(IGNORED), ..CrossEntropy::new() }.forward(&logits, &padded.targets)?;
            sum += f64::from(loss.mean) * loss.counted as f64;
            tokens += loss.counted;
        }
        Ok((sum / tokens.max(1) as f64) as f32)
    }

    fn fingerprint(&self, model: &Transformer) -> Fingerprint {
        let values = |examples: &[Example]| -> Vec<u32> {
            // Lengths too, or tokens could move from one sentence to the next.
            let of = |tokens: &Vec<u32>| std::iter::once(tokens.len() as u32).chain(tokens.clone()).collect::<Vec<_>>();
            examples.iter().flat_map(|example| [of(&example.source), of(&example.target)].concat()).collect()
        };
        let sizes = TransformerConfig { alignment: None, ..*model.config() };
        let learned = match &self.learned {
            Learned::Given(examples) => values(examples),
            // What is drawn follows from the vocabularies and the seed; its beginning tells one draw from another.
            Learned::Drawn(draw) => values(&(0..8).map(|seed| draw(&mut Random::new(seed))).collect::<Vec<_>>()),
        };
        (self.vocabularies.clone().unwrap_or_default())
            .data("learned pairs", learned.into_iter())
            .data("held-out pairs", values(&self.held_out).into_iter())
            .fact("batch", self.batch)
            .fact("guided head", format!("{:?}", self.guided))
            .fact("tokens that begin and end", format!("{} and {}", self.begin, self.end))
            .fact("model", format!("{sizes:?}"))
    }
}

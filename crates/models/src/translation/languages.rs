//! The two languages of a translator: the tokenizers of what it reads and of what it writes.

use std::path::Path;

use crate::analysis::words::groups;
use crate::generate::beam::{BosEos, Hypothesis, greedy, watch};
use crate::model::Transformer;
use crate::trace::{Capture, Trace};
use crate::train::Example;
use crate::translation::attention::{self, Aligner, Gold};
use crate::translation::{Sentence, Unknown};
use crate::{Result, Tokenizer};

/// A tokenizer for each side.
#[derive(Clone, Debug)]
pub struct Languages {
    /// Of what is read.
    pub source: Tokenizer,
    /// Of what is written.
    pub target: Tokenizer,
}

/// A pair of sentences whose words are linked by hand or by rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedPair {
    /// The sentence.
    pub source: String,
    /// Its translation.
    pub target: String,
    /// Links that must be found: (source word, target word).
    pub sure: Vec<(usize, usize)>,
    /// Links that may be found.
    pub possible: Vec<(usize, usize)>,
}

/// A translation, and how sure the model is of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Translation {
    /// The translation, with words that are not known copied into it.
    pub text: String,
    /// From 0 to 1; see [`Sentence::confidence`].
    pub confidence: f32,
    /// The words that are not known.
    pub unknown: Vec<Unknown>,
}

impl Languages {
    /// Those of a translator's folder, in `source` and `target`.
    ///
    /// # Errors
    /// If either has no sound tokenizer.
    pub fn open(folder: &Path) -> Result<Self> {
        let side = |side: &str| Tokenizer::from_folder(&folder.join(side));
        Ok(Languages { source: side("source")?, target: side("target")? })
    }

    /// Saves them where [`open`](Self::open) finds them.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn save(&self, folder: &Path) -> Result<()> {
        self.source.save(&folder.join("source"))?;
        self.target.save(&folder.join("target"))
    }

    /// The tokens that begin and end a written sentence.
    ///
    /// # Errors
    /// If the vocabulary of the target has none.
    pub fn bos_eos(&self) -> Result<BosEos> {
        BosEos::of(&self.target)
    }

    /// A pair as tokens, to learn from.
    ///
    /// # Errors
    /// If a sentence has a character that its vocabulary lacks and has no token for unknown ones.
    pub fn example(&self, source: &str, target: &str) -> Result<Example> {
        let ids = |tokenizer: &Tokenizer, text| Ok::<_, crate::Error>(tokenizer.encode_bare(text)?.ids().to_vec());
        Ok(Example::new(ids(&self.source, source)?, ids(&self.target, target)?))
    }

    /// What a model makes of these sentences: the likeliest token each time.
    ///
    /// # Errors
    /// If a sentence is empty or longer than the model can see.
    pub fn translate<'a>(
        &self,
        model: &Transformer,
        sentences: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<String>> {
        Ok(self.translations(model, sentences)?.into_iter().map(|translation| translation.text).collect())
    }

    /// The same, with how sure the model is of each.
    ///
    /// # Errors
    /// As [`translate`](Self::translate).
    pub fn translations<'a>(
        &self,
        model: &Transformer,
        sentences: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Translation>> {
        let read = sentences.into_iter().map(|sentence| Sentence::read(&self.source, sentence));
        let read = read.collect::<Result<Vec<_>>>()?;
        let sources: Vec<&[u32]> = read.iter().map(|sentence| sentence.ids.as_slice()).collect();
        let written = greedy(model, &sources, self.bos_eos()?, model.config().context)?;
        let translation = |(sentence, written): (Sentence, Hypothesis)| {
            let text = sentence.fill(self.target.decode(&written.tokens)?.trim());
            let confidence = sentence.confidence(written.log_probability);
            Ok(Translation { text, confidence, unknown: sentence.unknown })
        };
        read.into_iter().zip(written).map(translation).collect()
    }

    /// What a model attends to while it reads a sentence and writes a translation that is given.
    ///
    /// # Errors
    /// As [`translate`](Self::translate).
    pub fn watch(&self, model: &Transformer, pair: &Example) -> Result<Trace> {
        watch(model, &pair.source, &pair.target, self.bos_eos()?, Capture::All)
    }

    /// The links that one way to read alignments finds, on a translation that is given.
    ///
    /// # Errors
    /// As [`translate`](Self::translate).
    pub fn links(&self, model: &Transformer, pair: &LinkedPair, aligner: &Aligner) -> Result<Vec<(usize, usize)>> {
        let (trace, gold) = self.watched(model, pair)?;
        let weights = attention::weights(&trace, aligner.layer, aligner.head)?;
        attention::links(&weights, &gold.source, &gold.target, aligner.reading)
    }

    /// How well each head's cross-attention tells what each word was made from, on translations that are given; best first.
    ///
    /// # Errors
    /// As [`translate`](Self::translate).
    pub fn align<'a>(
        &self,
        model: &Transformer,
        pairs: impl IntoIterator<Item = &'a LinkedPair>,
    ) -> Result<Vec<Aligner>> {
        let watched = pairs.into_iter().map(|pair| self.watched(model, pair)).collect::<Result<Vec<_>>>()?;
        attention::score(watched.iter().map(|(trace, gold)| (trace, gold)))
    }

    fn watched(&self, model: &Transformer, pair: &LinkedPair) -> Result<(Trace, Gold)> {
        let (source, target) = (self.source.encode_bare(&pair.source)?, self.target.encode_bare(&pair.target)?);
        let trace = watch(model, source.ids(), target.ids(), self.bos_eos()?, Capture::All)?;
        let (source, target) = (groups(&source), groups(&target));
        Ok((trace, Gold { source, target, sure: pair.sure.clone(), possible: pair.possible.clone() }))
    }
}

//! The two languages of a translator: the tokenizers of what it reads and of what it writes.

use std::path::Path;

use crate::analysis::words::groups;
use crate::generate::beam::{BosEos, greedy, watch};
use crate::model::Transformer;
use crate::trace::{Capture, Trace};
use crate::train::Example;
use crate::translation::attention::{Aligner, Gold, score};
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
        Ok(Example { source: ids(&self.source, source)?, target: ids(&self.target, target)? })
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
        let sources = sentences.into_iter().map(|sentence| Ok(self.source.encode_bare(sentence)?.ids().to_vec()));
        let sources = sources.collect::<Result<Vec<_>>>()?;
        let written = greedy(model, &sources, self.bos_eos()?, model.config().context)?;
        written.iter().map(|tokens| Ok(self.target.decode(tokens)?.trim().to_owned())).collect()
    }

    /// What a model attends to while it reads a sentence and writes a translation that is given.
    ///
    /// # Errors
    /// As [`translate`](Self::translate).
    pub fn watch(&self, model: &Transformer, pair: &Example) -> Result<Trace> {
        watch(model, &pair.source, &pair.target, self.bos_eos()?, Capture::All)
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
        let mut watched = Vec::new();
        for LinkedPair { source, target, sure, possible } in pairs {
            let (source, target) = (self.source.encode_bare(source)?, self.target.encode_bare(target)?);
            let trace = watch(model, source.ids(), target.ids(), self.bos_eos()?, Capture::All)?;
            let (source, target) = (groups(&source), groups(&target));
            watched.push((trace, Gold { source, target, sure: sure.clone(), possible: possible.clone() }));
        }
        score(watched.iter().map(|(trace, gold)| (trace, gold)))
    }
}

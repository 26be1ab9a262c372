//! The attention over passages as pictures: which passage, and which of its words.

use anyhow::Result;
use foveal_view::{Bars, Heatmap, Scene};
use ndarray::Array2;

use super::{Found, shortened};
use crate::language::Language;

/// Letters of a passage's label.
const LABEL: usize = 36;
/// Passages and words of a picture at most.
const MOST: (usize, usize) = (20, 60);

impl Found<'_> {
    /// A bar for each passage, and the words of the one that was looked at most.
    pub(super) fn scenes(&self, said: &str, language: Language) -> Result<Vec<Scene>> {
        let tr = |english, korean| language.of(english, korean);
        let weights = self.answered.weights();
        let shown = weights.len().min(MOST.0);
        let label = |n: usize| format!("{} {}", n + 1, shortened(self.passage(n).text, LABEL));
        let bars = Bars::new(weights[..shown].iter().copied(), (0..shown).map(label))?
            .title(format!("{} → {said}", shortened(self.question, 80)))
            .note(format!("{} · {}", self.open.name, tr("attention on each passage", "글마다 받은 어텐션")))
            .language(language.into());
        let mut scenes = vec![bars.into()];
        if let Some(best) = self.answered.passage() {
            scenes.push(self.heatmap(best, language)?);
        }
        Ok(scenes)
    }

    /// The words of a passage, and how much each token of the answer attended to them.
    fn heatmap(&self, passage: usize, language: Language) -> Result<Scene> {
        let tr = |english, korean| language.of(english, korean);
        let text = self.passage(passage).text;
        let words = self.answered.words(passage, text);
        let shown = words.len().clamp(1, MOST.1);
        let mut weights = Array2::zeros((self.answered.attention.nrows(), shown));
        for (row, mut weights) in weights.outer_iter_mut().enumerate() {
            let of_row = self.answered.words_of(row, passage, text);
            weights.iter_mut().zip(of_row).for_each(|(cell, (_, weight))| *cell = weight);
        }
        let labels: Vec<String> = match words.is_empty() {
            true => vec![String::new()],
            false => words.iter().take(shown).map(|(word, _)| text[word.clone()].to_owned()).collect(),
        };
        let map = Heatmap::new(weights, self.answered.written.clone(), labels)?
            .axes(tr("Answer", "답"), tr("Passage", "글"))
            .title(format!("{} {}", tr("Passage", "글"), passage + 1))
            .note(tr("mean over layers and heads", "모든 층과 헤드의 평균"))
            .language(language.into());
        Ok(map.into())
    }
}

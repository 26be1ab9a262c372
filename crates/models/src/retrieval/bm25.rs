//! Ranking by words: BM25 (Robertson 1994), by the crate `bm25`.

use bm25::{Embedder, EmbedderBuilder, Scorer, Tokenizer};

use super::{Ranked, sorted};

/// What is looked for: words in lower case, and of Hangul every pair of syllables next to each other in a word, since particles
/// follow nouns without a space.
#[derive(Clone, Copy, Debug, Default)]
struct Terms;

impl Tokenizer for Terms {
    fn tokenize(&self, text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            let letters: Vec<char> = word.to_lowercase().chars().collect();
            for run in letters.chunk_by(|a, b| is_hangul(*a) == is_hangul(*b)) {
                if is_hangul(run[0]) && run.len() > 1 {
                    terms.extend(run.windows(2).map(|pair| pair.iter().collect::<String>()));
                } else {
                    terms.push(run.iter().collect());
                }
            }
        }
        terms
    }
}

fn is_hangul(c: char) -> bool {
    ('가'..='힣').contains(&c)
}

/// Passages, ready to be asked for.
pub struct Bm25 {
    embedder: Embedder<u32, Terms>,
    scorer: Scorer<usize>,
    passages: usize,
}

impl Bm25 {
    /// Counts the words of passages.
    pub fn new<S: AsRef<str>>(passages: &[S]) -> Self {
        let texts: Vec<&str> = passages.iter().map(AsRef::as_ref).collect();
        let embedder: Embedder<u32, Terms> = EmbedderBuilder::with_tokenizer_and_fit_to_corpus(Terms, &texts).build();
        let mut scorer = Scorer::new();
        for (number, text) in texts.iter().enumerate() {
            scorer.upsert(&number, embedder.embed(text));
        }
        Bm25 { embedder, scorer, passages: passages.len() }
    }

    /// All passages, those first that share rare words with the question.
    pub fn rank(&self, question: &str) -> Vec<Ranked> {
        let question = self.embedder.embed(question);
        sorted((0..self.passages).map(|passage| self.scorer.score(&passage, &question).unwrap_or(0.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hangul_is_cut_into_pairs_of_syllables() {
        assert_eq!(Terms.tokenize("민수는 GPT-2를 샀다!"), ["민수", "수는", "gpt", "2", "를", "샀다"]);
        assert_eq!(Terms.tokenize("강 🙂 Café"), ["강", "café"]);
    }

    #[test]
    fn rare_words_count_more_and_particles_do_not_hide_them() {
        let passages = ["민수는 부산에 산다.", "영희는 서울에 산다.", "철수는 서울에서 책을 샀다.", "The cat sat."];
        let bm25 = Bm25::new(&passages);
        assert_eq!(bm25.rank("영희의 집은 어디입니까?")[0].passage, 1);
        assert_eq!(bm25.rank("cat")[0].passage, 3);
        let none = bm25.rank("xyz");
        assert_eq!(none.iter().map(|ranked| ranked.passage).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(none.iter().all(|ranked| ranked.score == 0.0));
        assert!(Bm25::new(&[] as &[&str]).rank("cat").is_empty());
    }
}

//! Which heads of a translator's encoder follow subjects, verbs and objects: scored on sentences of the grammar, which knows
//! them.

use foveal_grammar::{Grammar, Random, Relation, Role};
use foveal_models::OpenModel;
use foveal_models::analysis::words::{Group, groups};
use foveal_models::analysis::{RelatedWords, RelationScore, relation_scores};
use foveal_models::model::transformer::Batch;
use foveal_models::trace::{Capture, Kind, Probe, Trace};

use crate::{Bilingual, Result};

/// Sentences that heads are scored on.
const SENTENCES: usize = 200;

/// Who looks at whom: its name, whose relation it is, and whether the verb looks.
const RELATIONS: [(Bilingual<&str>, Role, bool); 4] = [
    (Bilingual { en: "verb → subject", ko: "동사 → 주어" }, Role::Subject, true),
    (Bilingual { en: "verb → object", ko: "동사 → 목적어" }, Role::Object, true),
    (Bilingual { en: "subject → verb", ko: "주어 → 동사" }, Role::Subject, false),
    (Bilingual { en: "object → verb", ko: "목적어 → 동사" }, Role::Object, false),
];

/// How far the heads of an encoder follow one relation.
#[derive(Clone, Debug)]
pub struct FollowedRelation {
    /// Who looks at whom.
    pub name: Bilingual<&'static str>,
    /// All heads, the best first.
    pub heads: Vec<RelationScore>,
}

/// How far the heads of a translator's encoder follow each relation of verbs; none if the model was not trained on the grammar.
///
/// # Errors
/// If the model cannot read a sentence.
pub fn relations(open: &OpenModel, seed: u64) -> Result<Option<Vec<FollowedRelation>>> {
    let trained_here = open.translator().is_ok() && open.tokenizer()?.id(&foveal_grammar::slot(1)).is_some();
    if !trained_here {
        return Ok(None);
    }
    let watched = watch(open, seed)?;
    let followed = RELATIONS.map(|(name, role, verb_looks)| -> Result<_> {
        let pairs = |relations: &[Relation]| {
            let of_role = relations.iter().filter(|relation| relation.role == role);
            of_role.map(|&Relation { verb, word, .. }| if verb_looks { (verb, word) } else { (word, verb) }).collect()
        };
        let related: Vec<RelatedWords> = (watched.iter())
            .map(|one| RelatedWords { words: one.words.clone(), pairs: pairs(&one.relations) })
            .collect();
        let heads = relation_scores(watched.iter().map(|one| &one.trace).zip(&related), Kind::Encoder)?;
        Ok(FollowedRelation { name, heads })
    });
    followed.into_iter().collect::<Result<_>>().map(Some)
}

/// A sentence that the encoder has read.
struct Watched {
    trace: Trace,
    relations: Vec<Relation>,
    words: Vec<Group>,
}

fn watch(open: &OpenModel, seed: u64) -> Result<Vec<Watched>> {
    let (grammar, mut random) = (Grammar::new(), Random::new(seed));
    let mut watched = Vec::with_capacity(SENTENCES);
    while watched.len() < SENTENCES {
        let pair = grammar.sample(&mut random);
        let (encoding, relations) = (open.tokenizer()?.encode_bare(&pair.english_text())?, pair.relations());
        let words = groups(&encoding);
        if relations.is_empty() || words.len() != pair.english.len() {
            continue;
        }
        let mut probe = Probe::new(Capture::All);
        open.translator()?.encode(Batch { tokens: encoding.ids(), lengths: &[encoding.len()] }, &mut probe)?;
        watched.push(Watched { trace: probe.into_trace(), relations, words });
    }
    Ok(watched)
}

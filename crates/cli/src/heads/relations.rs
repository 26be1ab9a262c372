//! Which heads of a translator's encoder follow subjects, verbs and objects: scored on sentences of the grammar, which knows
//! them.

use anyhow::Result;
use foveal_grammar::{Grammar, Random, Relation, Role};
use foveal_models::OpenModel;
use foveal_models::analysis::words::{Group, groups};
use foveal_models::analysis::{RelatedWords, relation_scores};
use foveal_models::model::transformer::Batch;
use foveal_models::trace::{Capture, Kind, Probe, Trace};
use serde_json::{Value, json};

use crate::language::Language;
use crate::table::Table;

/// Sentences that heads are scored on.
const SENTENCES: usize = 200;
/// Heads that are told of each relation.
const TOLD: usize = 2;

/// Who looks at whom: in both languages, whose relation it is, and whether the verb looks.
const RELATIONS: [(&str, &str, Role, bool); 4] = [
    ("verb → subject", "동사 → 주어", Role::Subject, true),
    ("verb → object", "동사 → 목적어", Role::Object, true),
    ("subject → verb", "주어 → 동사", Role::Subject, false),
    ("object → verb", "목적어 → 동사", Role::Object, false),
];

/// The heads that follow each relation best, as a table and as figures; none if the model was not trained on the grammar.
pub fn of(open: &OpenModel, seed: u64, language: Language) -> Result<Option<(Table, Value)>> {
    let trained_here = open.translator().is_ok() && open.tokenizer()?.id(&foveal_grammar::slot(1)).is_some();
    if !trained_here {
        return Ok(None);
    }
    let watched = watch(open, seed)?;
    let columns =
        [("relation", "관계"), ("layer.head", "층.헤드"), ("share", "비중"), ("uniform", "균등"), ("holds", "성립")];
    let mut table = Table::new(columns.map(|(english, korean)| language.of(english, korean)));
    let mut figures = Vec::new();
    for (english, korean, role, verb_looks) in RELATIONS {
        let pairs = |relations: &[Relation]| {
            let of_role = relations.iter().filter(|relation| relation.role == role);
            of_role.map(|&Relation { verb, word, .. }| if verb_looks { (verb, word) } else { (word, verb) }).collect()
        };
        let related: Vec<RelatedWords> = (watched.iter())
            .map(|one| RelatedWords { words: one.words.clone(), pairs: pairs(&one.relations) })
            .collect();
        let scores = relation_scores(watched.iter().map(|one| &one.trace).zip(&related), Kind::Encoder)?;
        for score in scores.iter().take(TOLD) {
            table.row([
                language.of(english, korean).to_owned(),
                format!("{}.{}", score.head.site.layer, score.head.head),
                format!("{:.3}", score.share),
                format!("{:.3}", score.uniform),
                if score.is_syntactic() { language.of("yes", "예") } else { "–" }.to_owned(),
            ]);
        }
        figures.extend(scores.iter().map(|score| {
            json!({ "relation": english, "layer": score.head.site.layer, "head": score.head.head, "share": score.share,
                    "uniform": score.uniform, "pairs": score.pairs, "holds": score.is_syntactic() })
        }));
    }
    Ok(Some((table, Value::Array(figures))))
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

//! Which heads of a translator's encoder follow subjects, verbs and objects.

use anyhow::Result;
use foveal_labs::relations;
use foveal_models::OpenModel;
use serde_json::{Value, json};

use crate::language::Language;
use crate::table::Table;

/// Heads that are told of each relation.
const TOLD: usize = 2;

/// The heads that follow each relation best, as a table and as figures; none if the model was not trained on the grammar.
pub fn of(open: &OpenModel, seed: u64, language: Language) -> Result<Option<(Table, Value)>> {
    let Some(relations) = relations(open, seed)? else { return Ok(None) };
    let columns =
        [("relation", "관계"), ("layer.head", "층.헤드"), ("share", "비중"), ("uniform", "균등"), ("holds", "성립")];
    let mut table = Table::new(columns.map(|(english, korean)| language.of(english, korean)));
    let mut figures = Vec::new();
    for relation in &relations {
        for score in relation.heads.iter().take(TOLD) {
            table.row([
                (*relation.name.get(language.into())).to_owned(),
                format!("{}.{}", score.head.site.layer, score.head.head),
                format!("{:.3}", score.share),
                format!("{:.3}", score.uniform),
                if score.is_syntactic() { language.of("yes", "예") } else { "–" }.to_owned(),
            ]);
        }
        figures.extend(relation.heads.iter().map(|score| {
            json!({ "relation": relation.name.en, "layer": score.head.site.layer, "head": score.head.head,
                    "share": score.share, "uniform": score.uniform, "pairs": score.pairs, "holds": score.is_syntactic() })
        }));
    }
    Ok(Some((table, Value::Array(figures))))
}

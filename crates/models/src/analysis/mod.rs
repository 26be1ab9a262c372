//! What can be said about the attention of a run, all from its [`Trace`](crate::Trace).
//!
//! Weights are not causes: a head that looks at a token need not have changed the answer by it. [`norms`] weigh in what is
//! looked up, [`ablation`] asks what happens without a head, and [`importance`](mod@importance) what happens with a little less of it.

pub mod ablation;
pub mod classes;
pub mod importance;
pub mod norms;
pub mod report;
mod rollout;
mod salience;
pub mod scores;
pub mod survey;
pub mod syntax;
mod top;
pub mod words;

pub use self::ablation::ablate;
pub use self::classes::{ClassCounts, ClassShare, HeadClass, HeadClasses};
pub use self::importance::importance;
pub use self::report::{Repeated, report};
pub use self::rollout::{Rollouts, rollout, rollouts};
pub use self::salience::salience;
pub use self::scores::{HeadScores, Sink, head_scores};
pub use self::survey::{HeadSurvey, SurveyedHead, survey};
pub use self::syntax::{RelatedWords, RelationScore, relation_scores};
pub use self::top::{Link, top};

use std::ops::Range;

use crate::Result;
use crate::trace::LayerTrace;

/// Rows of weights that are looked at together: 256 of 16,384 keys are 16 MiB.
const ROWS: usize = 256;

/// All rows of a layer, some at a time.
pub(crate) fn row_blocks(layer: &LayerTrace) -> impl Iterator<Item = Range<usize>> + use<> {
    let queries = layer.queries();
    (0..queries).step_by(ROWS).map(move |start| start..(start + ROWS).min(queries))
}

/// The weights of a head, some rows at a time, so that long texts need no n × n memory.
pub(crate) fn by_rows(
    layer: &LayerTrace,
    (sequence, head): (usize, usize),
    mut look: impl FnMut(Range<usize>, ndarray::Array2<f32>),
) -> Result<()> {
    for rows in row_blocks(layer) {
        look(rows.clone(), layer.tile(sequence, head, rows, 0..layer.keys())?);
    }
    Ok(())
}

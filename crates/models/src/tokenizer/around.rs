//! The tokens around every text: some models were trained with one that begins it or one that ends it.

use std::path::Path;

use tokenizers::Tokenizer as Inner;
use tokenizers::processors::template::{SpecialToken, TemplateProcessing};

use super::problem;
use crate::Result;

/// The ids of the tokens around every text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Around {
    pub(super) begin: Option<u32>,
    pub(super) end: Option<u32>,
}

impl Around {
    /// Puts them around the texts of a tokenizer, in place of what it put there before.
    pub(super) fn apply(self, inner: &mut Inner, source: &Path) -> Result<()> {
        // Names stand in a template in which spaces, `$` and `:` have a meaning, so the template has its own.
        let roles = [("begin", self.begin), ("end", self.end)];
        let mut special = Vec::new();
        for (name, id) in roles {
            let Some(id) = id else { continue };
            let token = inner.id_to_token(id).ok_or_else(|| problem(source, format!("there is no token {id}")))?;
            let token = SpecialToken::new(name.into(), vec![id], vec![token]);
            special.push(token.map_err(|error| problem(source, error))?);
        }
        let part = |text: &str, segment: usize| {
            let of = |id: Option<u32>, name: &str| id.map(|_| format!("{name}:{segment}"));
            let parts = [of(self.begin, "begin"), Some(format!("{text}:{segment}")), of(self.end, "end")];
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        };
        let template = TemplateProcessing::builder()
            .try_single(part("$A", 0))
            .and_then(|template| template.try_pair(format!("{} {}", part("$A", 0), part("$B", 1))))
            .map_err(|error| problem(source, error))?
            .special_tokens(special)
            .build()
            .map_err(|error| problem(source, error))?;
        inner.with_post_processor(Some(template));
        Ok(())
    }
}

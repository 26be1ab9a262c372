//! Characters that a vocabulary has no token for: their bytes, put together again.

use std::ops::Range;

use anyhow::Result;
use foveal_models::analysis::words::Group;
use foveal_models::{Encoding, OpenModel};

use crate::language::Language;

/// The characters of a text that are cut into several tokens.
pub struct Characters {
    /// All tokens, those of one character together.
    pub groups: Vec<Group>,
    /// How many characters are cut.
    pub cut: usize,
    /// How many there are, without spaces.
    pub all: usize,
}

impl Characters {
    /// None if every character has a token, alone or with others.
    pub fn of(encoding: &Encoding) -> Option<Self> {
        let text = encoding.text();
        let mut groups: Vec<Group> = Vec::new();
        let mut cut = 0;
        for (token, span) in encoding.spans().iter().enumerate() {
            let starts = span.as_ref().is_none_or(|span| text.is_char_boundary(span.start));
            match groups.last_mut() {
                Some(group) if !starts => {
                    cut += usize::from(group.tokens.len() == 1);
                    group.tokens.end = token + 1;
                    group.label = whole(encoding, &group.tokens);
                }
                _ => groups.push(Group { label: encoding.labels()[token].clone(), tokens: token..token + 1 }),
            }
        }
        let all = text.chars().filter(|c| !c.is_whitespace()).count();
        (cut > 0).then_some(Characters { groups, cut, all })
    }

    /// What to tell whoever looks.
    pub fn note(&self, open: &OpenModel, language: Language) -> String {
        let Characters { cut, all, .. } = self;
        let name = &open.name;
        let mut note = match language {
            Language::En => format!(
                "{name} has no token for {cut} of the {all} characters and reads their bytes; here the bytes of a character \
                 are shown as one (--tokens tokens shows them apart)."
            ),
            Language::Ko => format!(
                "{name} 모델의 어휘에는 글자 {all}개 가운데 {cut}개가 없어 바이트로 나누어 읽습니다. 여기서는 한 글자의 바이트를 \
                 하나로 합쳐 보여 줍니다(--tokens tokens를 쓰면 따로 보입니다)."
            ),
        };
        if name == "shakespeare" {
            note.push_str(language.of(
                " It has learned English alone: where it looks in other languages says nothing about their meaning. \
                 A model that knows them can be given with --model.",
                " 이 모델은 영어만 배웠으므로 다른 언어의 글에서 어디를 보는지는 뜻과 관계가 없습니다. \
                 그 언어를 배운 모델은 --model 옵션으로 줄 수 있습니다.",
            ));
        }
        note
    }
}

/// The note on a text that a model reads in bytes; none where it knows all characters.
pub fn note(open: &OpenModel, text: &str, language: Language) -> Result<Option<String>> {
    Ok(Characters::of(&open.tokenizer()?.encode(text)?).map(|characters| characters.note(open, language)))
}

/// The text of some tokens.
fn whole(encoding: &Encoding, tokens: &Range<usize>) -> String {
    let spans = encoding.spans()[tokens.clone()].iter().flatten();
    let (start, end) = spans.fold((usize::MAX, 0), |(start, end), span| (start.min(span.start), end.max(span.end)));
    encoding.text().get(start..end).map_or_else(|| encoding.labels()[tokens.start].clone(), str::to_owned)
}

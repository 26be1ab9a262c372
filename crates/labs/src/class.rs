//! The classes of heads in words.

use foveal_models::analysis::HeadClass;

use crate::Bilingual;

/// What a class of heads is called.
pub const fn class_name(class: HeadClass) -> Bilingual<&'static str> {
    let [en, ko] = match class {
        HeadClass::Previous => ["previous", "직전 토큰"],
        HeadClass::Next => ["next", "다음 토큰"],
        HeadClass::Own => ["own", "자기 자신"],
        HeadClass::Near => ["near", "가까운 토큰"],
        HeadClass::Word => ["word", "같은 단어의 조각"],
        HeadClass::Same => ["same", "같은 토큰"],
        HeadClass::Induction => ["induction", "귀납"],
        HeadClass::Punctuation => ["punctuation", "문장 부호"],
        HeadClass::LineEnd => ["line end", "줄 끝"],
        HeadClass::LineStart => ["line start", "줄 처음"],
        HeadClass::Speaker => ["speaker", "말하는 사람"],
        HeadClass::First => ["first", "첫 토큰"],
        HeadClass::Separator => ["separator", "구분 토큰"],
    };
    Bilingual { en, ko }
}

/// What its heads look at, and of which kind of pattern that is: local, positional, syntactic or of content.
pub(crate) const fn class_summary(class: HeadClass) -> Bilingual<&'static str> {
    let [en, ko] = match class {
        HeadClass::Previous => ["the token before (local)", "바로 앞 토큰 (지역)"],
        HeadClass::Next => ["the token after (local)", "바로 다음 토큰 (지역)"],
        HeadClass::Own => ["the token itself (positional)", "자기 자신 (위치)"],
        HeadClass::Near => ["the three tokens before (local)", "바로 앞 토큰 셋 (지역)"],
        HeadClass::Word => ["other pieces of its word (local)", "같은 단어의 다른 조각 (지역)"],
        HeadClass::Same => ["equal tokens (content)", "같은 토큰 (내용)"],
        HeadClass::Induction => ["what followed an equal token (content)", "같은 토큰 다음에 온 것 (내용)"],
        HeadClass::Punctuation => ["punctuation (structure)", "문장 부호 (구조)"],
        HeadClass::LineEnd => ["line ends (structure)", "줄 끝 (구조)"],
        HeadClass::LineStart => ["the start of the line (positional)", "줄의 처음 (위치)"],
        HeadClass::Speaker => ["the name of who speaks (content)", "말하는 사람의 이름 (내용)"],
        HeadClass::First => ["the first token: a sink (positional)", "첫 토큰: 싱크 (위치)"],
        HeadClass::Separator => ["special tokens: a sink", "특수 토큰: 싱크"],
    };
    Bilingual { en, ko }
}

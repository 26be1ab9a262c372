//! GPT-2's spelling of bytes: every byte is one printable character, so that a vocabulary of bytes is a list of texts.
//! Bytes that print as themselves in Latin-1 stay; the others are counted up from U+0100. So a space is `Ġ` (U+0120).

/// The byte that a character of a token stands for.
pub(super) fn byte_of(c: char) -> Option<u8> {
    Some(match u32::from(c) {
        code @ (0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF) => code as u8,
        code @ 0x100..=0x120 => (code - 0x100) as u8,
        code @ 0x121..=0x142 => (code - 0x121) as u8 + 0x7F,
        0x143 => 0xAD,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_one_character() {
        let mut bytes: Vec<u8> = (0..0x200).filter_map(|code| byte_of(char::from_u32(code)?)).collect();
        bytes.sort_unstable();
        assert!(bytes.into_iter().eq(0..=255));
        assert_eq!(
            (byte_of('Ġ'), byte_of('Ċ'), byte_of('a'), byte_of('한')),
            (Some(b' '), Some(b'\n'), Some(b'a'), None)
        );
    }
}

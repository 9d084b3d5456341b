//! The 256 byte symbols and how `tokenizer.json` writes them.
//!
//! Byte-level BPE (GPT-2's `bytes_to_unicode`) writes each byte as one printable character: bytes that
//! print in Latin-1 as themselves, the others as U+0100 and on, in order.

use crate::special::Special;

/// The character that stands for each byte.
pub(crate) fn byte_to_char() -> [char; 256] {
    let mut next = 0x100u32;
    std::array::from_fn(|byte| {
        let prints = matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
        let code = if prints {
            byte as u32
        } else {
            next += 1;
            next - 1
        };
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    })
}

/// The byte that a character stands for.
pub(crate) fn char_to_byte(character: char) -> Option<u8> {
    byte_to_char().iter().position(|&c| c == character).map(|byte| byte as u8)
}

/// The bytes in the order of their ids: by the code point of their character, as the `tokenizers`
/// crate's trainer sorts its alphabet.
pub(crate) fn bytes_by_id() -> [u8; 256] {
    let chars = byte_to_char();
    let mut bytes: [u8; 256] = std::array::from_fn(|byte| byte as u8);
    bytes.sort_unstable_by_key(|&byte| chars[usize::from(byte)]);
    bytes
}

/// The token id of each byte.
pub(crate) fn byte_ids() -> [u32; 256] {
    let mut ids = [0; 256];
    for (i, byte) in bytes_by_id().into_iter().enumerate() {
        ids[usize::from(byte)] = (Special::ALL.len() + i) as u32;
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_characters_stand_for_space_newline_and_letters() {
        let chars = byte_to_char();
        assert_eq!((chars[0x20], chars[0x0a], chars[0x41], chars[0xad]), ('Ġ', 'Ċ', 'A', 'Ń'));
        for byte in 0..=255u8 {
            assert_eq!(char_to_byte(chars[usize::from(byte)]), Some(byte));
        }
        assert_eq!(char_to_byte('漢'), None);
    }

    #[test]
    fn every_byte_has_its_own_id_after_the_special_tokens() {
        let mut ids = byte_ids().to_vec();
        ids.sort_unstable();
        assert_eq!(ids, (5..261).collect::<Vec<u32>>());
    }
}

//! Text from tokens as they come, in whole characters.

use crate::tokenizer::Tokenizer;

/// Decodes token by token. What it has given so far never has to be taken back: bytes that may still
/// become a character are held until it is whole. All pieces together are [`Tokenizer::decode`] of all
/// the tokens.
#[derive(Debug)]
pub struct StreamDecoder<'a> {
    tokenizer: &'a Tokenizer,
    pending: Vec<u8>,
}

impl<'a> StreamDecoder<'a> {
    /// A decoder at the start of a text.
    pub fn new(tokenizer: &'a Tokenizer) -> Self {
        Self { tokenizer, pending: Vec::new() }
    }

    /// A decoder for what follows `prompt`. Nothing of the prompt is given out, except the first bytes
    /// of a character that the prompt breaks off in.
    pub fn after(tokenizer: &'a Tokenizer, prompt: &[u32]) -> Self {
        let mut decoder = Self::new(tokenizer);
        for &id in prompt {
            decoder.push(id);
        }
        decoder
    }

    /// The characters that are whole with this token.
    pub fn push(&mut self, id: u32) -> String {
        self.pending.extend_from_slice(self.tokenizer.piece(id));
        let whole = self.pending.len() - incomplete_tail(&self.pending);
        let text = String::from_utf8_lossy(&self.pending[..whole]).into_owned();
        self.pending.drain(..whole);
        text
    }

    /// What is left at the end: U+FFFD for a character that never became whole.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.pending).into_owned()
    }
}

/// Bytes at the end that are the start of a character and no whole one: 0 to 3.
fn incomplete_tail(bytes: &[u8]) -> usize {
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        at += chunk.valid().len() + chunk.invalid().len();
        if at == bytes.len() && !chunk.invalid().is_empty() && may_continue(chunk.invalid()) {
            return chunk.invalid().len();
        }
    }
    0
}

/// Whether some bytes could follow to make `start` one character.
fn may_continue(start: &[u8]) -> bool {
    let needed = match start[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 0,
    };
    start.len() < needed
}

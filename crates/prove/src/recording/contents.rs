//! The contents of blocks, each kept once.

use std::collections::HashMap;

use plumb_block::Bytes;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// Content of a logical block, as a number: equal numbers are equal bytes. The number means something only
/// with the [`Contents`] that gave it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Content(pub u32);

impl Content {
    /// Zeroes: what a block holds before it was ever written.
    pub const ZEROES: Self = Self(0);
}

/// All contents of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    block: usize,
    /// The first half of the SHA-256 of each.
    known: HashMap<[u8; 16], Content>,
    /// Contents after [`Content::ZEROES`], one after the other.
    bytes: Vec<u8>,
    zeroes: Vec<u8>,
}

impl Contents {
    /// Creates contents that hold only zeroes, of blocks of this size.
    pub fn new(logical_block: Bytes) -> Self {
        let block = logical_block.0 as usize;
        Self { block, known: HashMap::new(), bytes: Vec::new(), zeroes: vec![0; block] }
    }

    /// Returns the number of these bytes, which are one block.
    pub fn number(&mut self, bytes: &[u8]) -> Content {
        if bytes == self.zeroes {
            return Content::ZEROES;
        }
        let mut name = [0; 16];
        name.copy_from_slice(&digest(&SHA256, bytes).as_ref()[..16]);
        let next = Content(self.len() as u32);
        let content = *self.known.entry(name).or_insert(next);
        if content == next {
            self.bytes.extend_from_slice(bytes);
        }
        content
    }

    /// Returns the bytes of a content; zeroes if it is none of these.
    pub fn bytes(&self, content: Content) -> &[u8] {
        let start = (content.0 as usize).checked_sub(1).map(|index| index * self.block);
        start.and_then(|start| self.bytes.get(start..start + self.block)).unwrap_or(&self.zeroes)
    }

    /// Returns how many there are, zeroes among them.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.block + 1
    }

    /// Returns true if there are none but zeroes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the bytes of all but zeroes, in the order of their numbers.
    pub(super) fn all_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

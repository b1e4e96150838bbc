//! Contents of blocks, each stored once.

use std::collections::HashMap;

use plumb_block::Bytes;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// Content of a logical block, as a number: equal numbers mean equal bytes. The number is valid only with the
/// [`Contents`] that assigned it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Content(pub u32);

impl Content {
    /// Zeroes, which a block holds before its first write.
    pub const ZEROES: Self = Self(0);
}

/// All contents of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    block: usize,
    /// First half of the SHA-256 of each content.
    known: HashMap<[u8; 16], Content>,
    /// Contents after [`Content::ZEROES`], concatenated.
    bytes: Vec<u8>,
    zeroes: Vec<u8>,
}

impl Contents {
    /// Creates a store for blocks of this size that holds only zeroes.
    pub fn new(logical_block: Bytes) -> Self {
        let block = logical_block.0 as usize;
        Self { block, known: HashMap::new(), bytes: Vec::new(), zeroes: vec![0; block] }
    }

    /// Returns the number of these bytes, which must be one block.
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

    /// Returns the bytes of a content; zeroes for an unknown one.
    pub fn bytes(&self, content: Content) -> &[u8] {
        let start = (content.0 as usize).checked_sub(1).map(|index| index * self.block);
        start.and_then(|start| self.bytes.get(start..start + self.block)).unwrap_or(&self.zeroes)
    }

    /// Returns the number of contents, including zeroes.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.block + 1
    }

    /// Returns true if there are only zeroes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the bytes of all contents except zeroes, in the order of their numbers.
    pub(super) fn all_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

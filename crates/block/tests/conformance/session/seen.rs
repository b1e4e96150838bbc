//! Recognition of the data that comes back from a device: payloads by their shape, blocks by their stamps.

use super::{CheckResult, Pending, fail};
use crate::conformance::crash_rules::Content;
use crate::pattern::{Pattern, Stamp};
use crate::request::{Completion, Outcome, Payload};
use crate::units::Lba;

/// The payload as it must come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    None,
    Into(usize),
    Bytes(usize),
    Pattern(Pattern),
}

impl Shape {
    pub(super) fn from_payload(payload: &Payload) -> Self {
        match payload {
            Payload::None => Self::None,
            Payload::Into(buffer) => Self::Into(buffer.len()),
            Payload::Bytes(buffer) => Self::Bytes(buffer.len()),
            Payload::Pattern(pattern) => Self::Pattern(*pattern),
        }
    }
}

/// Checks that the payload of a request came back with its completion.
pub(super) fn check_payload(pending: &Pending, completion: &Completion) -> CheckResult {
    let shape = Shape::from_payload(&completion.payload);
    // A payload that the device may still touch stays with the device.
    let kept = completion.outcome == Outcome::Unknown && shape == Shape::None;
    if shape != pending.payload && !kept {
        let tag = completion.tag.0;
        return fail(format!("tag {tag} went with {:?} and came back with {shape:?}", pending.payload));
    }
    if let Payload::Bytes(bytes) = &completion.payload {
        let same = Stamp::read(bytes).is_some_and(|stamp| stamp.generation == pending.generation);
        if !same {
            return fail(format!("tag {} came back with other bytes", completion.tag.0));
        }
    }
    Ok(())
}

/// Content that was recognised in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockContent {
    /// A version, to the last byte.
    Whole(Content),
    /// Written by nobody, torn, or for another place.
    Alien(String),
}

impl BlockContent {
    /// Recognises these bytes, read from `lba`; patterns are those of `seed`.
    pub fn from_bytes(bytes: &[u8], seed: u64, lba: Lba) -> Self {
        if bytes.iter().all(|byte| *byte == 0) {
            return Self::Whole(Content::Zeroes);
        }
        match Stamp::read(bytes) {
            None => Self::Alien("bytes that nobody wrote".to_owned()),
            Some(stamp) if stamp.seed != seed => Self::Alien(format!("a block of seed {}", stamp.seed)),
            Some(stamp) if stamp.lba != lba => Self::Alien(format!("the block of LBA {}", stamp.lba.0)),
            Some(stamp) if !stamp.is_whole(bytes) => {
                Self::Alien(format!("a torn block of generation {}", stamp.generation))
            }
            Some(stamp) => Self::Whole(Content::Generation(stamp.generation)),
        }
    }

    /// Returns true if each of these bytes, read from the place of `at`, comes from one of these versions.
    /// Ignores the generation of `at`.
    pub(super) fn is_mixture(bytes: &[u8], at: Pattern, versions: &[Content]) -> bool {
        let blocks: Vec<_> = versions.iter().map(|content| content.block(at, bytes.len())).collect();
        (0..bytes.len()).all(|index| blocks.iter().any(|block| block[index] == bytes[index]))
    }

    /// Returns true if the content is one of these versions.
    pub fn is_one_of(&self, allowed: &[Content]) -> bool {
        matches!(self, Self::Whole(content) if allowed.contains(content))
    }
}

impl Content {
    /// Returns the bytes of a block of this content at the place of `at`.
    fn block(self, at: Pattern, length: usize) -> Vec<u8> {
        let mut block = vec![0; length];
        if let Self::Generation(generation) = self {
            Pattern { generation, ..at }.fill(length, &mut block);
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Pattern = Pattern { seed: 1, lba: Lba(9), generation: 0 };

    /// Returns a read beside a write of the same block: the first half of one version, the second half of the
    /// other.
    fn torn() -> Vec<u8> {
        let mut block = Content::Generation(76).block(AT, 512);
        block[256..].copy_from_slice(&Content::Generation(75).block(AT, 512)[256..]);
        block
    }

    #[test]
    fn a_mixture_is_told_from_bytes_that_nobody_wrote() {
        let both = [Content::Generation(75), Content::Generation(76)];
        let mut block = torn();
        assert!(!BlockContent::from_bytes(&block, AT.seed, AT.lba).is_one_of(&both));
        assert!(BlockContent::is_mixture(&block, AT, &both));
        assert!(
            !BlockContent::is_mixture(&block, AT, &both[1..]),
            "one half is of a version that is not allowed"
        );
        let elsewhere = Pattern { lba: Lba(10), ..AT };
        assert!(!BlockContent::is_mixture(&block, elsewhere, &both), "the blocks of another place");
        block[300] ^= 1;
        assert!(!BlockContent::is_mixture(&block, AT, &both), "a byte of no version");
    }

    #[test]
    fn zeroes_mix_too() {
        let mut block = torn();
        block[256..].fill(0);
        assert!(BlockContent::is_mixture(&block, AT, &[Content::Zeroes, Content::Generation(76)]));
    }
}

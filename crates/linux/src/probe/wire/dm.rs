//! The targets of a dm device: answers to DM_TABLE_STATUS. linux/dm-ioctl.h, drivers/md/dm-ioctl.c
//! (retrieve_status).
//!
//! ```text
//! byte  0  sector_start  u64     16  status  i32     24  target_type  [u8; 16]
//!       8  length        u64     20  next    u32     40  text, ended by NUL
//! ```
//! All in native byte order. `next` counts from the start of the first target to the start of the next.

use std::ops::Range;

const SPEC_BYTES: usize = 40;

/// A target of a table, or the state of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DmTarget {
    /// First mapped sector, of 512 bytes.
    pub start: u64,
    /// Number of mapped sectors.
    pub length: u64,
    /// Name of the target type: `linear`, `crypt`, `thin-pool`.
    pub kind: String,
    /// Parameters of the target, or its state.
    pub parameters: String,
}

/// Position of a target's parts in the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) kind: String,
    pub(crate) text: Range<usize>,
}

/// Parses targets up to the first malformed one.
pub fn parse(bytes: &[u8]) -> Vec<DmTarget> {
    let text = |range: Range<usize>| String::from_utf8_lossy(&bytes[range]).into_owned();
    places(bytes)
        .into_iter()
        .map(|place| DmTarget {
            start: place.start,
            length: place.length,
            kind: place.kind,
            parameters: text(place.text),
        })
        .collect()
}

/// Encodes an answer from `targets`, each `(start, length, kind, parameters)`: the inverse of [`parse`], for
/// hand-made recordings. A kind longer than 15 bytes is truncated.
pub fn encode(targets: &[(u64, u64, &str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (start, length, kind, parameters) in targets {
        let text_bytes = (parameters.len() + 1).next_multiple_of(8);
        let next = bytes.len() + SPEC_BYTES + text_bytes;
        bytes.extend(start.to_ne_bytes());
        bytes.extend(length.to_ne_bytes());
        bytes.extend(0_i32.to_ne_bytes());
        bytes.extend((next as u32).to_ne_bytes());
        let mut name = [0_u8; 16];
        let kept = kind.len().min(15);
        name[..kept].copy_from_slice(&kind.as_bytes()[..kept]);
        bytes.extend(name);
        bytes.extend(parameters.as_bytes());
        bytes.resize(next, 0);
    }
    bytes
}

pub(crate) fn places(bytes: &[u8]) -> Vec<Place> {
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(spec) = bytes.get(at..at + SPEC_BYTES) {
        let number = |from: usize| spec[from..from + 8].try_into().map_or(0, u64::from_ne_bytes);
        let next = spec[20..24].try_into().map_or(0, u32::from_ne_bytes) as usize;
        let name = spec[24..40].split(|byte| *byte == 0).next().unwrap_or_default();
        let text_at = at + SPEC_BYTES;
        let text_bytes = bytes[text_at..].iter().position(|byte| *byte == 0).unwrap_or(bytes.len() - text_at);
        places.push(Place {
            start: number(0),
            length: number(8),
            kind: String::from_utf8_lossy(name).into_owned(),
            text: text_at..text_at + text_bytes,
        });
        // A chain that does not advance is malformed.
        if next < text_at {
            break;
        }
        at = next;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_in_order() {
        let bytes = encode(&[(0, 2048, "linear", "8:16 2048"), (2048, 8, "striped", "2 128 8:0 0 8:16 0")]);
        let targets = parse(&bytes);
        assert_eq!(targets.len(), 2);
        assert_eq!(targets[0].kind, "linear");
        assert_eq!(targets[0].parameters, "8:16 2048");
        assert_eq!((targets[1].start, targets[1].length), (2048, 8));
        assert_eq!(targets[1].parameters, "2 128 8:0 0 8:16 0");
        assert!(parse(&bytes[..39]).is_empty());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            parse(&bytes);
        }

        #[test]
        fn damaged_answers_are_taken_without_panic(at in 0..120_usize, value in proptest::num::u8::ANY, cut in 0..120_usize) {
            let mut bytes = encode(&[(0, 2048, "linear", "8:16 2048"), (2048, 8, "crypt", "a b 0 8:0 0")]);
            let last = bytes.len() - 1;
            bytes[at.min(last)] = value;
            bytes.truncate(bytes.len() - cut.min(last));
            parse(&bytes);
        }
    }
}

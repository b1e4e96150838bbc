//! The lines of a journal: `SUM JSON`, where the sum is the first 16 hexadecimal digits of SHA-256 over the JSON.

use super::record::Entry;
use crate::digest::sha256_hex;

/// Digits of the sum: enough against chance, and short enough to read.
const SUM_DIGITS: usize = 16;

/// An entry as a line with its end.
pub(super) fn encode(entry: &Entry) -> Result<Vec<u8>, serde_json::Error> {
    let json = serde_json::to_string(entry)?;
    Ok(format!("{} {json}\n", sum(json.as_bytes())).into_bytes())
}

fn sum(json: &[u8]) -> String {
    let mut digits = sha256_hex(json);
    digits.truncate(SUM_DIGITS);
    digits
}

/// What was read.
#[derive(Debug)]
pub(super) struct Decoded {
    /// The whole entries.
    pub(super) entries: Vec<Entry>,
    /// How many bytes they take: what follows is a torn tail.
    pub(super) whole_bytes: usize,
}

/// A damaged line that is no torn tail.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Damage {
    pub(super) line: usize,
    pub(super) offset: usize,
    pub(super) what: String,
}

/// Reads all lines. Only the last may be torn: each is made durable before the next is begun.
pub(super) fn decode(bytes: &[u8]) -> Result<Decoded, Damage> {
    let mut decoded = Decoded { entries: Vec::new(), whole_bytes: 0 };
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let offset = decoded.whole_bytes;
        let last = offset + line.len() == bytes.len();
        match decode_line(line) {
            Ok(entry) if entry.n == index as u64 => {
                decoded.entries.push(entry);
                decoded.whole_bytes += line.len();
            }
            Ok(entry) => {
                let what = format!("record {} stands where record {index} was expected", entry.n);
                return Err(Damage { line: index + 1, offset, what });
            }
            Err(_) if last && !holds_a_record(line) => break,
            Err(what) => return Err(Damage { line: index + 1, offset, what: what.to_owned() }),
        }
    }
    Ok(decoded)
}

/// Whether a whole record stands behind the start of `torn`: then the end of the record before it was damaged, for a
/// record is begun only when the one before it is whole.
fn holds_a_record(torn: &[u8]) -> bool {
    let begins = |at: usize| torn[at..].get(SUM_DIGITS..SUM_DIGITS + 2) == Some(b" {");
    (1..torn.len()).any(|at| begins(at) && decode_line(&torn[at..]).is_ok())
}

fn decode_line(line: &[u8]) -> Result<Entry, &'static str> {
    let line = line.strip_suffix(b"\n").ok_or("the record has no end")?;
    let (digits, json) = line.split_at_checked(SUM_DIGITS).ok_or("the record is too short")?;
    let json = json.strip_prefix(b" ").ok_or("the record has no sum")?;
    if digits != sum(json).as_bytes() {
        return Err("the record does not match its sum");
    }
    serde_json::from_slice(json).map_err(|_| "the record is of a kind that this version does not know")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::record::{Phase, Record};

    fn journal(records: u64) -> Vec<u8> {
        (0..records)
            .flat_map(|n| {
                let record = Record::Done { phase: Phase::Apply, disk: "sda".into(), step: n as usize };
                encode(&Entry { n, at: "2026-01-01T00:00:00Z".into(), record }).unwrap()
            })
            .collect()
    }

    #[test]
    fn a_journal_cut_at_any_byte_keeps_its_whole_records() {
        let whole = journal(4);
        let ends: Vec<usize> = (0..=4).map(|n| journal(n).len()).collect();
        for cut in 0..=whole.len() {
            let decoded = decode(&whole[..cut]).unwrap();
            let expected = ends.iter().filter(|end| **end > 0 && **end <= cut).count();
            assert_eq!(decoded.entries.len(), expected, "cut at {cut}");
        }
    }

    #[test]
    fn any_changed_byte_before_the_last_line_is_found_with_its_line() {
        let whole = journal(4);
        let last = journal(3).len();
        for place in 0..last {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x04;
            let line = whole[..place].iter().filter(|byte| **byte == b'\n').count() + 1;
            let damage = decode(&damaged).expect_err("a changed byte was taken");
            assert_eq!(damage.line, line, "byte {place}");
        }
        let mut tail = whole.clone();
        tail[last + 3] ^= 0x04;
        assert_eq!(decode(&tail).unwrap().entries.len(), 3, "the last line counts as torn");
    }

    #[test]
    fn a_missing_line_is_found() {
        let whole = journal(4);
        let (first, second) = (journal(1).len(), journal(2).len());
        let without = [&whole[..first], &whole[second..]].concat();
        let damage = decode(&without).unwrap_err();
        assert_eq!((damage.line, damage.offset), (2, first));
    }

    proptest::proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            proptest::prop_assert!(decode(&bytes).map_or(true, |decoded| decoded.entries.is_empty()));
        }
    }
}

//! Records of an append-only file, one on each line: `SUM JSON`, where SUM is the first 16 hexadecimal digits
//! of SHA-256 over the JSON. Each record must be durable before the next one is started. So only the last one
//! may be torn, and any other mismatch is damage.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::digest::sha256_hex;

/// Number of digits of the sum: enough to exclude coincidence, and short enough to read.
const SUM_DIGITS: usize = 16;

/// Encodes a record as a line with its line feed.
///
/// # Errors
/// If the record cannot be serialized as JSON.
pub fn encode(record: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let json = serde_json::to_string(record)?;
    Ok(format!("{} {json}\n", sum(json.as_bytes())).into_bytes())
}

fn sum(json: &[u8]) -> String {
    let mut digits = sha256_hex(json);
    digits.truncate(SUM_DIGITS);
    digits
}

/// Decoded records.
#[derive(Debug)]
pub struct DecodedRecords<T> {
    /// Complete records.
    pub records: Vec<T>,
    /// Length of the complete records in bytes; anything after it is a torn tail.
    pub whole_bytes: usize,
}

/// A damaged line that is not a torn tail.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, at byte {offset}: {what}")]
pub struct Damage {
    /// Line number, from 1.
    pub line: usize,
    /// Offset of the line in bytes.
    pub offset: usize,
    /// Description of the damage.
    pub what: String,
}

/// Decodes all lines. `check` validates a complete record; its first argument is the record's index, from 0.
///
/// # Errors
/// If a line other than the last does not match its sum, or `check` rejects a record.
pub fn decode<T: DeserializeOwned>(
    bytes: &[u8],
    check: impl Fn(usize, &T) -> Result<(), String>,
) -> Result<DecodedRecords<T>, Damage> {
    let mut decoded = DecodedRecords { records: Vec::new(), whole_bytes: 0 };
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let offset = decoded.whole_bytes;
        let damage = |what: String| Damage { line: index + 1, offset, what };
        let last = offset + line.len() == bytes.len();
        match decode_line(line) {
            Ok(record) => {
                check(index, &record).map_err(damage)?;
                decoded.records.push(record);
                decoded.whole_bytes += line.len();
            }
            Err(_) if last && !holds_a_record::<T>(line) => break,
            Err(what) => return Err(damage(what.to_owned())),
        }
    }
    Ok(decoded)
}

/// Returns true if a complete record follows the start of `torn`. Then the end of the record before it was
/// damaged, since a record is started only when the one before it is complete.
fn holds_a_record<T: DeserializeOwned>(torn: &[u8]) -> bool {
    let begins = |at: usize| torn[at..].get(SUM_DIGITS..SUM_DIGITS + 2) == Some(b" {");
    (1..torn.len()).any(|at| begins(at) && decode_line::<T>(&torn[at..]).is_ok())
}

fn decode_line<T: DeserializeOwned>(line: &[u8]) -> Result<T, &'static str> {
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
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct Entry {
        n: usize,
        what: String,
    }

    fn journal(records: usize) -> Vec<u8> {
        (0..records).flat_map(|n| encode(&Entry { n, what: "step".into() }).unwrap()).collect()
    }

    fn decode(bytes: &[u8]) -> Result<DecodedRecords<Entry>, Damage> {
        super::decode(bytes, |index, entry: &Entry| {
            (entry.n == index).then_some(()).ok_or_else(|| format!("record {} in place {index}", entry.n))
        })
    }

    #[test]
    fn a_journal_cut_at_any_byte_keeps_its_whole_records() {
        let whole = journal(4);
        let ends: Vec<usize> = (0..=4).map(|n| journal(n).len()).collect();
        for cut in 0..=whole.len() {
            let decoded = decode(&whole[..cut]).unwrap();
            let expected = ends.iter().filter(|end| **end > 0 && **end <= cut).count();
            assert_eq!(decoded.records.len(), expected, "cut at {cut}");
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
        assert_eq!(decode(&tail).unwrap().records.len(), 3, "the last line counts as torn");
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
            proptest::prop_assert!(decode(&bytes).map_or(true, |decoded| decoded.records.is_empty()));
        }
    }
}

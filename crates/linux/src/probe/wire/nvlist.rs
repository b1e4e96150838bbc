//! ZFS name-value lists in the encoding of the kernel module (`NV_ENCODE_NATIVE`), in native byte order:
//! module/nvpair/nvpair.c, include/sys/nvpair.h of OpenZFS.
//!
//! ```text
//! list    encoding 1, endian 1, reserved 2 | version 4, flags 4 | pairs
//! pairs   pair, pair, ..., 0 in 4 bytes; an inner list is pairs behind the pair that it belongs to
//! pair    size 4 | name size 2, reserved 2 | elements 4 | type 4 | name, zero, to a multiple of 8 | value
//! ```

use std::collections::BTreeMap;

/// Maximum nesting depth that is parsed; a pool has four levels: pool, root, mirror, disk.
const DEPTH_MAX: usize = 8;

/// `data_type_t`.
const UINT64: i32 = 8;
const STRING: i32 = 9;
const UINT64_ARRAY: i32 = 16;
const NVLIST: i32 = 19;
const NVLIST_ARRAY: i32 = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Numbers(Vec<u64>),
    Text(String),
    Lists(Vec<NvList>),
}

/// A list. Pairs whose value is not a number, text or list are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NvList(BTreeMap<String, Value>);

impl NvList {
    /// Parses a packed list; `None` if it is malformed.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let endian = u8::from(cfg!(target_endian = "little"));
        let mut pairs = bytes.strip_prefix(&[0, endian])?.get(10..)?;
        Self::take(&mut pairs, DEPTH_MAX)
    }

    /// Parses the pairs of one list, with their inner lists, from the front of `bytes` and removes them.
    fn take(bytes: &mut &[u8], depth: usize) -> Option<Self> {
        let mut list = Self::default();
        while let Some(pair) = Pair::take(bytes)? {
            let value = match pair.kind {
                UINT64 | UINT64_ARRAY => {
                    let (numbers, _) = pair.value.as_chunks();
                    Value::Numbers(numbers.iter().copied().map(u64::from_ne_bytes).collect())
                }
                STRING => Value::Text(text(pair.value)),
                NVLIST | NVLIST_ARRAY => {
                    let depth = depth.checked_sub(1)?;
                    Value::Lists((0..pair.lists()).map(|_| Self::take(bytes, depth)).collect::<Option<_>>()?)
                }
                _ => continue,
            };
            list.0.insert(pair.name, value);
        }
        Some(list)
    }

    /// Returns the text called `name`.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the numbers called `name`: one, or all of an array.
    pub fn numbers(&self, name: &str) -> &[u64] {
        match self.0.get(name) {
            Some(Value::Numbers(numbers)) => numbers,
            _ => &[],
        }
    }

    /// Returns the lists called `name`.
    pub fn lists(&self, name: &str) -> &[Self] {
        match self.0.get(name) {
            Some(Value::Lists(lists)) => lists,
            _ => &[],
        }
    }
}

/// A pair without the lists that follow it.
struct Pair<'a> {
    bytes: &'a [u8],
    name: String,
    kind: i32,
    elements: i32,
    value: &'a [u8],
}

impl<'a> Pair<'a> {
    /// Takes a pair from the front of `bytes`; the inner option is `None` at the end of the list.
    fn take(bytes: &mut &'a [u8]) -> Option<Option<Self>> {
        let size = usize::try_from(number(bytes, 0)?).ok()?;
        let (pair, rest) = bytes.split_at_checked(size.max(4))?;
        *bytes = rest;
        if size == 0 {
            return Some(None);
        }
        let name_size = usize::from(u16::from_ne_bytes(pair.get(4..6)?.try_into().ok()?));
        Some(Some(Self {
            bytes: pair,
            name: text(pair.get(16..16 + name_size)?),
            kind: number(pair, 12)?,
            elements: number(pair, 8)?,
            value: pair.get((16 + name_size).next_multiple_of(8)..)?,
        }))
    }

    /// Returns the number of lists that follow the pair.
    fn lists(&self) -> i32 {
        match self.kind {
            NVLIST => 1,
            NVLIST_ARRAY => self.elements,
            _ => 0,
        }
    }
}

/// Returns a packed list without the pairs of these names at any depth; `None` if it is malformed.
pub fn without(bytes: &[u8], names: &[&str]) -> Option<Vec<u8>> {
    let (head, mut pairs) = bytes.split_at_checked(12)?;
    let mut kept = head.to_vec();
    copy(&mut pairs, names, &mut kept, DEPTH_MAX)?;
    Some(kept)
}

fn copy(bytes: &mut &[u8], names: &[&str], kept: &mut Vec<u8>, depth: usize) -> Option<()> {
    while let Some(pair) = Pair::take(bytes)? {
        let is_kept = !names.contains(&pair.name.as_str());
        let mut lost = Vec::new();
        let to = if is_kept { &mut *kept } else { &mut lost };
        to.extend(pair.bytes);
        for _ in 0..pair.lists() {
            copy(bytes, names, to, depth.checked_sub(1)?)?;
        }
    }
    kept.extend([0; 4]);
    Some(())
}

fn number(bytes: &[u8], at: usize) -> Option<i32> {
    bytes.get(at..at + 4)?.try_into().ok().map(i32::from_ne_bytes)
}

/// Returns the text before the terminating zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pair of 64-bit numbers, or of what is inside a list.
    fn pair(name: &str, kind: i32, elements: i32, value: &[u8]) -> Vec<u8> {
        let value_at = (16 + name.len() + 1).next_multiple_of(8);
        let size = i32::try_from(value_at + value.len()).unwrap();
        let name_size = i16::try_from(name.len() + 1).unwrap();
        let mut pair = [size.to_ne_bytes().as_slice(), &name_size.to_ne_bytes(), &[0; 2]].concat();
        pair.extend([elements.to_ne_bytes(), kind.to_ne_bytes()].concat());
        pair.extend(name.as_bytes());
        pair.resize(value_at, 0);
        [pair, value.to_vec()].concat()
    }

    #[test]
    fn lists_within_lists_are_read() {
        let endian = u8::from(cfg!(target_endian = "little"));
        let bytes = [
            vec![0, endian, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
            pair("other", 21, 1, &[0; 8]),
            pair("name", STRING, 1, b"tank\0\0\0\0"),
            pair("children", NVLIST_ARRAY, 2, &[0; 64]),
            pair("id", UINT64, 1, &7_u64.to_ne_bytes()),
            vec![0; 4],
            pair("stats", UINT64_ARRAY, 2, &[1_u64.to_ne_bytes(), 2_u64.to_ne_bytes()].concat()),
            vec![0; 4],
            vec![0; 4],
        ]
        .concat();
        let list = NvList::parse(&bytes).unwrap();
        assert_eq!(
            (list.text("name"), list.text("other"), list.numbers("name")),
            (Some("tank"), None, &[][..])
        );
        let [first, second] = list.lists("children") else { panic!("{list:?}") };
        assert_eq!((first.numbers("id"), second.numbers("stats")), (&[7][..], &[1, 2][..]));
        let short = NvList::parse(&without(&bytes, &["children"]).unwrap()).unwrap();
        assert_eq!((short.text("name"), short.lists("children")), (Some("tank"), &[][..]));
        for length in 0..bytes.len() {
            assert_eq!(NvList::parse(&bytes[..length]), None, "{length} bytes of {}", bytes.len());
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            NvList::parse(&[&[0, 1], &bytes[..]].concat());
        }
    }
}

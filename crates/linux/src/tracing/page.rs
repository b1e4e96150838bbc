//! Parser for a page of a trace buffer (kernel/trace/ring_buffer.c; include/linux/ring_buffer.h).
//!
//! ```text
//!  timestamp 8   commit: bytes of records in its low 20 bits, 2 flags   records
//!  record: type 5 bits, time since the record before 27 bits, then data
//!    type 0        the length follows, of itself and the data     29   padding: nothing, or a record that was thrown away
//!         1 to 28  so many words of 4 bytes follow                30   the upper bits of a long time follow
//!                                                                 31   the upper bits of an absolute time follow
//! ```
//! One flag reports that records were lost before the page, another that their number follows the records.

use plumb_block::{Error, ErrorKind, Nanos, Result};

use super::format::{Field, field};

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of `commit` with the length, and its flags.
const LENGTH: u64 = (1 << 20) - 1;
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;

/// Layout of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    commit: Field,
    data: usize,
    /// Length of a page.
    pub size: usize,
}

/// A record of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Time by the clock of the instance.
    pub at: Nanos,
    /// Fields, starting with the ID of the event.
    pub data: &'a [u8],
}

impl PageLayout {
    /// Parses the text of the file `events/header_page`.
    ///
    /// # Errors
    /// If a part is missing.
    pub fn parse(text: &str) -> Result<Self> {
        let fields: Vec<_> = text.lines().filter_map(|line| field(line.trim())).collect();
        let part = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, field)| *field);
        match (part("commit"), part("data")) {
            (Some(commit), Some(data)) => {
                Ok(Self { commit, data: data.offset, size: data.offset + data.size })
            }
            _ => Err(Error::new(ErrorKind::Unsupported, "read", "events/header_page of tracefs")
                .because("expected where commit and data are")),
        }
    }

    /// Calls `take` for each record of a page. Returns the number of records lost before it: at least 1 if
    /// the number is unknown.
    pub fn records<'a>(&self, page: &'a [u8], mut take: impl FnMut(Record<'a>)) -> u64 {
        let start = page.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        let commit = self.commit.number(page);
        let length = (commit & LENGTH) as usize;
        let data = page.get(self.data..).unwrap_or_default();
        let mut rest = data.get(..length).unwrap_or(data);
        let mut now = start;
        while let Some((record, behind)) = next(rest, &mut now) {
            if !record.is_empty() {
                take(Record { at: Nanos(now), data: record });
            }
            rest = behind;
        }
        match commit & MISSED {
            0 => 0,
            _ if commit & MISSED_STORED != 0 => Field { offset: length, ..self.commit }.number(data).max(1),
            _ => 1,
        }
    }
}

/// Returns the data of the next record, empty if it is not an event, and the remaining bytes. Advances `now`
/// to the record's time.
fn next<'a>(rest: &'a [u8], now: &mut u64) -> Option<(&'a [u8], &'a [u8])> {
    const NONE: &[u8] = &[];
    let head = word(rest, 0)?;
    let (kind, delta) = (head & 31, u64::from(head >> 5));
    let upper = || Some(u64::from(word(rest, 4)?) << 27);
    match kind {
        PADDING if delta == 0 => None,
        PADDING => {
            *now = now.wrapping_add(delta);
            Some((NONE, rest.get((word(rest, 4)? as usize).checked_add(4)?..)?))
        }
        TIME_EXTEND => {
            *now = now.wrapping_add(upper()? | delta);
            Some((NONE, rest.get(8..)?))
        }
        TIME_STAMP => {
            // The time stamp has 59 bits; the upper bits stay.
            *now = *now >> 59 << 59 | upper()? | delta;
            Some((NONE, rest.get(8..)?))
        }
        0 => {
            *now = now.wrapping_add(delta);
            let length = word(rest, 4)? as usize;
            let end = length.checked_add(4)?;
            Some((rest.get(8..end)?, rest.get(end..)?))
        }
        words => {
            *now = now.wrapping_add(delta);
            let end = 4 + words as usize * 4;
            Some((rest.get(4..end)?, rest.get(end..)?))
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("samples/header_page");

    fn layout() -> PageLayout {
        PageLayout::parse(HEADER).unwrap()
    }

    /// Returns a page of these words of records.
    fn page(start: u64, flags: u64, words: &[u32], behind: &[u8]) -> Vec<u8> {
        let mut page = start.to_ne_bytes().to_vec();
        page.extend((flags | (words.len() as u64 * 4)).to_ne_bytes());
        words.iter().for_each(|word| page.extend(word.to_ne_bytes()));
        page.extend(behind);
        page
    }

    #[test]
    fn the_layout_is_that_of_the_kernel() {
        let expected = PageLayout { commit: Field { offset: 8, size: 8 }, data: 16, size: 4096 };
        assert_eq!(layout(), expected);
        assert!(PageLayout::parse("field: u64 timestamp;").is_err());
    }

    #[test]
    fn times_add_up_over_every_kind_of_record() {
        let words = [
            2 | 100 << 5,
            7,
            8, // two words, 100 ns later
            30 | 5 << 5,
            1, // a long time: 1 << 27 and 5
            3 << 5,
            8,
            9, // length 8 of itself and one word
            29 | 4 << 5,
            4, // thrown away, 4 ns later, no data
            31 | 6 << 5,
            2, // an absolute time
            1 | 1 << 5,
            11,
            29,
            0,
            99, // the rest of the page is nothing
        ];
        let page = page(1000, 0, &words, &[]);
        let mut seen = Vec::new();
        let lost = layout().records(&page, |record| seen.push((record.at.0, record.data.to_vec())));
        let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        let absolute = (2 << 27 | 6) + 1;
        assert_eq!(
            seen,
            [(1100, bytes(&[7, 8])), (1100 + (1 << 27 | 5) + 3, bytes(&[9])), (absolute, bytes(&[11]))]
        );
        assert_eq!(lost, 0);
    }

    #[test]
    fn losses_are_told() {
        let lost = |flags, behind: &[u8]| layout().records(&page(0, flags, &[1, 5], behind), |_| ());
        assert_eq!(lost(MISSED, &[]), 1);
        assert_eq!(lost(MISSED | MISSED_STORED, &41_u64.to_ne_bytes()), 41);
    }

    proptest::proptest! {
        #[test]
        fn hostile_pages_never_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let mut count = 0;
            layout().records(&bytes, |_| count += 1);
            proptest::prop_assert!(count <= bytes.len() / 4);
        }
    }
}

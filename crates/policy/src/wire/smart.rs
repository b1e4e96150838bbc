//! The answer to SMART READ DATA: a table of lifetime counters. ATA8-ACS 7.52.6; the standard does not define
//! the attributes, but all manufacturers use number 12 for power-ons.
//!
//! ```text
//! bytes 2-361: 30 entries of 12 bytes     0 number   1-2 flags   3 value   4 worst   5-10 raw count, little endian
//! byte 511: makes the sum of all 512 bytes 0
//! ```

use super::little;

/// Length of the answer.
pub const BYTES: usize = 512;
const TABLE: std::ops::Range<usize> = 2..362;
const ENTRY_BYTES: usize = 12;
const POWER_CYCLE_COUNT: u8 = 12;

/// Returns the number of power-ons (attribute 12); `None` if it is not counted, and for a damaged answer.
pub fn power_cycles(bytes: &[u8]) -> Option<u64> {
    let page = bytes.get(..BYTES)?;
    if page.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) != 0 {
        return None;
    }
    let mut entries = page.get(TABLE)?.chunks_exact(ENTRY_BYTES);
    let entry = entries.find(|entry| entry.first() == Some(&POWER_CYCLE_COUNT))?;
    // A responding drive has been powered on at least once.
    little::<6>(entry, 5).filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::encode::smart as encode;

    #[test]
    fn the_count_is_read_from_whole_answers_alone() {
        for count in [1, 417, 0x0102_0304_0506] {
            assert_eq!(power_cycles(&encode(count)), Some(count));
        }
        assert_eq!(power_cycles(&encode(0)), None, "it answers, so it was powered on");
        let mut damaged = encode(417);
        damaged[7] ^= 1;
        assert_eq!(power_cycles(&damaged), None);
        assert_eq!(power_cycles(&encode(417)[..511]), None);
        assert_eq!(power_cycles(&[0; BYTES]), None);
    }

    #[test]
    fn the_entry_is_found_wherever_it_stands() {
        let mut page = encode(9);
        // Another attribute takes the first place; the sum stays as it was.
        page.copy_within(2..14, 26);
        page[2..14].fill(0);
        assert_eq!(power_cycles(&page), Some(9));
    }
}

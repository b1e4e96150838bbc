//! The caching mode page 08h in an answer to MODE SENSE(10). SPC-5 7.5.6 (mode parameter list), SBC-4 6.5.6
//! (page).
//!
//! ```text
//! header  0-1 mode data length   2 medium type   3 device-specific   4 bit 0 LONGLBA   6-7 block descriptor length
//! page    0 bit 7 PS, bit 6 SPF, bits 5:0 page code   1 page length   2 bit 2 WCE, bit 0 RCD   12 bit 0 NV_DIS
//! ```

use super::{bit, byte};

const HEADER_BYTES: usize = 8;
const PAGE_CODE: u8 = 0x08;

/// Contents of the page. For changeable values the bits are masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachingPage {
    /// PS, byte 0 bit 7: the drive can save the page across a power cycle.
    pub saveable: bool,
    /// WCE, byte 2 bit 2: the volatile write cache is enabled.
    pub write_cache: bool,
    /// RCD, byte 2 bit 0: the read cache is disabled.
    pub read_cache_disabled: bool,
    /// NV_DIS, byte 12 bit 0: a non-volatile cache is disabled. `None` if the page is too short.
    pub nonvolatile_disabled: Option<bool>,
    /// WP, bit 7 of the device-specific byte of the header (SBC-4 6.5.1): the medium is write-protected.
    pub write_protected: bool,
    /// DPOFUA, bit 4 of the device-specific byte of the header: the drive supports FUA.
    pub dpofua: bool,
}

/// Returns the position of the page in an answer, and its length including the two leading bytes, which may
/// exceed the answer. `None` if there is no such page, as on some drives. The page is found by its code after
/// any block descriptors and other pages; sub-pages (SPF) have a longer header.
pub fn find(answer: &[u8]) -> Option<(usize, usize)> {
    let word = |at: usize| Some(usize::from(u16::from_be_bytes([byte(answer, at)?, byte(answer, at + 1)?])));
    let end = (word(0)? + 2).min(answer.len());
    let mut at = HEADER_BYTES + word(6)?;
    while at < end {
        let code = byte(answer, at)?;
        let is_sub_page = bit(answer, at, 6)?;
        let length = if is_sub_page { 4 + word(at + 2)? } else { 2 + usize::from(byte(answer, at + 1)?) };
        if !is_sub_page && code & 0x3f == PAGE_CODE {
            return (length > 2).then_some((at, length));
        }
        at += length;
    }
    None
}

/// Parses the page in the answer; `None` if it is missing.
pub fn parse(bytes: &[u8]) -> Option<CachingPage> {
    let (at, length) = find(bytes)?;
    let page = bytes.get(at..(at + length).min(bytes.len()))?;
    Some(CachingPage {
        saveable: bit(page, 0, 7)?,
        write_cache: bit(page, 2, 2)?,
        read_cache_disabled: bit(page, 2, 0)?,
        nonvolatile_disabled: bit(page, 12, 0),
        write_protected: bit(bytes, 3, 7)?,
        dpofua: bit(bytes, 3, 4)?,
    })
}

/// Encodes an answer with a page of 20 bytes and no block descriptor, for hand-made recordings.
pub fn encode(page: &CachingPage) -> Vec<u8> {
    let mut bytes = vec![0_u8; HEADER_BYTES + 20];
    bytes[1] = (bytes.len() - 2) as u8;
    bytes[3] = u8::from(page.write_protected) << 7 | u8::from(page.dpofua) << 4;
    bytes[HEADER_BYTES] = u8::from(page.saveable) << 7 | PAGE_CODE;
    bytes[HEADER_BYTES + 1] = 18;
    bytes[HEADER_BYTES + 2] = u8::from(page.write_cache) << 2 | u8::from(page.read_cache_disabled);
    bytes[HEADER_BYTES + 12] = u8::from(page.nonvolatile_disabled.unwrap_or(false));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_found_behind_block_descriptors() {
        let page = CachingPage {
            saveable: true,
            write_cache: true,
            read_cache_disabled: false,
            nonvolatile_disabled: Some(true),
            write_protected: true,
            dpofua: true,
        };
        let mut bytes = encode(&page);
        assert_eq!(parse(&bytes), Some(page));
        bytes[7] = 8;
        bytes.splice(8..8, [0; 8]);
        assert_eq!(parse(&bytes), Some(page));
    }

    #[test]
    fn another_page_or_none_is_no_caching_page() {
        assert_eq!(parse(&[0, 6, 0, 0, 0, 0, 0, 0]), None);
        let mut bytes = vec![0_u8; 28];
        bytes[8] = 0x1c;
        bytes[9] = 10;
        assert_eq!(parse(&bytes), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..64)) {
            parse(&bytes);
        }
    }
}

//! The extended INQUIRY data, vital product data page 86h. SPC-5 7.7.8.

use super::{bit, byte};

/// Cache bits of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtendedInquiry {
    /// NV_SUP, byte 6 bit 1: the drive has a non-volatile cache.
    pub nonvolatile_cache: bool,
    /// V_SUP, byte 6 bit 0: the drive has a volatile cache.
    pub volatile_cache: bool,
}

/// Parses the page; `None` if it is another page or too short.
pub fn parse(bytes: &[u8]) -> Option<ExtendedInquiry> {
    if byte(bytes, 1)? != 0x86 {
        return None;
    }
    Some(ExtendedInquiry { nonvolatile_cache: bit(bytes, 6, 1)?, volatile_cache: bit(bytes, 6, 0)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_bits_are_read() {
        let page = parse(&[0, 0x86, 0, 0x3c, 0, 0, 0x02, 0]).unwrap();
        assert!(page.nonvolatile_cache && !page.volatile_cache);
        assert_eq!(parse(&[0, 0x86, 0, 0x3c, 0, 0]), None);
        assert_eq!(parse(&[0, 0x80, 0, 4, 0, 0, 3]), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..16)) {
            parse(&bytes);
        }
    }
}

//! Standard INQUIRY data. SPC-5 6.7.2.

use super::text;

/// Identity that the device reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inquiry {
    /// T10 vendor identification, bytes 8-15: `ATA` for a translated ATA drive.
    pub vendor: Option<String>,
    /// Product identification, bytes 16-31.
    pub product: Option<String>,
}

/// Parses the data; `None` if it is too short.
pub fn parse(bytes: &[u8]) -> Option<Inquiry> {
    let field = |range| bytes.get(range).and_then(text);
    (!bytes.is_empty()).then(|| Inquiry { vendor: field(8..16), product: field(16..32) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_padding() {
        let inquiry = parse(b"\0\0\x05\x02\x1f\0\0\0ATA     QEMU HARDDISK   2.5+").unwrap();
        assert_eq!(inquiry.vendor.as_deref(), Some("ATA"));
        assert_eq!(inquiry.product.as_deref(), Some("QEMU HARDDISK"));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..48)) {
            parse(&bytes);
        }
    }
}

//! NVMe Identify Controller data and the volatile write cache feature. NVMe Base 2.0 5.17.2.1 (figure 275)
//! and 5.27.1.4 (feature 06h). Little endian.

use super::bit;

/// VWC of Identify Controller data, byte 525 bit 0: a volatile write cache is present. `None` if it ends
/// before that.
pub fn has_volatile_write_cache(controller: &[u8]) -> Option<bool> {
    bit(controller, 525, 0)
}

/// Feature 06h, CDW11 bit 0 of a current, default or saved value: WCE, the volatile write cache is on.
pub fn write_cache_enabled(result: &[u8]) -> Option<bool> {
    bit(result, 0, 0)
}

/// Capabilities of a feature: Get Features with SEL 3, NVMe Base 2.0 figure 188.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureCapabilities {
    /// Bit 0: a value can be kept over a power cycle.
    pub saveable: bool,
    /// Bit 2: the value can be changed.
    pub changeable: bool,
}

/// Reads the capabilities of a feature.
pub fn capabilities(result: &[u8]) -> Option<FeatureCapabilities> {
    Some(FeatureCapabilities { saveable: bit(result, 0, 0)?, changeable: bit(result, 0, 2)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_figure_says() {
        let mut data = vec![0_u8; 4096];
        data[525] = 0x07;
        assert_eq!(has_volatile_write_cache(&data), Some(true));
        assert_eq!(has_volatile_write_cache(&data[..525]), None);
        assert_eq!(write_cache_enabled(&[1, 0, 0, 0]), Some(true));
        assert_eq!(write_cache_enabled(&[]), None);
        assert!(capabilities(&[4, 0, 0, 0]).unwrap().changeable);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..600)) {
            has_volatile_write_cache(&bytes);
            write_cache_enabled(&bytes);
            capabilities(&bytes);
        }
    }
}

//! NVMe Identify Controller data and the volatile write cache feature. NVMe Base 2.0 5.17.2.1 (figure 275) and
//! 5.27.1.4 (feature 06h). Little endian.

use super::{ascii, bit};

/// What a controller says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvmeController {
    /// SN, bytes 4-23.
    pub serial: Option<String>,
    /// MN, bytes 24-63.
    pub model: Option<String>,
    /// FR, bytes 64-71.
    pub firmware: Option<String>,
    /// VWC, byte 525 bit 0: a volatile write cache is present.
    pub volatile_write_cache: bool,
}

/// Reads the data; `None` if it ends before byte 525.
pub fn identify_controller(bytes: &[u8]) -> Option<NvmeController> {
    Some(NvmeController {
        serial: ascii(bytes, 4..24),
        model: ascii(bytes, 24..64),
        firmware: ascii(bytes, 64..72),
        volatile_write_cache: bit(bytes, 525, 0)?,
    })
}

/// Feature 06h, CDW11 bit 0 of a current, default or saved value: WCE, the volatile write cache is on.
pub fn write_cache_enabled(result: &[u8]) -> Option<bool> {
    bit(result, 0, 0)
}

/// What can be done with a feature: Get Features with SEL 3, NVMe Base 2.0 figure 188.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureCapabilities {
    /// Bit 0: a value can be kept over a power cycle.
    pub saveable: bool,
    /// Bit 1: each namespace has its own value.
    pub per_namespace: bool,
    /// Bit 2: the value can be changed.
    pub changeable: bool,
}

/// Reads the capabilities of a feature.
pub fn capabilities(result: &[u8]) -> Option<FeatureCapabilities> {
    Some(FeatureCapabilities {
        saveable: bit(result, 0, 0)?,
        per_namespace: bit(result, 0, 1)?,
        changeable: bit(result, 0, 2)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_figure_says() {
        let mut data = vec![0_u8; 4096];
        data[4..8].copy_from_slice(b"S1  ");
        data[24..28].copy_from_slice(b"QEMU");
        data[525] = 0x07;
        let controller = identify_controller(&data).unwrap();
        assert_eq!(controller.serial.as_deref(), Some("S1"));
        assert_eq!(controller.model.as_deref(), Some("QEMU"));
        assert!(controller.volatile_write_cache);
        assert_eq!(identify_controller(&data[..525]), None);
        assert_eq!(write_cache_enabled(&[1, 0, 0, 0]), Some(true));
        assert_eq!(write_cache_enabled(&[]), None);
        assert!(capabilities(&[4, 0, 0, 0]).unwrap().changeable);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..600)) {
            identify_controller(&bytes);
            write_cache_enabled(&bytes);
            capabilities(&bytes);
        }
    }
}

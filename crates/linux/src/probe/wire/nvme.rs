//! NVMe Identify Controller data and the volatile write cache feature. NVMe Base 2.0 5.17.2.1 (figure 275)
//! and 5.27.1.4 (feature 06h). Little endian.

use super::bit;

/// VWC of Identify Controller data, byte 525 bit 0: a volatile write cache is present. `None` if the data is
/// too short.
pub fn has_volatile_write_cache(controller: &[u8]) -> Option<bool> {
    bit(controller, 525, 0)
}

/// Feature 06h, CDW11 bit 0 of a current, default or saved value: WCE, the volatile write cache is enabled.
pub fn write_cache_enabled(result: &[u8]) -> Option<bool> {
    bit(result, 0, 0)
}

/// SMART / Health Information, the parts in use: NVMe Base 2.0 5.16.1.3, figure 207.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// Percentage Used, byte 5: used share of the drive's life; 255 stands for 255 or more.
    pub percentage_used: u8,
    /// Data Units Written, bytes 48 to 63, in bytes: a unit is a thousand blocks of 512.
    pub written_bytes: u128,
}

/// Parses the SMART / Health Information log. `None` if it is too short.
pub fn health(log: &[u8]) -> Option<Health> {
    let units = u128::from_le_bytes(log.get(48..64)?.try_into().ok()?);
    Some(Health { percentage_used: log[5], written_bytes: units.checked_mul(512_000)? })
}

/// AWUPF of Identify Controller data, bytes 528 and 529: the largest write that a power cut does not tear, in
/// blocks minus one. `None` if the data is too short.
pub fn atomic_write_unit_power_fail(controller: &[u8]) -> Option<u16> {
    word(controller, 528)
}

/// Identify Namespace data, the parts in use: NVM Command Set 1.0, figure 97.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Namespace {
    /// Size of a logical block in bytes: 2 to the power of LBADS of the format in use.
    pub block_bytes: u64,
    /// The namespace's own limits of untorn writes; `None` if the controller's apply (NSFEAT bit 1 is 0).
    pub atomic: Option<NamespaceAtomic>,
}

/// Limits of untorn writes of a namespace, in logical blocks minus one, except the offset. A zero unit means
/// that of the controller, a zero boundary means none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamespaceAtomic {
    /// NAWUN, in normal operation.
    pub normal: u16,
    /// NAWUPF, over a power cut.
    pub power_fail: u16,
    /// NACWU, of Compare and Write.
    pub compare: u16,
    /// NABSN, the boundary in normal operation.
    pub boundary: u16,
    /// NABO, the block at which the first boundary lies.
    pub boundary_offset: u16,
    /// NABSPF, the boundary over a power cut.
    pub boundary_power_fail: u16,
}

/// Parses Identify Namespace data. `None` if it is too short for the formats, or the block size is not a
/// power of two from 512 bytes to 64 KiB.
pub fn namespace(data: &[u8]) -> Option<Namespace> {
    let format = usize::from(data.get(26)? & 0x0f);
    let shift = *data.get(128 + 4 * format + 2)?;
    let own = || {
        Some(NamespaceAtomic {
            normal: word(data, 34)?,
            power_fail: word(data, 36)?,
            compare: word(data, 38)?,
            boundary: word(data, 40)?,
            boundary_offset: word(data, 42)?,
            boundary_power_fail: word(data, 44)?,
        })
    };
    let atomic = if bit(data, 24, 1)? { Some(own()?) } else { None };
    (9..=16).contains(&shift).then(|| Namespace { block_bytes: 1 << shift, atomic })
}

fn word(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes([*data.get(at)?, *data.get(at + 1)?]))
}

/// Capabilities of a feature: Get Features with SEL 3, NVMe Base 2.0 figure 188.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureCapabilities {
    /// Bit 0: the value can be saved across a power cycle.
    pub saveable: bool,
    /// Bit 2: the value can be changed.
    pub changeable: bool,
}

/// Parses the capabilities of a feature.
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
        data[528] = 31;
        assert_eq!(atomic_write_unit_power_fail(&data), Some(31));
    }

    #[test]
    fn a_namespace_has_limits_of_its_own_only_where_it_says_so() {
        let mut data = vec![0_u8; 4096];
        data[26] = 1;
        data[128 + 4 + 2] = 12;
        assert_eq!(namespace(&data), Some(Namespace { block_bytes: 4096, atomic: None }));
        data[24] = 1 << 1;
        data[36] = 3;
        data[44] = 7;
        let own = namespace(&data).unwrap().atomic.unwrap();
        assert_eq!((own.power_fail, own.boundary_power_fail, own.normal), (3, 7, 0));
        assert_eq!(namespace(&data[..100]), None);
        for shift in [3, 200] {
            data[128 + 4 + 2] = shift;
            assert_eq!(namespace(&data), None, "a block of 2 to the power of {shift} bytes");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..600)) {
            has_volatile_write_cache(&bytes);
            write_cache_enabled(&bytes);
            namespace(&bytes);
            atomic_write_unit_power_fail(&bytes);
            capabilities(&bytes);
        }
    }
}

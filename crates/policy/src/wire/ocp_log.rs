//! The SMART / Health Information Extended log page C0h of OCP data-centre drives. OCP Datacenter NVMe SSD
//! Specification 2.0, 4.8.6.

use super::{counter, little};

/// Number of the page.
pub const PAGE: u8 = 0xc0;
/// Length of the page, in bytes.
pub const BYTES: u32 = 512;
/// Bytes 496-511 of the page: C0h is vendor specific, and another value means another page.
pub const GUID: [u8; 16] =
    [0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c, 0xc9, 0x14, 0xd5, 0xaf];

/// Fields of the page about power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerLoss {
    /// Bytes 112-115: shutdowns that the capacitors could not complete.
    pub incomplete_shutdowns: u64,
    /// Bytes 128-129: energy of the capacitors in percent of what is needed; 65535 means unknown.
    pub capacitor_health: Option<u64>,
    /// Bytes 160-175: number of activations of the protection.
    pub starts: u64,
}

/// Parses the page; `None` if it is too short or another vendor's.
pub fn parse(bytes: &[u8]) -> Option<PowerLoss> {
    if bytes.get(496..512)? != GUID {
        return None;
    }
    let health = little::<2>(bytes, 128)?;
    Some(PowerLoss {
        incomplete_shutdowns: little::<4>(bytes, 112)?,
        capacitor_health: (health != 0xffff).then_some(health),
        starts: counter(bytes, 160)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::encode::ocp_log as encode;

    #[test]
    fn the_page_is_read_only_with_its_guid() {
        let page = PowerLoss { incomplete_shutdowns: 3, capacitor_health: Some(120), starts: 41 };
        let mut bytes = encode(page);
        assert_eq!(parse(&bytes), Some(page));
        let unknown = PowerLoss { capacitor_health: None, ..page };
        assert_eq!(parse(&encode(unknown)), Some(unknown));
        bytes[511] ^= 1;
        assert_eq!(parse(&bytes), None);
        assert_eq!(parse(&bytes[..511]), None);
    }
}

//! The SMART / Health Information Extended log page C0h of OCP data-centre drives. OCP Datacenter NVMe SSD
//! Specification 2.0, 4.8.6.

use super::{counter, little};

/// The page's number and length.
pub const PAGE: u8 = 0xc0;
/// Length of the page, in bytes.
pub const BYTES: u32 = 512;
/// Bytes 496-511 of the page, as they come: C0h is a vendor's own page, and without this it is another one.
pub const GUID: [u8; 16] =
    [0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c, 0xc9, 0x14, 0xd5, 0xaf];

/// Fields of the page about power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerLoss {
    /// Bytes 112-115: shutdowns that the capacitors did not bring to an end.
    pub incomplete_shutdowns: u64,
    /// Bytes 128-129: how much energy the capacitors hold, in percent of what is needed; 65535 is not known.
    pub capacitor_health: Option<u64>,
    /// Bytes 160-175: how often the protection was started.
    pub starts: u64,
}

/// Reads the page; `None` if it is too short or another vendor's.
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

//! The SMART / Health log page 02h. NVMe Base 2.0 5.16.1.3, figure 207.

use super::counter;

/// Number of the page.
pub const PAGE: u8 = 0x02;
/// Length of the page, in bytes.
pub const BYTES: u32 = 512;

/// Fields of the page about power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// Byte 0 bit 4: the volatile memory backup device has failed.
    pub backup_failed: bool,
    /// Bytes 112-127: number of power-ons; `None` if the drive does not count them.
    pub power_cycles: Option<u64>,
    /// Bytes 144-159: number of shutdowns without prior notice.
    pub unsafe_shutdowns: u64,
}

/// Parses the page; `None` if it is too short.
pub fn parse(bytes: &[u8]) -> Option<Health> {
    let warning = *bytes.first()?;
    Some(Health {
        backup_failed: warning & 1 << 4 != 0,
        // A responding drive has been powered on at least once.
        power_cycles: counter(bytes, 112).filter(|count| *count > 0),
        unsafe_shutdowns: counter(bytes, 144)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_that_tell_of_power_loss_are_read() {
        let mut bytes = vec![0_u8; 512];
        bytes[0] = 0x10;
        assert_eq!(parse(&bytes).unwrap().power_cycles, None);
        bytes[112] = 9;
        bytes[144] = 7;
        bytes[145] = 1;
        let health = parse(&bytes).unwrap();
        assert!(health.backup_failed);
        assert_eq!(health.unsafe_shutdowns, 263);
        assert_eq!(health.power_cycles, Some(9));
        bytes[159] = 1;
        assert_eq!(parse(&bytes).unwrap().unsafe_shutdowns, u64::MAX);
        assert_eq!(parse(&bytes[..159]), None);
    }
}

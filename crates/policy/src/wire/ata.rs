//! ATA commands through SCSI: ATA PASS-THROUGH(16). SAT-4 12.2.2; the commands are ACS-4 7.
//!
//! ```text
//! byte 0 85h   1 protocol << 1   2 CK_COND bit 5, T_DIR bit 3 (from device), BYT_BLOK bit 2, T_LENGTH bits 1:0 (2: count)
//!      4 feature   6 count   8 LBA 7:0   10 LBA 15:8   12 LBA 23:16   13 device   14 command
//! ```

const NON_DATA: u8 = 3 << 1;
const PIO_IN: u8 = 4 << 1;
const PIO_OUT: u8 = 5 << 1;
const CHECK_CONDITION: u8 = 1 << 5;
const FROM_DEVICE: u8 = 1 << 3;
const BLOCKS_IN_COUNT: u8 = 1 << 2 | 2;

/// IDENTIFY DEVICE (ECh): 512 bytes.
pub const IDENTIFY: [u8; 16] =
    [0x85, PIO_IN, FROM_DEVICE | BLOCKS_IN_COUNT, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0xec, 0];

/// SET FEATURES (EFh), 02h enables the volatile write cache and 82h disables it. ACS-4 7.43.3 and 7.43.8.
pub fn set_write_cache(enabled: bool) -> [u8; 16] {
    let feature = if enabled { 0x02 } else { 0x82 };
    [0x85, NON_DATA, CHECK_CONDITION, 0, feature, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0xef, 0]
}

/// Returns the state that a SET FEATURES command sets; `None` if it is another command.
pub fn read_set_write_cache(cdb: &[u8]) -> Option<bool> {
    match cdb {
        [0x85, _, _, _, feature, _, _, _, _, _, _, _, _, _, 0xef, _] => match feature {
            0x02 => Some(true),
            0x82 => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// SMART READ DATA (B0h/D0h): 512 bytes. ATA8-ACS 7.52.6.
pub const SMART_READ_DATA: [u8; 16] =
    [0x85, PIO_IN, FROM_DEVICE | BLOCKS_IN_COUNT, 0, 0xd0, 0, 1, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0];

/// SMART WRITE LOG (B0h/D6h) of one block, with the registers returned. ACS-4 7.48.8.
pub fn write_log(address: u8) -> [u8; 16] {
    let flags = CHECK_CONDITION | BLOCKS_IN_COUNT;
    [0x85, PIO_OUT, flags, 0, 0xd6, 0, 1, 0, address, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0]
}

/// Returns true if the drive supports SCT Feature Control: IDENTIFY word 206 bits 0 (SCT) and 4. ACS-4
/// 7.13.6.75.
pub fn takes_sct_feature_control(identify: &[u8]) -> Option<bool> {
    let word = super::little::<2>(identify, 206 * 2)?;
    Some(word & 0b1_0001 == 0b1_0001)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_reference() {
        assert_eq!(IDENTIFY, [0x85, 0x08, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0xec, 0]);
        assert_eq!(set_write_cache(true), [0x85, 6, 0x20, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0xef, 0]);
        assert_eq!(set_write_cache(false)[4], 0x82);
        assert_eq!(read_set_write_cache(&set_write_cache(false)), Some(false));
        assert_eq!(read_set_write_cache(&IDENTIFY), None);
    }

    #[test]
    fn feature_control_counts_only_with_sct_itself() {
        let mut identify = vec![0_u8; 512];
        for (word, takes) in [(0x00, false), (0x10, false), (0x01, false), (0x11, true), (0x3d, true)] {
            identify[412] = word;
            assert_eq!(takes_sct_feature_control(&identify), Some(takes), "{word:#x}");
        }
        assert_eq!(takes_sct_feature_control(&identify[..412]), None);
    }
}

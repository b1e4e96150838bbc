//! Answers of drives as bytes: the inverse of the decoders in [`crate::wire`].

use crate::wire::ocp_log::{self, PowerLoss};
use crate::wire::smart;
use plumb_linux::command::sense::AtaStatus;

/// Returns a page 83h with one NAA designator, and a page 80h.
pub fn identity(naa: [u8; 8], serial: &str) -> (Vec<u8>, Vec<u8>) {
    let mut names = vec![0, 0x83, 0, 12, 1, 3, 0, 8];
    names.extend(naa);
    let mut page = vec![0, 0x80, 0, serial.len() as u8];
    page.extend(serial.bytes().take(255));
    (names, page)
}

/// Returns an answer to SMART READ DATA whose first attribute is number 12, the count of power cycles.
pub fn smart(power_cycles: u64) -> Vec<u8> {
    let mut page = vec![0_u8; smart::BYTES];
    page[0] = 0x10;
    let entry = &mut page[2..14];
    entry[0] = 12;
    (entry[3], entry[4]) = (100, 100);
    entry[5..11].copy_from_slice(&power_cycles.to_le_bytes()[..6]);
    let sum = page.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    page[smart::BYTES - 1] = sum.wrapping_neg();
    page
}

/// Returns the encoded page.
pub fn ocp_log(page: PowerLoss) -> Vec<u8> {
    let mut bytes = vec![0_u8; ocp_log::BYTES as usize];
    bytes[112..116].copy_from_slice(&(page.incomplete_shutdowns as u32).to_le_bytes());
    bytes[128..130].copy_from_slice(&(page.capacitor_health.unwrap_or(0xffff) as u16).to_le_bytes());
    bytes[160..168].copy_from_slice(&page.starts.to_le_bytes());
    bytes[496..].copy_from_slice(&ocp_log::GUID);
    bytes
}

/// Returns the sense data with which an ATA command with CK_COND ends.
pub fn encode_ata(status: AtaStatus) -> Vec<u8> {
    let mut bytes = vec![0x72, 1, 0, 0x1d, 0, 0, 0, 14];
    bytes.extend([9, 12, 0, status.error, 0, status.count, 0, status.lba_low]);
    bytes.extend([0, 0x4f, 0, 0xc2, 0, status.status]);
    bytes
}

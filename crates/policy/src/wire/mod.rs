//! Wire formats of commands and answers of drives: encoders and decoders, one format in each file.
//!
//! Pure, without unsafe, and free of panics for any input: data that is too short or malformed gives `None`.
//! Decoders that the survey also needs are in [`plumb_linux::probe::wire`].

pub mod ata;
pub mod designator;
pub mod mode_page;
pub mod nvme_command;
pub mod nvme_log;
pub mod ocp_log;
pub mod sct;
pub mod smart;

/// Returns the little-endian number at `at`.
fn little<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let field: [u8; N] = bytes.get(at..at.checked_add(N)?)?.try_into().ok()?;
    Some(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// Returns a little-endian counter of 16 bytes, saturated at 64 bits.
fn counter(bytes: &[u8], at: usize) -> Option<u64> {
    let low = little::<8>(bytes, at)?;
    let high = little::<8>(bytes, at.checked_add(8)?)?;
    Some(if high == 0 { low } else { u64::MAX })
}

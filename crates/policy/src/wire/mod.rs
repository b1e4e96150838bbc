//! Wire formats of what is sent to drives and what they answer: encoders and decoders, one format a file.
//!
//! Pure, without unsafe, and no bytes make a decoder panic: what is too short or of another form is `None`.
//! The decoders that the survey needs too are in [`plumb_linux::probe::wire`].

pub mod ata;
pub mod designator;
pub mod mode_page;
pub mod nvme_command;
pub mod nvme_log;
pub mod ocp_log;
pub mod sct;
pub mod smart;

/// Returns the bytes at `at`, little endian.
fn little<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let field: [u8; N] = bytes.get(at..at.checked_add(N)?)?.try_into().ok()?;
    Some(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// Returns a counter of 16 bytes, little endian; what does not fit into 64 bits is the largest value.
fn counter(bytes: &[u8], at: usize) -> Option<u64> {
    let low = little::<8>(bytes, at)?;
    let high = little::<8>(bytes, at.checked_add(8)?)?;
    Some(if high == 0 { low } else { u64::MAX })
}

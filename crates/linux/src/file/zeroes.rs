//! Zeroes in memory, for targets that cannot be zeroed faster.

/// Source of zeroes for devices and file systems without a faster way.
#[repr(align(4096))]
struct Zeroes([u8; ZEROES_BYTES]);
/// Number of bytes written by one call.
pub(crate) const ZEROES_BYTES: usize = 64 << 10;
static ZEROES: Zeroes = Zeroes([0; ZEROES_BYTES]);

/// Returns zeroes aligned for direct I/O; at most as many as one
/// [`Call::WriteZeroes`](super::work::Call::WriteZeroes) writes.
pub(crate) fn zeroes(length: u64) -> &'static [u8] {
    let length = usize::try_from(length).unwrap_or(ZEROES_BYTES).min(ZEROES_BYTES);
    &ZEROES.0[..length]
}

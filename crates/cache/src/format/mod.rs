//! The bytes of a log. `docs/ON_DISK_FORMAT.md` draws them. Everything here is pure: bytes to values and
//! back.
//!
//! Every structure is one block of 4096 bytes whose last four are a CRC-32C of all before: so every byte is
//! checked, those that mean nothing too. All numbers are little-endian.

pub(crate) mod block;
pub(crate) mod record;
pub(crate) mod superblock;

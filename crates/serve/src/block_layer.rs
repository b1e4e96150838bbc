//! Requirements of the kernel's block layer for a served block device, and the grid of logical blocks for
//! checking its requests.

use plumb_block::{Bytes, DeviceInfo, Lba, LbaRange};

use crate::error::{ExportError, Result};

/// Minimum logical block size.
pub(crate) const SECTOR: Bytes = Bytes(512);
/// Maximum logical block size, and minimum transfer of a device.
pub(crate) const PAGE: Bytes = Bytes::kib(4);
/// Maximum size of a write-zeroes, for which [`DeviceInfo`] has no limit; a larger one would block others for
/// too long.
pub(crate) const ZEROES_MAX: Bytes = Bytes::mib(32);

/// Logical blocks of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Logical block size in bytes.
    pub(crate) block: u64,
    /// Size in bytes; a multiple of the block size.
    pub(crate) size: u64,
    /// Maximum requested transfer, in whole pages.
    pub(crate) transfer_max: Bytes,
}

impl Grid {
    /// Creates the grid of a device, with requests of at most `limit`. `how` is the intended use, for
    /// messages.
    ///
    /// # Errors
    /// [`Geometry`](ExportError::Geometry) if the block layer does not support its block size or size, or it
    /// accepts less than a page at a time.
    pub(crate) fn new(info: &DeviceInfo, how: &'static str, limit: Bytes) -> Result<Self> {
        let refused = |why| Err(ExportError::Geometry { device: info.name.clone(), how, why });
        let block = info.logical_block;
        if !block.0.is_power_of_two() || !(SECTOR..=PAGE).contains(&block) {
            return refused(format!("its logical block is {block}: expected {SECTOR} to {PAGE}"));
        }
        if info.size < block || i64::try_from(info.size.0).is_err() {
            return refused(format!("its size is {}: expected 1 block to 2^63 - 1 bytes", info.size));
        }
        let transfer_max = info.transfer_max.min(limit).round_down(PAGE);
        if transfer_max.0 == 0 {
            return refused(format!("it takes {} at a time: expected at least {PAGE}", info.transfer_max));
        }
        Ok(Self { block: block.0, size: info.size.round_down(block).0, transfer_max })
    }

    /// Returns the blocks of `length` bytes at `offset`; `None` if the range is empty, off the grid or
    /// outside the device.
    pub(crate) fn range(&self, offset: u64, length: u64) -> Option<LbaRange> {
        let is_within = offset.checked_add(length)? <= self.size;
        let is_on_grid = offset.is_multiple_of(self.block) && length.is_multiple_of(self.block);
        (is_within && is_on_grid && length > 0)
            .then(|| LbaRange::new(Lba(offset / self.block), length / self.block))
    }
}

//! Detection of writes by somebody else to the backing device of a cache that is not served: by a mount,
//! above all. What only the log holds no longer fits it then.
//!
//! | Kept | Where | Says |
//! |---|---|---|
//! | how often the kernel wrote to the device, or when the file was changed, when the cache stopped | configuration | exactly, until the machine starts again |
//! | CRC-32C of 32 blocks (*witnesses*) as the cache left them | marker, on the backing device itself | always, of these blocks, unless the cache was writing to them |
//!
//! The witnesses are where file systems and partition tables note each mount or change (the first two blocks:
//! ext4, xfs, FAT, NTFS, GPT, LVM; the block at 64 KiB: btrfs), the last block, and 28 that are spread
//! evenly. The cache itself never makes one of them wrong: see `Mark` in plumb-cache.
//!
//! # Limitations
//! After a restart of the machine, or of a server that was killed, a write that touches none of the witnesses
//! is not noticed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::{Bytes, Device, Lba, LbaRange};
use plumb_cache::{Mark, WITNESSES_MAX};

use super::ends::DeviceSource;
use super::marker::{BLOCK, Contents, Marker};
use super::member::{Member, Spot};
use crate::error::Result;
use crate::signature::Source as _;

/// Number of witnesses that are spread evenly.
const SPREAD: u64 = WITNESSES_MAX as u64 - 4;

/// Returns the byte at which each witness of a cached device of this size begins.
fn places(size: Bytes) -> Vec<u64> {
    let last = (size.0 / BLOCK.0).saturating_sub(1);
    let spread = (0..SPREAD).map(|index| last * (index + 1) / (SPREAD + 1));
    let blocks = [0, 1, (64 << 10) / BLOCK.0, last].into_iter().chain(spread);
    blocks.map(|block| block.min(last) * BLOCK.0).collect()
}

/// Returns the witnesses of a cached device, in its logical blocks.
pub(super) fn ranges(device: &dyn Device) -> Vec<LbaRange> {
    let info = device.info();
    let block = info.logical_block.0;
    let range = |at: u64| LbaRange::new(Lba(at / block), BLOCK.0 / block);
    if info.size < BLOCK { Vec::new() } else { places(info.size).into_iter().map(range).collect() }
}

/// Returns the contents of one witness; `None` if it cannot be read.
fn content(device: &dyn Device, range: LbaRange) -> Option<u32> {
    let mut bytes = vec![0; BLOCK.0 as usize];
    let read = DeviceSource(device).read_at(range.lba.0 * device.info().logical_block.0, &mut bytes);
    read.is_ok_and(|read| read == bytes.len()).then(|| crc32c::crc32c(&bytes))
}

/// Returns the byte at which the first witness begins that holds something else than `stated`.
pub(super) fn changed(device: &dyn Device, stated: &Contents) -> Option<u64> {
    let ranges = ranges(device).into_iter().zip(stated);
    let mut found = ranges.filter_map(|(range, stated)| Some((range, (*stated)?)));
    let is_other = |range: LbaRange, stated: u32| content(device, range).is_some_and(|found| found != stated);
    let other = found.find(|(range, stated)| is_other(*range, *stated));
    other.map(|(range, _)| range.lba.0 * device.info().logical_block.0)
}

/// Writes the marker of a backing device, as the cache asks.
pub(super) struct Marking {
    backing: Arc<Member>,
    last: Mutex<PlacedMarker>,
}

/// Marker that is there, with its place.
struct PlacedMarker {
    marker: Marker,
    spot: Spot,
    /// The device that is cached.
    cached: Arc<dyn Device>,
}

impl Marking {
    /// Goes on from the marker that is there.
    pub(super) fn new(backing: Arc<Member>, spot: Spot, cached: Arc<dyn Device>, marker: Marker) -> Self {
        Self { backing, last: Mutex::new(PlacedMarker { marker, spot, cached }) }
    }

    fn known(&self) -> MutexGuard<'_, PlacedMarker> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the marker that is there, and its place.
    pub(super) fn last(&self) -> (Marker, Spot) {
        let last = self.known();
        (last.marker, last.spot)
    }

    /// Writes `mark`, durably: of a witness that the marker before stated what that stated, of others what
    /// they hold now.
    pub(super) fn write(&self, mark: Mark) -> Result<()> {
        let mut last = self.known();
        let cached = Arc::clone(&last.cached);
        let mut contents = last.marker.contents;
        for ((index, content), range) in contents.iter_mut().enumerate().zip(ranges(&*cached)) {
            let is_stated = mark.witnesses & 1 << index != 0;
            *content = if is_stated { content.or_else(|| self::content(&*cached, range)) } else { None };
        }
        let mut marker = Marker { mark, ..last.marker };
        marker.state(contents);
        self.backing.set_marker(last.spot, Some(&marker))?;
        last.marker = marker;
        Ok(())
    }

    /// Writes a marker that says that all of `cached` is cached to `spot`, durably, and takes the one before
    /// away, if that is elsewhere: it lies within the cached device from then on. Nothing is stated of the
    /// witnesses, which are others.
    pub(super) fn grow(&self, spot: Spot, cached: Arc<dyn Device>) -> Result<()> {
        let mut last = self.known();
        let mut marker = Marker { size: cached.info().size, ..last.marker };
        marker.state([None; WITNESSES_MAX]);
        self.backing.set_marker(spot, Some(&marker))?;
        if last.spot != spot {
            let taken = self.backing.set_marker(last.spot, None);
            taken.map_err(|error| error.after_clearing_up(self.backing.set_marker(spot, None)))?;
        }
        *last = PlacedMarker { marker, spot, cached };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_witness_lies_within_the_cached_device() {
        for size in [4096, 8192, 1 << 20, (1 << 40) + 4096] {
            let places = places(Bytes(size));
            assert_eq!(places.len(), WITNESSES_MAX);
            assert!(places.iter().all(|at| at + 4096 <= size && at % 4096 == 0), "{size}: {places:?}");
        }
    }
}

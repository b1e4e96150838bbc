//! Detection of foreign writes to the backing device of a cache that is not served, such as by a mount. After
//! one, the data in the log no longer fits the backing device.
//!
//! | Evidence | Stored in | Reliability |
//! |---|---|---|
//! | the kernel's count of writes to the device, or the change time of the file, when the cache stopped | configuration | exact, until the machine is restarted |
//! | CRC-32C of 32 blocks (*witnesses*) as the cache left them | marker, on the backing device | always, for these blocks, except where the cache was writing |
//!
//! The witnesses are the blocks in which file systems and partition tables record each mount or change (the
//! first two blocks: ext4, xfs, FAT, NTFS, GPT, LVM; the block at 64 KiB: btrfs), the last block, and 28
//! evenly spaced ones. The cache's own writes never invalidate a stated witness: see `Mark` in plumb-cache.
//!
//! # Limitations
//! After a restart of the machine, or of a killed server, a write that touches no witness is not detected.

use std::cell::LazyCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::{Bytes, Device, Lba, LbaRange};
use plumb_cache::{Mark, WITNESSES_MAX};
use plumb_guard::Result;
use plumb_guard::cache::marker::{BLOCK, Contents, Marker};
use plumb_guard::cache::marker_search::DeviceSource;
use plumb_guard::signature::Source as _;

use crate::member::{Member, Spot};

/// Number of evenly spaced witnesses.
const SPREAD: u64 = WITNESSES_MAX as u64 - 4;

/// Returns the offset in bytes of each witness of a cached device of this size.
fn places(size: Bytes) -> Vec<u64> {
    if size < BLOCK {
        return Vec::new();
    }
    let last = (size.0 / BLOCK.0).saturating_sub(1);
    let spread = (0..SPREAD).map(|index| last * (index + 1) / (SPREAD + 1));
    let blocks = [0, 1, (64 << 10) / BLOCK.0, last].into_iter().chain(spread);
    blocks.map(|block| block.min(last) * BLOCK.0).collect()
}

/// Returns the witnesses of a cached device in logical blocks.
pub(crate) fn ranges(device: &dyn Device) -> Vec<LbaRange> {
    let info = device.info();
    let block = info.logical_block.0;
    places(info.size).into_iter().map(|at| LbaRange::new(Lba(at / block), BLOCK.0 / block)).collect()
}

/// Returns the CRC-32C of the witness that begins at byte `at`; `None` if it cannot be read.
fn content(source: &DeviceSource, at: u64) -> Option<u32> {
    let mut bytes = vec![0; BLOCK.0 as usize];
    let read = source.read_at(at, &mut bytes);
    read.is_ok_and(|read| read == bytes.len()).then(|| crc32c::crc32c(&bytes))
}

/// Returns the offset in bytes of the first witness whose contents differ from those `stated`.
pub(crate) fn changed(device: &dyn Device, stated: &Contents) -> Option<u64> {
    let source = DeviceSource::open(device).ok()?;
    let is_other = |at: u64, stated: u32| content(&source, at).is_some_and(|found| found != stated);
    let stated = places(Bytes(source.size())).into_iter().zip(stated);
    let mut stated = stated.filter_map(|(at, stated)| Some((at, (*stated)?)));
    stated.find(|(at, stated)| is_other(*at, *stated)).map(|(at, _)| at)
}

/// Writer of the marker of a backing device.
pub(crate) struct Marking {
    backing: Arc<Member>,
    last: Mutex<PlacedMarker>,
}

/// Marker that was written last, with its place.
struct PlacedMarker {
    marker: Marker,
    spot: Spot,
    /// Device that is cached.
    cached: Arc<dyn Device>,
}

impl Marking {
    /// Continues from the marker on the device.
    pub(crate) fn new(backing: Arc<Member>, spot: Spot, cached: Arc<dyn Device>, marker: Marker) -> Self {
        Self { backing, last: Mutex::new(PlacedMarker { marker, spot, cached }) }
    }

    fn lock(&self) -> MutexGuard<'_, PlacedMarker> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the marker that was written last, and its place.
    pub(crate) fn last(&self) -> (Marker, Spot) {
        let last = self.lock();
        (last.marker, last.spot)
    }

    /// Writes `mark` durably. Witnesses that the previous marker stated keep the stated contents; for the
    /// others the present contents are read.
    pub(crate) fn write(&self, mark: Mark) -> Result<()> {
        let mut last = self.lock();
        let cached = Arc::clone(&last.cached);
        let mut contents = last.marker.contents;
        let source = LazyCell::new(|| DeviceSource::open(&*cached).ok());
        for ((index, content), at) in contents.iter_mut().enumerate().zip(places(cached.info().size)) {
            let is_stated = mark.witnesses & 1 << index != 0;
            let found = || self::content(source.as_ref()?, at);
            *content = if is_stated { content.or_else(found) } else { None };
        }
        let mut marker = Marker { mark, ..last.marker };
        marker.state(contents);
        self.backing.set_marker(last.spot, Some(&marker))?;
        last.marker = marker;
        Ok(())
    }

    /// Writes a marker for all of `cached` to `spot`, durably, and removes the previous one if it is
    /// elsewhere, because it is then within the cached device. The new marker states no witnesses, since
    /// their places change with the size.
    pub(crate) fn grow(&self, spot: Spot, cached: Arc<dyn Device>) -> Result<()> {
        let mut last = self.lock();
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
    use std::ops::Deref;
    use std::sync::atomic::{AtomicU32, Ordering};

    use plumb_block::{DeviceLayer, Queue, QueueOptions, RealClock};
    use plumb_linux::{FileDevice, FileOptions};

    use super::*;

    /// Device that counts its opened queues.
    struct Counting {
        device: FileDevice,
        queues: AtomicU32,
    }

    impl DeviceLayer for Counting {
        type Inner = FileDevice;

        fn inner(&self) -> impl Deref<Target = FileDevice> {
            &self.device
        }

        fn open_queue(&self, options: QueueOptions) -> plumb_block::Result<Box<dyn Queue>> {
            self.queues.fetch_add(1, Ordering::Relaxed);
            self.device.open_queue(options)
        }
    }

    /// One queue, because opening a queue costs a hundred system calls, and a restarted server reads all
    /// witnesses.
    #[test]
    fn a_change_of_a_witness_is_found_through_one_queue() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let (options, clock) = (FileOptions::write_buffered(), Arc::new(RealClock::start()));
        let device = FileDevice::open(file.path(), options, clock).unwrap();
        let device = Counting { device, queues: AtomicU32::new(0) };
        let stated = [Some(crc32c::crc32c(&[0; BLOCK.0 as usize])); WITNESSES_MAX];
        assert_eq!(changed(&device, &stated), None);
        assert_eq!(device.queues.load(Ordering::Relaxed), 1);
        std::os::unix::fs::FileExt::write_all_at(file.as_file(), b"x", (1 << 20) - 1).unwrap();
        assert_eq!(changed(&device, &stated), Some((1 << 20) - BLOCK.0));
        assert_eq!(changed(&device, &[None; WITNESSES_MAX]), None, "nothing is stated");
    }

    #[test]
    fn every_witness_lies_within_the_cached_device() {
        for size in [4096, 8192, 1 << 20, (1 << 40) + 4096] {
            let places = places(Bytes(size));
            assert_eq!(places.len(), WITNESSES_MAX);
            assert!(places.iter().all(|at| at + 4096 <= size && at % 4096 == 0), "{size}: {places:?}");
        }
    }
}

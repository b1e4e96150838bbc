//! State shared by all workers of an attachment: the device, its geometry, and its condition.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use plumb_block::{Bytes, Device, Errno, Extent, ExtentState, Lba, LbaRange, PoolShape, RealClock};

use super::options::{AttachOptions, ControlFile, entries_of_a_queue};
use super::plan::{ENXIO, Geometry, Plan};
use super::wire::{self, Answer, Frame, InitLimits};
use crate::block_layer::{Grid, PAGE};
use crate::error::ExportError;
use crate::served_device::{KnownLosses, ServedDevice};

/// Maximum payload of a FUSE request.
const TRANSFER_MAX: Bytes = Bytes::mib(1);
/// Limit of the payload in pages; a request with unaligned memory touches one more.
const PAGES_MAX: u16 = 256;
/// Largest loop request that FUSE need not split, however its memory is aligned: 128 pages, plus one for each
/// of its up to 128 segments.
const LOOP_REQUEST_MAX: Bytes = Bytes::kib(512);
/// Offset of consecutive buffers, which at power-of-two distances would share the same sets of the
/// processor's caches.
const COLOUR: Bytes = PAGE;
/// Maximum number of kernel requests in flight, over all workers.
const BACKGROUND: u16 = 512;

/// The device with its state.
pub(super) struct ServedLoop {
    pub(super) device: Arc<ServedDevice>,
    /// Power losses known to all users who have the block device open.
    pub(super) known: Arc<KnownLosses>,
    /// Geometry at the time of attaching; `size` is the current size.
    pub(super) geometry: Geometry,
    size: AtomicU64,
    /// True if the kernel may read ahead.
    pub(super) reads_ahead: bool,
    /// Receiver of writes to the control file, if there is one.
    pub(super) control: Option<ControlFile>,
    alignment: Bytes,
    /// True if rings are wanted, and after the negotiation if they are used.
    pub(super) uses_ring: AtomicBool,
    /// Reason why rings could not be used although the kernel offers them.
    pub(super) ring_refusal: OnceLock<String>,
    /// Missing feature of a refused kernel.
    refusal: OnceLock<String>,
}

impl ServedLoop {
    /// Checks that the kernel can pass the device's requests on unsplit.
    ///
    /// # Errors
    /// [`Geometry`](ExportError::Geometry) if a loop device cannot have this block size or size, or the
    /// device accepts less than a page at a time.
    pub(super) fn new(device: Arc<dyn Device>, options: &AttachOptions) -> crate::error::Result<Self> {
        let info = device.info();
        let grid = Grid::new(&info, "attached", TRANSFER_MAX)?;
        Ok(Self {
            size: AtomicU64::new(grid.size),
            geometry: Geometry::new(&info, grid, options.control.is_some()),
            reads_ahead: !options.no_read_ahead,
            control: options.control.clone(),
            alignment: info.dma_alignment.max(PAGE),
            known: KnownLosses::for_device(&*device),
            device: Arc::new(ServedDevice::new(
                device,
                Arc::new(RealClock::start()),
                options.request_timeout(),
            )),
            uses_ring: AtomicBool::new(entries_of_a_queue().is_some()),
            ring_refusal: OnceLock::new(),
            refusal: OnceLock::new(),
        })
    }

    /// Returns the maximum read or write of the file.
    pub(super) fn transfer_max(&self) -> Bytes {
        self.geometry.grid.transfer_max
    }

    /// Returns the maximum payload of a request, as the kernel computes it from the negotiated limits.
    pub(super) fn payload_max(&self) -> Bytes {
        self.transfer_max().max(PAGE * u64::from(PAGES_MAX))
    }

    /// Returns the maximum loop request if it must be limited: FUSE splits a request that touches too many
    /// pages at an arbitrary position in a page, which is off the grid if blocks are larger than 512 bytes,
    /// the alignment of memory.
    pub(super) fn loop_request_max(&self) -> Option<Bytes> {
        (self.geometry.block > 512).then(|| self.transfer_max().min(LOOP_REQUEST_MAX))
    }

    /// Returns the shape of the memory for `depth` requests plus the one being read.
    pub(super) fn pool_shape(&self, depth: u32) -> PoolShape {
        PoolShape {
            buffer: self.transfer_max() + COLOUR.max(self.alignment),
            count: depth.saturating_add(1),
            alignment: self.alignment,
        }
    }

    pub(super) fn plan(&self, frame: &Frame<'_>) -> Plan {
        let mut geometry = self.geometry;
        geometry.grid.size = self.size();
        geometry.plan(frame)
    }

    /// Returns the size of the file, in bytes.
    fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// Updates the size from the device.
    pub(super) fn follow_size(&self) {
        let size = self.device.device.info().size.round_down(Bytes(self.geometry.grid.block));
        self.size.store(size.0, Ordering::Release);
    }

    /// Answers the kernel's FUSE_INIT; EPROTO if it does not support parallel writes.
    pub(super) fn agree(&self, major: u32, minor: u32, offered: u64) -> Result<Answer, Errno> {
        const EPROTO: Errno = Errno(71);
        let needed = wire::ASYNC_DIO | wire::MAX_PAGES;
        if major != wire::MAJOR || minor < wire::MINOR || offered & needed != needed {
            let why = format!(
                "it speaks FUSE {major}.{minor} with flags {offered:#x}, and {}.{} with {needed:#x} is needed (Linux 6.2): \
                 older ones send one write after the other and so hide reorderings",
                wire::MAJOR,
                wire::MINOR
            );
            self.refusal.get_or_init(|| why);
            return Err(EPROTO);
        }
        let ring = if self.uses_ring.load(Ordering::Relaxed) { wire::OVER_RING } else { 0 };
        self.uses_ring.store(ring != 0 && offered & ring == ring, Ordering::Relaxed);
        let wanted = needed | wire::ASYNC_READ | wire::BIG_WRITES | ring;
        let write_bytes = u32::try_from(self.transfer_max().0).unwrap_or(u32::MAX);
        Ok(Answer::init(
            offered & wanted,
            InitLimits { background: BACKGROUND, write_bytes, pages: PAGES_MAX },
        ))
    }

    /// Passes the first `length` bytes of `payload` to the owner of the control file.
    pub(super) fn control(&self, payload: &[u8], length: u32) -> Result<Answer, Errno> {
        let control = self.control.as_ref().ok_or(Errno::EINVAL)?;
        (control.0)(payload.get(..length as usize).ok_or(Errno::EINVAL)?)?;
        Ok(Answer::written(length))
    }

    /// Returns the reason why the kernel was refused, if it was.
    pub(super) fn refusal(&self) -> Option<ExportError> {
        self.refusal.get().map(|why| ExportError::Kernel(why.clone()))
    }

    /// Returns the position of the next data or hole, as lseek(2) does.
    pub(super) fn seek(&self, offset: u64, whence: u32) -> Result<Answer, Errno> {
        let block = u64::from(self.geometry.block);
        let size = self.size();
        if offset >= size {
            return Err(ENXIO);
        }
        let wants_data = match whence {
            wire::SEEK_DATA => true,
            wire::SEEK_HOLE => false,
            _ => return Err(Errno::EINVAL),
        };
        let first = offset / block;
        let range = LbaRange::new(Lba(first), size / block - first);
        let device = &self.device.device;
        let extents = device.extents(range).map_err(|_| Errno::EIO)?;
        if !self.known.is_all(&**device) {
            return Err(Errno::EIO);
        }
        let found = extents.iter().find(|extent| is_data(extent) == wants_data);
        match (found, wants_data) {
            (Some(extent), _) => Ok(Answer::position((extent.range.lba.0 * block).max(offset))),
            (None, true) => Err(ENXIO),
            // Every file has a hole after its end.
            (None, false) => Ok(Answer::position(size)),
        }
    }
}

fn is_data(extent: &Extent) -> bool {
    matches!(extent.state, ExtentState::Written | ExtentState::Unknown)
}

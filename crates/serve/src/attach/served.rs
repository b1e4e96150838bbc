//! State shared by all workers of an attachment: the device, its geometry, and what has become of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use plumb_block::{Bytes, Device, Errno, Extent, ExtentState, Lba, LbaRange, PoolShape, RealClock};

use super::options::{AttachOptions, ControlFile, entries_of_a_queue};
use super::plan::{ENXIO, Geometry, Plan};
use super::wire::{self, Answer, Frame, InitLimits};
use crate::block_layer::{Grid, PAGE};
use crate::error::ExportError;
use crate::served_device::{KnownLosses, ServedDevice};

/// The most that FUSE carries in a request.
const TRANSFER_MAX: Bytes = Bytes::mib(1);
/// How many pages that is; a request whose memory is not aligned touches more.
const PAGES_MAX: u16 = 256;
/// Largest request of the loop device that FUSE need not cut, however its memory lies: 128 pages, and one
/// more for each of the 128 segments that it may have.
const LOOP_REQUEST_MAX: Bytes = Bytes::kib(512);
/// Buffers that lie a power of two apart would all fall into the same sets of the processor's caches.
const COLOUR: Bytes = PAGE;
/// Number of requests that the kernel may have in flight, over all workers.
const BACKGROUND: u16 = 512;

/// The device and what is known of it.
pub(super) struct ServedLoop {
    pub(super) device: Arc<ServedDevice>,
    /// The losses of power that all know of who have it open.
    pub(super) known: Arc<KnownLosses>,
    /// Geometry when it was attached; `size` is its size now.
    pub(super) geometry: Geometry,
    size: AtomicU64,
    /// True if the kernel may read more than it is asked for.
    pub(super) reads_ahead: bool,
    /// Receiver of what is written to the control file, if there is one.
    pub(super) control: Option<ControlFile>,
    alignment: Bytes,
    /// Choice of the rings in place of files: until the kernel was greeted what is wanted, then what is used.
    pub(super) uses_ring: AtomicBool,
    /// Reason why rings were not to be had from a kernel that offers them.
    pub(super) ring_refusal: OnceLock<String>,
    /// Feature that the kernel lacks, if it was refused for that.
    refusal: OnceLock<String>,
}

impl ServedLoop {
    /// Checks that the kernel can carry the device's requests whole.
    ///
    /// # Errors
    /// [`Geometry`](ExportError::Geometry) if a loop device cannot have its block size or its size, or it
    /// takes less than a page at a time.
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

    /// Returns the largest read and write of the file.
    pub(super) fn transfer_max(&self) -> Bytes {
        self.geometry.grid.transfer_max
    }

    /// Returns the largest payload of a request, as the kernel reckons it from what was agreed on.
    pub(super) fn payload_max(&self) -> Bytes {
        self.transfer_max().max(PAGE * u64::from(PAGES_MAX))
    }

    /// Returns the largest request that the loop device may make, where it must not make larger ones: FUSE
    /// cuts a request that touches too many pages anywhere in a page, which is off the grid if blocks are
    /// larger than the 512 bytes that memory is aligned to.
    pub(super) fn loop_request_max(&self) -> Option<Bytes> {
        (self.geometry.block > 512).then(|| self.transfer_max().min(LOOP_REQUEST_MAX))
    }

    /// Returns the shape of the memory for `depth` requests and the one that is being read.
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

    /// Takes the size that the device has now.
    pub(super) fn follow_size(&self) {
        let size = self.device.device.info().size.round_down(Bytes(self.geometry.grid.block));
        self.size.store(size.0, Ordering::Release);
    }

    /// Answers the kernel's greeting; EPROTO if it cannot keep writes side by side.
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

    /// Hands the first `length` bytes of `payload` to whoever attached.
    pub(super) fn control(&self, payload: &[u8], length: u32) -> Result<Answer, Errno> {
        let control = self.control.as_ref().ok_or(Errno::EINVAL)?;
        (control.0)(payload.get(..length as usize).ok_or(Errno::EINVAL)?)?;
        Ok(Answer::written(length))
    }

    /// Returns why the kernel was refused, if it was.
    pub(super) fn refusal(&self) -> Option<ExportError> {
        self.refusal.get().map(|why| ExportError::Kernel(why.clone()))
    }

    /// Returns where the next data or hole is, as lseek(2).
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
            // There is a hole behind the end of every file.
            (None, false) => Ok(Answer::position(size)),
        }
    }
}

fn is_data(extent: &Extent) -> bool {
    matches!(extent.state, ExtentState::Written | ExtentState::Unknown)
}

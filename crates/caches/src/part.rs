//! A part of a device as a device: a device without its last block, which holds the marker of a cache, or one
//! of the devices on the drive of a proof.

use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use plumb_block::{
    Bytes, Completion, Device, DeviceInfo, DeviceLayer, Extent, Lba, LbaRange, Queue, QueueFull,
    QueueOptions, Request, Result, Wait,
};

/// Part of a device: `size` bytes from block `first` on. The user must not address blocks beyond the end; the
/// core of a cache does not. If the part starts at block 0, its queues are those of the device. Otherwise the
/// range of a flush has the first block of the part and length 0, so that a recorder of the device can tell
/// the parts apart.
pub struct Part {
    /// Device that contains the part.
    pub device: Arc<dyn Device>,
    /// First block of the part.
    pub first: Lba,
    /// Length of the part.
    pub size: Bytes,
}

impl DeviceLayer for Part {
    type Inner = dyn Device;

    fn inner(&self) -> impl Deref<Target = Self::Inner> {
        &*self.device
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo { size: self.size, ..self.device.info() }
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let queue = self.device.open_queue(options)?;
        if self.first == Lba(0) {
            return Ok(queue);
        }
        Ok(Box::new(PartQueue { queue, first: self.first }))
    }

    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        let mut extents = self.device.extents(LbaRange::new(Lba(range.lba.0 + self.first.0), range.nlb))?;
        extents.iter_mut().for_each(|extent| extent.range.lba.0 -= self.first.0);
        Ok(extents)
    }
}

struct PartQueue {
    queue: Box<dyn Queue>,
    first: Lba,
}

impl Queue for PartQueue {
    fn submit(&mut self, mut request: Request) -> std::result::Result<(), QueueFull> {
        request.range.lba.0 += self.first.0;
        self.queue.submit(request).map_err(|QueueFull(mut request)| {
            request.range.lba.0 -= self.first.0;
            QueueFull(request)
        })
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        self.queue.poll(wait, completions)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.queue.wake_fd()
    }
}

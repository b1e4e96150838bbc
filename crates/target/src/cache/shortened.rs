//! A device without its end, where the marker of its cache is.

use std::sync::Arc;

use plumb_block::{Bytes, Device, DeviceInfo, Extent, Latch, LbaRange, Power, Queue, QueueOptions, Result};

/// A device of which only the first `size` bytes are used. Queues are those of the device: whoever uses this asks for no block
/// beyond the end, as the core of a cache does.
pub(super) struct Shortened {
    pub(super) device: Arc<dyn Device>,
    pub(super) size: Bytes,
}

impl Device for Shortened {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { size: self.size, ..self.device.info() }
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        self.device.open_queue(options)
    }

    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        self.device.extents(range)
    }

    fn set_wce(&self, enabled: bool) -> Result<()> {
        self.device.set_wce(enabled)
    }

    fn latched(&self) -> Option<Latch> {
        self.device.latched()
    }

    fn power(&self) -> Power {
        self.device.power()
    }
}

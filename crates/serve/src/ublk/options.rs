//! Options of exporting a device through ublk, and what survives its server.

use std::path::PathBuf;

/// Part of a device's contents that is left when the process that serves it is killed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Survives {
    /// Nothing: they are in this process. Then the block device ends with its server, and cannot be taken
    /// over.
    #[default]
    Nothing,
    /// The durable data; data that is only acknowledged may be in a cache in this process.
    Durable,
    /// Everything that was acknowledged.
    Acknowledged,
}

/// How to export.
#[derive(Debug, Clone, Default)]
pub struct UblkOptions {
    /// How many queues, each with a thread and a queue of the device; 0: as many as processors, at most 4. A
    /// device that is taken over keeps its number.
    pub queues: u16,
    /// Number of requests that each queue may have in flight, up to 4096; 0: 64. A device that is taken over
    /// keeps its number.
    pub depth: u16,
    /// Part of the contents that is left when this process is killed.
    pub survives: Survives,
    /// Identity of the contents: a device is taken over only with the same. One line.
    pub identity: String,
    /// Where records are kept; `None`: /run/plumb/ublk. It is this user's alone.
    pub directory: Option<PathBuf>,
}

impl UblkOptions {
    pub(super) fn queues(&self) -> u16 {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        if self.queues == 0 { processors.clamp(1, 4) as u16 } else { self.queues }
    }

    pub(super) fn depth(&self) -> u16 {
        if self.depth == 0 { 64 } else { self.depth }
    }
}

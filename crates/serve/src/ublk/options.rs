//! Options of an export through ublk, including what survives the server.

use std::path::PathBuf;

/// Part of a device's contents that survives a kill of the serving process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Survives {
    /// Nothing: the contents are in this process. The block device then ends with its server, and cannot be
    /// taken over.
    #[default]
    Nothing,
    /// Durable data; merely acknowledged data may be in a cache in this process.
    Durable,
    /// Everything that was acknowledged.
    Acknowledged,
}

/// Options of an export.
#[derive(Debug, Clone, Default)]
pub struct UblkOptions {
    /// Number of queues, each with a thread and a device queue; 0: the number of processors, at most 4. A
    /// device that is taken over keeps its number.
    pub queues: u16,
    /// Maximum number of requests in flight for each queue, up to 4096; 0: 64. A device that is taken over
    /// keeps its number.
    pub depth: u16,
    /// Part of the contents that survives a kill of this process.
    pub survives: Survives,
    /// Identity of the contents, in one line; taking over requires an equal one.
    pub identity: String,
    /// Private directory of records; `None`: /run/plumb/ublk.
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

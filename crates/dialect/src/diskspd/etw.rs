//! Windows event tracing: what can be asked for. It has no meaning here, but profiles keep it.

/// A setting of Windows event tracing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EtwSetting {
    /// Processes.
    Process,
    /// Threads.
    Thread,
    /// Loaded images.
    ImageLoad,
    /// Disk I/O.
    DiskIo,
    /// All page faults.
    MemoryPageFaults,
    /// Hard page faults.
    MemoryHardFaults,
    /// Network.
    Network,
    /// Registry.
    Registry,
    /// Paged memory for the logger.
    UsePagedMemory,
    /// The performance counter as clock.
    UsePerfTimer,
    /// The system timer as clock.
    UseSystemTimer,
    /// The cycle counter as clock.
    UseCyclesCounter,
}

impl EtwSetting {
    /// All, in the order of a profile.
    pub const ALL: [Self; 12] = [
        Self::Process,
        Self::Thread,
        Self::ImageLoad,
        Self::DiskIo,
        Self::MemoryPageFaults,
        Self::MemoryHardFaults,
        Self::Network,
        Self::Registry,
        Self::UsePagedMemory,
        Self::UsePerfTimer,
        Self::UseSystemTimer,
        Self::UseCyclesCounter,
    ];

    /// Its element in a profile.
    pub const fn element(self) -> &'static str {
        match self {
            Self::Process => "Process",
            Self::Thread => "Thread",
            Self::ImageLoad => "ImageLoad",
            Self::DiskIo => "DiskIO",
            Self::MemoryPageFaults => "MemoryPageFaults",
            Self::MemoryHardFaults => "MemoryHardFaults",
            Self::Network => "Network",
            Self::Registry => "Registry",
            Self::UsePagedMemory => "UsePagedMemory",
            Self::UsePerfTimer => "UsePerfTimer",
            Self::UseSystemTimer => "UseSystemTimer",
            Self::UseCyclesCounter => "UseCyclesCounter",
        }
    }

    /// What follows `-e` on a command line.
    pub fn typed(value: &str) -> Option<Self> {
        Some(match value {
            "PROCESS" => Self::Process,
            "THREAD" => Self::Thread,
            "IMAGE_LOAD" => Self::ImageLoad,
            "DISK_IO" => Self::DiskIo,
            "MEMORY_PAGE_FAULTS" => Self::MemoryPageFaults,
            "MEMORY_HARD_FAULTS" => Self::MemoryHardFaults,
            "NETWORK" => Self::Network,
            "REGISTRY" => Self::Registry,
            "p" => Self::UsePagedMemory,
            "q" => Self::UsePerfTimer,
            "s" => Self::UseSystemTimer,
            "c" => Self::UseCyclesCounter,
            _ => return None,
        })
    }
}

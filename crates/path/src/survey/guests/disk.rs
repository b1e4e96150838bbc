//! Disk of a virtual machine, from the hypervisor's options.

/// Disk of a virtual machine, as configured in its hypervisor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GuestDisk {
    /// Name of the disk within the machine.
    pub(super) name: String,
    /// File or block device that holds the disk.
    pub(super) image: String,
    /// Serial number that the guest sees.
    pub(super) serial: Option<String>,
    /// Options for the cache, as typed.
    pub(super) options: String,
    /// Use of the host's page cache, and the fate of flushes.
    pub(super) caching: Caching,
}

/// Handling of a guest's writes and flushes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Caching {
    /// True if the image is opened with O_DIRECT.
    pub(super) is_direct: bool,
    /// True if a flush ends at the hypervisor, or the guest has no flush.
    pub(super) drops_flushes: bool,
    /// True if each write is flushed before it is acknowledged.
    pub(super) flushes_writes: bool,
}

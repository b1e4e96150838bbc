//! Disk of a virtual machine, by what its hypervisor was told.

/// Disk of a virtual machine, as its hypervisor was told to serve it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GuestDisk {
    /// Name of the disk within its machine.
    pub(super) name: String,
    /// File or block device that holds it.
    pub(super) image: String,
    /// Serial number that the guest sees.
    pub(super) serial: Option<String>,
    /// Options that say so, as typed.
    pub(super) options: String,
    /// Use of the host's page cache, and fate of flushes.
    pub(super) caching: Caching,
}

/// Treatment of the writes and flushes of a guest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Caching {
    /// True if the image is opened with O_DIRECT.
    pub(super) is_direct: bool,
    /// True if a flush ends at the hypervisor, or the guest is offered none.
    pub(super) drops_flushes: bool,
    /// True if each write is flushed before it is acknowledged.
    pub(super) flushes_writes: bool,
}

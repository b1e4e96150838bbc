//! Opening a file or block device, and the error messages when that fails.

use std::os::fd::OwnedFd;
use std::path::Path;

use plumb_block::{
    Bytes, Caching, DurableWrite, EngineChoice, Errno, Error, ErrorKind, FlushCall, Opening, Result,
};
use rustix::fs::{FileType, Mode, OFlags};

/// Options for opening a file or block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileOptions {
    /// Access: read only, or read and write.
    pub access: Access,
    /// System calls and flags for I/O.
    pub opening: Opening,
    /// Size limit of a regular file that grows with each write at its end. A write at offset 0 truncates it
    /// first, so sequential writes append, and start again when the file is full.
    pub append: Option<Bytes>,
    /// Unit of addressing through the page cache, where any byte can be addressed; must not be zero. `None`:
    /// 512 bytes for a file, the block size of a device. Direct I/O ignores it and uses the unit of the file
    /// system or device.
    pub logical_block: Option<Bytes>,
    /// True if several threads poll one queue, one at a time, even while requests are in flight. Otherwise a
    /// queue belongs to the thread that polls it, which is cheaper.
    pub is_shared: bool,
}

/// Access to a device: read only, or read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read only: writes, discards and write-zeroes fail with EROFS.
    ReadOnly,
    /// Read and write. A block device is claimed exclusively.
    ReadWrite,
}

impl FileOptions {
    /// Creates options with defaults for everything else.
    pub const fn new(access: Access, opening: Opening) -> Self {
        Self { access, opening, append: None, logical_block: None, is_shared: false }
    }

    /// Creates options for direct reads.
    pub const fn read_direct() -> Self {
        Self::new(Access::ReadOnly, Opening::DIRECT)
    }

    /// Creates options for direct reads and writes.
    pub const fn write_direct() -> Self {
        Self::new(Access::ReadWrite, Opening::DIRECT)
    }

    /// Creates options for reading through the page cache.
    pub const fn read_buffered() -> Self {
        Self::new(Access::ReadOnly, Opening::CACHED)
    }

    /// Creates options for reading and writing through the page cache.
    pub const fn write_buffered() -> Self {
        Self::new(Access::ReadWrite, Opening::CACHED)
    }

    /// Sets the engine.
    #[must_use]
    pub const fn engine(mut self, engine: EngineChoice) -> Self {
        self.opening.engine = engine;
        self
    }

    /// Sets the use of the page cache.
    #[must_use]
    pub const fn caching(mut self, caching: Caching) -> Self {
        self.opening.caching = caching;
        self
    }

    /// Sets the system call for flushes.
    #[must_use]
    pub const fn flush(mut self, flush: FlushCall) -> Self {
        self.opening.flush = flush;
        self
    }

    /// Sets the flag for FUA writes.
    #[must_use]
    pub const fn durable_write(mut self, durable_write: DurableWrite) -> Self {
        self.opening.durable_write = durable_write;
        self
    }

    /// Sets the unit of addressing through the page cache.
    #[must_use]
    pub const fn logical_block(mut self, logical_block: Option<Bytes>) -> Self {
        self.logical_block = logical_block;
        self
    }

    /// Allows several threads to poll a queue.
    #[must_use]
    pub const fn shared(mut self) -> Self {
        self.is_shared = true;
        self
    }

    /// Returns the flags of open(2).
    pub(super) fn flags(self) -> OFlags {
        let access = match self.access {
            Access::ReadOnly => OFlags::RDONLY,
            Access::ReadWrite => OFlags::RDWR,
        };
        let caching = match self.opening.caching {
            Caching::Cached | Caching::DropBehind | Caching::Mapped => OFlags::empty(),
            Caching::Direct => OFlags::DIRECT,
        };
        access | caching | OFlags::CLOEXEC | OFlags::NOCTTY
    }
}

/// Opens an existing file or block device.
pub(crate) fn open(path: &Path, options: FileOptions) -> Result<OwnedFd> {
    let place = || path.display().to_string();
    // The type is checked before opening, since opening some types (a FIFO, a tape) has side effects.
    let kind = rustix::fs::stat(path)
        .map(|stat| FileType::from_raw_mode(stat.st_mode))
        .map_err(|errno| Error::io(&errno.into(), "open", place()))?;
    let exclusive = match kind {
        FileType::BlockDevice if options.access == Access::ReadWrite => OFlags::EXCL,
        FileType::BlockDevice | FileType::RegularFile => OFlags::empty(),
        other => {
            return Err(Error::new(ErrorKind::Unsupported, "open", place())
                .because(format!("a {} is neither a file nor a block device", name_of(other))));
        }
    };
    rustix::fs::open(path, options.flags() | exclusive, Mode::empty())
        .map_err(|errno| explained(errno, &place(), options, exclusive))
}

/// Converts an error of open(2) to one with advice.
fn explained(errno: rustix::io::Errno, place: &str, options: FileOptions, exclusive: OFlags) -> Error {
    use rustix::io::Errno as Os;
    let error = Error::new(ErrorKind::Os(Errno(errno.raw_os_error())), "open", place);
    match errno {
        Os::INVAL if options.opening.caching == Caching::Direct => direct_refused(place),
        Os::BUSY if !exclusive.is_empty() => error.because(
            "the device is in use (mounted, part of a RAID or volume group, or claimed by another program)",
        ),
        Os::ACCESS | Os::PERM => error.because(remedy_if_denied()),
        _ => error,
    }
}

/// Returns the remedy for a permission error (EACCES, EPERM). Root is not told to become root.
pub fn remedy_if_denied() -> &'static str {
    match rustix::process::geteuid().is_root() {
        true => {
            "the system denies it even to root: look for an immutable file (lsattr), a security module, or a container \
                 without the capability"
        }
        false => "run as root, or as a user who may do this",
    }
}

/// Creates the error for a file system without O_DIRECT.
pub(crate) fn direct_refused(place: &str) -> Error {
    Error::new(ErrorKind::Unsupported, "open for direct I/O", place).because(
        "the file system there does not support O_DIRECT; name a place on another file system, or measure it \
         through the page cache",
    )
}

fn name_of(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "directory",
        FileType::CharacterDevice => "character device",
        FileType::Fifo => "FIFO",
        FileType::Socket => "socket",
        FileType::Symlink => "symbolic link",
        _ => "thing of unknown kind",
    }
}

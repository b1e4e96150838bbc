//! Selection of the interface for requests: io_uring, or pread and pwrite where io_uring is forbidden, or a
//! mapping on request. The choice is always reported, because one request at a time measures something else
//! than a queue of requests.

use std::fmt;

use plumb_block::{Bytes, Caching, DurableWrite, EngineChoice, Errno, Error, ErrorKind, FlushCall, Result};

use super::{FileOptions, Target};
use crate::{mapped, uring};

/// Interface in use for requests to the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Engine {
    /// io_uring: up to the queue depth of requests at once.
    IoUring,
    /// pread(2) and pwrite(2): one request at a time for each queue, independent of its depth.
    Positioned {
        /// Reason why io_uring is not used.
        because: String,
    },
    /// mmap(2) and msync(2): one request at a time for each queue, independent of its depth.
    Mapped,
}

impl Engine {
    /// Returns the short name in results: `io_uring`, `pread/pwrite` or `mmap/msync`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Positioned { .. } => "pread/pwrite",
            Self::Mapped => "mmap/msync",
        }
    }

    /// Returns the reason why io_uring is not used, if it is not.
    pub fn because(&self) -> Option<&str> {
        match self {
            Self::IoUring => None,
            Self::Positioned { because } => Some(because),
            Self::Mapped => Some("as asked"),
        }
    }

    /// Returns the maximum number of requests of one queue that reach the kernel at once; `None` if only the
    /// queue depth limits it.
    pub const fn depth_max(&self) -> Option<u32> {
        match self {
            Self::IoUring => None,
            Self::Positioned { .. } | Self::Mapped => Some(1),
        }
    }
}

/// A sentence: `pread/pwrite, one request at a time (io_uring is forbidden: ...)`.
impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IoUring => f.write_str(self.name()),
            Self::Positioned { because } => write!(f, "{}, one request at a time ({because})", self.name()),
            Self::Mapped => write!(f, "{}, one request at a time (as asked)", self.name()),
        }
    }
}

/// Returns the engine for a target; finds out by trying io_uring once.
pub(super) fn choose(target: &Target) -> Result<Engine> {
    let (opening, place) = (target.options.opening, target.name.as_str());
    let choice = opening.engine;
    if opening.caching == Caching::Mapped {
        return mapped::try_mapping(target).map(|()| Engine::Mapped);
    }
    if choice == EngineChoice::Synchronous {
        return Ok(Engine::Positioned { because: "as asked".to_owned() });
    }
    match uring::try_ring() {
        Ok(()) => Ok(Engine::IoUring),
        Err(refusal) if choice == EngineChoice::Auto => Ok(Engine::Positioned { because: reason(&refusal) }),
        Err(refusal) => Err(Error::new(
            refusal.raw_os_error().map_or(ErrorKind::Unsupported, |code| ErrorKind::Os(Errno(code))),
            "use io_uring on",
            place,
        )
        .because(reason(&refusal))),
    }
}

/// Checks that the options are compatible: blocks must not be empty, and a mapping cannot use the other
/// flags.
pub(super) fn check(options: &FileOptions, place: &str) -> Result<()> {
    if options.logical_block == Some(Bytes(0)) {
        return Err(Error::new(ErrorKind::Invalid, "open", place).because("a logical block of no bytes"));
    }
    let opening = options.opening;
    if opening.caching != Caching::Mapped {
        return Ok(());
    }
    let clash = if options.append.is_some() {
        "a mapping has the length of its file, and a file that is appended to grows: choose one of them"
    } else if opening.flush != FlushCall::Fdatasync {
        "a mapping is flushed with msync: another call for flushes takes another engine"
    } else if opening.durable_write != DurableWrite::Dsync {
        "a durable write to a mapping is a copy and msync: RWF_SYNC takes another engine"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Invalid, "map", place).because(clash))
}

/// Explains why io_uring was refused. See io_uring_setup(2) and Documentation/admin-guide/sysctl/kernel.rst.
fn reason(refusal: &std::io::Error) -> String {
    match refusal.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has no io_uring, or a seccomp filter hides it".to_owned(),
        Some(libc::EPERM | libc::EACCES) => {
            "io_uring is forbidden here, by the sysctl kernel.io_uring_disabled or by a seccomp filter"
                .to_owned()
        }
        Some(libc::ENOMEM) => "io_uring may not lock enough memory here: raise RLIMIT_MEMLOCK".to_owned(),
        _ => format!("io_uring does not work here: {refusal}"),
    }
}

//! How requests reach the kernel: io_uring, or pread and pwrite where io_uring is forbidden. The choice is never
//! silent: one request at a time measures something else than a queue of them.

use std::fmt;

use plumb_block::{Errno, Error, ErrorKind, Result};

use crate::uring;

/// The way that requests reach the kernel, in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Engine {
    /// io_uring: as many requests at once as the queue is deep.
    IoUring,
    /// pread(2) and pwrite(2): one request at a time for each queue, however deep it is.
    Positioned {
        /// Why not io_uring.
        because: String,
    },
}

/// Which engine to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// io_uring where it works, else pread and pwrite.
    #[default]
    Auto,
    /// io_uring or an error.
    IoUring,
    /// pread and pwrite.
    Positioned,
}

impl Engine {
    /// A short name for results: `io_uring` or `pread/pwrite`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Positioned { .. } => "pread/pwrite",
        }
    }

    /// Why it is not io_uring, if it is not.
    pub fn because(&self) -> Option<&str> {
        match self {
            Self::IoUring => None,
            Self::Positioned { because } => Some(because),
        }
    }

    /// How many requests of one queue reach the kernel at once at most; `None` if as many as the queue is deep.
    pub const fn depth_max(&self) -> Option<u32> {
        match self {
            Self::IoUring => None,
            Self::Positioned { .. } => Some(1),
        }
    }
}

/// A sentence: `pread/pwrite, one request at a time (io_uring is forbidden: ...)`.
impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IoUring => f.write_str(self.name()),
            Self::Positioned { because } => write!(f, "{}, one request at a time ({because})", self.name()),
        }
    }
}

/// The engine for `choice`, found by trying io_uring once.
pub(super) fn choose(choice: EngineChoice, place: &str) -> Result<Engine> {
    if choice == EngineChoice::Positioned {
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

/// Why io_uring was refused, in words. See io_uring_setup(2) and Documentation/admin-guide/sysctl/kernel.rst.
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

//! The error type of the waist: a small kind to match on, the place of the failure, and the cause.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error number of the operating system, as in errno(3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Errno(pub i32);

impl Errno {
    /// Operation not permitted.
    pub const EPERM: Self = Self(1);
    /// Interrupted: the caller asked to stop.
    pub const EINTR: Self = Self(4);
    /// Input/output error.
    pub const EIO: Self = Self(5);
    /// No such device or address.
    pub const ENXIO: Self = Self(6);
    /// Permission denied.
    pub const EACCES: Self = Self(13);
    /// No such device.
    pub const ENODEV: Self = Self(19);
    /// Invalid argument: the answer of a queue to a request outside the device or off its block grid.
    pub const EINVAL: Self = Self(22);
    /// No space left on device.
    pub const ENOSPC: Self = Self(28);
    /// Read-only file system.
    pub const EROFS: Self = Self(30);
    /// Operation not supported.
    pub const EOPNOTSUPP: Self = Self(95);
    /// Connection refused.
    pub const ECONNREFUSED: Self = Self(111);
    /// Disk quota exceeded.
    pub const EDQUOT: Self = Self(122);

    /// Returns true if the file system is full or a quota is exceeded.
    pub fn is_full(self) -> bool {
        self == Self::ENOSPC || self == Self::EDQUOT
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({}: {self})", self.0)
    }
}

/// Kind of a failure, for callers that react to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The operating system refused or failed.
    Os(Errno),
    /// The device or the file system does not support the operation.
    Unsupported,
    /// The request is invalid here (a size, an address, a name).
    Invalid,
    /// The device is gone or has no power.
    PowerLost,
    /// An earlier flush failed, so only data that was durable before it can be trusted. See
    /// [`Latch`](crate::Latch).
    FlushLatched,
}

/// A failed `operation` on `place`.
#[derive(Debug, thiserror::Error)]
pub struct Error {
    /// Kind of the failure, for callers that react to it.
    pub kind: ErrorKind,
    /// Operation that failed, as a verb: "open", "read", "flush".
    pub operation: &'static str,
    /// Path or device name, with an offset if there is one.
    pub place: String,
    /// Further explanation.
    pub detail: Option<String>,
}

impl Error {
    /// Creates an error of `kind` for `operation` at `place`.
    pub fn new(kind: ErrorKind, operation: &'static str, place: impl Into<String>) -> Self {
        Self { kind, operation, place: place.into(), detail: None }
    }

    /// Adds an explanation to the error.
    #[must_use]
    pub fn because(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Creates an error for `operation` at `place` from an I/O error.
    pub fn io(source: &std::io::Error, operation: &'static str, place: impl Into<String>) -> Self {
        match source.raw_os_error() {
            Some(code) => Self::new(ErrorKind::Os(Errno(code)), operation, place),
            None => Self::new(ErrorKind::Os(Errno::EIO), operation, place).because(source.to_string()),
        }
    }

    /// Returns the error number, if the operating system gave one.
    pub fn errno(&self) -> Option<Errno> {
        match self.kind {
            ErrorKind::Os(errno) => Some(errno),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: ", self.operation, self.place)?;
        match (&self.kind, &self.detail) {
            (ErrorKind::Os(errno), None) => write!(f, "{errno}"),
            (ErrorKind::Os(errno), Some(detail)) => write!(f, "{errno}: {detail}"),
            (_, Some(detail)) => write!(f, "{detail}"),
            (ErrorKind::Unsupported, None) => write!(f, "not supported there"),
            (ErrorKind::Invalid, None) => write!(f, "invalid"),
            (ErrorKind::PowerLost, None) => write!(f, "the device has no power or is gone"),
            (ErrorKind::FlushLatched, None) => {
                write!(f, "an earlier flush failed, so no later one can be trusted")
            }
        }
    }
}

/// Category of a command's failure, ordered from mild to severe. Every crate's errors map to one, and it
/// determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// Invalid request: a name, an option, a file of another program.
    Usage,
    /// The subject could not be measured here, or not completely.
    NotMeasured,
    /// The operation could harm data or the machine, or its place is read-only. Nothing was changed.
    Refused,
    /// A device, a file or a program failed.
    Failed,
}

impl FailureKind {
    /// Returns the category for a file or directory that could not be written.
    pub fn from_io(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::ReadOnlyFilesystem => Self::Refused,
            _ => Self::Failed,
        }
    }

    /// Returns the exit code of this category (docs/OUTCOMES.md).
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::NotMeasured => 3,
            Self::Refused => 4,
            Self::Failed => 5,
        }
    }
}

/// Formats an error with all its causes in one line.
pub fn in_one_line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

//! Errors of creating, taking over, or removing a block device for a served device.

use std::io;
use std::path::{Path, PathBuf};

/// Result type of attaching and exporting.
pub(crate) type Result<T> = std::result::Result<T, ExportError>;

/// Error of creating, taking over, or removing a block device of this machine (`/dev/loopN`, `/dev/ublkbN`).
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The name is not valid for a directory.
    #[error(
        "{0:?} is not a name for an attachment: expected up to 40 letters, digits, `-`, `_` and `.`, first a letter, a digit or `_`"
    )]
    Name(String),
    /// Another attachment has the name.
    #[error("the name {name} is in use by process {pid}: end that first, or use another name")]
    NameInUse {
        /// The name.
        name: String,
        /// Process that uses the name.
        pid: u32,
    },
    /// The killed server of this name left something that cannot be removed yet.
    #[error(
        "the process that served {name} is gone, and what it left behind cannot be removed yet: {why}; end \
         that, then serve {name} again, which removes it"
    )]
    Left {
        /// The name.
        name: String,
        /// Reason: what is in use, and by whom.
        why: String,
    },
    /// The block layer does not support the device.
    #[error("{device} cannot be {how}: {why}")]
    Geometry {
        /// Name of the device, as it states it.
        device: String,
        /// Intended use of the device.
        how: &'static str,
        /// Unsupported property of the device, and what is possible.
        why: String,
    },
    /// The kernel lacks a feature.
    #[error("this kernel cannot attach devices faithfully: {0}")]
    Kernel(String),
    /// There is no `/dev/ublk-control`.
    #[error(
        "the ublk driver is not loaded: `modprobe ublk_drv` loads it if the kernel has it (Linux 6.0 or later, built with \
         CONFIG_BLK_DEV_UBLK); a loop device (--attach) and NBD do not need it"
    )]
    NoDriver(#[source] io::Error),
    /// The block device cannot be taken over, or not with this device.
    #[error("/dev/ublkb{number} cannot be taken over: {why}")]
    NotRecoverable {
        /// Requested number.
        number: u32,
        /// Reason why it cannot be taken over.
        why: String,
    },
    /// The device failed.
    #[error(transparent)]
    Device(#[from] plumb_block::Error),
    /// The block device is in use.
    #[error("{device} is in use: {}", by.join("; "))]
    Held {
        /// The block device.
        device: PathBuf,
        /// Description of each user.
        by: Vec<String>,
    },
    /// The last flush failed: written data may not be durable. The block device still exists.
    #[error("{device} could not be flushed, so what was written may not be durable")]
    Flush {
        /// The block device.
        device: PathBuf,
        /// Error that the flush failed with.
        source: io::Error,
    },
    /// A thread that serves a queue has ended, so requests get no answer.
    #[error("{device} is no longer served: a thread of its server has ended")]
    Unserved {
        /// The block device.
        device: PathBuf,
        /// Reason, if known.
        source: io::Error,
    },
    /// The driver has not removed the block device in time. It does when the last user has closed it.
    #[error("{device} will be removed when its last user closes it")]
    Lingers {
        /// The block device.
        device: PathBuf,
    },
    /// The directory for attachments belongs to another user, or is accessible to others.
    #[error("{0}: expected a directory of this user that nobody else can enter (mode 0700)")]
    Directory(PathBuf),
    /// A call failed.
    #[error("cannot {operation} {place}")]
    Os {
        /// Action that failed, as a verb.
        operation: &'static str,
        /// Path that the action concerned.
        place: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Returns a function that adds `operation` and `place` to an error.
pub(crate) fn at<E: Into<io::Error>>(operation: &'static str, place: &Path) -> impl Fn(E) -> ExportError {
    move |source| ExportError::Os { operation, place: place.to_owned(), source: source.into() }
}

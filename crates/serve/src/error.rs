//! Errors of making a device a block device of this machine, taking it over, or taking it away.

use std::io;
use std::path::{Path, PathBuf};

/// Shorthand for results of attaching and exporting.
pub(crate) type Result<T> = std::result::Result<T, ExportError>;

/// Reason why a device could not be made a block device of this machine (`/dev/loopN`, `/dev/ublkbN`), taken
/// over, or taken away.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The name cannot be that of a directory.
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
    /// A server of this name was killed, and what it left cannot be taken away yet.
    #[error(
        "the process that served {name} is gone, and what it left behind cannot be removed yet: {why}; end \
         that, then serve {name} again, which removes it"
    )]
    Left {
        /// The name.
        name: String,
        /// Reason: who holds what.
        why: String,
    },
    /// The device is not one that the kernel can have.
    #[error("{device} cannot be {how}: {why}")]
    Geometry {
        /// Name of the device, as it states it.
        device: String,
        /// Action that was to be carried out with the device.
        how: &'static str,
        /// Property of the device that does not fit, and what would be possible.
        why: String,
    },
    /// The kernel's side lacks something.
    #[error("this kernel cannot attach devices faithfully: {0}")]
    Kernel(String),
    /// There is no `/dev/ublk-control`.
    #[error(
        "the ublk driver is not loaded: `modprobe ublk_drv` loads it if the kernel has it (Linux 6.0 or later, built with \
         CONFIG_BLK_DEV_UBLK); a loop device (--attach) and NBD do not need it"
    )]
    NoDriver(#[source] io::Error),
    /// There is nothing to take over, or not with this device.
    #[error("/dev/ublkb{number} cannot be taken over: {why}")]
    NotRecoverable {
        /// The number that was asked for.
        number: u32,
        /// Reason why the block device cannot be taken over.
        why: String,
    },
    /// The device failed.
    #[error(transparent)]
    Device(#[from] plumb_block::Error),
    /// Somebody uses the block device.
    #[error("{device} is in use: {}", by.join("; "))]
    Held {
        /// The block device.
        device: PathBuf,
        /// Each user in words.
        by: Vec<String>,
    },
    /// The last flush failed: what was written is not known to be durable. The block device is still there.
    #[error("{device} could not be flushed, so what was written may not be durable")]
    Flush {
        /// The block device.
        device: PathBuf,
        /// Error that the flush failed with.
        source: io::Error,
    },
    /// A thread that serves a queue has ended: nobody answers requests any more.
    #[error("{device} is no longer served: a thread of its server has ended")]
    Unserved {
        /// The block device.
        device: PathBuf,
        /// Why, if it said so.
        source: io::Error,
    },
    /// The driver has not taken it away in time. It does so by itself when its last user has closed it.
    #[error("{device} will be removed when its last user closes it")]
    Lingers {
        /// The block device.
        device: PathBuf,
    },
    /// The directory for attachments is somebody else's, or open to others.
    #[error("{0}: expected a directory of this user that nobody else can enter (mode 0700)")]
    Directory(PathBuf),
    /// A call failed.
    #[error("cannot {operation} {place}")]
    Os {
        /// Action that failed, as a verb.
        operation: &'static str,
        /// Path of the new place.
        place: PathBuf,
        /// Reason why not.
        source: io::Error,
    },
}

/// Puts an error in its place: `operation` on `place`.
pub(crate) fn at<E: Into<io::Error>>(operation: &'static str, place: &Path) -> impl Fn(E) -> ExportError {
    move |source| ExportError::Os { operation, place: place.to_owned(), source: source.into() }
}

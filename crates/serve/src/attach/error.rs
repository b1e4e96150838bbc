//! What can go wrong while a device is attached or detached.

use std::io;
use std::path::{Path, PathBuf};

/// Shorthand for results of this module.
pub type Result<T> = std::result::Result<T, AttachError>;

/// Why a device could not be attached, detached, or swept away.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The name cannot be that of a directory.
    #[error(
        "{0:?} is no name for an attachment: give 1 to 64 letters, digits, hyphens, underscores or dots, the first no dot"
    )]
    Name(String),
    /// Another attachment has the name.
    #[error("the name {name} is in use by process {pid}: detach that one, or take another name")]
    NameInUse {
        /// The name.
        name: String,
        /// Who uses it.
        pid: u32,
    },
    /// A server of this name was killed, and what it left cannot be taken away yet.
    #[error(
        "the process that served {name} is gone, and what it left must stay for now: {why}; end that, then detach {name}, or \
         take another name"
    )]
    Left {
        /// The name.
        name: String,
        /// Who holds what.
        why: String,
    },
    /// The device is not one that a loop device can stand for.
    #[error("{device} cannot be attached: {why}")]
    Geometry {
        /// What the device calls itself.
        device: String,
        /// What is wrong with it, and what would do.
        why: String,
    },
    /// The kernel's side lacks something.
    #[error("this kernel cannot attach devices faithfully: {0}")]
    Kernel(String),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] plumb_block::Error),
    /// Somebody uses the block device.
    #[error("{device} is in use: {}", by.join("; "))]
    Held {
        /// `/dev/loopN`.
        device: PathBuf,
        /// Each user in words.
        by: Vec<String>,
    },
    /// The last flush failed: what was written is not known to be durable. The device is still attached.
    #[error("{device} could not be flushed, so what was written may not be durable")]
    Flush {
        /// `/dev/loopN`.
        device: PathBuf,
        /// What the flush failed with.
        source: io::Error,
    },
    /// The directory for attachments is somebody else's, or open to others.
    #[error("{0} is not a directory that only its owner, who must be this user, can enter: name another")]
    Directory(PathBuf),
    /// A call failed.
    #[error("cannot {operation} {place}")]
    Os {
        /// What was being done, as a verb.
        operation: &'static str,
        /// To what.
        place: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Puts an error in its place: `operation` on `place`.
pub(super) fn at<E: Into<io::Error>>(operation: &'static str, place: &Path) -> impl Fn(E) -> AttachError {
    move |source| AttachError::Os { operation, place: place.to_owned(), source: source.into() }
}

//! What can go wrong while a device is exported through ublk, taken over, or taken away.

use std::io;
use std::path::{Path, PathBuf};

/// Shorthand for results of this module.
pub type Result<T> = std::result::Result<T, UblkError>;

/// Why a device could not be exported, taken over, or taken away.
#[derive(Debug, thiserror::Error)]
pub enum UblkError {
    /// There is no `/dev/ublk-control`.
    #[error(
        "this kernel's ublk driver is not there: `modprobe ublk_drv` loads it where there is one, in Linux >= 6.0 built with \
         CONFIG_BLK_DEV_UBLK; a loop device (--attach) or NBD needs none"
    )]
    NoDriver(#[source] io::Error),
    /// The device is not one that the block layer can have.
    #[error("{device} cannot be exported through ublk: {why}")]
    Geometry {
        /// What the device calls itself.
        device: String,
        /// What is wrong with it, and what would do.
        why: String,
    },
    /// There is nothing to take over, or not with this device.
    #[error("/dev/ublkb{number} cannot be taken over: {why}")]
    NotRecoverable {
        /// The number that was asked for.
        number: u32,
        /// What is wrong, and what would do.
        why: String,
    },
    /// The device failed.
    #[error(transparent)]
    Device(#[from] plumb_block::Error),
    /// Somebody uses the block device.
    #[error("{device} is in use: {}", by.join("; "))]
    Held {
        /// `/dev/ublkbN`.
        device: PathBuf,
        /// Each user in words.
        by: Vec<String>,
    },
    /// The last flush failed: what was written is not known to be durable. The device is still exported.
    #[error("{device} could not be flushed, so what was written may not be durable; it is still exported")]
    Flush {
        /// `/dev/ublkbN`.
        device: PathBuf,
        /// What the flush failed with.
        source: io::Error,
    },
    /// A thread that serves a queue has ended: nobody answers requests any more.
    #[error("{device} is no longer served: a thread of its server has ended")]
    Unserved {
        /// `/dev/ublkbN`.
        device: PathBuf,
        /// Why, if it said so.
        source: io::Error,
    },
    /// The driver has not taken it away in time. It does so by itself when its last user has closed it.
    #[error("{device} goes when its last user has closed it")]
    Lingers {
        /// `/dev/ublkbN`.
        device: PathBuf,
    },
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
pub(super) fn at<E: Into<io::Error>>(operation: &'static str, place: &Path) -> impl Fn(E) -> UblkError {
    move |source| UblkError::Os { operation, place: place.to_owned(), source: source.into() }
}

//! Error numbers as they travel, and what is wrong with bytes that do not decode.

use plumb_block::Errno;

use super::numbers::codes;

/// Bytes that are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The message ended early.
    #[error("{what} ended early: {length} bytes were left where more were expected")]
    Short {
        /// Name of the message.
        what: &'static str,
        /// How much was left.
        length: usize,
    },
    /// The message goes on where it should end.
    #[error("{what} has {excess} bytes too many")]
    Long {
        /// Name of the message.
        what: &'static str,
        /// Number of bytes.
        excess: usize,
    },
    /// The message does not begin as it should: the peer does not speak the protocol, or the two are out of
    /// step.
    #[error("{what} begins with {found:#x}, expected {expected:#x}")]
    Magic {
        /// Name of the message.
        what: &'static str,
        /// The number it should begin with.
        expected: u64,
        /// Number that was found.
        found: u64,
    },
    /// A string is longer than 4096 bytes, not UTF-8, or has a NUL in it.
    #[error("{what} has a string that is not UTF-8 of at most 4096 bytes without NUL")]
    String {
        /// Name of the message.
        what: &'static str,
    },
    /// A number that cannot be.
    #[error("{what} says {found}, which cannot be")]
    Value {
        /// Name of the field.
        what: &'static str,
        /// Number that was found.
        found: u64,
    },
}

codes! {
    /// An error number of the protocol ("Error values"): the same on every system.
    WireErrno, u32;
    NONE = 0, "No error.";
    EPERM = 1, "Operation not permitted: the export is read-only.";
    EIO = 5, "Input/output error.";
    ENOMEM = 12, "Out of memory.";
    EINVAL = 22, "Invalid argument.";
    ENOSPC = 28, "No space left, and writes past the end.";
    EOVERFLOW = 75, "The result does not fit into one chunk.";
    ENOTSUP = 95, "Not supported: what a fast-only write of zeroes that would not be fast gets.";
    ESHUTDOWN = 108, "The server is going away.";
}

impl WireErrno {
    /// Returns the number that travels for an error of this system: those that the protocol has no number for
    /// become EIO, as it says for errors of the medium.
    pub const fn from_errno(errno: Errno) -> Self {
        match errno.0 {
            // EPERM, EACCES, EROFS.
            1 | 13 | 30 => Self::EPERM,
            12 => Self::ENOMEM,
            22 => Self::EINVAL,
            // EFBIG, ENOSPC, EDQUOT.
            27 | 28 | 122 => Self::ENOSPC,
            75 => Self::EOVERFLOW,
            95 => Self::ENOTSUP,
            108 => Self::ESHUTDOWN,
            _ => Self::EIO,
        }
    }

    /// Returns the error of this system for a number that travelled: an unknown one is EINVAL, as the
    /// protocol says. `None` where there was no error.
    pub const fn to_errno(self) -> Option<Errno> {
        match self.0 {
            0 => None,
            1 | 5 | 12 | 22 | 28 | 75 | 95 | 108 => Some(Errno(self.0 as i32)),
            _ => Some(Errno::EINVAL),
        }
    }
}

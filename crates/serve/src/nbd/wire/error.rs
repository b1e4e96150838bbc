//! Error numbers on the wire, and errors of decoding.

use plumb_block::Errno;

use super::numbers::codes;

/// Error of malformed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The message is too short.
    #[error("{what} ended early: {length} bytes were left where more were expected")]
    Short {
        /// Name of the message.
        what: &'static str,
        /// Number of available bytes.
        length: usize,
    },
    /// The message is too long.
    #[error("{what} has {excess} bytes too many")]
    Long {
        /// Name of the message.
        what: &'static str,
        /// Number of bytes.
        excess: usize,
    },
    /// The message has a wrong magic number: the peer does not speak the protocol, or synchronization is
    /// lost.
    #[error("{what} begins with {found:#x}, expected {expected:#x}")]
    Magic {
        /// Name of the message.
        what: &'static str,
        /// The number it should begin with.
        expected: u64,
        /// Number that was found.
        found: u64,
    },
    /// A string is longer than 4096 bytes, not UTF-8, or contains NUL.
    #[error("{what} has a string that is not UTF-8 of at most 4096 bytes without NUL")]
    String {
        /// Name of the message.
        what: &'static str,
    },
    /// A number has an invalid value.
    #[error("{what} says {found}, which cannot be")]
    Value {
        /// Name of the field.
        what: &'static str,
        /// Number that was found.
        found: u64,
    },
}

codes! {
    /// Error number of the protocol ("Error values"), the same on every system.
    WireErrno, u32;
    NONE = 0, "No error.";
    EPERM = 1, "Operation not permitted: the export is read-only.";
    EIO = 5, "Input/output error.";
    ENOMEM = 12, "Out of memory.";
    EINVAL = 22, "Invalid argument.";
    ENOSPC = 28, "No space left, and writes past the end.";
    EOVERFLOW = 75, "The result does not fit into one chunk.";
    ENOTSUP = 95, "Not supported; also the answer to a fast-only write of zeroes that would not be fast.";
    ESHUTDOWN = 108, "The server is shutting down.";
}

impl WireErrno {
    /// Converts an error of this system. Errors without a number in the protocol become EIO, which it defines
    /// for medium errors.
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

    /// Converts to an error of this system; an unknown number becomes EINVAL, as the protocol demands. `None`
    /// if there was no error.
    pub(crate) const fn to_errno(self) -> Option<Errno> {
        match self.0 {
            0 => None,
            1 | 5 | 12 | 22 | 28 | 75 | 95 | 108 => Some(Errno(self.0 as i32)),
            _ => Some(Errno::EINVAL),
        }
    }
}

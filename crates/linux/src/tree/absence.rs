//! Reasons why an answer could not be had.

use plumb_block::Errno;

/// An answer of a [`Tree`](super::Tree), or why there is none.
pub type Answer<T> = Result<T, Absence>;

/// Reason why an answer could not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Absence {
    /// There is nothing of that kind at the path.
    #[error("not there")]
    NotThere,
    /// The path is there, and this user may not read it.
    #[error("permission denied")]
    Denied,
    /// A recorded tree knows that it was there, and was not asked for it when it was recorded.
    #[error("there when this was recorded, but not read then")]
    NotRecorded,
    /// Reading failed in another way.
    #[error("{}", if .0.0 == libc::EILSEQ { "its name is not UTF-8".to_owned() } else { .0.to_string() })]
    Failed(Errno),
}

impl Absence {
    /// The absence of what has a name that is not UTF-8.
    pub const NOT_TEXT: Self = Self::Failed(Errno(libc::EILSEQ));

    /// Returns the absence that an error number means for a path.
    ///
    /// A name that is missing, a file where a directory was expected, no link where one was expected, and an
    /// attribute whose device has gone (ENODEV, ENXIO) are all [`Absence::NotThere`].
    pub fn from_errno(errno: Errno) -> Self {
        match errno.0 {
            libc::ENOENT | libc::ENOTDIR | libc::EINVAL | libc::ENODEV | libc::ENXIO => Self::NotThere,
            libc::EACCES | libc::EPERM => Self::Denied,
            _ => Self::Failed(errno),
        }
    }

    /// Returns the absence that an error of the standard library means.
    pub fn from_io(error: &std::io::Error) -> Self {
        Self::from_errno(Errno(error.raw_os_error().unwrap_or(libc::EIO)))
    }
}

//! Reasons why a tree has no answer.

use plumb_block::Errno;

/// Answer of a [`Tree`](super::Tree), or the reason why there is none.
pub type Answer<T> = Result<T, Absence>;

/// Reason why a tree has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Absence {
    /// The path does not exist, or is not of the requested kind.
    #[error("not there")]
    NotThere,
    /// The path exists, but this user may not read it.
    #[error("permission denied")]
    Denied,
    /// The path existed when a recorded tree was made, but its contents were not recorded.
    #[error("there when this was recorded, but not read then")]
    NotRecorded,
    /// Reading failed in another way.
    #[error("{}", if .0.0 == libc::EILSEQ { "its name is not UTF-8".to_owned() } else { .0.to_string() })]
    Failed(Errno),
}

impl Absence {
    /// Absence of a name that is not UTF-8.
    pub const NOT_TEXT: Self = Self::Failed(Errno(libc::EILSEQ));

    /// Returns the absence for an error number of an operation on a path.
    ///
    /// A missing name, a file instead of a directory, something else instead of a link, and an attribute
    /// whose device has gone (ENODEV, ENXIO) are all [`Absence::NotThere`].
    pub fn from_errno(errno: Errno) -> Self {
        match errno.0 {
            libc::ENOENT | libc::ENOTDIR | libc::EINVAL | libc::ENODEV | libc::ENXIO => Self::NotThere,
            libc::EACCES | libc::EPERM => Self::Denied,
            _ => Self::Failed(errno),
        }
    }

    /// Returns the absence for an error of the standard library.
    pub fn from_io(error: &std::io::Error) -> Self {
        Self::from_errno(Errno(error.raw_os_error().unwrap_or(libc::EIO)))
    }
}

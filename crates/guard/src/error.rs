//! Reasons why a target is not opened: what was found, and what to do about it.

use std::fmt;

use plumb_block::{Errno, FailureKind};

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Kind of a failure, by which a caller decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The typed words make no sense here, or lack something.
    Usage,
    /// Refused for safety.
    Refused,
    /// The target, or its file system, may be read and not written.
    ReadOnly,
    /// There is nothing at that name.
    NotFound,
    /// Target of a kind that this build cannot open.
    Unsupported,
    /// The operating system refused or failed.
    Os(Option<Errno>),
}

impl Kind {
    /// Returns the way in which a command fails that ends with it.
    pub const fn failure(self) -> FailureKind {
        match self {
            Self::Usage | Self::NotFound | Self::Unsupported => FailureKind::Usage,
            Self::Refused | Self::ReadOnly => FailureKind::Refused,
            Self::Os(_) => FailureKind::Failed,
        }
    }
}

/// A target that is not opened. It prints as `TARGET: what was found; what to do`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    kind: Kind,
    target: String,
    found: String,
    remedy: String,
}

impl Error {
    /// Builds an error; what could not be printed is escaped.
    pub fn new(
        kind: Kind,
        target: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { kind, target: printable(target), found: printable(found), remedy: printable(remedy) }
    }

    /// Builds the error for a target that was typed wrongly.
    pub fn usage(target: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Kind::Usage, target, found, remedy)
    }

    /// Builds the refusal of a target by the rules.
    pub fn refused(target: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Kind::Refused, target, found, remedy)
    }

    /// Builds the error for a system call that failed with `errno` while `doing` something with the target.
    pub fn os(target: &str, doing: &str, errno: rustix::io::Errno) -> Self {
        if errno == rustix::io::Errno::ROFS {
            let found = format!("cannot {doing} it: its file system is mounted read-only");
            return Self::new(Kind::ReadOnly, target, found, "name another place");
        }
        let remedy = match errno {
            rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => plumb_linux::remedy_if_denied(),
            rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT => "make room, or name a smaller size",
            rustix::io::Errno::MFILE => "raise the limit (ulimit -n), or name fewer targets",
            _ => "",
        };
        let code = Some(Errno(errno.raw_os_error()));
        Self::new(
            Kind::Os(code),
            target,
            format!("cannot {doing} it: {}", std::io::Error::from(errno)),
            remedy,
        )
    }

    /// Creates a file of plumb's own that cannot be read or written.
    pub fn file(target: &str, error: &plumb_state::whole_file::FileError) -> Self {
        let kind = match FailureKind::from_io(&error.source) {
            FailureKind::Refused => Kind::ReadOnly,
            _ => Kind::Os(error.source.raw_os_error().map(Errno)),
        };
        Self::new(kind, target, plumb_block::in_one_line(error), "")
    }

    /// Creates a failure of the waist.
    pub fn device(target: &str, error: &plumb_block::Error) -> Self {
        let kind = match error.kind {
            plumb_block::ErrorKind::Unsupported | plumb_block::ErrorKind::Invalid => Kind::Usage,
            _ if error.errno() == Some(Errno::EROFS) => Kind::ReadOnly,
            _ => Kind::Os(error.errno()),
        };
        Self::new(kind, target, error.to_string(), "")
    }

    /// Adds to the error that clearing up after it failed too, if it did.
    pub fn after_clearing_up(mut self, cleared: Result<()>) -> Self {
        if let Err(other) = cleared {
            let and = if self.remedy.is_empty() { "" } else { "; " };
            self.remedy = format!("{}{and}what was made is left behind: {other}", self.remedy);
        }
        self
    }

    /// Returns true if the device or its file system may be read and not written.
    pub fn is_read_only(&self) -> bool {
        self.kind == Kind::ReadOnly
    }

    /// Returns true if it is a device that is not there, or does not answer.
    pub fn is_gone(&self) -> bool {
        match self.kind {
            Kind::NotFound => true,
            Kind::Os(errno) => {
                [Errno::ENXIO, Errno::EIO, Errno::ENODEV, Errno::ECONNREFUSED].map(Some).contains(&errno)
            }
            Kind::Usage | Kind::Refused | Kind::ReadOnly | Kind::Unsupported => false,
        }
    }

    /// Returns the kind of the failure, by which a caller decides.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the target, as it was named, with what it stands for.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns what was found at the target.
    pub fn found(&self) -> &str {
        &self.found
    }

    /// Returns what to do about the failure; empty where the system's own words say it.
    pub fn remedy(&self) -> &str {
        &self.remedy
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.target, self.found)?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "; {}", self.remedy) }
    }
}

/// Names and serials come from elsewhere: what would steer a terminal is not passed on.
fn printable(text: impl Into<String>) -> String {
    let text = text.into();
    if text.contains(char::is_control) { text.replace(char::is_control, "\u{fffd}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_reads_as_one_line() {
        let error = Error::refused("/dev/sda", "it holds ext4", "say --destroy X\u{1b}[2J");
        assert_eq!(error.to_string(), "/dev/sda: it holds ext4; say --destroy X\u{fffd}[2J");
        let left = error.after_clearing_up(Err(Error::os("new", "remove", rustix::io::Errno::IO)));
        assert!(left.to_string().contains("left behind: new: cannot remove it"), "{left}");
        assert_eq!(Error::os("x", "open", rustix::io::Errno::IO).kind().failure(), FailureKind::Failed);
    }
}

//! Errors of opening a target: kind, target, finding and remedy.

use std::fmt;

use plumb_block::{Errno, FailureKind};

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Kind of an error, for decisions of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Invalid or incomplete name or options.
    Usage,
    /// Refusal by a safety rule.
    Refused,
    /// The target or its file system is read-only.
    ReadOnly,
    /// Nothing exists at that name.
    NotFound,
    /// Kind of target that this build cannot open.
    Unsupported,
    /// Failure of a system call, with its errno if known.
    Os(Option<Errno>),
}

impl Kind {
    /// Returns the failure class of a command that ends with this error.
    pub const fn failure(self) -> FailureKind {
        match self {
            Self::Usage | Self::NotFound | Self::Unsupported => FailureKind::Usage,
            Self::Refused | Self::ReadOnly => FailureKind::Refused,
            Self::Os(_) => FailureKind::Failed,
        }
    }
}

/// Error of opening a target, printed as `TARGET: finding; remedy`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    kind: Kind,
    target: String,
    found: String,
    remedy: String,
}

impl Error {
    /// Creates an error. Unprintable characters in the texts are escaped.
    pub fn new(
        kind: Kind,
        target: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { kind, target: printable(target), found: printable(found), remedy: printable(remedy) }
    }

    /// Creates the error for invalid input for `target`.
    pub fn usage(target: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Kind::Usage, target, found, remedy)
    }

    /// Creates a refusal by the rules.
    pub fn refused(target: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Kind::Refused, target, found, remedy)
    }

    /// Creates the error for a system call that failed with `errno` during the operation `doing`.
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

    /// Creates the error for a file of plumb's own that cannot be read or written.
    pub fn file(target: &str, error: &plumb_state::whole_file::FileError) -> Self {
        let kind = match FailureKind::from_io(&error.source) {
            FailureKind::Refused => Kind::ReadOnly,
            _ => Kind::Os(error.source.raw_os_error().map(Errno)),
        };
        Self::new(kind, target, plumb_block::in_one_line(error), "")
    }

    /// Creates the error for a failed operation of [`plumb_block`].
    pub fn device(target: &str, error: &plumb_block::Error) -> Self {
        let kind = match error.kind {
            plumb_block::ErrorKind::Unsupported | plumb_block::ErrorKind::Invalid => Kind::Usage,
            _ if error.errno() == Some(Errno::EROFS) => Kind::ReadOnly,
            _ => Kind::Os(error.errno()),
        };
        Self::new(kind, target, error.to_string(), "")
    }

    /// Appends the error of a cleanup that failed as well.
    pub fn after_clearing_up(mut self, cleared: Result<()>) -> Self {
        if let Err(other) = cleared {
            let and = if self.remedy.is_empty() { "" } else { "; " };
            self.remedy = format!("{}{and}what was made is left behind: {other}", self.remedy);
        }
        self
    }

    /// Returns true if the device or its file system is read-only.
    pub fn is_read_only(&self) -> bool {
        self.kind == Kind::ReadOnly
    }

    /// Returns true if the device is missing or does not respond.
    pub fn is_gone(&self) -> bool {
        match self.kind {
            Kind::NotFound => true,
            Kind::Os(errno) => {
                [Errno::ENXIO, Errno::EIO, Errno::ENODEV, Errno::ECONNREFUSED].map(Some).contains(&errno)
            }
            Kind::Usage | Kind::Refused | Kind::ReadOnly | Kind::Unsupported => false,
        }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the target as the user named it, with the path or device that it stands for.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the finding at the target.
    pub fn found(&self) -> &str {
        &self.found
    }

    /// Returns the remedy; empty if the system's own message suffices.
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

/// Escapes control characters: names and serials come from devices, and could otherwise steer a terminal.
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

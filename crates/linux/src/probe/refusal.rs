//! Reasons why a probe has no answer.

use std::fmt;
use std::str::FromStr;

use plumb_block::Errno;

/// Reason why a probe has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Permission denied; root may be allowed.
    Denied,
    /// There is no node for the device here (a container, another mount namespace).
    NoNode,
    /// The node of that name belongs to another device.
    OtherDevice,
    /// The recording does not have the answer.
    NotRecorded,
    /// The driver or the system failed or does not know the request.
    Failed(Errno),
    /// The SCSI device ended the command with this sense data (SPC-5 4.4): key, code, qualifier.
    Sense {
        /// Sense key.
        key: u8,
        /// Additional sense code.
        asc: u8,
        /// Additional sense code qualifier.
        ascq: u8,
    },
    /// The NVMe controller ended the command with this status field, without the phase bit.
    NvmeStatus(u16),
    /// The answer was shorter than the specification allows.
    Short,
}

impl Refusal {
    /// Returns true if the device itself reported that it does not support the request: SCSI ILLEGAL REQUEST
    /// (5).
    pub fn is_unsupported_by_device(self) -> bool {
        matches!(self, Self::Sense { key: 5, .. })
    }

    /// Returns the refusal for an error number of open(2) or ioctl(2).
    pub fn from_errno(errno: Errno) -> Self {
        match errno.0 {
            libc::EACCES | libc::EPERM => Self::Denied,
            libc::ENOENT | libc::ENXIO | libc::ENODEV => Self::NoNode,
            _ => Self::Failed(errno),
        }
    }

    /// Returns the refusal for an error of the standard library.
    pub fn from_io(error: &std::io::Error) -> Self {
        Self::from_errno(Errno(error.raw_os_error().unwrap_or(libc::EIO)))
    }

    /// Returns the form in a recording: `!denied`, `!sense 5 32 0`.
    pub(super) fn to_recorded(self) -> String {
        match self {
            Self::Denied => "!denied".into(),
            Self::NoNode => "!no-node".into(),
            Self::OtherDevice => "!other-device".into(),
            Self::NotRecorded => "!not-recorded".into(),
            Self::Short => "!short".into(),
            Self::Failed(errno) => format!("!errno {}", errno.0),
            Self::Sense { key, asc, ascq } => format!("!sense {key} {asc} {ascq}"),
            Self::NvmeStatus(status) => format!("!nvme {status}"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied => f.write_str("permission denied"),
            Self::NoNode => f.write_str("no device node"),
            Self::OtherDevice => f.write_str("the node stands for another device"),
            Self::NotRecorded => f.write_str("not recorded"),
            Self::Short => f.write_str("the answer is too short"),
            Self::Failed(errno) => errno.fmt(f),
            Self::Sense { key, asc, ascq } => write!(f, "sense {key:X}/{asc:02X}/{ascq:02X}"),
            Self::NvmeStatus(status) => write!(f, "NVMe status {status:#x}"),
        }
    }
}

/// Error for text that is not a recorded refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a recorded refusal: expected such as `!denied`, `!errno 25`, `!sense 5 32 0`, `!nvme 2`"
)]
pub struct ParseRefusalError {
    /// Text that could not be parsed.
    pub text: String,
}

impl FromStr for Refusal {
    type Err = ParseRefusalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = || ParseRefusalError { text: text.to_owned() };
        let words: Vec<&str> = text.split(' ').collect();
        match words.as_slice() {
            ["!denied"] => Ok(Self::Denied),
            ["!no-node"] => Ok(Self::NoNode),
            ["!other-device"] => Ok(Self::OtherDevice),
            ["!not-recorded"] => Ok(Self::NotRecorded),
            ["!short"] => Ok(Self::Short),
            ["!errno", number] => Ok(Self::Failed(Errno(number.parse().map_err(|_| fail())?))),
            ["!nvme", status] => Ok(Self::NvmeStatus(status.parse().map_err(|_| fail())?)),
            ["!sense", key, asc, ascq] => {
                let byte = |text: &str| text.parse().map_err(|_| fail());
                Ok(Self::Sense { key: byte(key)?, asc: byte(asc)?, ascq: byte(ascq)? })
            }
            _ => Err(fail()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_survive_a_recording() {
        for refusal in [
            Refusal::Denied,
            Refusal::NoNode,
            Refusal::OtherDevice,
            Refusal::NotRecorded,
            Refusal::Short,
            Refusal::Failed(Errno(25)),
            Refusal::Sense { key: 5, asc: 0x24, ascq: 0 },
            Refusal::NvmeStatus(0x4002),
        ] {
            assert_eq!(refusal.to_recorded().parse(), Ok(refusal));
        }
        assert!("!sense 5".parse::<Refusal>().is_err());
        assert!("00ff".parse::<Refusal>().is_err());
    }
}

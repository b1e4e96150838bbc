//! Names of targets as typed by users: a path, `#N`, or a scheme.
//!
//! Parsing does not access the file system. A file whose name looks like another form is named with a path
//! prefix: `./#0`, `./sim:x`, `./C:`.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::error::{Error, Result};

/// Name of a target as typed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Name {
    /// Path to a file or block device. Symbolic links are followed when it is opened.
    Path(PathBuf),
    /// `#N`: the disk with this number, from 0, in the kernel's order of names.
    Disk(usize),
    /// Another kind of device.
    Scheme {
        /// Kind of the device.
        scheme: Scheme,
        /// Text after the colon.
        rest: String,
    },
}

/// Kinds of device that are named by a scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Simulated drive.
    Sim,
    /// NBD export over TCP.
    Nbd,
    /// NBD export over a Unix socket.
    NbdUnix,
    /// NBD export over TLS.
    Nbds,
    /// NBD export over TLS on a Unix socket.
    NbdsUnix,
    /// Write-back cache.
    Cache,
}

impl Scheme {
    const ALL: [Self; 6] = [Self::Sim, Self::Nbd, Self::NbdUnix, Self::Nbds, Self::NbdsUnix, Self::Cache];

    /// Returns the scheme as it is typed, without the colon.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Nbd => "nbd",
            Self::NbdUnix => "nbd+unix",
            Self::Nbds => "nbds",
            Self::NbdsUnix => "nbds+unix",
            Self::Cache => "cache",
        }
    }
}

impl Name {
    /// Parses a name.
    ///
    /// # Errors
    /// [`Kind::Usage`](crate::Kind::Usage) for an empty name, `#` without a number, a zero byte, and Windows
    /// names, with the Linux equivalent.
    pub fn parse(typed: impl AsRef<OsStr>) -> Result<Self> {
        let typed = typed.as_ref();
        let text = typed.to_string_lossy();
        if typed.is_empty() {
            return Err(Error::usage("``", "it is not a name", "name a file or a block device"));
        }
        if typed.as_bytes().contains(&0) {
            return Err(Error::usage(
                &text,
                "a name has no zero byte in it",
                "name a file or a block device",
            ));
        }
        if let Some(number) = text.strip_prefix('#') {
            return disk(&text, number);
        }
        if let Some((scheme, rest)) = scheme(&text) {
            return Ok(Self::Scheme { scheme, rest });
        }
        match windows_hint(&text) {
            Some(hint) => Err(Error::usage(&text, "it is a Windows name", hint)),
            None => Ok(Self::Path(PathBuf::from(typed))),
        }
    }
}

fn disk(text: &str, number: &str) -> Result<Name> {
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match number.parse() {
        Ok(number) if digits => Ok(Name::Disk(number)),
        _ => Err(Error::usage(
            text,
            "it is not the number of a disk",
            format!("type #0 for the first disk, or ./{text} for a file of that name"),
        )),
    }
}

fn scheme(text: &str) -> Option<(Scheme, String)> {
    let (before, rest) = text.split_once(':')?;
    let scheme = Scheme::ALL.into_iter().find(|scheme| scheme.name() == before)?;
    Some((scheme, rest.to_owned()))
}

/// Returns the Linux equivalent of a Windows name; `None` for other names.
fn windows_hint(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    if let Some(number) =
        lower.strip_prefix(r"\\.\physicaldrive").or(lower.strip_prefix(r"\\?\physicaldrive"))
    {
        return Some(match number.parse::<usize>() {
            Ok(number) => format!("type #{number} for that disk by number, or its device, such as /dev/sdb"),
            Err(_) => "type #0, #1 for a disk by number, or its device, such as /dev/sdb".to_owned(),
        });
    }
    if text.starts_with(r"\\") {
        return Some(
            "mount it, and name a file below the mount point, such as /mnt/share/test.dat".to_owned(),
        );
    }
    let mut letters = text.chars();
    let drive = letters.next().filter(char::is_ascii_alphabetic)?;
    // fio requires the colon to be escaped: `E\:\x.dat`.
    let rest = letters.as_str();
    let rest = rest.strip_prefix(':').or_else(|| rest.strip_prefix(r"\:"))?;
    let file = rest.trim_start_matches(['\\', '/']);
    if rest.is_empty() {
        return Some(format!(
            "name the device, such as /dev/sdb1, or a file below the place where it is mounted, such as \
             /mnt/{}/test.dat (a file of that very name is ./{text})",
            drive.to_ascii_lowercase()
        ));
    }
    rest.starts_with(['\\', '/']).then(|| {
        let file = if file.is_empty() { "test.dat".to_owned() } else { file.replace('\\', "/") };
        format!(
            "name the file below the place where the drive is mounted, such as /mnt/{}/{file}",
            drive.to_ascii_lowercase()
        )
    })
}

/// Formats the name as typed, except for paths that are not UTF-8.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Disk(number) => write!(f, "#{number}"),
            Self::Scheme { scheme, rest } => write!(f, "{}:{rest}", scheme.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn names_are_read_as_they_are_meant() {
        for (typed, name) in [
            ("/dev/sda", Name::Path("/dev/sda".into())),
            ("x.dat", Name::Path("x.dat".into())),
            ("./#0", Name::Path("./#0".into())),
            ("simple:x", Name::Path("simple:x".into())),
            ("ab:/x", Name::Path("ab:/x".into())),
            ("c:x", Name::Path("c:x".into())),
            ("1:", Name::Path("1:".into())),
            ("#0", Name::Disk(0)),
            ("#12", Name::Disk(12)),
            ("sim:hdd?seed=1", Name::Scheme { scheme: Scheme::Sim, rest: "hdd?seed=1".into() }),
            ("nbd+unix:///x", Name::Scheme { scheme: Scheme::NbdUnix, rest: "///x".into() }),
            ("nbds:", Name::Scheme { scheme: Scheme::Nbds, rest: String::new() }),
        ] {
            let read = Name::parse(typed).unwrap();
            assert_eq!(read, name, "{typed}");
            assert_eq!(read.to_string(), typed);
        }
    }

    #[test]
    fn windows_names_are_refused_with_what_to_type() {
        for (typed, hint) in [
            ("C:", "/mnt/c/test.dat"),
            (r"E:\dir\x.dat", "/mnt/e/dir/x.dat"),
            ("e:/x.dat", "/mnt/e/x.dat"),
            (r"E\:\x.dat", "/mnt/e/x.dat"),
            (r"D:\", "/mnt/d/test.dat"),
            (r"\\.\PhysicalDrive1", "#1"),
            (r"\\.\PHYSICALDRIVE12", "#12"),
            (r"\\.\PhysicalDrivex", "#0"),
            (r"\\server\share\x", "mount it"),
            ("#", "#0"),
            ("#-1", "./#-1"),
            ("#+1", "./#+1"),
            ("#99999999999999999999999", "#0"),
            ("", "name a file"),
            ("a\0b", "name a file"),
        ] {
            let error = Name::parse(typed).unwrap_err();
            assert_eq!(error.kind(), Kind::Usage, "{typed}");
            assert!(error.remedy().contains(hint), "{typed}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_name_is_read_without_panic(typed in ".{0,20}") {
            let read = Name::parse(&typed);
            proptest::prop_assert!(read.is_err() || read.is_ok());
        }
    }
}

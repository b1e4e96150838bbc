//! Output files: files that a user names for a result.
//!
//! One contract holds for every command. The file that the path leads to is checked before the work starts
//! ([`OutputFile::check`]), and again when the result is written:
//!
//! | the path leads to | the result is |
//! |---|---|
//! | nothing, in a directory that exists | written to a new file |
//! | an empty regular file, or one that plumb wrote and nobody has changed | written in its place |
//! | a file of a recording or a journal (their pages excepted) | refused; with `--overwrite` as the next line |
//! | any other regular file | refused; with `--overwrite` written in its place |
//! | `-`, `/dev/stdout`, `/dev/stderr`, `/dev/fd/N`, `/proc/self/fd/N` | written to that descriptor |
//! | a FIFO, a terminal, `/dev/null` | written to it |
//! | a directory, a block device, another character device, a socket | refused, even with `--overwrite` |
//! | a symbolic link that leads nowhere, or to itself | refused, even with `--overwrite` |
//! | a name in a file system of the kernel, such as /proc and /sys, or one that is read-only | refused, even with `--overwrite` |
//! | a name below /dev, other than /dev/shm, that does not exist | refused, even with `--overwrite` |
//!
//! A command must compare the paths that [`OutputFile::check`] returns with each other and with the files
//! that it reads: none of these may be replaced, even with `--overwrite`.
//!
//! Symbolic links are followed and kept; the check applies to their target. A file is recognised as plumb's
//! by its contents alone (`own_results`): by a checksum that plumb stores in an extended attribute, or, where
//! the file system has no attributes, in two formats each part of which names plumb.
//!
//! A regular file is replaced completely or not at all: after any failure, even a full disk, it has its old
//! contents. It keeps its permissions. Other hard links keep the old contents. Messages name the path as
//! typed.
//!
//! # Limitations
//! A file that another process creates in the microseconds between the second check and the rename is
//! replaced.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, FileType, Metadata};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use plumb_block::FailureKind;

use crate::own_results;
use crate::places;
use crate::whole_file::{Lasting, Mode, parent_of, replace_with};

/// Maximum number of symbolic links followed, the kernel's limit.
const LINKS: u32 = 40;
/// Device number of `/dev/null`: Linux, Documentation/admin-guide/devices.txt.
const NULL: (u32, u32) = (1, 3);
/// Major numbers of terminals in the same list: virtual and serial terminals, `/dev/tty` and consoles, and
/// the slaves of pseudoterminals from 136 to 143.
const TERMINALS: [u32; 10] = [4, 5, 136, 137, 138, 139, 140, 141, 142, 143];

/// Message for a place that accepts no files.
const READ_ONLY: &str = "its file system is mounted read-only: name another place";

/// An output file that a user named.
#[derive(Debug, Clone, Copy)]
pub struct OutputFile<'a> {
    /// Path as typed.
    pub path: &'a Path,
    /// Permission to replace a file that plumb did not write: `--overwrite`.
    pub overwrite: bool,
}

/// Error of an output file that cannot be written.
#[derive(Debug)]
pub struct OutputError {
    /// Kind of the failure: [`FailureKind::Usage`] if the directory does not exist, [`FailureKind::Refused`]
    /// if a file of another program could be destroyed. Otherwise the system failed, and a regular file has
    /// its old contents.
    pub kind: FailureKind,
    path: PathBuf,
    found: String,
    source: Option<io::Error>,
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.kind {
            FailureKind::Usage | FailureKind::NotMeasured | FailureKind::Refused => {
                write!(f, "{path}: {}", self.found)
            }
            FailureKind::Failed => write!(f, "cannot {} {path}", self.found),
        }
    }
}

impl std::error::Error for OutputError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

/// Error of a result that could not be written to an output file.
#[derive(Debug, thiserror::Error)]
pub enum WriteError<E: std::error::Error + 'static> {
    /// The output file could not be written.
    #[error(transparent)]
    Output(OutputError),
    /// The result could not be produced.
    #[error(transparent)]
    Content(E),
}

enum Place {
    /// Descriptor of this process with this number.
    Descriptor(u32),
    /// Device or pipe, written to directly.
    Node,
    /// Regular file at this path, whose last component is not a symbolic link.
    File(PathBuf),
}

impl OutputFile<'_> {
    /// Checks that the result could be written, without writing anything. Call it before work starts. Returns
    /// the regular file that would be created or replaced; `None` for a node or descriptor that is written to
    /// directly.
    ///
    /// # Errors
    /// Fails with the refusal: what was found, and what to do.
    pub fn check(&self) -> Result<Option<PathBuf>, OutputError> {
        Ok(match self.place()? {
            Place::File(path) => Some(path),
            Place::Descriptor(_) | Place::Node => None,
        })
    }

    /// Writes a result. A regular file is replaced durably, completely or not at all.
    ///
    /// # Errors
    /// Fails as [`check`](Self::check) and the operating system do.
    pub fn write(&self, bytes: &[u8]) -> Result<(), OutputError> {
        let written = self.write_with(|file| file.write_all(bytes));
        written.map_err(|error| match error {
            WriteError::Output(error) => error,
            WriteError::Content(source) => self.failed("write", source),
        })
    }

    /// Writes the result that the callback `write` produces, as [`write`](Self::write) does.
    ///
    /// # Errors
    /// Fails as [`write`](Self::write) and the callback `write` do.
    pub fn write_with<E: std::error::Error + 'static>(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), WriteError<E>> {
        let failed = |source| WriteError::Output(self.failed("write", source));
        let written = match self.place().map_err(WriteError::Output)? {
            Place::Descriptor(1) => through(&mut io::stdout().lock(), write),
            Place::Descriptor(2) => through(&mut io::stderr().lock(), write),
            Place::Descriptor(_) => {
                // Append, so that earlier output of the shell stays.
                let file = File::options().append(true).open(self.path).map_err(failed)?;
                through(&mut io::BufWriter::new(file), write)
            }
            Place::Node => {
                let file = File::options().write(true).open(self.path).map_err(failed)?;
                through(&mut io::BufWriter::new(file), write)
            }
            Place::File(path) => replace_with(&path, Mode::Kept, Lasting::Durable, |file| {
                through(&mut io::BufWriter::with_capacity(1 << 20, &mut *file), write)?;
                Ok(own_results::seal(file)?)
            }),
        };
        written.map_err(|error| match error {
            Written::System(source) => failed(source),
            Written::Content(error) => WriteError::Content(error),
        })
    }

    fn failed(&self, found: &str, source: io::Error) -> OutputError {
        if FailureKind::from_io(&source) == FailureKind::Refused {
            return self.refused(FailureKind::Refused, READ_ONLY);
        }
        let (kind, path) = (FailureKind::Failed, self.path.to_owned());
        OutputError { kind, path, found: found.to_owned(), source: Some(source) }
    }

    fn refused(&self, kind: FailureKind, found: impl Into<String>) -> OutputError {
        OutputError { kind, path: self.path.to_owned(), found: found.into(), source: None }
    }

    fn place(&self) -> Result<Place, OutputError> {
        if let Some(descriptor) = self.descriptor()? {
            return Ok(Place::Descriptor(descriptor));
        }
        match fs::metadata(self.path) {
            Ok(found) => self.place_of(&found),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => self.new_place(),
                io::ErrorKind::InvalidFilename => {
                    let found = "the name is longer than a file system takes: name another file";
                    Err(self.refused(FailureKind::Usage, found))
                }
                _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                    let found =
                        "it is a symbolic link that leads to itself: remove the link, or name another file";
                    Err(self.refused(FailureKind::Refused, found))
                }
                _ => Err(self.failed("look at", error)),
            },
        }
    }

    /// Classifies the file that the path leads to.
    fn place_of(&self, found: &Metadata) -> Result<Place, OutputError> {
        let kind = found.file_type();
        let number = (rustix::fs::major(found.rdev()), rustix::fs::minor(found.rdev()));
        let is_terminal = TERMINALS.contains(&number.0);
        if kind.is_fifo() || (kind.is_char_device() && (number == NULL || is_terminal)) {
            return Ok(Place::Node);
        }
        if !kind.is_file() {
            let found =
                format!("it is {}, and a result goes into a regular file: name another file", word(kind));
            return Err(self.refused(FailureKind::Refused, found));
        }
        let path = fs::canonicalize(self.path).map_err(|error| self.failed("follow", error))?;
        self.refuse_unwritable(&path)?;
        if found.len() == 0 || self.overwrite {
            return Ok(Place::File(path));
        }
        if let Some(recording) = own_results::recording_of(&path) {
            let found = format!(
                "it is a part of the recording in {}, which would be lost: name another file, or add --overwrite \
                 to replace it",
                recording.display()
            );
            return Err(self.refused(FailureKind::Refused, found));
        }
        if own_results::is_own(&path) {
            return Ok(Place::File(path));
        }
        let leads = match fs::read_link(self.path) {
            Ok(_) => format!("it leads to {}, which exists", path.display()),
            Err(_) => "it exists".to_owned(),
        };
        let found = format!(
            "{leads}, and plumb does not recognise it as its own result: add --overwrite to replace it"
        );
        Err(self.refused(FailureKind::Refused, found))
    }

    /// Classifies a path whose target does not exist.
    fn new_place(&self) -> Result<Place, OutputError> {
        if let Ok(target) = fs::read_link(self.path) {
            let found = format!(
                "it is a symbolic link to {}, which does not exist: remove the link, or name the file itself",
                target.display()
            );
            return Err(self.refused(FailureKind::Refused, found));
        }
        let parent = parent_of(self.path);
        let is_directory_name = self.path.as_os_str().as_bytes().ends_with(b"/");
        let missing = if is_directory_name { self.path } else { parent };
        if self.path.file_name().is_none() || !missing.is_dir() {
            let found =
                format!("there is no directory {}: make it, or name another place", missing.display());
            return Err(self.refused(FailureKind::Usage, found));
        }
        if fs::canonicalize(parent).is_ok_and(|parent| places::is_among_devices(&parent)) {
            let found = "there is no such device, and a file does not belong among devices: check the name, or name another place";
            return Err(self.refused(FailureKind::Usage, found));
        }
        self.refuse_unwritable(parent)?;
        Ok(Place::File(self.path.to_owned()))
    }

    /// Refuses a read-only file system, and a file system of the kernel such as /proc, where no file can be
    /// created and files that look empty have contents.
    fn refuse_unwritable(&self, path: &Path) -> Result<(), OutputError> {
        let mounted = rustix::fs::statvfs(path).map(|found| found.f_flag);
        if mounted.is_ok_and(|flags| flags.contains(rustix::fs::StatVfsMountFlags::RDONLY)) {
            return Err(self.refused(FailureKind::Refused, READ_ONLY));
        }
        let Some(system) = places::kernel_file_system(path) else { return Ok(()) };
        let found = format!(
            "it is in a file system of the kernel ({system}), which stores nothing: name a file in another \
             directory"
        );
        Err(self.refused(FailureKind::Refused, found))
    }

    /// Returns the number of this process's descriptor that the path names, directly or through links.
    ///
    /// # Errors
    /// If that descriptor is not open for writing.
    pub fn descriptor(&self) -> Result<Option<u32>, OutputError> {
        if self.path == Path::new("-") {
            return Ok(Some(1));
        }
        let mut path = self.path.to_owned();
        for _ in 0..LINKS {
            if let Some(descriptor) = named_descriptor(&path) {
                return self.is_writable(descriptor).map(|()| Some(descriptor));
            }
            let Ok(target) = fs::read_link(&path) else { return Ok(None) };
            path = parent_of(&path).join(target);
        }
        Ok(None)
    }

    /// Refuses a descriptor that is not open for writing; reopening it would write to the file behind it.
    fn is_writable(&self, descriptor: u32) -> Result<(), OutputError> {
        let information = fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}"));
        let information = information.map_err(|error| self.failed("write to", error))?;
        let flags = information.lines().find_map(|line| line.strip_prefix("flags:"));
        let access = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        match access.map(|flags| flags & rustix::fs::OFlags::ACCMODE.bits()) {
            Some(access) if access != rustix::fs::OFlags::RDONLY.bits() => Ok(()),
            _ => {
                let found = "that descriptor is not open for writing: redirect it to a file with `>`";
                Err(self.refused(FailureKind::Refused, found))
            }
        }
    }
}

/// Writes a page of a recording, which can be regenerated from its other files, and seals it so that plumb
/// recognises it until somebody changes it.
///
/// # Errors
/// Fails as the operating system does.
pub fn write_page(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, Mode::Kept, Lasting::Durable, |file| {
        file.write_all(bytes)?;
        own_results::seal(file)
    })
}

/// Failure of the writer or of the callback.
enum Written<E> {
    System(io::Error),
    Content(E),
}

impl<E> From<io::Error> for Written<E> {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Writes everything that `write` produces to `out`.
fn through<E>(
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), Written<E>> {
    write(out).map_err(Written::Content)?;
    Ok(out.flush()?)
}

/// Returns the descriptor number in a path such as `/dev/fd/3`.
fn named_descriptor(path: &Path) -> Option<u32> {
    let bytes = path.as_os_str().as_bytes();
    match bytes {
        b"/dev/stdout" => return Some(1),
        b"/dev/stderr" => return Some(2),
        _ => {}
    }
    let own = format!("/proc/{}/fd/", std::process::id());
    let prefixes: [&[u8]; 4] = [b"/dev/fd/", b"/proc/self/fd/", b"/proc/thread-self/fd/", own.as_bytes()];
    let number = prefixes.iter().find_map(|prefix| bytes.strip_prefix(*prefix))?;
    OsStr::from_bytes(number).to_str()?.parse().ok()
}

fn word(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_dir() => "a directory",
        kind if kind.is_block_device() => "a block device",
        kind if kind.is_char_device() => "a character device",
        kind if kind.is_socket() => "a socket",
        _ => "not a regular file",
    }
}

#[cfg(test)]
mod tests;

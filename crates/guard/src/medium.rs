//! Medium of a simulated drive: the file that holds its durable data. Opens an existing medium or creates
//! one.
//!
//! The drive may overwrite the whole file, so the rules are those for writing a file:
//!
//! | found | result |
//! |---|---|
//! | nothing, or a file of no bytes | created with the drive's length, and marked |
//! | a file without data of the drive's length (`truncate -s`) | marked |
//! | a file with the mark, of the drive's length and block | opened |
//! | a file that a write-back cache needs (its backing device, a device of its log) | only with `--destroy PATH` |
//! | any other file of the drive's length | only with `--overwrite`; then marked, and its contents become those of the drive |
//! | a file of another length | refused |
//! | active swap, a file behind a loop device, a file with unknown uses, a block device | refused, regardless of options |
//!
//! The mark is the extended attribute [`MEDIUM`]; the file itself stays a raw image. The mark contains the
//! inode number, so a copy with the attribute is not a medium. On a file system without user attributes a
//! file with data always needs `--overwrite`. A medium may contain a device of a cache if the drive was used
//! as one; the cache then needs the drive, and the medium is opened as usual. A file that a cache uses
//! directly is not a medium any more ([`crate::cache`]).

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use plumb_block::Bytes;
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use rustix::fs::{FlockOperation, Mode, OFlags, SeekFrom, XattrFlags};
use rustix::io::Errno;

use crate::cache;
use crate::error::{Error, Kind, Result};
use crate::facts::{FileFacts, FoundObject, Missing, Use};
use crate::locate::{LocatedName, locate_path};
use crate::look::{Sight, facts, look, open_same};
use crate::machine::Machine;
use crate::make::NewName;
use crate::permission::Permission;
use crate::rules::{
    detaching, each_word_names_a_target, how_to_destroy, kernel_file, never_written, signs, unseen_words,
};

/// Extended attribute of the medium of a drive. Value, separated by spaces: version of plumb, inode number,
/// logical block in bytes, model.
pub const MEDIUM: &str = "user.plumb.medium";

/// Requirements of a drive for its medium.
#[derive(Debug, Clone, Copy)]
pub struct MediumWanted<'a> {
    /// Capacity of the drive.
    pub size: Bytes,
    /// Logical block of the drive.
    pub block: Bytes,
    /// Name of the drive's model.
    pub model: &'a str,
    /// The user's permission: `--overwrite` permits a file that is not a medium yet, `--destroy` also one
    /// that a cache needs.
    pub permission: &'a Permission,
}

/// An open medium, locked exclusively.
#[derive(Debug)]
pub struct Medium {
    /// The file, open for reading and writing, as long as the drive.
    pub file: File,
    /// Completion or undoing, once it is known whether the drive starts.
    pub pending: PendingMedium,
}

/// Medium that is not marked yet and can be restored.
#[derive(Debug)]
pub struct PendingMedium {
    shown: String,
    file: OwnedFd,
    /// Mark to set; `None` if the file has it already.
    mark: Option<String>,
    undo: Undo,
}

#[derive(Debug)]
enum Undo {
    /// Length and contents are unchanged.
    Nothing,
    /// Cut the file to length 0.
    Empty,
    /// Remove the name.
    Remove(NewName),
}

impl Medium {
    /// Opens or creates the medium at `path`, shown as `shown` in messages.
    ///
    /// # Errors
    /// The refusal or the system's error. Nothing has been changed then.
    pub fn open(path: &Path, shown: &str, wanted: MediumWanted<'_>) -> Result<Self> {
        let located = locate_path(path, shown.to_owned()).map_err(mistyped)?;
        let (tree, probe) = (LiveTree::new(), LiveProbe::new());
        let machine = Machine::new(&tree, &probe);
        let Sight { found, open } = look(&machine, &located)?;
        let identities = if let FoundObject::File(seen) = &found { &seen.identities[..] } else { &[] };
        each_word_names_a_target(wanted.permission, &[(shown, identities)])?;
        match (found, open) {
            (FoundObject::Missing(missing), _) => make(&located, &missing, wanted),
            (FoundObject::File(seen), Some((looked_at, key))) => {
                judge(&located.shown, &seen, &State::from_file(looked_at.as_fd()), wanted)?;
                let file = open_same(&located.path, &located.shown, OFlags::RDWR, key)?;
                open_existing(&machine.now(), &located, file, wanted)
            }
            (FoundObject::Block(block), _) => {
                let mut found = signs(&block.contents, &block.uses);
                found.insert(0, "it is a block device, and a medium is a file".to_owned());
                Err(Error::refused(&located.shown, found.join(", "), "name a new file"))
            }
            (FoundObject::Kernel(system), _) => Err(kernel_file(&located.shown, system)),
            _ => Err(Error::usage(&located.shown, "it is not a regular file", "name one, or a new one")),
        }
    }
}

impl PendingMedium {
    /// Marks the medium after the drive has started. Returns a note for the user if that fails.
    pub fn settle(self) -> Option<String> {
        if let Err(why) = cache::forget_marker(&self.file) {
            return Some(format!("{}: it still says that it needs a cache: {why}", self.shown));
        }
        let marked = rustix::fs::fsetxattr(&self.file, MEDIUM, self.mark?.as_bytes(), XattrFlags::empty());
        let why = match marked {
            Ok(()) => return None,
            Err(Errno::OPNOTSUPP) => "its file system keeps no user attributes".to_owned(),
            Err(errno) => format!("it cannot be marked: {}", std::io::Error::from(errno)),
        };
        Some(format!(
            "{}: {why}, so nothing marks it as the medium of a drive: to serve it again, add --overwrite",
            self.shown
        ))
    }

    /// Restores the file after the drive failed to start: removes a new file, empties one that was empty. A
    /// name that belongs to another file by now is left alone. On failure a file of zeroes without a mark
    /// remains.
    pub fn undo(self) {
        match &self.undo {
            Undo::Nothing => {}
            Undo::Empty => rustix::fs::ftruncate(&self.file, 0).unwrap_or_default(),
            Undo::Remove(name) => name.remove(&self.file).unwrap_or_default(),
        }
    }
}

/// Creates the medium in a new file.
fn make(located: &LocatedName, missing: &Missing, wanted: MediumWanted<'_>) -> Result<Medium> {
    let shown = &located.shown;
    let none = |found: &str, remedy: &str| Err(Error::new(Kind::NotFound, shown, found, remedy));
    match missing {
        Missing::CanBeMade => {}
        Missing::NoDirectory => return none("there is no such directory", "make it, or name another place"),
        Missing::DanglingLink => {
            return none(
                "it is a link that leads nowhere, or to a file without a name",
                "remove the link, or name a file",
            );
        }
        Missing::InDev => return none("there is no such device: a medium is a file", "name a new file"),
    }
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    let (name, file) = NewName::create(&located.path, shown, mode)?;
    lock_exclusively(shown, &file)?;
    medium(shown, file, Undo::Remove(name), wanted)
}

/// Opens an existing file as the medium.
fn open_existing(
    machine: &Machine<'_>,
    located: &LocatedName,
    file: OwnedFd,
    wanted: MediumWanted<'_>,
) -> Result<Medium> {
    let shown = &located.shown;
    // Lock before examining or setting the length, as another drive may be doing the same.
    lock_exclusively(shown, &file)?;
    let FoundObject::File(seen) = facts(machine, located, file.as_fd())? else {
        return Err(Error::usage(shown, "it is no longer a regular file", "find out what replaced it"));
    };
    judge(shown, &seen, &State::from_file(file.as_fd()), wanted)?;
    let undo = if seen.size == Bytes(0) { Undo::Empty } else { Undo::Nothing };
    medium(shown, file, undo, wanted)
}

/// Locks the file exclusively among drives and runs.
fn lock_exclusively(shown: &str, file: &OwnedFd) -> Result<()> {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        Error::refused(
            shown,
            "another drive or run of plumb has it",
            "name another file, or detach that drive",
        )
    })
}

/// Sets the length of the open file and returns it as the medium.
fn medium(shown: &str, file: OwnedFd, undo: Undo, wanted: MediumWanted<'_>) -> Result<Medium> {
    let failed = |doing| move |errno| Error::os(shown, doing, errno);
    let inode = rustix::fs::fstat(&file).map_err(failed("look at"))?.st_ino;
    let second = rustix::io::fcntl_dupfd_cloexec(&file, 0).map_err(failed("hold"))?;
    let is_marked =
        matches!(State::from_file(file.as_fd()), State::Medium { block, .. } if block == wanted.block);
    let is_to_be_sized = !matches!(undo, Undo::Nothing);
    let version = env!("CARGO_PKG_VERSION");
    let mark = format!("{version} {inode} {} {}", wanted.block.0, wanted.model);
    let mark = (!is_marked).then_some(mark);
    let pending = PendingMedium { shown: shown.to_owned(), file: second, mark, undo };
    if is_to_be_sized && let Err(errno) = rustix::fs::ftruncate(&file, wanted.size.0) {
        pending.undo();
        return Err(Error::os(shown, &format!("make {} long", wanted.size), errno));
    }
    Ok(Medium { file: file.into(), pending })
}

/// State of a file as a medium, by its mark and data.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// The medium of a drive.
    Medium { block: Bytes, model: String },
    /// A copy of a medium.
    Copy,
    /// Not a medium, and without data: a single hole.
    Hole,
    /// Not a medium.
    Foreign,
    /// A file with data on a file system without user attributes.
    Unmarkable,
}

impl State {
    /// Determines the state of `file`. An unreadable mark counts as missing; data is assumed if unknown.
    fn from_file(file: BorrowedFd<'_>) -> Self {
        let Ok(stat) = rustix::fs::fstat(file) else { return Self::Foreign };
        // A cache may have been created over the file since, even without data in it.
        if cache::has_marker(file) {
            return Self::Foreign;
        }
        let mut mark = [0; 512];
        let read = rustix::fs::fgetxattr(file, MEDIUM, &mut mark);
        if let Some(marked) = read.ok().and_then(|length| Self::read(&mark[..length], stat.st_ino)) {
            return marked;
        }
        // Check both: some file systems count no blocks, and some report no holes.
        let has_data = rustix::fs::seek(file, SeekFrom::Data(0)) != Err(Errno::NXIO);
        match read {
            _ if stat.st_blocks == 0 && !has_data => Self::Hole,
            Err(Errno::OPNOTSUPP) => Self::Unmarkable,
            _ => Self::Foreign,
        }
    }

    fn read(mark: &[u8], inode: u64) -> Option<Self> {
        let mut words = str::from_utf8(mark).ok()?.splitn(4, ' ').skip(1);
        let of_inode: u64 = words.next()?.parse().ok()?;
        let block = Bytes(words.next()?.parse().ok()?);
        let model = words.next()?.to_owned();
        Some(if of_inode == inode { Self::Medium { block, model } } else { Self::Copy })
    }
}

/// Applies the rules to a file that is to become the medium.
fn judge(shown: &str, file: &FileFacts, state: &State, wanted: MediumWanted<'_>) -> Result<()> {
    never_written(shown, &file.uses)?;
    if !file.uses.is_empty() || file.unseen.is_some() {
        let mut found = signs(&file.contents, &file.uses);
        found.extend(file.unseen.as_deref().map(unseen_words));
        let remedy = match file.uses.iter().find(|one| matches!(one, Use::Loop { .. })) {
            Some(Use::Loop { by, .. }) => {
                format!("unmount what is on it and detach it ({}), or name a new file", detaching(by))
            }
            _ => "name a new file".to_owned(),
        };
        return Err(Error::refused(shown, found.join(", "), remedy));
    }
    // A file that a cache needs does not count as new, even if it was cut to length 0.
    if file.size == Bytes(0) && !file.contents.is_of_a_cache() {
        return Ok(());
    }
    if file.size != wanted.size {
        return Err(other_length(shown, file, state, wanted));
    }
    let is_destroyed = wanted.permission.destroys(&file.identities);
    let found = match state {
        State::Medium { block, .. } if *block == wanted.block => return Ok(()),
        _ if is_destroyed => return Ok(()),
        _ if file.contents.is_of_a_cache() => {
            let remedy = how_to_destroy(&[], &file.contents, &file.identities);
            return Err(Error::refused(shown, signs(&file.contents, &[]).join(", "), remedy));
        }
        State::Hole => return Ok(()),
        _ if wanted.permission.overwrite => return Ok(()),
        State::Medium { block, model } => format!(
            "it is the medium of a drive of the model {model} with blocks of {block}, but this drive has {}",
            wanted.block
        ),
        State::Copy => "it is a copy of the medium of a drive".to_owned(),
        State::Foreign => "it is a file that plumb did not make".to_owned(),
        State::Unmarkable => {
            "its file system keeps no user attributes, so nothing marks it as the medium of a drive"
                .to_owned()
        }
    };
    let found = [vec![found], signs(&file.contents, &[])].concat().join(", ");
    let remedy = "to use it as the medium of this drive, with its contents, add --overwrite; otherwise name \
                  a new file";
    Err(Error::refused(shown, found, remedy))
}

fn other_length(shown: &str, file: &FileFacts, state: &State, wanted: MediumWanted<'_>) -> Error {
    let size = file.size.0;
    let is_medium = matches!(state, State::Medium { .. });
    let is_ours = if is_medium { "" } else { "it is a file that plumb did not make, and " };
    let found = format!("{is_ours}it is {size} bytes long and the drive {}", wanted.size.0);
    let remedy = match is_medium {
        true => format!("give --size {size}, or name a new file"),
        false => "name a new file".to_owned(),
    };
    Error::refused(shown, found, remedy)
}

/// Reports a path through a file as not found: it was mistyped.
fn mistyped(error: Error) -> Error {
    match error.kind() {
        Kind::Os(Some(errno)) if errno.0 == Errno::NOTDIR.raw_os_error() => {
            Error::new(Kind::NotFound, error.target(), error.found(), error.remedy())
        }
        _ => error,
    }
}

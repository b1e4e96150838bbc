//! The file in which a simulated drive keeps what is durable: made, or taken if it is such a medium already.
//!
//! Whoever uses the drive writes over all of the file, so the rules are those for any file that is to be
//! written:
//!
//! | found | |
//! |---|---|
//! | nothing, or a file of no bytes | made as long as the drive, and marked |
//! | a file without data of the drive's length (`truncate -s`) | marked |
//! | a file with the mark, of the drive's length and block | taken |
//! | a file that a write-back cache needs (its backing device, a device of its log) | only with `--destroy PATH` |
//! | any other file of the drive's length | only with `--overwrite`; its contents are the drive's then, and it is marked |
//! | a file of another length | refused |
//! | active swap, a file behind a loop device, one whose uses cannot be seen, a block device | refused, whatever is said |
//!
//! The mark is the extended attribute [`MEDIUM`]. The file itself stays a raw image. A copy that took the
//! attribute along is somebody's: the mark names its inode. Where there are no such attributes a file with
//! data in it always takes the word. What a medium holds may be the device of a cache, as the drive was used;
//! then the cache needs the drive, and the medium is taken as any. A file that a cache takes itself is no
//! medium any more ([`crate::cache`]).

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

/// The extended attribute that says that a file is the medium of a drive. Its value: the version of plumb
/// that marked it, the number of its inode, the logical block in bytes, and the model, with a space between
/// each.
pub const MEDIUM: &str = "user.plumb.medium";

/// The medium that a drive wants.
#[derive(Debug, Clone, Copy)]
pub struct MediumWanted<'a> {
    /// How long: the capacity of the drive.
    pub size: Bytes,
    /// The logical block of the drive.
    pub block: Bytes,
    /// The name of the drive's model.
    pub model: &'a str,
    /// Permission of the user: `--overwrite` lets a file that is not a medium yet become one, `--destroy`
    /// also one that a cache needs.
    pub permission: &'a Permission,
}

/// A medium that is open, and held alone.
#[derive(Debug)]
pub struct Medium {
    /// The file, to be read and written, as long as the drive.
    pub file: File,
    /// Work still to be done once it is known whether the drive comes to be.
    pub pending: PendingMedium,
}

/// Medium that is not marked yet and can still be left unchanged.
#[derive(Debug)]
pub struct PendingMedium {
    shown: String,
    file: OwnedFd,
    /// Mark that the file is to get, if it lacks one.
    mark: Option<String>,
    undo: Undo,
}

#[derive(Debug)]
enum Undo {
    /// Nothing: its length and its bytes are as they were.
    Nothing,
    /// Make it empty again.
    Empty,
    /// Remove the name.
    Remove(NewName),
}

impl Medium {
    /// Takes or makes the medium at `path`, which messages call `shown`.
    ///
    /// # Errors
    /// The refusal, or the system's failure. Nothing was changed then.
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
    /// The drive came to be: marks the medium, if it has no mark. Says what the user should know where that
    /// cannot be.
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

    /// The drive came to nothing: a file that was made is removed, one that was empty is empty again. A name
    /// that belongs to another file by now is left alone. What stays if that fails is a file of zeroes
    /// without a mark.
    pub fn undo(self) {
        match &self.undo {
            Undo::Nothing => {}
            Undo::Empty => rustix::fs::ftruncate(&self.file, 0).unwrap_or_default(),
            Undo::Remove(name) => name.remove(&self.file).unwrap_or_default(),
        }
    }
}

/// Makes a new file.
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
    hold(shown, &file)?;
    medium(shown, file, Undo::Remove(name), wanted)
}

/// Returns the file that is there as the medium that is wanted.
fn open_existing(
    machine: &Machine<'_>,
    located: &LocatedName,
    file: OwnedFd,
    wanted: MediumWanted<'_>,
) -> Result<Medium> {
    let shown = &located.shown;
    // Before its length is looked at or set: another drive may be about to do the same.
    hold(shown, &file)?;
    let FoundObject::File(seen) = facts(machine, located, file.as_fd())? else {
        return Err(Error::usage(shown, "it is no longer a regular file", "find out what replaced it"));
    };
    judge(shown, &seen, &State::from_file(file.as_fd()), wanted)?;
    let undo = if seen.size == Bytes(0) { Undo::Empty } else { Undo::Nothing };
    medium(shown, file, undo, wanted)
}

/// Holds it alone, among drives.
fn hold(shown: &str, file: &OwnedFd) -> Result<()> {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        Error::refused(
            shown,
            "another drive or run of plumb has it",
            "name another file, or detach that drive",
        )
    })
}

/// Returns the open file as the medium that is wanted.
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

/// State of a file as a medium, by its mark and its data.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// The file is the medium of a drive.
    Medium { block: Bytes, model: String },
    /// The file is a copy of a medium.
    Copy,
    /// The file is not a medium, and there is no data in it: one hole.
    Hole,
    /// The file is not a medium.
    Foreign,
    /// The file has data, and its file system keeps no marks.
    Unmarkable,
}

impl State {
    /// Determines the state of `file`; what cannot be found out counts as no mark, and as data.
    fn from_file(file: BorrowedFd<'_>) -> Self {
        let Ok(stat) = rustix::fs::fstat(file) else { return Self::Foreign };
        // A cache was put before the file since, also where there is no data in it yet.
        if cache::has_marker(file) {
            return Self::Foreign;
        }
        let mut mark = [0; 512];
        let read = rustix::fs::fgetxattr(file, MEDIUM, &mut mark);
        if let Some(marked) = read.ok().and_then(|length| Self::read(&mark[..length], stat.st_ino)) {
            return marked;
        }
        // Both, since there are file systems that count no blocks and some that know of no holes.
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

/// The rules: whether a file may become the medium that is wanted.
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
    // One that a cache needs is no new file, even if it was cut to nothing.
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

/// A path through a file is one that was mistyped.
fn mistyped(error: Error) -> Error {
    match error.kind() {
        Kind::Os(Some(errno)) if errno.0 == Errno::NOTDIR.raw_os_error() => {
            Error::new(Kind::NotFound, error.target(), error.found(), error.remedy())
        }
        _ => error,
    }
}

//! Creation of files, changes of their length, and the undoing of both, except for data that was cut off.
//!
//! # Limitations
//! If plumb is killed before the layout, a new file stays, marked and full of holes, as
//! [`Device::extents`](plumb_block::Device::extents) shows.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use plumb_block::Bytes;
use rustix::fs::{AtFlags, Mode, OFlags};

use crate::error::{Error, Result};
use crate::look::{Key, open_same};
use crate::mark::mark_as_made;

/// A file that this run created or resized. The added range consists of holes until it is laid out.
#[derive(Debug)]
pub(crate) struct Making {
    shown: String,
    file: OwnedFd,
    size: Bytes,
    undo: Undo,
}

#[derive(Debug)]
enum Undo {
    /// Remove the name.
    Remove(NewName),
    /// Cut the file to its former length.
    Shorten(Bytes),
}

/// Name of a created file.
#[derive(Debug)]
pub(crate) struct NewName {
    directory: OwnedFd,
    name: OsString,
}

impl NewName {
    /// Creates a file at `path`. The last component must not exist.
    ///
    /// # Errors
    /// Fails as open(2).
    pub(crate) fn create(path: &Path, shown: &str, mode: Mode) -> Result<(Self, OwnedFd)> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Error::usage(shown, "it is not a name of a file", "name a file"));
        };
        let failed = |errno| Error::os(shown, "make", errno);
        let in_directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(parent, in_directory, Mode::empty()).map_err(failed)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&directory, name, flags, mode).map_err(failed)?;
        Ok((Self { directory, name: name.to_owned() }, file))
    }

    /// Removes the name, unless it belongs to another file than `file` by now.
    pub(crate) fn remove(&self, file: &OwnedFd) -> rustix::io::Result<()> {
        let ours = rustix::fs::fstat(file)?;
        match rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino) => {
                rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty())
            }
            Ok(_) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}

impl Making {
    /// Creates a marked file of `size` at `path`. The last component must not exist.
    ///
    /// # Errors
    /// Fails as open(2), fsetxattr(2) and ftruncate(2), leaving nothing behind.
    pub(crate) fn create(path: &Path, shown: &str, size: Bytes) -> Result<Self> {
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let (name, file) = NewName::create(path, shown, mode)?;
        let made = Self { shown: shown.to_owned(), file, size, undo: Undo::Remove(name) };
        match made.fit(true) {
            Ok(()) => Ok(made),
            Err(error) => Err(error.after_clearing_up(made.undo())),
        }
    }

    /// Changes the length of the file `key` at `path` from `before` to `size`. Data that is cut off is lost.
    ///
    /// # Errors
    /// Fails as open(2) and ftruncate(2). A file that was to grow then keeps its length.
    pub(crate) fn resize(path: &Path, shown: &str, key: Key, before: Bytes, size: Bytes) -> Result<Self> {
        let file = open_same(path, shown, OFlags::RDWR, key)?;
        let made = Self { shown: shown.to_owned(), file, size, undo: Undo::Shorten(before.min(size)) };
        match made.fit(false) {
            Ok(()) => Ok(made),
            Err(error) => Err(error.after_clearing_up(made.undo())),
        }
    }

    fn fit(&self, mark: bool) -> Result<()> {
        if mark {
            mark_as_made(&self.file).map_err(|error| {
                let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
                Error::os(&self.shown, "mark", errno)
            })?;
        }
        // ftruncate(2) reserves no space, and a file of full length later looks as if it had.
        let free = plumb_linux::space::free_beside(&self.file).ok().flatten();
        if free.is_some_and(|free| free.0 < self.size.0.saturating_sub(self.before().0)) {
            return Err(Error::os(&self.shown, "make room for", rustix::io::Errno::NOSPC));
        }
        rustix::fs::ftruncate(&self.file, self.size.0).map_err(|errno| Error::os(&self.shown, "size", errno))
    }

    /// Returns true if the file is new.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self.undo, Undo::Remove(_))
    }

    /// Returns the offset of the added range.
    pub(crate) fn before(&self) -> Bytes {
        match self.undo {
            Undo::Remove(_) => Bytes(0),
            Undo::Shorten(before) => before,
        }
    }

    /// Returns the length of the file.
    pub(crate) fn size(&self) -> Bytes {
        self.size
    }

    /// Returns the name of the file for display.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Duplicates the descriptor of the open file.
    pub(crate) fn duplicate(&self) -> Result<OwnedFd> {
        rustix::io::fcntl_dupfd_cloexec(&self.file, 0).map_err(|errno| Error::os(&self.shown, "hold", errno))
    }

    /// Returns the identity of the file.
    pub(crate) fn key(&self) -> Result<Key> {
        let stat = rustix::fs::fstat(&self.file).map_err(|errno| Error::os(&self.shown, "look at", errno))?;
        Ok(Key::from_stat(&stat))
    }

    /// Removes a new file, cuts an extended one to its former length. A name that belongs to another file by
    /// now is left alone.
    ///
    /// # Errors
    /// Fails as unlink(2) and ftruncate(2).
    pub(crate) fn undo(self) -> Result<()> {
        match &self.undo {
            Undo::Shorten(before) => rustix::fs::ftruncate(&self.file, before.0)
                .map_err(|errno| Error::os(&self.shown, "restore the length of", errno)),
            Undo::Remove(name) => {
                name.remove(&self.file).map_err(|errno| Error::os(&self.shown, "remove", errno))
            }
        }
    }
}

impl AsFd for Making {
    /// Returns the descriptor: read-write, without O_DIRECT.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

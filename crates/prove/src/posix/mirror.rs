//! [`Model`] kept equal to a directory of this machine: names and contents are compared with those of the
//! model, and differences are applied to it.
//!
//! Invariant: every name or file that cannot be read, and everything that does not fit into the recording, is
//! listed among the reasons why the recording is incomplete.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use plumb_block::Bytes;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::layout::{Inode, Object};
use super::model::{Model, Name};
use crate::recording::Command;

/// Identity of a file in its file system. Its number may be reused, but not with the same time of birth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    number: u64,
    born: Option<SystemTime>,
}

impl Identity {
    fn new(metadata: &Metadata) -> Self {
        Self { number: metadata.ino(), born: metadata.created().ok() }
    }
}

/// Place of a name in the arguments of a call.
pub(super) struct Place {
    pub(super) directory: Inode,
    pub(super) path: PathBuf,
    pub(super) name: OsString,
}

/// True for a name that a call has just created, unless it existed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IsNew(pub(super) bool);

/// Mirror of the files below a directory in a model.
pub(super) struct Mirror {
    pub(super) model: Model,
    /// Directory, by a path without links.
    pub(super) root: PathBuf,
    /// Number of the device that holds the directory.
    pub(super) device: u64,
    inodes: HashMap<Identity, Inode>,
    /// Maximum memory of the recording, in bytes.
    limit: Bytes,
    /// Event at which the recording reached the limit. Later events do not count.
    pub(super) full: Option<usize>,
    /// Reasons why something below the directory is missing from the recording.
    pub(super) unseen: BTreeSet<String>,
}

impl Mirror {
    /// Opens the directory at `root`, of which the model has nothing yet. The recording takes at most about
    /// `limit` bytes of memory.
    ///
    /// # Errors
    /// Those of stat(2).
    pub(super) fn new(root: &Path, model: Model, limit: Bytes) -> io::Result<Self> {
        let root = root.canonicalize()?;
        let metadata = fs::metadata(&root)?;
        Ok(Self {
            model,
            device: metadata.dev(),
            inodes: HashMap::from([(Identity::new(&metadata), Inode::ROOT)]),
            limit,
            full: None,
            unseen: BTreeSet::new(),
            root,
        })
    }

    /// Returns true if the recording has reached its limit and no longer grows.
    pub(super) fn is_full(&mut self) -> bool {
        let recording = self.model.recording();
        let data = recording.contents.len() as u64 * recording.logical_block.0;
        let taken = data + (recording.commands.len() * size_of::<Command>()) as u64;
        if self.full.is_none() && taken > self.limit.0 {
            self.full = Some(recording.events.len());
            let what = format!("the recording reached {}, and nothing after that was recorded", self.limit);
            self.unseen.insert(format!("{what}: allow more with --size"));
        }
        self.full.is_some()
    }

    /// Returns the inode of a file in the model.
    pub(super) fn known(&self, metadata: &Metadata) -> Option<Inode> {
        self.inodes.get(&Identity::new(metadata)).copied()
    }

    /// Returns the known inode at a path. A final symbolic link is not followed.
    pub(super) fn inode_at(&self, path: &Path) -> Option<Inode> {
        self.known(&fs::symlink_metadata(path).ok()?)
    }

    /// Updates the model with all names below the root.
    pub(super) fn compare_names(&mut self) {
        let root = self.root.clone();
        self.compare_directory(Inode::ROOT, &root);
    }

    /// Updates the model with the object behind a name.
    pub(super) fn compare_entry(&mut self, place: &Place, is_new: IsNew) {
        let path = place.path.join(&place.name);
        let name = Name { directory: place.directory, name: &place.name };
        let visible = self.model.entry(name);
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) if is_followed(&metadata) => metadata,
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                self.unseen.insert(format!("{} cannot be read: {error}", path.display()));
                return;
            }
            _ => {
                if visible.is_some() {
                    self.model.unlink(name);
                }
                return;
            }
        };
        let known = self.known(&metadata);
        let known = known.filter(|_| !is_new.0 || visible.is_some());
        match known {
            Some(inode) if visible == Some(inode) => {}
            Some(inode) => self.model.link(inode, name),
            None => {
                let inode = self.make(&metadata, Some(&path));
                self.model.link(inode, name);
                if metadata.is_dir() {
                    self.compare_directory(inode, &path);
                } else if metadata.is_file() {
                    self.compare_path(&path);
                }
            }
        }
    }

    /// Creates an inode for a new file.
    pub(super) fn make(&mut self, metadata: &Metadata, path: Option<&Path>) -> Inode {
        let object = object(metadata, path);
        let inode = self.model.make(object);
        self.inodes.insert(Identity::new(metadata), inode);
        inode
    }

    /// Updates the model with all names below a directory.
    fn compare_directory(&mut self, directory: Inode, path: &Path) {
        let found = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                self.unseen.insert(format!("{} cannot be read: {error}", path.display()));
                return;
            }
        };
        let mut names: BTreeSet<OsString> = found.iter().map(fs::DirEntry::file_name).collect();
        names.extend(self.model.names(directory).into_iter().map(OsStr::to_owned));
        for name in names {
            let place = Place { directory, path: path.to_owned(), name };
            let path = place.path.join(&place.name);
            let was_known = self.inode_at(&path).is_some();
            self.compare_entry(&place, IsNew(false));
            let is_directory = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir());
            if let (true, true, Some(inode)) = (was_known, is_directory, self.inode_at(&path)) {
                self.compare_directory(inode, &path);
            }
        }
    }

    /// Updates the model with the contents and the permissions of all files.
    pub(super) fn compare_files(&mut self) {
        for (inode, path) in self.model.paths() {
            let path = self.root.join(path);
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            self.model.set_object(inode, object(&metadata, Some(&path)));
            if metadata.is_file() {
                self.compare_path(&path);
            }
        }
    }

    /// Updates the model with the contents of the file at a path, if there is one.
    pub(super) fn compare_path(&mut self, path: &Path) {
        let Some((file, metadata)) = self.open(path, path) else { return };
        if let Some(inode) = self.known(&metadata) {
            self.compare_file(inode, &file, None);
        }
    }

    /// Opens a file or directory for reading. Returns `None` if it is gone or of another type, or if it
    /// cannot be read, which is recorded with its name.
    pub(super) fn open(&mut self, path: &Path, name: &Path) -> Option<(File, Metadata)> {
        let opened = fs::metadata(path).and_then(|found| match found.is_file() || found.is_dir() {
            true => File::open(path).map(Some),
            false => Ok(None),
        });
        match opened.and_then(|file| file.map(|file| Ok((file.metadata()?, file))).transpose()) {
            Ok(opened) => opened.map(|(metadata, file)| (file, metadata)),
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    let name = name.strip_prefix(&self.root).unwrap_or(name);
                    self.unseen.insert(format!("{} cannot be read: {error}", name.display()));
                }
                None
            }
        }
    }

    /// Updates the model with the size and the contents of a file, of all of it or of the `written` range.
    pub(super) fn compare_file(&mut self, inode: Inode, file: &File, written: Option<Range<u64>>) {
        if let Err(error) = self.compare_contents(inode, file, written) {
            self.unseen.insert(format!("a file cannot be read: {error}"));
        }
    }

    fn compare_contents(&mut self, inode: Inode, file: &File, written: Option<Range<u64>>) -> io::Result<()> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(());
        }
        let (old, size) = (self.model.size(inode), metadata.len());
        if size < old {
            self.model.set_size(inode, size);
        }
        let block = self.model.recording().logical_block.0;
        let mut written_numbers = BTreeSet::new();
        let mut numbers = BTreeSet::new();
        match written {
            Some(range) => written_numbers.extend(range.start / block..range.end.min(size).div_ceil(block)),
            None => {
                numbers.extend(self.model.blocks(inode, 0).take_while(|number| number * block < size));
                for data in data_ranges(file, size)? {
                    written_numbers.extend(data.start / block..data.end.div_ceil(block));
                }
            }
        }
        let mut bytes = vec![0; block as usize];
        for number in numbers.union(&written_numbers).copied() {
            if self.is_full() {
                return Ok(());
            }
            bytes.fill(0);
            read_full(file, number * block, &mut bytes)?;
            let is_same = match written_numbers.contains(&number) {
                true => self.model.holds(inode, number, &bytes),
                false => self.model.block(inode, number) == bytes,
            };
            if !is_same {
                self.model.write(inode, number, &bytes);
            }
        }
        self.model.set_size(inode, size);
        Ok(())
    }
}

/// Returns true for the types in the model: files, directories and symbolic links.
fn is_followed(metadata: &Metadata) -> bool {
    metadata.is_file() || metadata.is_dir() || metadata.is_symlink()
}

fn object(metadata: &Metadata, path: Option<&Path>) -> Object {
    let mode = metadata.permissions().mode() & 0o7777;
    if metadata.is_dir() {
        Object::Directory(mode)
    } else if metadata.is_symlink() {
        Object::Link(path.and_then(|path| fs::read_link(path).ok()).unwrap_or_default())
    } else {
        Object::File(mode)
    }
}

/// Returns the ranges of a file that are not holes; the whole file if the file system does not report holes.
fn data_ranges(file: &File, size: u64) -> io::Result<Vec<Range<u64>>> {
    let (mut ranges, mut at) = (Vec::new(), 0);
    while at < size {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
            Err(errno) => return Err(errno.into()),
        };
        let end = rustix::fs::seek(file, SeekFrom::Hole(start)).unwrap_or(size);
        ranges.push(start..end.min(size));
        at = end.max(start + 1);
    }
    Ok(ranges)
}

/// Reads until the buffer is full or the file ends.
fn read_full(file: &File, at: u64, into: &mut [u8]) -> io::Result<()> {
    let mut read = 0;
    while read < into.len() {
        match file.read_at(&mut into[read..], at + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

//! The system calls of a program, told to the [`Model`]: each after it has returned and while its thread is
//! held, so that what it changed is read from the files themselves.
//!
//! A call says where to look; what has changed there is found by comparing names and contents with those that
//! the model has. So the result of a call, which is not known yet, does not matter, and what a call did in
//! part is seen as it is. Mapped files are compared at each call. At the end the whole tree is compared: what
//! differs then was changed in a way that no call told of.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read as _};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use plumb_block::{Bytes, Nanos};
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::layout::{Inode, Layout, Object};
use super::model::{Model, Name};
use super::tasks::{self, DescriptorState, Mapping};
use crate::error::{Error, Result, cannot};
use crate::recording::{Command, Event, Recording};
use crate::session::Numbers;
use crate::subject::{AckBy, Lines};
use crate::trace::{Argument, Call, has_flag, kind, may_create};

/// A file as the file system knows it. Its number may be used again, but not with the same time of birth.
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

/// File that is mapped so that stores change it.
struct MappedFile {
    inode: Inode,
    number: u64,
    file: File,
}

/// A sync call that has returned, and whose result is not known yet.
enum Sync {
    Everything,
    Inode(Inode),
    Range(Inode, Range<u64>),
    Written(Inode, Written),
}

/// Bytes of a write, as far as they are known before its result, which is their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    /// First byte.
    From(u64),
    /// End of the bytes: the position of the descriptor after the write.
    UpTo(u64),
}

impl Written {
    /// Returns the range of this many bytes.
    const fn range(self, length: u64) -> Range<u64> {
        match self {
            Self::From(start) => start..start.saturating_add(length),
            Self::UpTo(end) => end.saturating_sub(length)..end,
        }
    }
}

/// Place of a name that a call was given.
struct Place {
    directory: Inode,
    path: PathBuf,
    name: OsString,
}

/// Mark of a name that a call has just created unless it was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IsNew(bool);

/// Recording of a program, and what is known about it.
pub(crate) struct Trail {
    pub(crate) recording: Recording,
    pub(crate) layout: Layout,
    /// Events at which the work begins and has ended.
    pub(crate) from: usize,
    pub(crate) until: usize,
    /// Acknowledgements of the program.
    pub(crate) numbers: Numbers,
    /// Reasons why something that the program did is not in the recording.
    pub(crate) unseen: Vec<String>,
    /// Ways to write of which only a part is seen.
    pub(crate) seen_in_part: Vec<String>,
    /// Remarks for the report.
    pub(crate) notes: Vec<String>,
}

/// Follows the calls of one program and its children.
pub(crate) struct Follower {
    model: Model,
    root: PathBuf,
    device: u64,
    inodes: HashMap<Identity, Inode>,
    mapped: Vec<MappedFile>,
    /// Sync calls of the line that is being read, with the time at which they began.
    pending: Vec<(Sync, Nanos)>,
    control: File,
    control_path: PathBuf,
    numbers: Numbers,
    began: SystemTime,
    from: usize,
    /// Most bytes of memory that the recording may take.
    limit: Bytes,
    /// Event at which the recording reached the limit. Nothing after it counts.
    full: Option<usize>,
    unseen: BTreeSet<String>,
    seen_in_part: BTreeSet<String>,
    notes: BTreeSet<String>,
}

impl Follower {
    /// Takes what is beneath `root` for durable, and makes the FIFO at `control` through which the program
    /// acknowledges. Times count from `began`. The recording takes about `limit` bytes of memory at most.
    ///
    /// # Errors
    /// If something beneath cannot be read, or is more than the limit.
    pub(crate) fn start(
        root: &Path,
        control: &Path,
        model: Model,
        began: SystemTime,
        limit: Bytes,
    ) -> Result<Self> {
        let failed = cannot(format!("read {}", root.display()));
        let root = root.canonicalize().map_err(&failed)?;
        let fifo = make_fifo(control).map_err(cannot("make a FIFO for acknowledgements"))?;
        let metadata = fs::metadata(&root).map_err(&failed)?;
        let mut follower = Self {
            model,
            device: metadata.dev(),
            inodes: HashMap::from([(Identity::new(&metadata), Inode::ROOT)]),
            mapped: Vec::new(),
            pending: Vec::new(),
            control: fifo,
            control_path: control.canonicalize().map_err(&failed)?,
            numbers: Numbers::default(),
            began,
            from: 0,
            limit,
            full: None,
            unseen: BTreeSet::new(),
            seen_in_part: BTreeSet::new(),
            notes: BTreeSet::new(),
            root,
        };
        let root = follower.root.clone();
        follower.compare_directory(Inode::ROOT, &root);
        if follower.is_full() {
            let what = format!("the files that the set-up made take more memory than {limit}");
            return Err(Error::missing(what, "allow more with --size"));
        }
        follower.model.sync(Nanos(u64::MAX));
        follower.model.set_time(follower.now(), follower.now());
        follower.from = follower.model.happened(Event::Marked("the work begins".to_owned()));
        Ok(follower)
    }

    /// Takes a call that has returned, whose thread is held. Its result is not known.
    pub(crate) fn returned(&mut self, call: &Call) {
        self.pending.clear();
        if self.is_full() {
            return;
        }
        let at = self.time(call);
        // One thread alone made its stores before the call; others may have made theirs during it.
        let is_alone = self.mapped.is_empty() || {
            let numbers: Vec<u64> = self.mapped.iter().map(|mapped| mapped.number).collect();
            tasks::mapping(call.thread, &numbers) <= 1
        };
        self.model.set_time(at, if is_alone { at } else { self.now() });
        self.compare_mapped();
        self.model.set_time(at, self.now());
        match kind(call) {
            "open" => self.opened(call),
            "rename" => self.renamed(call),
            "link" => self.compare_named(call, 1, IsNew(call.name.starts_with("symlink"))),
            "mkdir" => self.compare_named(call, 0, IsNew(true)),
            "unlink" | "rmdir" => self.compare_named(call, 0, IsNew(false)),
            "write" => self.wrote(call),
            "truncate" => self.truncated(call),
            "fsync" => self.synced(call),
            "sync" => self.pending.push((Sync::Everything, at)),
            "syncfs" => self.synced_all(call),
            "mmap" => self.mapped(call),
            "msync" => self.msynced(call),
            _ => {}
        }
    }

    /// Takes the call that [`returned`](Self::returned) took last with its result.
    pub(crate) fn ended(&mut self, call: &Call) {
        let syncs = std::mem::take(&mut self.pending);
        match (kind(call), &call.result) {
            (way @ ("io_uring" | "aio"), _) => {
                let name = if way == "aio" { "Linux AIO" } else { "io_uring" };
                self.notes
                    .insert(format!("{name} was refused to the program, since no call tells what it writes"));
            }
            (_, Ok(result)) => {
                syncs.into_iter().for_each(|(sync, until)| self.persist(sync, until, *result));
            }
            _ => {}
        }
    }

    /// Takes note that the thread was killed while it was held after a call, so that the call was read late.
    pub(crate) fn killed(&mut self, call: &Call) {
        let what = format!("a thread was killed during its system call {}", call.name);
        self.unseen.insert(format!("{what}, whose changes may be seen in part"));
    }

    /// Takes a sync call that was made in place of the program.
    pub(crate) fn synced_in_place(&mut self, path: &Path) {
        let inode =
            fs::metadata(path).ok().and_then(|found| self.inodes.get(&Identity::new(&found)).copied());
        if let Some(inode) = inode {
            self.persist(Sync::Inode(inode), Nanos(u64::MAX), 0);
        }
    }

    /// Takes the end of the program.
    pub(crate) fn finish(mut self) -> Trail {
        self.model.set_time(self.now(), self.now());
        if !self.is_full() {
            self.compare_mapped();
            self.acknowledged();
        }
        let ended = self.model.happened(Event::Marked("the work has ended".to_owned()));
        let commands = self.model.recording().commands.len();
        if !self.is_full() {
            let root = self.root.clone();
            self.compare_directory(Inode::ROOT, &root);
            self.compare_files();
        }
        let until = self.full.map_or(ended, |full| full.min(ended));
        if let Some(command) = self.model.recording().commands.get(commands) {
            let spot = self.model.layout().spots.get(command.range.lba.0 as usize);
            let paths = self.model.paths();
            let path = spot.and_then(|spot| paths.get(&spot.inode())).map_or(Path::new("."), |path| path);
            self.unseen.insert(format!(
                "{} was changed in a way that no traced system call tells of, such as by a program that ran before",
                path.display()
            ));
        }
        Trail {
            layout: self.model.layout().clone(),
            from: self.from,
            until,
            numbers: self.numbers,
            unseen: self.unseen.into_iter().collect(),
            seen_in_part: self.seen_in_part.into_iter().collect(),
            notes: self.notes.into_iter().collect(),
            recording: self.model.into_recording(),
        }
    }

    /// Returns true if the recording has reached its limit, from which on nothing is recorded.
    fn is_full(&mut self) -> bool {
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

    /// Returns when a call began, by the clock of the recording.
    fn time(&self, call: &Call) -> Nanos {
        call.at.since(self.epoch())
    }

    /// Returns the time now, in whole microseconds as strace(1) tells times.
    fn now(&self) -> Nanos {
        let now = Nanos::from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default());
        Nanos(now.0 - now.0 % 1000).since(self.epoch())
    }

    fn epoch(&self) -> Nanos {
        self.began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().into()
    }

    /// Makes durable what a call did that returned `result`.
    fn persist(&mut self, sync: Sync, until: Nanos, result: i64) {
        match sync {
            Sync::Everything => self.model.sync(until),
            Sync::Inode(inode) => self.model.fsync(inode, until),
            Sync::Range(inode, range) => self.model.fsync_range(inode, range, until),
            Sync::Written(..) if result <= 0 => {}
            Sync::Written(inode, written) => {
                self.model.fsync_range(inode, written.range(result.unsigned_abs()), until);
            }
        }
    }

    /// Reads what was acknowledged.
    fn acknowledged(&mut self) {
        let mut bytes = Vec::new();
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = self.control.read(&mut chunk) {
            bytes.extend_from_slice(&chunk[..read]);
        }
        let mut lines = Lines::of(AckBy::ControlFile);
        for line in lines.take(&bytes).into_iter().chain(lines.end()) {
            if let Some(number) = self.numbers.take(&line) {
                self.model.happened(Event::Acknowledged(number));
            }
        }
    }

    fn opened(&mut self, call: &Call) {
        let is_truncated = has_flag(call, "O_TRUNC") || call.name == "creat";
        if !may_create(call) && !is_truncated {
            return;
        }
        let Some(place) = self.place(call, 0, true) else { return };
        self.compare_entry(&place, IsNew(may_create(call)));
        if is_truncated {
            self.compare_path(&place.path.join(&place.name));
        }
    }

    fn truncated(&mut self, call: &Call) {
        if let Some(place) = self.place(call, 0, true) {
            self.compare_path(&place.path.join(&place.name));
        }
    }

    fn renamed(&mut self, call: &Call) {
        let (from, to) = (self.place(call, 0, false), self.place(call, 1, false));
        if let (Some(from), Some(to)) = (&from, &to) {
            let names = [from, to].map(|place| Name { directory: place.directory, name: &place.name });
            let known = names.map(|name| self.model.entry(name));
            let real = [from, to].map(|place| self.inode_at(&place.path.join(&place.name)));
            match (known, real) {
                ([Some(moved), _], [None, Some(found)]) if moved == found => {
                    self.model.rename(names[0], names[1]);
                }
                ([Some(one), Some(other)], [Some(first), Some(second)])
                    if (one, other) == (second, first) && one != other =>
                {
                    self.model.exchange(names[0], names[1]);
                }
                _ => {}
            }
        }
        // The rest, and what came from elsewhere or went there.
        for place in from.into_iter().chain(to) {
            self.compare_entry(&place, IsNew(false));
        }
    }

    fn compare_named(&mut self, call: &Call, number: usize, is_new: IsNew) {
        if let Some(place) = self.place(call, number, false) {
            self.compare_entry(&place, is_new);
        }
    }

    fn wrote(&mut self, call: &Call) {
        let place = if matches!(call.name.as_str(), "copy_file_range" | "splice") { 2 } else { 0 };
        let Some(Argument::Descriptor(number, path)) = call.arguments.get(place) else { return };
        if *path == self.control_path {
            return self.acknowledged();
        }
        let Some((inode, file)) = self.descriptor(call, place) else { return };
        let state = DescriptorState::read(call.thread, *number);
        let written = written(call, &state);
        let offered = written.zip(offered_length(call)).map(|(written, length)| written.range(length));
        self.compare_file(inode, &file, offered);
        let by_descriptor = state.flags & OFlags::DSYNC.bits() != 0;
        let by_descriptor = by_descriptor && !matches!(call.name.as_str(), "ftruncate" | "fallocate");
        if !by_descriptor && !has_flag(call, "RWF_DSYNC") && !has_flag(call, "RWF_SYNC") {
            return;
        }
        let is_known = match written {
            Some(Written::UpTo(_)) => !tasks::may_have_moved(call.thread, &file, &state),
            Some(Written::From(_)) => true,
            None => false,
        };
        match written.filter(|_| is_known) {
            // Data written before the call is there, too.
            Some(written) => self.pending.push((Sync::Written(inode, written), self.now())),
            None => {
                let how = match by_descriptor {
                    true => "through a descriptor with O_DSYNC or O_SYNC",
                    false => "with RWF_DSYNC or RWF_SYNC",
                };
                self.unseen.insert(format!("which bytes {} {how} made durable is not known", call.name));
            }
        }
    }

    fn synced(&mut self, call: &Call) {
        if let Some((inode, _)) = self.descriptor(call, 0) {
            self.pending.push((Sync::Inode(inode), self.time(call)));
        }
    }

    fn synced_all(&mut self, call: &Call) {
        let Some(Argument::Descriptor(number, _)) = call.arguments.first() else { return };
        let found = fs::metadata(format!("/proc/{}/fd/{number}", call.thread));
        if found.is_ok_and(|found| found.dev() == self.device) {
            self.pending.push((Sync::Everything, self.time(call)));
        }
    }

    fn mapped(&mut self, call: &Call) {
        let is_shared = has_flag(call, "MAP_SHARED") || has_flag(call, "MAP_SHARED_VALIDATE");
        let Some(Argument::Descriptor(number, _)) = call.arguments.get(4).filter(|_| is_shared) else {
            return;
        };
        let state = DescriptorState::read(call.thread, *number);
        let is_writable = state.flags & (OFlags::WRONLY | OFlags::RDWR).bits() != 0;
        let Some((inode, file)) = self.descriptor(call, 4).filter(|_| is_writable) else { return };
        let Ok(metadata) = file.metadata() else { return };
        if !self.mapped.iter().any(|mapped| mapped.inode == inode) {
            self.mapped.push(MappedFile { inode, number: metadata.ino(), file });
        }
        self.seen_in_part.insert(
            "mapped memory was compared with its file at each system call: what it held between is not seen"
                .to_owned(),
        );
    }

    fn msynced(&mut self, call: &Call) {
        let argument = |place| word(call, place).and_then(number);
        let (Some(start), Some(length)) = (argument(0), argument(1)) else { return };
        if !has_flag(call, "MS_SYNC") {
            return;
        }
        let at = self.time(call);
        for Mapping { memory, offset, inode } in Mapping::read(call.thread) {
            let within = memory.start.max(start)..memory.end.min(start.saturating_add(length));
            let Some(mapped) = self.mapped.iter().find(|mapped| mapped.number == inode) else { continue };
            if !within.is_empty() {
                let from = offset + (within.start - memory.start);
                let range = from..from + (within.end - within.start);
                let end = self.model.size(mapped.inode).min(range.end);
                self.pending.push((Sync::Range(mapped.inode, range.start..end.max(range.start)), at));
            }
        }
    }

    /// Returns the file or directory behind a descriptor of a call, if it is beneath the root.
    fn descriptor(&mut self, call: &Call, place: usize) -> Option<(Inode, File)> {
        let Some(Argument::Descriptor(number, path)) = call.arguments.get(place) else { return None };
        if !path.starts_with(&self.root) {
            return None;
        }
        let link = PathBuf::from(format!("/proc/{}/fd/{number}", call.thread));
        // A descriptor that is closed already was none that the call could use.
        let (file, metadata) = self.open(&link, path)?;
        let known = self.inodes.get(&Identity::new(&metadata)).copied();
        let inode = known.or_else(|| {
            // Nameless, as a file of O_TMPFILE.
            let inode = (metadata.nlink() == 0 && metadata.is_file()).then(|| self.make(&metadata, None))?;
            self.compare_file(inode, &file, None);
            Some(inode)
        })?;
        Some((inode, file))
    }

    /// Returns the place of the path with this number that a call was given, if it is beneath the root.
    fn place(&mut self, call: &Call, number: usize, follows: bool) -> Option<Place> {
        let mut texts = call.arguments.iter().enumerate().filter_map(|(place, argument)| match argument {
            Argument::Text(path) => Some((place, path)),
            Argument::Descriptor(..) | Argument::Word(_) => None,
        });
        let (place, path) = texts.nth(number)?;
        let base = match place.checked_sub(1).and_then(|before| call.arguments.get(before)) {
            Some(Argument::Descriptor(_, base)) => base.clone(),
            _ if path.is_absolute() => PathBuf::new(),
            _ => fs::read_link(format!("/proc/{}/cwd", call.thread)).ok()?,
        };
        let mut path = base.join(path);
        if follows {
            path = path.canonicalize().unwrap_or(path);
        }
        let directory = path.parent()?.canonicalize().ok().filter(|path| path.starts_with(&self.root))?;
        let name = path.file_name()?.to_owned();
        match self.inode_at(&directory) {
            Some(inode) => Some(Place { directory: inode, path: directory, name }),
            None => {
                self.unseen.insert(format!("{} was made by no traced system call", directory.display()));
                None
            }
        }
    }

    /// Returns the known inode at a path, whose last part is not followed.
    fn inode_at(&self, path: &Path) -> Option<Inode> {
        self.inodes.get(&Identity::new(&fs::symlink_metadata(path).ok()?)).copied()
    }

    /// Makes the model have what a name is of.
    fn compare_entry(&mut self, place: &Place, is_new: IsNew) {
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
        let known = self.inodes.get(&Identity::new(&metadata)).copied();
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

    /// Makes an inode for a file that is new.
    fn make(&mut self, metadata: &Metadata, path: Option<&Path>) -> Inode {
        let object = object(metadata, path);
        let inode = self.model.make(object);
        self.inodes.insert(Identity::new(metadata), inode);
        inode
    }

    /// Makes the model have all names beneath a directory.
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

    /// Makes the model have the contents and the permissions of all files.
    fn compare_files(&mut self) {
        for (inode, path) in self.model.paths() {
            let path = self.root.join(path);
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            self.model.set_object(inode, object(&metadata, Some(&path)));
            if metadata.is_file() {
                self.compare_path(&path);
            }
        }
    }

    /// Makes the model have the contents of the file at a path, if there is one.
    fn compare_path(&mut self, path: &Path) {
        let Some((file, metadata)) = self.open(path, path) else { return };
        if let Some(inode) = self.inodes.get(&Identity::new(&metadata)).copied() {
            self.compare_file(inode, &file, None);
        }
    }

    /// Opens a file or directory to read it; `None` if it is gone, something else, or cannot be read, which
    /// is told of its name.
    fn open(&mut self, path: &Path, name: &Path) -> Option<(File, Metadata)> {
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

    fn compare_mapped(&mut self) {
        let mapped = std::mem::take(&mut self.mapped);
        mapped.iter().for_each(|mapped| self.compare_file(mapped.inode, &mapped.file, None));
        self.mapped = mapped;
    }

    /// Makes the model have the size of a file and its contents, of all of it or where a call wrote.
    fn compare_file(&mut self, inode: Inode, file: &File, written: Option<Range<u64>>) {
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

/// Returns the bytes that a call wrote, as far as its arguments and its descriptor tell.
fn written(call: &Call, state: &DescriptorState) -> Option<Written> {
    let is_appended = state.flags & OFlags::APPEND.bits() != 0 || has_flag(call, "RWF_APPEND");
    match (call.name.as_str(), word(call, 3)) {
        ("write" | "writev", _) | ("pwritev2", Some("-1")) => Some(Written::UpTo(state.position)),
        ("pwrite64" | "pwritev" | "pwritev2", Some(offset)) if !is_appended => {
            number(offset).map(Written::From)
        }
        _ => None,
    }
}

/// Returns the number of bytes that a call was given to write, if its arguments tell.
fn offered_length(call: &Call) -> Option<u64> {
    word(call, 2).filter(|_| matches!(call.name.as_str(), "write" | "pwrite64")).and_then(number)
}

/// Returns an argument that is neither a descriptor nor text.
fn word(call: &Call, place: usize) -> Option<&str> {
    match call.arguments.get(place) {
        Some(Argument::Word(word)) => Some(word),
        _ => None,
    }
}

/// Returns the number that a word is: decimal, or hexadecimal after `0x`.
fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok(),
        None => word.parse().ok(),
    }
}

/// Returns true for what the model has: files, directories and symbolic links.
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

fn make_fifo(path: &Path) -> rustix::io::Result<File> {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Returns the ranges of a file that are not holes; all of it where the file system does not tell holes.
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

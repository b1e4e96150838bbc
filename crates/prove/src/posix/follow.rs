//! Feeds the system calls of a program to the [`Model`]. Each call is handled after it has returned and while
//! its thread is held, so that its changes are read from the files themselves.
//!
//! A call only tells where to look. Changes are found by comparing names and contents with the model. So the
//! result of a call, which is not known yet, does not matter, and partial effects are recorded as they are.
//! Mapped files are compared at each call. At the end the whole tree is compared: differences then were made
//! in a way that no call showed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_block::{Bytes, Nanos, unix_time};
use rustix::fs::{Mode, OFlags};

use super::arguments::{Written, descriptor, offered_length, place, written};
use super::layout::{Inode, Layout};
use super::mapped::MappedFiles;
use super::mirror::{IsNew, Mirror};
use super::model::{Model, Name};
use super::tasks::{self, DescriptorState};
use crate::error::{Error, Result, cannot};
use crate::recording::{Event, Recording};
use crate::session::{CUT, Numbers, PowerSwitch};
use crate::subject::{AckBy, Lines};
use crate::trace::{Argument, Call, has_flag, kind, may_create};

/// Sync call that has returned, with an unknown result.
enum Sync {
    Everything,
    Inode(Inode),
    Range(Inode, Range<u64>),
    Written(Inode, Written),
}

/// Recording of a program, and facts about it.
pub(crate) struct Trail {
    pub(crate) recording: Recording,
    pub(crate) layout: Layout,
    /// Events at which the work begins and has ended.
    pub(crate) from: usize,
    pub(crate) until: usize,
    /// Acknowledgements of the program.
    pub(crate) numbers: Numbers,
    /// True if the end of the program is the only acknowledgement.
    pub(crate) by_exit: bool,
    /// Reasons why some operations of the program are missing from the recording.
    pub(crate) unseen: Vec<String>,
    /// Ways to write that are only partly visible.
    pub(crate) seen_in_part: Vec<String>,
    /// Remarks for the report.
    pub(crate) notes: Vec<String>,
}

/// Source of acknowledgements.
pub(crate) enum Promises {
    /// A FIFO at a path, created by the follower.
    Fifo(File, PathBuf),
    /// Function that returns the last acknowledgement so far.
    Elsewhere(Box<dyn Fn() -> Option<u64> + Send>),
}

impl Promises {
    /// Creates the FIFO at `control`.
    ///
    /// # Errors
    /// Those of mknod(2).
    pub(crate) fn through_fifo(control: &Path) -> Result<Self> {
        let fifo = make_fifo(control).map_err(cannot("make a FIFO for acknowledgements"))?;
        let path = control.canonicalize().map_err(cannot("find the FIFO for acknowledgements"))?;
        Ok(Self::Fifo(fifo, path))
    }
}

/// Follows the calls of one program and its children.
pub(crate) struct Follower {
    mirror: Mirror,
    mapped: MappedFiles,
    /// Sync calls of the current line, with their start times.
    pending: Vec<(Sync, Nanos)>,
    promises: Promises,
    numbers: Numbers,
    began: Nanos,
    from: usize,
    /// Power switch, if there is one, and the event at which the power was cut.
    power: Option<Arc<PowerSwitch>>,
    cut: Option<usize>,
    seen_in_part: BTreeSet<String>,
    notes: BTreeSet<String>,
}

impl Follower {
    /// Starts to follow a program. Everything below `root` counts as durable. Times count from `began`. The
    /// recording takes at most about `limit` bytes of memory.
    ///
    /// # Errors
    /// If something below `root` cannot be read, or exceeds the limit.
    pub(crate) fn start(
        root: &Path,
        promises: Promises,
        model: Model,
        began: Nanos,
        limit: Bytes,
    ) -> Result<Self> {
        let failed = cannot(format!("read {}", root.display()));
        let mut mirror = Mirror::new(root, model, limit).map_err(&failed)?;
        mirror.compare_names();
        if mirror.is_full() {
            let what = format!("the files in {} take more memory than {limit}", root.display());
            let remedy = "begin with fewer files, or allow more with --size (prove app)";
            return Err(Error::missing(what, remedy));
        }
        mirror.model.sync(Nanos(u64::MAX));
        let mut follower = Self {
            mirror,
            mapped: MappedFiles::default(),
            pending: Vec::new(),
            promises,
            numbers: Numbers::default(),
            began,
            from: 0,
            power: None,
            cut: None,
            seen_in_part: BTreeSet::new(),
            notes: BTreeSet::new(),
        };
        follower.mirror.model.set_time(follower.now(), follower.now());
        follower.from = follower.mirror.model.happened(Event::Marked("the work begins".to_owned()));
        Ok(follower)
    }

    /// Ends the recording where the power is cut.
    pub(crate) fn with_power(self, power: Option<Arc<PowerSwitch>>) -> Self {
        Self { power, ..self }
    }

    /// Returns true once the power was cut. The program is being killed then.
    pub(crate) fn is_cut(&self) -> bool {
        self.power.as_ref().is_some_and(|power| power.is_cut())
    }

    /// Returns true if further calls do not count: the power was cut, or the recording is full.
    fn is_over(&mut self) -> bool {
        if self.cut.is_none() && self.is_cut() {
            self.mirror.model.set_time(self.now(), self.now());
            self.cut = Some(self.mirror.model.happened(Event::Marked(CUT.to_owned())));
        }
        self.cut.is_some() || self.mirror.is_full()
    }

    /// Handles a call that has returned, whose thread is held. Its result is not known.
    pub(crate) fn returned(&mut self, call: &Call) {
        self.pending.clear();
        if self.is_over() {
            return;
        }
        let at = self.time(call);
        // A single thread made its stores before the call; other threads may have stored during it.
        let is_alone = self.mapped.is_alone(call.thread);
        self.mirror.model.set_time(at, if is_alone { at } else { self.now() });
        self.mapped.compare(&mut self.mirror);
        self.mirror.model.set_time(at, self.now());
        if matches!(self.promises, Promises::Elsewhere(_)) {
            self.acknowledged();
        }
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

    /// Handles the result of the latest call given to [`returned`](Self::returned).
    pub(crate) fn ended(&mut self, call: &Call) {
        let syncs = std::mem::take(&mut self.pending);
        match (kind(call), &call.result) {
            (way @ ("io_uring" | "aio"), _) => {
                let name = if way == "aio" { "Linux AIO" } else { "io_uring" };
                self.notes.insert(format!(
                    "plumb made {name} fail, because no system call shows what the program writes with it"
                ));
            }
            (_, Ok(result)) => {
                syncs.into_iter().for_each(|(sync, until)| self.persist(sync, until, *result));
            }
            _ => {}
        }
    }

    /// Drops the latest call given to [`returned`](Self::returned): it was not made.
    pub(crate) fn drop_last(&mut self) {
        self.pending.clear();
    }

    /// Notes that the thread was killed while it was held, so the call was read late.
    pub(crate) fn killed(&mut self, call: &Call) {
        let what = format!("a thread was killed during its system call {}", call.name);
        self.mirror.unseen.insert(format!("{what}, whose changes may be seen in part"));
    }

    /// Handles a sync call made on behalf of the program.
    pub(crate) fn synced_in_place(&mut self, path: &Path) {
        let inode = fs::metadata(path).ok().and_then(|found| self.mirror.known(&found));
        if let Some(inode) = inode {
            self.persist(Sync::Inode(inode), Nanos(u64::MAX), 0);
        }
    }

    /// Handles the end of the program, which counts as an acknowledgement if it `ended_well` and gave no
    /// other.
    pub(crate) fn finish(mut self, ended_well: bool) -> Trail {
        self.mirror.model.set_time(self.now(), self.now());
        let is_over = self.is_over();
        if !is_over {
            self.mapped.compare(&mut self.mirror);
            self.acknowledged();
        }
        let by_exit = ended_well && self.numbers.last().is_none() && !is_over;
        if by_exit {
            self.acknowledge(&Ok(1));
        }
        let ended = self.mirror.model.happened(Event::Marked("the work has ended".to_owned()));
        let commands = self.mirror.model.recording().commands.len();
        if !is_over {
            self.mirror.compare_names();
            self.mirror.compare_files();
        }
        let until = [self.mirror.full, self.cut].into_iter().flatten().fold(ended, usize::min);
        if let Some(command) = self.mirror.model.recording().commands.get(commands) {
            let spot = self.mirror.model.layout().spots.get(command.range.lba.0 as usize);
            let paths = self.mirror.model.paths();
            let path = spot.and_then(|spot| paths.get(&spot.inode())).map_or(Path::new("."), |path| path);
            self.mirror.unseen.insert(format!(
                "{} was changed in a way that no traced system call tells of, such as by a program that ran before",
                path.display()
            ));
        }
        Trail {
            layout: self.mirror.model.layout().clone(),
            from: self.from,
            until,
            numbers: self.numbers,
            by_exit,
            unseen: self.mirror.unseen.into_iter().collect(),
            seen_in_part: self.seen_in_part.into_iter().collect(),
            notes: self.notes.into_iter().collect(),
            recording: self.mirror.model.into_recording(),
        }
    }

    /// Returns the start of a call by the clock of the recording.
    fn time(&self, call: &Call) -> Nanos {
        call.at.since(self.began)
    }

    /// Returns the current time in whole microseconds, the precision of strace(1).
    fn now(&self) -> Nanos {
        let now = unix_time();
        Nanos(now.0 - now.0 % 1000).since(self.began)
    }

    /// Makes the effects of a sync call that returned `result` durable.
    fn persist(&mut self, sync: Sync, until: Nanos, result: i64) {
        match sync {
            Sync::Everything => self.mirror.model.sync(until),
            Sync::Inode(inode) => self.mirror.model.fsync(inode, until),
            Sync::Range(inode, range) => self.mirror.model.fsync_range(inode, range, until),
            Sync::Written(..) if result <= 0 => {}
            Sync::Written(inode, written) => {
                self.mirror.model.fsync_range(inode, written.range(result.unsigned_abs()), until);
            }
        }
    }

    /// Reads new acknowledgements.
    fn acknowledged(&mut self) {
        let mut bytes = Vec::new();
        let mut chunk = [0; 4096];
        let fifo = match &mut self.promises {
            Promises::Fifo(fifo, _) => fifo,
            Promises::Elsewhere(last) => {
                let last = last().filter(|last| Some(*last) > self.numbers.last());
                return last.into_iter().for_each(|number| self.acknowledge(&Ok(number)));
            }
        };
        while let Ok(read @ 1..) = fifo.read(&mut chunk) {
            bytes.extend_from_slice(&chunk[..read]);
        }
        let mut lines = Lines::new(AckBy::ControlFile);
        for line in lines.parse(&bytes).into_iter().chain(lines.end()) {
            self.acknowledge(&line);
        }
    }

    fn acknowledge(&mut self, line: &std::result::Result<u64, String>) {
        if let Some(number) = self.numbers.accept(line) {
            self.mirror.model.happened(Event::Acknowledged(number));
        }
    }

    fn opened(&mut self, call: &Call) {
        let is_truncated = has_flag(call, "O_TRUNC") || call.name == "creat";
        if !may_create(call) && !is_truncated {
            return;
        }
        let Some(place) = place(&mut self.mirror, call, 0, true) else { return };
        self.mirror.compare_entry(&place, IsNew(may_create(call)));
        if is_truncated {
            self.mirror.compare_path(&place.path.join(&place.name));
        }
    }

    fn truncated(&mut self, call: &Call) {
        if let Some(place) = place(&mut self.mirror, call, 0, true) {
            self.mirror.compare_path(&place.path.join(&place.name));
        }
    }

    fn renamed(&mut self, call: &Call) {
        let (from, to) = (place(&mut self.mirror, call, 0, false), place(&mut self.mirror, call, 1, false));
        if let (Some(from), Some(to)) = (&from, &to) {
            let names = [from, to].map(|place| Name { directory: place.directory, name: &place.name });
            let known = names.map(|name| self.mirror.model.entry(name));
            let real = [from, to].map(|place| self.mirror.inode_at(&place.path.join(&place.name)));
            match (known, real) {
                ([Some(moved), _], [None, Some(found)]) if moved == found => {
                    self.mirror.model.rename(names[0], names[1]);
                }
                ([Some(one), Some(other)], [Some(first), Some(second)])
                    if (one, other) == (second, first) && one != other =>
                {
                    self.mirror.model.exchange(names[0], names[1]);
                }
                _ => {}
            }
        }
        // The rest, including moves from and to directories outside.
        for place in from.into_iter().chain(to) {
            self.mirror.compare_entry(&place, IsNew(false));
        }
    }

    fn compare_named(&mut self, call: &Call, number: usize, is_new: IsNew) {
        if let Some(place) = place(&mut self.mirror, call, number, false) {
            self.mirror.compare_entry(&place, is_new);
        }
    }

    fn wrote(&mut self, call: &Call) {
        let place = if matches!(call.name.as_str(), "copy_file_range" | "splice") { 2 } else { 0 };
        let Some(Argument::Descriptor(number, path)) = call.arguments.get(place) else { return };
        if matches!(&self.promises, Promises::Fifo(_, control) if path == control) {
            return self.acknowledged();
        }
        let Some((inode, file)) = descriptor(&mut self.mirror, call, place) else { return };
        let state = DescriptorState::read(call.thread, *number);
        let written = written(call, &state);
        let offered = written.zip(offered_length(call)).map(|(written, length)| written.range(length));
        self.mirror.compare_file(inode, &file, offered);
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
            // Data written before the call is covered as well.
            Some(written) => self.pending.push((Sync::Written(inode, written), self.now())),
            None => {
                let how = match by_descriptor {
                    true => "through a descriptor with O_DSYNC or O_SYNC",
                    false => "with RWF_DSYNC or RWF_SYNC",
                };
                self.mirror
                    .unseen
                    .insert(format!("which bytes {} {how} made durable is not known", call.name));
            }
        }
    }

    fn synced(&mut self, call: &Call) {
        if let Some((inode, _)) = descriptor(&mut self.mirror, call, 0) {
            self.pending.push((Sync::Inode(inode), self.time(call)));
        }
    }

    fn synced_all(&mut self, call: &Call) {
        let Some(Argument::Descriptor(number, _)) = call.arguments.first() else { return };
        let found = fs::metadata(format!("/proc/{}/fd/{number}", call.thread));
        if found.is_ok_and(|found| found.dev() == self.mirror.device) {
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
        let Some((inode, file)) = descriptor(&mut self.mirror, call, 4).filter(|_| is_writable) else {
            return;
        };
        let Ok(metadata) = file.metadata() else { return };
        self.mapped.add(inode, metadata.ino(), file);
        self.seen_in_part.insert(
            "mapped memory was compared with its file at each system call: what it held between is not seen"
                .to_owned(),
        );
    }

    fn msynced(&mut self, call: &Call) {
        if has_flag(call, "MS_SYNC") {
            let at = self.time(call);
            let synced = self.mapped.synced(call, &self.mirror);
            self.pending.extend(synced.into_iter().map(|(inode, range)| (Sync::Range(inode, range), at)));
        }
    }
}

/// Creates a FIFO and opens its read end without waiting for a writer.
pub(crate) fn make_fifo(path: &Path) -> rustix::io::Result<File> {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

//! Identities of the threads of this machine, and the files of their descriptors: /proc (proc(5)).

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::sync::Arc;

use plumb_linux::tree::process::{field, name, status};
use plumb_linux::tree::{LiveTree, Tree as _};
use plumb_report::document::observation::ProcessIo;

use crate::event::Inode;
use crate::file_systems::{FileSystem, FileSystems};
use crate::inodes;
use crate::syncs::{Caller, Place, Processes, SyncedFile};

/// Number of refreshes after which threads are looked up again, since the number may belong to another thread
/// by then.
const THREADS_KEPT: u32 = 20;
/// Number of refreshes after which the mounts are read again.
const MOUNTS_KEPT: u32 = 200;

/// Lookup of processes with a cache for repeated queries.
#[derive(Debug)]
pub(crate) struct LiveProcesses {
    threads: HashMap<u32, Arc<Caller>>,
    files: HashMap<(u32, u32), Option<SyncedFile>>,
    /// Earlier files of the descriptors, so that a file closed since is still known.
    earlier: HashMap<(u32, u32), Option<SyncedFile>>,
    refreshed: u32,
    /// Mounted file systems; `None` until the first lookup.
    file_systems: Option<FileSystems>,
    /// Remaining number of directory entries to read in searches for paths.
    names_left: usize,
}

impl Default for LiveProcesses {
    fn default() -> Self {
        Self {
            threads: HashMap::new(),
            files: HashMap::new(),
            earlier: HashMap::new(),
            refreshed: 0,
            file_systems: None,
            names_left: inodes::NAMES_MAX,
        }
    }
}

impl LiveProcesses {
    /// Records that time has passed, so that descriptors may refer to other files.
    pub(crate) fn refresh(&mut self) {
        self.earlier = std::mem::take(&mut self.files);
        self.refreshed += 1;
        if self.refreshed.is_multiple_of(THREADS_KEPT) {
            self.threads.clear();
        }
        if self.refreshed.is_multiple_of(MOUNTS_KEPT) {
            self.file_systems = None;
        }
    }
}

impl Processes for LiveProcesses {
    fn caller(&mut self, thread: u32, fd: Option<u32>) -> Caller {
        let caller = self.process(thread);
        let (files, earlier) = (&mut self.files, &self.earlier);
        let file = fd.and_then(|fd| {
            let key = (caller.process, fd);
            let look = || file(thread, fd).or_else(|| earlier.get(&key).cloned().flatten());
            files.entry(key).or_insert_with(look).clone()
        });
        Caller { file, ..Caller::clone(&caller) }
    }

    fn process(&mut self, thread: u32) -> Arc<Caller> {
        Arc::clone(self.threads.entry(thread).or_insert_with(|| Arc::new(caller_of(thread))))
    }

    fn file_system(&mut self, number: u32) -> Option<Arc<FileSystem>> {
        self.file_systems.get_or_insert_with(FileSystems::read).numbered(number)
    }

    fn file_system_at(&mut self, disk: u32, sector: Option<u64>) -> Option<Arc<FileSystem>> {
        self.file_systems.get_or_insert_with(FileSystems::read).at(disk, sector)
    }

    fn open_file(&mut self, inode: Inode) -> Option<String> {
        inodes::open_file(inode)
    }

    fn place(&mut self, inode: Inode, path: Option<String>) -> Place {
        inodes::place(inode, path, &mut self.names_left)
    }
}

/// Returns the process of a thread and its ancestors; an empty one if the thread has ended.
fn caller_of(thread: u32) -> Caller {
    let process = status(&LiveTree, thread, "Tgid:").unwrap_or(0);
    let parent = |process: &u32| status(&LiveTree, *process, "PPid:").filter(|parent| *parent > 0);
    let parents = std::iter::successors(parent(&process), parent).collect();
    Caller { process, parents, name: name(&LiveTree, process), cgroup: cgroup(thread), file: None }
}

/// Returns the path of a task's cgroup: in the single hierarchy of version 2, otherwise of the controller
/// `blkio`, otherwise of the first one; empty if the task has ended (cgroups(7), "/proc/PID/cgroup").
fn cgroup(task: u32) -> String {
    let lines = LiveTree.text(&format!("/proc/{task}/cgroup")).unwrap_or_default();
    let fields = || lines.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let is_of =
        |wanted: &str| fields().find(|(controllers, _)| controllers.split(',').any(|one| one == wanted));
    let found = is_of("blkio").or_else(|| is_of("")).or_else(|| fields().next());
    found.map(|(_, path)| path.to_owned()).unwrap_or_default()
}

fn file(thread: u32, fd: u32) -> Option<SyncedFile> {
    let link = format!("/proc/{thread}/fd/{fd}");
    let found = fs::metadata(&link).ok()?;
    let is_device = found.file_type().is_block_device();
    let devices = if is_device { vec![found.rdev()] } else { vec![found.dev()] };
    Some(SyncedFile { path: fs::read_link(&link).ok()?.to_string_lossy().into_owned(), devices })
}

/// Reads the kernel's I/O counters of a process; `None` if it has ended.
pub(crate) fn io(process: u32) -> Option<ProcessIo> {
    let name = name(&LiveTree, process);
    let text = LiveTree.text(&format!("/proc/{process}/io")).unwrap_or_default();
    (!name.is_empty()).then(|| ProcessIo {
        process,
        name,
        read_calls_bytes: field(&text, "rchar:"),
        write_calls_bytes: field(&text, "wchar:"),
        read_bytes: field(&text, "read_bytes:"),
        write_bytes: field(&text, "write_bytes:"),
    })
}

/// Returns the difference between two readings.
pub(crate) fn io_since(before: &ProcessIo, after: ProcessIo) -> ProcessIo {
    let grown = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
    ProcessIo {
        read_calls_bytes: grown(before.read_calls_bytes, after.read_calls_bytes),
        write_calls_bytes: grown(before.write_calls_bytes, after.write_calls_bytes),
        read_bytes: grown(before.read_bytes, after.read_bytes),
        write_bytes: grown(before.write_bytes, after.write_bytes),
        ..after
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn this_process_is_found_with_its_files() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let process = std::process::id();
        let caller = LiveProcesses::default().caller(process, Some(file.as_raw_fd() as u32));
        let found = caller.file.unwrap();
        assert_eq!((caller.process, found.path.as_str()), (process, file.path().to_str().unwrap()));
        assert_eq!(found.devices, [file.as_file().metadata().unwrap().dev()]);
        assert_eq!(LiveProcesses::default().caller(u32::MAX, None), Caller::default());
    }

    #[test]
    fn a_process_is_known_by_those_that_it_descends_from() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let caller = LiveProcesses::default().caller(child.id(), None);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!((caller.process, caller.parents.first()), (child.id(), Some(&std::process::id())));
    }

    #[test]
    fn what_a_process_writes_is_counted() {
        let Some(before) = io(std::process::id()) else { panic!("this process is there") };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[0; 10_000]).unwrap();
        let since = io_since(&before, io(std::process::id()).unwrap());
        assert!(since.write_calls_bytes.unwrap() >= 10_000, "{since:?}");
        assert!(io(0).is_none());
    }
}

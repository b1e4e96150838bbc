//! Threads of a program under strace(1), their descriptors and their mappings, from proc(5). One thread is
//! held after its call; the others run, or are held at calls of their own.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;

use plumb_linux::tree::LiveTree;
use plumb_linux::tree::process::{field, numbers};

use crate::trace::{is_held, traced_by, tracer};

/// State of an open descriptor: proc_pid_fdinfo(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DescriptorState {
    pub(super) position: u64,
    pub(super) flags: u32,
}

impl DescriptorState {
    pub(super) fn read(thread: u32, descriptor: i64) -> Self {
        let text = fs::read_to_string(format!("/proc/{thread}/fdinfo/{descriptor}")).unwrap_or_default();
        let position = field(&text, "pos:").unwrap_or(0);
        let flags = field::<String>(&text, "flags:");
        let flags = flags.and_then(|flags| u32::from_str_radix(&flags, 8).ok()).unwrap_or(0);
        Self { position, flags }
    }
}

/// Line of proc_pid_maps(5).
pub(super) struct Mapping {
    pub(super) memory: Range<u64>,
    pub(super) offset: u64,
    pub(super) inode: u64,
}

impl Mapping {
    /// Returns the mappings of a thread.
    pub(super) fn read(thread: u32) -> Vec<Self> {
        let maps = fs::read_to_string(format!("/proc/{thread}/maps")).unwrap_or_default();
        maps.lines().filter_map(Self::parse).collect()
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let hexadecimal = |word: &str| u64::from_str_radix(word, 16).ok();
        let memory = hexadecimal(start)?..hexadecimal(end)?;
        let offset = hexadecimal(words.nth(1)?)?;
        Some(Self { memory, offset, inode: words.nth(1)?.parse().ok()? })
    }
}

/// Returns true if another thread may have moved the position of a descriptor since a write of `thread` moved
/// it. A traced thread is held until strace(1) has reported its call, so such a thread is held now, or was
/// when its own call was reported. Moves by lseek(2) or read(2) in the meantime are not detected.
pub(super) fn may_have_moved(thread: u32, file: &File, state: &DescriptorState) -> bool {
    let Ok(metadata) = file.metadata() else { return true };
    let is_shared = |task: u32| {
        let Ok(open) = fs::read_dir(format!("/proc/{task}/fd")) else { return true };
        open.flatten().any(|entry| {
            let is_same =
                |found: fs::Metadata| (found.dev(), found.ino()) == (metadata.dev(), metadata.ino());
            let number = entry.file_name().to_string_lossy().parse().unwrap_or(-1);
            fs::metadata(entry.path()).is_ok_and(is_same) && DescriptorState::read(task, number) == *state
        })
    };
    let others = processes(thread).into_iter().flat_map(threads).filter(|task| *task != thread);
    others.filter(|task| is_held(*task)).any(is_shared)
}

/// Returns the number of threads of the program that can store to files with these numbers.
pub(super) fn mapping(thread: u32, files: &[u64]) -> usize {
    let maps = |process: &u32| Mapping::read(*process).iter().any(|mapping| files.contains(&mapping.inode));
    processes(thread).into_iter().filter(maps).flat_map(threads).count()
}

/// Returns the processes that have the same tracer as a thread.
fn processes(thread: u32) -> Vec<u32> {
    tracer(thread).map(traced_by).unwrap_or_default()
}

fn threads(process: u32) -> Vec<u32> {
    numbers(&LiveTree, &format!("/proc/{process}/task"))
}

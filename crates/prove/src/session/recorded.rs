//! Recorded work, and the options of the recording.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plumb_block::{Bytes, Nanos, Op, unix_time};
use plumb_caches::CacheOnOneDrive;
use plumb_report::document::proof::{RecordingFacts, TimelineItem};
use serde::{Deserialize, Serialize};

use super::power::PowerSwitch;
use crate::drives::FIRST;
use crate::error::{Error, Result};
use crate::file_system::{FileSystem, FileSystemOptions};
use crate::oracle::Moments;
use crate::posix::{Layout, Trail};
use crate::recording::{Event, Recording};
use crate::trace::{Injection, SyncCall};

/// Options of a recording.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// Capacity of the drive. Only written blocks take memory. Without a drive, the memory limit of the
    /// recording.
    pub size: Bytes,
    /// Logical block of the drive, 512 to 4096 bytes, which never tears. ext4 overwrites its superblock of
    /// 1024 bytes, so a drive that tears it leaves a file system that no kernel mounts, whatever a program
    /// does.
    pub logical_block: Bytes,
    /// File system on the drive.
    pub file_system: FileSystem,
    /// Options to create and mount it.
    pub file_system_options: FileSystemOptions,
    /// Existing directory for the mount point and the files of the recording.
    pub directory: PathBuf,
    /// Time limit of each program.
    pub timeout: Nanos,
    /// Write-back cache between the file system and the drive.
    pub cache: Option<CacheOnOneDrive>,
    /// Switch that cuts the power while the program runs, if there is one.
    pub power: Option<Arc<PowerSwitch>>,
}

impl RecordOptions {
    /// Checks that the options fit together, and fit drives with these profiles.
    ///
    /// # Errors
    /// A usage error that names the option.
    pub fn check(&self, drives: &[String]) -> Result<()> {
        let (fs, FileSystemOptions { make, mount, further }) = (self.file_system, &self.file_system_options);
        let has_cache = drives.iter().any(|profile| profile.starts_with("cache:"));
        let names = further.iter().map(|further| &*further.directory);
        let names: BTreeSet<&Path> = names.chain([Path::new(FIRST)]).collect();
        let least = Bytes::mib(fs.size_min_mib());
        let why = match further.first().map(|first| first.directory.display()) {
            Some(at) if fs.is_posix() => {
                format!(
                    "--drive-at {at}: --fs {fs} has no drive: leave it out, or choose ext4, xfs, btrfs or f2fs"
                )
            }
            Some(at) if has_cache => {
                format!("--drive-at {at}: a write-back cache has one drive: leave out either")
            }
            Some(at) if names.len() <= further.len() => format!(
                "--drive-at {at}: two drives have the same name (`first` is the first one): name another one"
            ),
            _ if fs.is_posix() && !(mount.is_empty() && make.is_empty()) => {
                format!("--mount-options, --mkfs-options: with --fs {fs} nothing is mounted: leave them out")
            }
            _ if fs.is_posix() && drives != ["volatile"] => {
                format!("--fs {fs} has no drive: leave --drive out")
            }
            _ if self.size < least => format!("--size {}: {fs} needs {least} at least", self.size),
            _ => return Ok(()),
        };
        Err(Error::usage(why))
    }
}

/// Recorded work of a subject.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordedWork {
    /// Commands that the drive received since it was blank, and the acknowledgements. Saved separately from
    /// the rest.
    #[serde(skip, default = "no_recording")]
    pub recording: Arc<Recording>,
    /// Event at which the work begins. Everything before it is durable.
    pub from: usize,
    /// Event at which the work ended.
    pub until: usize,
    /// True if the power was cut on request at the end of the work, and no earlier cut is explored.
    #[serde(default)]
    pub is_cut: bool,
    /// Facts about the recording for the report.
    pub facts: RecordingFacts,
    /// Time since 1970 of the recorder's zero, to convert other clocks.
    #[serde(with = "system_time")]
    pub began: Nanos,
    /// Reason why the work ended early. The recording until then counts.
    pub ended_because: Option<String>,
    /// System calls of the work that change or sync something, by the recorder's clock, if traced.
    pub calls: Vec<TimelineItem>,
    /// Reason why the system calls were not traced.
    pub untraced_because: Option<String>,
    /// Write-back cache of the recording, which recovers each state.
    pub cache: Option<CacheOnOneDrive>,
    /// Options of the file system, used to mount each state.
    #[serde(default)]
    pub file_system_options: FileSystemOptions,
    /// Sync calls that the work lacked at an acknowledgement, those most likely to matter first.
    #[serde(skip)]
    pub missing_syncs: Vec<Injection>,
    /// Sync calls of the work, in the order of their returns, if traced in this run.
    #[serde(skip)]
    pub sync_calls: Vec<SyncCall>,
    /// Numbers, from 1, of the sync calls of the work that are followed by changes.
    #[serde(default)]
    pub syncs: Vec<u64>,
    /// Meaning of the blocks of a work recorded from system calls; `None` for a drive.
    #[serde(default)]
    pub layout: Option<Layout>,
    /// Moments of the work, for the comparison with its states if there is no checker; `None` if its calls
    /// were not followed. Saved separately.
    #[serde(skip)]
    pub moments: Option<Arc<Moments>>,
    /// Reasons why some operations of the work are missing from the recording.
    #[serde(default)]
    pub unseen: Vec<String>,
    /// Ways to write that are only partly recorded.
    #[serde(default)]
    pub seen_in_part: Vec<String>,
    /// Remarks for the report.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl RecordedWork {
    /// Creates a recording whose work are the events of this range, without further facts.
    pub(crate) fn new(recording: Recording, from: usize, until: usize) -> Self {
        Self {
            facts: facts(&recording, from, until),
            recording: Arc::new(recording),
            from,
            until,
            began: unix_time(),
            is_cut: false,
            ended_because: None,
            calls: Vec::new(),
            untraced_because: None,
            cache: None,
            file_system_options: FileSystemOptions::default(),
            missing_syncs: Vec::new(),
            sync_calls: Vec::new(),
            syncs: Vec::new(),
            layout: None,
            moments: None,
            unseen: Vec::new(),
            seen_in_part: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Describes the time of a requested power cut; `None` without one.
    pub fn cut_after(&self) -> Option<String> {
        let events = self.is_cut.then(|| &self.recording.events[..self.until])?;
        let at = events.last().map_or(0.0, |(at, _)| at.as_secs_f64());
        let calls: Vec<&TimelineItem> =
            self.calls.iter().take_while(|call| call.until.is_some_and(|until| until <= at)).collect();
        let number = calls.len();
        let call = calls.last().map(|last| format!("system call {number}, {}", last.label));
        let acknowledged = events.iter().rev().find_map(|(_, event)| match event {
            Event::Acknowledged(number) => Some(format!("acknowledgement {number}")),
            _ => None,
        });
        let after: Vec<String> = acknowledged.into_iter().chain(call).collect();
        Some(if after.is_empty() { "the start".to_owned() } else { after.join(" and ") })
    }

    /// Adds the moments from the system calls of a work that was recorded on a drive.
    pub(crate) fn with_trail(mut self, trail: Trail) -> Self {
        let Trail { recording, layout, from, until, unseen, seen_in_part, notes, .. } = trail;
        self.moments = Some(Arc::new(Moments::new(Arc::new(recording), layout, from..until)));
        self.unseen.extend(unseen);
        self.seen_in_part.extend(seen_in_part);
        self.notes.extend(notes);
        self
    }

    /// Adds the moments from the recording itself, if it is one of system calls.
    pub(crate) fn with_moments(mut self) -> Self {
        if let Some(layout) = &self.layout {
            let work = self.from..self.until;
            self.moments = Some(Arc::new(Moments::new(Arc::clone(&self.recording), layout.clone(), work)));
        }
        self
    }
}

/// Serialisation of times since 1970, in the format of serde for the standard library.
mod system_time {
    use super::{Deserialize as _, Duration, Nanos, Serialize as _, SystemTime};

    pub(super) fn serialize<S: serde::Serializer>(time: &Nanos, to: S) -> Result<S::Ok, S::Error> {
        (SystemTime::UNIX_EPOCH + Duration::from(*time)).serialize(to)
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Nanos, D::Error> {
        let time = SystemTime::deserialize(from)?;
        Ok(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().into())
    }
}

fn no_recording() -> Arc<Recording> {
    Arc::new(Recording::of_blank(Bytes(0), Bytes(512)))
}

/// Counts the operations during the work.
fn facts(recording: &Recording, from: usize, until: usize) -> RecordingFacts {
    let mut facts = RecordingFacts {
        seconds: recording.events.last().map_or(0.0, |(at, _)| at.as_secs_f64()),
        ..RecordingFacts::default()
    };
    for (_, event) in &recording.events[from..until] {
        match event {
            Event::Submitted(id) => {
                let command = &recording.commands[id.0 as usize];
                let count = match command.op {
                    Op::Write { .. } => &mut facts.writes,
                    Op::Flush => &mut facts.flushes,
                    _ => &mut facts.discards,
                };
                *count += 1;
                facts.write_bytes += command.contents.len() as u64 * recording.logical_block.0;
            }
            Event::Acknowledged(_) => facts.acknowledgements += 1,
            _ => {}
        }
    }
    facts
}

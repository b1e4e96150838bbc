//! A subject recorded: on a blank drive in memory, attached as a block device, with a file system on it.
//!
//! ```text
//!   subject ─► file system ─► /dev/loopN or /dev/ublkbN ─► serve ─► [write-back cache] ─► Recorder ─► drive in memory
//! ```
//! With a cache the drive is two: that which is cached, and behind it that of the log.
//! mkfs and what the subject sets up are recorded, but no cut happens before the subject's work begins, nor after it has ended:
//! what unmounting writes is not judged.
//!
//! Everything that goes through the mount is done by a thread with descriptors of its own ([`plumb_linux::apart`]): it waits
//! for this very process, which could not be killed otherwise.

mod acknowledged;
mod drive;
mod here;
mod self_test;
mod traced;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use plumb_block::{Bytes, Op, in_one_line};
use plumb_linux::apart;
use plumb_report::document::proof::{RecordingFacts, TimelineItem};
use plumb_targets::cache::CacheOnOneDrive;

pub(crate) use traced::record_traced;
pub use traced::record_with_calls;

pub(crate) use drive::attach;

use acknowledged::Acknowledgements;
use drive::Drive;
use serde::{Deserialize, Serialize};
use traced::Trace;

use crate::error::{Error, ErrorKind, Result, cannot};
use crate::file_system::FileSystem;
use crate::mount_point::MountPoint;
use crate::recording::{Event, Recording};
use crate::subject::{Lines, Program, Subject};
use crate::trace::{Injection, Traced, Tracer};

/// How to record.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// Capacity of the drive. It takes memory as far as it is written.
    pub size: Bytes,
    /// Its logical block, 512 to 4096 bytes: what never tears. ext4 writes its superblock of 1024 bytes in place, so that a drive
    /// which tears it leaves a file system that no kernel mounts, whatever a program does.
    pub logical_block: Bytes,
    /// The file system.
    pub file_system: FileSystem,
    /// Where the mount point and what belongs to the recording is made: an existing directory.
    pub directory: PathBuf,
    /// How long each program may take.
    pub timeout: Duration,
    /// The write-back cache that stands between the file system and the drive.
    pub cache: Option<CacheOnOneDrive>,
}

/// A subject's work, recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recorded {
    /// All that the drive was asked since it was blank, and the acknowledgements. It is kept apart from the rest.
    #[serde(skip, default = "no_recording")]
    pub recording: Arc<Recording>,
    /// The event at which the work begins: all before it is durable.
    pub from: usize,
    /// The event at which it has ended.
    pub until: usize,
    /// What the report says of it.
    pub facts: RecordingFacts,
    /// When the recorder's clock was at zero, to hold other clocks against it.
    pub began: SystemTime,
    /// Why the work ended early; what was recorded until then counts.
    pub ended_because: Option<String>,
    /// The system calls of the work that change or sync something, by the recorder's clock, if they were traced.
    pub calls: Vec<TimelineItem>,
    /// Why they were not.
    pub untraced_because: Option<String>,
    /// The cache that stood between, of which each state is to be recovered.
    pub cache: Option<CacheOnOneDrive>,
    /// Sync calls that it lacked when it acknowledged, the likeliest to matter first.
    #[serde(skip)]
    pub missing_syncs: Vec<Injection>,
}

fn no_recording() -> Arc<Recording> {
    Arc::new(Recording::of_blank(Bytes(0), Bytes(512)))
}

/// Records the work of `subject` on a blank drive in memory, or over a cache on one.
///
/// # Errors
/// If nothing could be recorded; nothing is left behind then. A subject that fails in its work after an acknowledgement, or a
/// `stop` during the work, is no error: what was recorded until then is returned.
pub fn record(subject: &dyn Subject, options: &RecordOptions, stop: &AtomicBool) -> Result<Recorded> {
    work_recorded(subject, options, None, stop).map(|(recorded, _)| recorded)
}

/// The same with the system calls of the work, if a trace is asked for.
fn work_recorded(
    subject: &dyn Subject,
    options: &RecordOptions,
    trace: Option<Trace<'_>>,
    stop: &AtomicBool,
) -> Result<(Recorded, Traced)> {
    here::check(options)?;
    let serialised_because = self_test::serialised_because()?;
    if stop.load(Ordering::Acquire) {
        return Err(interrupted());
    }
    let mount_point = MountPoint::new(&options.directory)?;
    let drive = Drive::blank(options.size, options.logical_block, options.cache);
    let acknowledgements = Arc::new(Acknowledgements::of(drive.recorder.clone()));
    let mut attached = drive.attach(Some(acknowledgements.control_file()))?;
    let steps = Steps {
        subject,
        trace,
        options,
        device: attached.path().to_owned(),
        control: attached.control_file(),
        mount_point: mount_point.path(),
        drive: &drive,
        acknowledgements: &acknowledgements,
        stop,
    };
    let worked = apart::run(|| steps.run()).map_err(cannot("start a thread"))?;
    let detached = attached.detach();
    let Worked { from, until, ended_because, traced } = worked?;
    detached?;
    let recording = Arc::new(drive.recorder.recording());
    let mut facts = facts(&recording, from, until);
    facts.size = options.size.0;
    facts.attached_by = attached.by().to_owned();
    facts.serialised_because = serialised_because;
    let ack = subject.program().map(|program| program.ack).unwrap_or_default();
    facts.acknowledged_by = (facts.acknowledgements > 0).then(|| ack.name().to_owned());
    let recorded = Recorded {
        recording,
        from,
        until,
        facts,
        began: drive.began,
        ended_because,
        calls: Vec::new(),
        untraced_because: None,
        cache: options.cache,
        missing_syncs: Vec::new(),
    };
    Ok((recorded, traced))
}

fn interrupted() -> Error {
    Error::new(ErrorKind::NotMeasured, "interrupted before the work began: nothing was recorded")
}

/// What is done in the mount.
struct Steps<'a> {
    subject: &'a dyn Subject,
    trace: Option<Trace<'a>>,
    options: &'a RecordOptions,
    device: PathBuf,
    control: PathBuf,
    mount_point: &'a Path,
    drive: &'a Drive,
    acknowledgements: &'a Acknowledgements,
    stop: &'a AtomicBool,
}

/// What came of it.
struct Worked {
    /// At which events the work begins and has ended.
    from: usize,
    until: usize,
    /// Why it ended early.
    ended_because: Option<String>,
    traced: Traced,
}

impl Steps<'_> {
    fn run(&self) -> Result<Worked> {
        let file_system = self.options.file_system;
        file_system.make(&self.device)?;
        let mounted = file_system.mount(&self.device, self.mount_point)?;
        self.subject.set_up(mounted.path())?;
        let tracer = self.trace.as_ref().map(|trace| trace.begin(mounted.path())).transpose()?;
        self.sync(mounted.path()).map_err(cannot(format!("sync {}", mounted.path().display())))?;
        if self.stop.load(Ordering::Acquire) {
            return Err(interrupted());
        }
        let from = self.mark("the work begins");
        let worked = match (&self.trace, &tracer) {
            (Some(trace), Some(tracer)) => self.work(mounted.path(), Some(trace.program(tracer))),
            _ => self.work(mounted.path(), self.subject.program()),
        };
        let until = self.mark("the work has ended");
        let traced = tracer.map_or_else(|| Ok(Traced::default()), Tracer::finish)?;
        // A program that was told of its wrong acknowledgement has failed for that.
        let failed = self.acknowledgements.problem().or(worked.err());
        let ended_because = match failed {
            // The first call of all starts the program.
            Some(error) if self.trace.is_some() && traced.calls.is_empty() => {
                let what = format!("its system calls cannot be traced: {error}");
                return Err(Error::new(ErrorKind::NotTraced, what));
            }
            Some(error) if self.acknowledgements.last().is_none() => return Err(error),
            failed => failed.map(|error| in_one_line(&error)),
        };
        mounted.unmount()?;
        Ok(Worked { from, until, ended_because, traced })
    }

    /// The work, which `program` does if there is one.
    fn work(&self, place: &Path, program: Option<Program>) -> Result<()> {
        let Some(program) = program else {
            return self.subject.work(place, &mut |number| self.acknowledgements.take(&Ok(number)));
        };
        let mut lines = Lines::of(program.ack);
        let mut said = |bytes: &[u8]| {
            lines.take(bytes).iter().for_each(|line| self.acknowledgements.take(line));
        };
        let worked = program.run(place, &self.control, &mut said, self.options.timeout, self.stop);
        lines.end().iter().for_each(|line| self.acknowledgements.take(line));
        worked
    }

    /// Makes all that was written until now durable.
    fn sync(&self, place: &Path) -> io::Result<()> {
        if self.options.file_system != FileSystem::None {
            rustix::fs::syncfs(File::open(place)?)?;
        }
        // A file system without anything dirty sends no flush.
        File::options().write(true).open(&self.device)?.sync_all()
    }

    /// Puts down how far it has come, and how many events there are then.
    fn mark(&self, what: &str) -> usize {
        self.drive.recorder.happened(Event::Marked(what.to_owned()))
    }
}

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

//! A subject recorded: on a blank drive in memory, attached as a block device, with a file system on it.
//!
//! ```text
//!   subject ─► file system ─► /dev/loopN ─► serve::attach ─► [what stands between] ─► Recorder ─► drive in memory
//! ```
//! mkfs and what the subject sets up are recorded, but no cut happens before the subject's work begins, nor after it has ended:
//! what unmounting writes is not judged.
//!
//! Everything that goes through the mount is done by a thread with descriptors of its own ([`plumb_linux::apart`]): it waits
//! for this very process, which could not be killed otherwise.

mod acknowledged;
mod here;
mod self_test;
mod traced;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use plumb_block::{Bytes, Clock, Device, Nanos, Op, RealClock, in_one_line};
use plumb_linux::apart;
use plumb_report::document::proof::{RecordingFacts, TimelineItem};
use plumb_serve::ExportError;
use plumb_serve::attach::{AttachOptions, Attachment, ControlFile};

pub(crate) use traced::record_traced;
pub use traced::record_with_calls;

use acknowledged::Acknowledgements;
use serde::{Deserialize, Serialize};

use crate::file_system::{FileSystem, FileSystemError};
use crate::recording::{Event, Recorder, Recording};
use crate::state_device::StateDevice;
use crate::subject::{Lines, Subject, SubjectError};
use crate::trace::{Injection, TraceError};

/// So long each command is in flight at least: as on a slow flash drive, so that what is sent side by side is recorded so.
const IN_FLIGHT_MIN: Nanos = Nanos::micros(200);

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
    #[serde(default)]
    pub calls: Vec<TimelineItem>,
    /// Why they were not.
    #[serde(default)]
    pub untraced_because: Option<String>,
    /// Sync calls that it lacked when it acknowledged, the likeliest to matter first.
    #[serde(skip)]
    pub missing_syncs: Vec<Injection>,
}

fn no_recording() -> Arc<Recording> {
    Arc::new(Recording::of_blank(Bytes(0), Bytes(512)))
}

/// Nothing was recorded.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Something is missing here, and nothing was begun.
    #[error("cannot record here: {what}; {remedy}")]
    Missing {
        /// What.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// The drive could not be attached, or taken away.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The file system.
    #[error(transparent)]
    FileSystem(#[from] FileSystemError),
    /// The subject failed before it acknowledged anything.
    #[error(transparent)]
    Subject(#[from] SubjectError),
    /// No system call of the subject was seen before it failed: strace(1) is missing, or may not trace.
    #[error("its system calls cannot be traced: {0}")]
    NotTraced(SubjectError),
    /// The trace cannot be read, or a sync call failed that was made in the program's place.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A call failed.
    #[error("cannot {operation}: {source}")]
    Os {
        /// What was being done.
        operation: String,
        /// Why not.
        source: std::io::Error,
    },
    /// It was interrupted before the work began.
    #[error("interrupted before the work began: nothing was recorded")]
    Interrupted,
}

/// What stands between the recorder and the block device: it is given the recorded drive.
pub type Stack<'a> = &'a dyn Fn(Arc<dyn Device>) -> plumb_block::Result<Arc<dyn Device>>;

/// Records the work of `subject` on a blank drive in memory.
///
/// # Errors
/// If nothing could be recorded; nothing is left behind then. A subject that fails in its work after an acknowledgement, or a
/// `stop` during the work, is no error: what was recorded until then is returned.
pub fn record(
    subject: &dyn Subject,
    options: &RecordOptions,
    stop: &AtomicBool,
) -> Result<Recorded, SessionError> {
    record_under(subject, options, &|drive| Ok(drive), stop)
}

/// Records what arrives at a drive beneath something else, such as a write-back cache, over which the subject works.
///
/// # Errors
/// As [`record`].
pub fn record_under(
    subject: &dyn Subject,
    options: &RecordOptions,
    stack: Stack<'_>,
    stop: &AtomicBool,
) -> Result<Recorded, SessionError> {
    here::check(options)?;
    let serialised_because = self_test::serialised_because()?;
    if stop.load(Ordering::Acquire) {
        return Err(SessionError::Interrupted);
    }
    let mount_point = here::mount_point(&options.directory)?;
    let drive = Drive::blank(options.size, options.logical_block);
    let acknowledgements = Arc::new(Acknowledgements::of(drive.recorder.clone()));
    let mut attachment = drive.attach(stack, Some(acknowledgements.control_file()))?;
    let steps = Steps {
        subject,
        options,
        device: attachment.path().to_owned(),
        control: attachment.control_file().unwrap_or_default(),
        mount_point: mount_point.path(),
        drive: &drive,
        acknowledgements: &acknowledgements,
        stop,
    };
    let worked = apart::run(|| steps.run()).map_err(os(|| "start a thread".to_owned()))?;
    let detached = attachment.detach();
    let (from, until, ended_because) = worked?;
    detached?;
    let recording = Arc::new(drive.recorder.recording());
    let mut facts = facts(&recording, from, until);
    facts.serialised_because = serialised_because;
    let ack = subject.program().map(|program| program.ack).unwrap_or_default();
    facts.acknowledged_by = (facts.acknowledgements > 0).then(|| ack.name().to_owned());
    Ok(Recorded {
        recording,
        from,
        until,
        facts,
        began: drive.began,
        ended_because,
        calls: Vec::new(),
        untraced_because: None,
        missing_syncs: Vec::new(),
    })
}

/// A drive in memory that is recorded.
struct Drive {
    recorder: Recorder,
    device: Arc<dyn Device>,
    began: SystemTime,
}

impl Drive {
    fn blank(size: Bytes, logical_block: Bytes) -> Self {
        let (clock, began) = (Arc::new(RealClock::start()), SystemTime::now());
        let blank = Arc::new(Recording::of_blank(size, logical_block));
        let drive = StateDevice::new(blank, Arc::clone(&clock) as Arc<dyn Clock>);
        let recorder = Recorder::of_blank(&drive.info(), clock).with_in_flight_min(IN_FLIGHT_MIN);
        let device = recorder.device(Arc::new(drive));
        Self { recorder, device, began }
    }

    /// Attaches what `stack` makes of it.
    fn attach(&self, stack: Stack<'_>, control: Option<ControlFile>) -> Result<Attachment, SessionError> {
        let device = stack(Arc::clone(&self.device)).map_err(ExportError::from)?;
        Ok(attach(device, "prove", &AttachOptions { control, ..AttachOptions::default() })?)
    }
}

/// Attaches a device under a name that no other has.
pub(crate) fn attach(
    device: Arc<dyn Device>,
    what: &str,
    options: &AttachOptions,
) -> Result<Attachment, ExportError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("{what}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    Attachment::new(device, &name, options)
}

/// What is done in the mount.
struct Steps<'a> {
    subject: &'a dyn Subject,
    options: &'a RecordOptions,
    device: PathBuf,
    control: PathBuf,
    mount_point: &'a Path,
    drive: &'a Drive,
    acknowledgements: &'a Acknowledgements,
    stop: &'a AtomicBool,
}

impl Steps<'_> {
    /// At which events the work begins and has ended, and why it ended early.
    fn run(&self) -> Result<(usize, usize, Option<String>), SessionError> {
        let file_system = self.options.file_system;
        file_system.make(&self.device)?;
        let mounted = file_system.mount(&self.device, self.mount_point)?;
        self.subject.set_up(mounted.path())?;
        self.sync(mounted.path()).map_err(os(|| format!("sync {}", mounted.path().display())))?;
        if self.stop.load(Ordering::Acquire) {
            return Err(SessionError::Interrupted);
        }
        let from = self.mark("the work begins");
        let worked = self.work(mounted.path());
        let until = self.mark("the work has ended");
        // A program that was told of its wrong acknowledgement has failed for that.
        let failed = self.acknowledgements.problem().or(worked.err());
        let ended_because = match failed {
            Some(error) if self.acknowledgements.last().is_none() => return Err(error.into()),
            failed => failed.map(|error| in_one_line(&error)),
        };
        mounted.unmount()?;
        Ok((from, until, ended_because))
    }

    fn work(&self, place: &Path) -> Result<(), SubjectError> {
        let Some(program) = self.subject.program() else {
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
        size: recording.size.0,
        attached_by: "loop".to_owned(),
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

fn os(operation: impl FnOnce() -> String) -> impl FnOnce(io::Error) -> SessionError {
    |source| SessionError::Os { operation: operation(), source }
}

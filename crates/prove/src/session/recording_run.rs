//! Recording of a work, from the blank drive to the unmount.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::{Bytes, in_one_line, unix_time};
use plumb_linux::isolated_thread;
use plumb_report::document::proof::RecordingFacts;

use super::acknowledged::Acknowledgements;
use super::drive::Drive;
use super::power::PowerSwitch;
use super::reachable_file::{ReachableFile, with_hint};
use super::recorded::{RecordOptions, RecordedWork};
use super::strace::Trace;
use super::{here, self_test};
use crate::error::{Error, ErrorKind, Result, cannot};
use crate::file_system::MountedFileSystem;
use crate::mount_point::MountPoint;
use crate::posix::{Follower, Model, Promises, Trail, Unwritten};
use crate::recording::Event;
use crate::subject::{Lines, Program, Subject};
use crate::trace::{TracedCalls, Tracer};

/// Block size of the moments of a work.
const MOMENT_BLOCK: Bytes = Bytes::kib(4);

/// Records the work of `subject` on a blank drive in memory, or on a cache.
///
/// # Errors
/// If nothing could be recorded; everything created is removed then. A subject that fails in its work after
/// an acknowledgement, or a `stop` during the work, is not an error: the recording so far is returned.
pub fn record(subject: &dyn Subject, options: &RecordOptions, stop: &AtomicBool) -> Result<RecordedWork> {
    work_recorded(subject, options, None, stop).map(|(recorded, _)| recorded)
}

/// Records the work, under strace(1) if a trace is given. Also returns the system calls.
pub(super) fn work_recorded(
    subject: &dyn Subject,
    options: &RecordOptions,
    trace: Option<Trace<'_>>,
    stop: &AtomicBool,
) -> Result<(RecordedWork, TracedCalls)> {
    here::check(options)?;
    let serialised_because = self_test::serialised_because()?;
    if stop.load(Ordering::Acquire) {
        return Err(interrupted());
    }
    let mount_point = MountPoint::new(&options.directory)?;
    let drive =
        Drive::blank(options.size, options.logical_block, &options.file_system_options, options.cache);
    let acknowledgements = Arc::new(Acknowledgements::new(drive.recorder.clone()));
    let mut attached = drive.attach(Some(acknowledgements.control_file()))?;
    let steps = Steps {
        subject,
        trace,
        options,
        devices: attached.paths(),
        control: attached.control_file(),
        mount_point: mount_point.path(),
        drive: &drive,
        acknowledgements: &acknowledgements,
        stop,
    };
    let worked = isolated_thread::run(|| steps.run()).map_err(cannot("start a thread"))?;
    let detached = attached.detach();
    let WorkResult { from, until, is_cut, ended_because, by_exit, traced, trail } = worked?;
    detached?;
    let mut recorded = RecordedWork::new(drive.recorder.recording(), from, until);
    let facts = &mut recorded.facts;
    facts.size = options.size.0;
    facts.attached_by = attached.by().to_owned();
    facts.serialised_because = serialised_because;
    let ack = subject.program().map(|program| program.ack).unwrap_or_default();
    let by = if by_exit { RecordingFacts::BY_EXIT } else { ack.name() };
    facts.acknowledged_by = (facts.acknowledgements > 0).then(|| by.to_owned());
    let file_system_options = options.file_system_options.clone();
    let (began, cache) = (drive.began, options.cache);
    let recorded = RecordedWork { began, is_cut, ended_because, cache, file_system_options, ..recorded };
    Ok((trail.into_iter().fold(recorded, RecordedWork::with_trail), traced))
}

pub(super) fn interrupted() -> Error {
    Error::new(ErrorKind::NotMeasured, "interrupted before the work began: nothing was recorded")
}

/// Steps of a recording within the mount.
struct Steps<'a> {
    subject: &'a dyn Subject,
    trace: Option<Trace<'a>>,
    options: &'a RecordOptions,
    /// Block devices of the drives.
    devices: Vec<PathBuf>,
    control: PathBuf,
    mount_point: &'a Path,
    drive: &'a Drive,
    acknowledgements: &'a Arc<Acknowledgements>,
    stop: &'a AtomicBool,
}

/// Result of the steps.
struct WorkResult {
    /// Events at which the work begins and ends.
    from: usize,
    until: usize,
    /// True if a requested power cut ended the work.
    is_cut: bool,
    /// Reason why the work ended early.
    ended_because: Option<String>,
    /// True if the end of the program is the only acknowledgement.
    by_exit: bool,
    traced: TracedCalls,
    /// Moments of the work, if its calls were followed.
    trail: Option<Trail>,
}

impl Steps<'_> {
    fn run(&self) -> Result<WorkResult> {
        let file_system = self.options.file_system;
        let options = &self.options.file_system_options;
        self.devices.iter().try_for_each(|device| file_system.make(device, options))?;
        let mounted = file_system.mount_all(&self.devices, self.mount_point, options);
        let mounted = mounted.map_err(|error| match options.mount.is_empty() {
            true => error,
            false => Error::usage(format!("--mount-options {}: {error}", options.mount)),
        })?;
        let reachable = ReachableFile::new(&self.control, &self.options.directory)?;
        let control = reachable.path();
        self.subject.user().map_or(Ok(()), |user| mounted.paths().try_for_each(|path| user.own(path)))?;
        self.subject.set_up(mounted.path())?;
        let follower =
            self.subject.is_judged_by_its_files().then(|| self.follower(mounted.path())).transpose()?;
        let tracer =
            self.trace.as_ref().map(|trace| trace.begin(mounted.path(), follower, false)).transpose()?;
        self.sync(&mounted).map_err(cannot(format!("sync {}", mounted.path().display())))?;
        if self.stop.load(Ordering::Acquire) {
            return Err(interrupted());
        }
        let from = self.mark("the work begins");
        let power = self.options.power.as_deref();
        if let Some(power) = power {
            power.begin(Some(self.drive.recorder.clone()));
        }
        let worked = match (&self.trace, &tracer) {
            (Some(trace), Some(tracer)) => self.work(mounted.path(), control, Some(trace.program(tracer))),
            _ => self.work(mounted.path(), control, self.subject.program()),
        };
        let cut = power.and_then(PowerSwitch::end);
        let is_last = self.acknowledgements.last().is_none() && self.acknowledgements.problem().is_none();
        let by_exit = cut.is_none() && worked.is_ok() && is_last && self.subject.is_judged_by_its_files();
        if by_exit {
            self.acknowledgements.record(&Ok(1));
        }
        let ended = self.mark("the work has ended");
        let until = cut.unwrap_or(ended);
        let ended = tracer.map(Tracer::finish_followed).transpose()?;
        let (traced, follower) = ended.unwrap_or_default();
        let trail = follower.map(|follower| follower.finish(by_exit));
        // A program whose wrong acknowledgement was refused has failed for that reason.
        let left = || self.trace.as_ref().and_then(|trace| trace.left_running(&traced));
        let failed = self.acknowledgements.problem().or(worked.err()).or_else(left);
        let failed = failed.filter(|_| cut.is_none());
        let ended_because = match failed {
            // The very first call starts the program.
            Some(error) if self.trace.is_some() && traced.calls.is_empty() => {
                let what = format!("its system calls cannot be traced: {error}");
                return Err(Error::new(ErrorKind::NotTraced, what));
            }
            Some(error) if self.acknowledgements.last().is_none() => return Err(with_hint(error, control)),
            failed => failed.map(|error| in_one_line(&error)),
        };
        mounted.unmount()?;
        reachable.close()?;
        Ok(WorkResult { from, until, is_cut: cut.is_some(), ended_because, by_exit, traced, trail })
    }

    /// Returns a follower of the system calls of the program, which records the files that it makes visible.
    fn follower(&self, place: &Path) -> Result<Follower> {
        let acknowledgements = Arc::clone(self.acknowledgements);
        let promises = Promises::Elsewhere(Box::new(move || acknowledgements.last()));
        let model = Model::new(MOMENT_BLOCK, Unwritten::Zeroes);
        let follower = Follower::start(place, promises, model, unix_time(), self.options.size)?;
        Ok(follower.with_power(self.options.power.clone()))
    }

    /// Runs the work, by `program` if there is one.
    fn work(&self, place: &Path, control: &Path, program: Option<Program>) -> Result<()> {
        let Some(program) = program else {
            return self.subject.work(place, &mut |number| self.acknowledgements.record(&Ok(number)));
        };
        let mut lines = Lines::new(program.ack);
        let mut said = |bytes: &[u8]| {
            lines.parse(bytes).iter().for_each(|line| self.acknowledgements.record(line));
        };
        let cut = self.options.power.as_deref().map(PowerSwitch::flag);
        let stops: Vec<&AtomicBool> = [self.stop].into_iter().chain(cut).collect();
        let worked = program.run(place, control, &mut said, self.options.timeout, &stops);
        lines.end().iter().for_each(|line| self.acknowledgements.record(line));
        worked
    }

    /// Makes everything written so far durable.
    fn sync(&self, mounted: &MountedFileSystem) -> io::Result<()> {
        mounted.sync()?;
        // A file system without dirty data sends no flush.
        let mut devices = self.devices.iter();
        devices.try_for_each(|device| File::options().write(true).open(device)?.sync_all())
    }

    /// Records a mark, and returns its event.
    fn mark(&self, what: &str) -> usize {
        self.drive.recorder.happened(Event::Marked(what.to_owned()))
    }
}

//! Recording of a work from its system calls alone, in a directory of this machine, for the POSIX model.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::{Bytes, Nanos, in_one_line, unix_time};
use plumb_report::document::proof::RecordingFacts;

use super::power::PowerSwitch;
use super::reachable_file::with_hint;
use super::recorded::{RecordOptions, RecordedWork};
use super::recording_run::interrupted;
use super::strace::Trace;
use crate::error::{Error, ErrorKind, Result, cannot};
use crate::file_system::FileSystem;
use crate::mount_point::MountPoint;
use crate::posix::{Follower, Model, Promises, Trail, Unwritten};
use crate::subject::{AckBy, Subject};
use crate::trace::{TraceOptions, TracedCalls, Tracer};

/// Block size for a directory in which a program is traced in place.
const BLOCK: Bytes = Bytes::kib(4);

/// Prepares to trace one program that works in an existing directory, and to record its operations there, in
/// at most about `limit` of memory.
///
/// # Errors
/// If strace is missing, or the directory cannot be read or exceeds the limit.
pub(crate) fn follow(root: &Path, limit: Bytes) -> Result<Tracer> {
    let root = root.canonicalize().map_err(cannot(format!("find {}", root.display())))?;
    let (promises, model) = (Promises::Elsewhere(Box::new(|| None)), Model::new(BLOCK, Unwritten::Zeroes));
    let follower = Follower::start(&root, promises, model, unix_time(), limit)?;
    let options = TraceOptions { follower: Some(follower), is_modelled: true, ..TraceOptions::default() };
    Tracer::with(&root, options)
}

/// Returns the calls of a program that has ended, and its work if that was [followed](follow). Its end counts
/// as an acknowledgement if it `ended_well`.
///
/// # Errors
/// If the trace cannot be read.
pub(crate) fn followed(tracer: Tracer, ended_well: bool) -> Result<(TracedCalls, Option<RecordedWork>)> {
    let (traced, follower) = tracer.finish_followed()?;
    let trail = follower.map(|follower| follower.finish(ended_well));
    let work = trail.map(|trail| recorded(trail, &traced, unix_time(), None));
    Ok((traced, work))
}

/// Records the work of `subject` in a directory.
///
/// # Errors
/// If nothing could be recorded. A program that fails after an acknowledgement, or a `stop` during the work,
/// is not an error: the recording so far is returned.
pub(super) fn record_system_calls(
    subject: &dyn Subject,
    options: &RecordOptions,
    trace: Trace<'_>,
    stop: &AtomicBool,
) -> Result<(RecordedWork, TracedCalls)> {
    if subject.is_checked_unmounted() {
        let what = format!("{} is checked on a drive: choose ext4, xfs or btrfs with --fs", subject.name());
        return Err(Error::usage(what));
    }
    let scratch = MountPoint::scratch(&options.directory)?;
    let (root, control) = (scratch.path().join("work"), scratch.path().join("acknowledge"));
    fs::create_dir(&root).map_err(cannot(format!("make {}", root.display())))?;
    if let Some(user) = subject.user() {
        user.own(&root)?;
    }
    subject.set_up(&root)?;
    if stop.load(Ordering::Acquire) {
        return Err(interrupted());
    }
    let unwritten = match options.file_system {
        FileSystem::PosixGarbage => Unwritten::Garbage,
        _ => Unwritten::Zeroes,
    };
    let began = unix_time();
    let model = Model::new(options.logical_block, unwritten);
    let promises = Promises::through_fifo(&control)?;
    let follower = Follower::start(&root, promises, model, began, options.size)?;
    let follower = follower.with_power(options.power.clone());
    if rustix::process::geteuid().is_root() {
        let opened = fs::set_permissions(&control, fs::Permissions::from_mode(0o622));
        opened.map_err(cannot("open the FIFO for acknowledgements to other users"))?;
    }
    let tracer = trace.begin(&root, Some(follower), true)?;
    let program = trace.program(&tracer);
    let power = options.power.as_deref();
    if let Some(power) = power {
        power.begin(None);
    }
    let stops: Vec<&AtomicBool> = [stop].into_iter().chain(power.map(PowerSwitch::flag)).collect();
    let worked = program.run(&root, &control, &mut |_| {}, options.timeout, &stops);
    let is_cut = power.is_some_and(|power| {
        power.end();
        power.is_cut()
    });
    let (traced, follower) = tracer.finish_followed()?;
    let follower = follower.ok_or_else(|| Error::failed("strace", "its calls were not followed"))?;
    let ended_well = !is_cut && worked.is_ok() && subject.is_judged_by_its_files();
    let followed = follower.finish(ended_well);
    let failed = followed.numbers.problem().or(worked.err()).or_else(|| trace.left_running(&traced));
    let failed = failed.filter(|_| !is_cut);
    let ended_because = match failed {
        Some(error) if traced.calls.is_empty() => {
            let what = format!("its system calls cannot be traced: {error}");
            return Err(Error::new(ErrorKind::NotTraced, what));
        }
        Some(error) if followed.numbers.last().is_none() => return Err(with_hint(error, &control)),
        failed => failed.map(|error| in_one_line(&error)),
    };
    scratch.close()?;
    let recorded = recorded(followed, &traced, began, ended_because);
    Ok((RecordedWork { is_cut, ..recorded }, traced))
}

fn recorded(
    followed: Trail,
    traced: &TracedCalls,
    began: Nanos,
    ended_because: Option<String>,
) -> RecordedWork {
    let Trail { recording, layout, from, until, by_exit, unseen, seen_in_part, notes, .. } = followed;
    let mut recorded = RecordedWork::new(recording, from, until);
    let facts = &mut recorded.facts;
    facts.size = recorded.recording.size.0;
    facts.flushes = traced.calls.iter().filter(|call| call.synced(&traced.root).is_some()).count() as u64;
    facts.attached_by = RecordingFacts::BY_SYSTEM_CALLS.to_owned();
    let by = if by_exit { RecordingFacts::BY_EXIT } else { AckBy::ControlFile.name() };
    facts.acknowledged_by = (facts.acknowledgements > 0).then(|| by.to_owned());
    RecordedWork { began, ended_because, layout: Some(layout), unseen, seen_in_part, notes, ..recorded }
        .with_moments()
}

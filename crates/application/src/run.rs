//! Execution of a profile, or its translation into a scenario.

use std::sync::atomic::AtomicBool;

use plumb_block::{Bytes, Clock, Nanos, Opening};
use plumb_load::{LoadOutcome, Observer};
use plumb_workload::{BlockSizes, BlockSplit, ByteRange, Job, Program, Rate, Scenario, Span, Stop, Workload};

use crate::engine::{Conduct, Scratch, Setting, perform};
use crate::error::Error;
use crate::limits::{Directory, Limits};
use crate::profile::{BlockWork, Extent, FileWork, Profile, Variant, Work};
use crate::sqlite;

/// Largest share of the free space that is used.
const ROOM_SHARE: f64 = 0.5;
/// Smallest scale that still gives meaningful results.
const SCALE_MIN: f64 = 0.01;

/// Minimum free space for SQLite: on a full file system, a write to the memory map of its WAL index ends the
/// process with SIGBUS.
const SQLITE_ROOM: Bytes = Bytes::mib(8);

/// Runs a profile that works on files in a new directory below `directory`, and always removes the directory.
/// If `stop` ends the run early, the measurements until then are returned. The `observer` sees the run as a
/// load with one worker.
///
/// A call that hangs in the kernel blocks the run.
///
/// # Errors
/// If the profile or a limit is invalid, or a call fails. A failed sync is never retried.
pub fn run(
    profile: &'static Profile,
    variant: &'static Variant,
    directory: &Directory<'_>,
    limits: &Limits,
    clock: &dyn Clock,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<LoadOutcome, Error> {
    limits.validate()?;
    let conduct = |scale, threads, call_bytes_max| {
        let (duration, count) = extent_of(profile, limits, scale);
        Conduct {
            profile: &profile.name,
            clock,
            stop,
            duration,
            count,
            threads,
            call_bytes_max,
            seed: limits.seed,
        }
    };
    match &profile.work {
        Work::Blocks(_) => Err(Error::Unsuited(format!(
            "profile {} is a block workload, not a program that works on files: run its scenario",
            profile.name
        ))),
        Work::Files(work) => {
            let (scale, note) = scale_of(profile, work, limits, directory.free)?;
            let own = variant.threads.or(work.threads).unwrap_or(1);
            let threads = limits.threads.unwrap_or(own);
            let program =
                work.program.make(&Setting { variant: &variant.name, scale, threads, seed: limits.seed });
            let conduct = conduct(scale, threads, work.call_bytes_max.unwrap_or(64 << 10));
            let scratch = Scratch::beneath(&directory.path)?;
            let result = (directory.open)(scratch.path())
                .map_err(|error| Error::of_call(error, false))
                .and_then(|store| perform(program.as_ref(), store.as_ref(), &conduct, observer));
            let mut measured = scratch.remove_after(result)?;
            measured.transactions.get_or_insert_default().notes.splice(0..0, note);
            Ok(measured)
        }
        Work::Sqlite(work) => {
            if let Some(free) = directory.free.filter(|free| *free < SQLITE_ROOM) {
                return Err(Error::Unsuited(format!(
                    "profile {} needs {SQLITE_ROOM}, but only {free} are free: free some space or name another directory",
                    profile.name
                )));
            }
            let scratch = Scratch::beneath(&directory.path)?;
            let conduct = conduct(1.0, limits.threads.unwrap_or(1), 0);
            let result = sqlite::perform(work.journal(&variant.name), scratch.path(), &conduct, observer);
            scratch.remove_after(result)
        }
    }
}

/// Returns the scenario of a profile on `target`: block jobs, or one job with the program that runs in a
/// directory.
///
/// # Errors
/// If a limit is invalid.
pub fn scenario(
    profile: &'static Profile,
    variant: &'static Variant,
    target: &str,
    limits: &Limits,
) -> Result<Scenario, Error> {
    limits.validate()?;
    let Work::Blocks(jobs) = &profile.work else {
        return Ok(Scenario { spans: vec![Span::new(vec![program(profile, variant, target, limits)])] });
    };
    let (duration, operations) = extent_of(profile, limits, 1.0);
    let stop = Stop { duration, operations, bytes: None };
    let of_variant = |work: &&BlockWork| work.variant.as_ref().is_none_or(|only| *only == variant.name);
    let jobs = jobs.iter().filter(of_variant).map(|work| job(work, target, limits, stop)).collect();
    Ok(Scenario { spans: vec![Span::new(jobs)] })
}

/// Returns the job with the program of a profile.
fn program(profile: &Profile, variant: &Variant, directory: &str, limits: &Limits) -> Job {
    let stop = Stop { duration: limits.duration, operations: limits.count, bytes: None };
    let range = ByteRange { offset: Bytes(0), length: Bytes(u64::MAX) };
    let workload = Workload { stop, seed: limits.seed, ..Workload::over(range, Bytes::kib(4)) };
    let program = Program {
        profile: format!("{}:{}", profile.name, variant.name),
        threads: limits.threads,
        scale: limits.scale,
    };
    Job {
        name: profile.name.clone(),
        opening: Opening::CACHED,
        threads: limits.threads.unwrap_or(1),
        program: Some(program),
        ..Job::on(directory, workload)
    }
}

/// Returns a job of a block profile. A missing target file is created with 4 GiB times the scale, but at
/// least 64 MiB.
fn job(work: &BlockWork, target: &str, limits: &Limits, stop: Stop) -> Job {
    let lengths = BlockSplit(work.lengths.clone());
    let range = ByteRange { offset: work.offset, length: work.length.unwrap_or(Bytes(u64::MAX)) };
    let operations = stop.operations.map(|count| count.div_ceil(work.operations_between.unwrap_or(1)));
    let workload = Workload {
        access: work.access.clone(),
        write_percent: work.write_percent,
        depth: work.depth,
        durability: work.durability,
        rate: work.rate.unwrap_or(Rate::Unlimited),
        stop: Stop { operations, ..stop },
        seed: limits.seed,
        blocks: BlockSizes { read: lengths.clone(), write: lengths.clone(), trim: lengths.clone() },
        ..Workload::over(range, lengths.max())
    };
    let scaled = (Bytes::gib(4).0 as f64 * limits.scale.unwrap_or(1.0)) as u64;
    let job = Job::on(target, workload);
    Job {
        name: work.name.clone(),
        size: Some(Bytes(scaled.max(64 << 20)).round_down(Bytes::mib(1))),
        opening: Opening { flush: work.flush.unwrap_or(job.opening.flush), ..job.opening },
        threads: limits.threads.filter(|_| !work.single_thread).unwrap_or(1),
        ..job
    }
}

/// Returns the limits given, or the profile's own if there are none.
fn extent_of(profile: &Profile, limits: &Limits, scale: f64) -> (Option<Nanos>, Option<u64>) {
    match (limits.duration, limits.count, profile.extent) {
        (None, None, Extent::Seconds(seconds)) => (Some(Nanos::secs(seconds)), None),
        (None, None, Extent::Transactions(count)) => (None, Some(count)),
        (None, None, Extent::Files(files)) => {
            let files = ((files as f64 * scale).round() as u64).max(1);
            (None, Some(files * u64::from(limits.threads.unwrap_or(1))))
        }
        (duration, count, _) => (duration, count),
    }
}

/// Returns the scale of the files, and a note if they are scaled down.
fn scale_of(
    profile: &'static Profile,
    work: &FileWork,
    limits: &Limits,
    free: Option<Bytes>,
) -> Result<(f64, Option<String>), Error> {
    if let Some(scale) = limits.scale {
        let note = format!("the files were scaled to {:.3} % of the profile's, as asked", scale * 100.0);
        return Ok((scale, (scale < 1.0).then_some(note)));
    }
    let Some(free) = free else { return Ok((1.0, None)) };
    let room = if work.each_thread { work.room * u64::from(limits.threads.unwrap_or(1)) } else { work.room };
    let fits = free.0 as f64 * ROOM_SHARE / room.0 as f64;
    if fits >= 1.0 {
        return Ok((1.0, None));
    }
    if fits < SCALE_MIN {
        return Err(Error::Unsuited(format!(
            "profile {} needs {room}, but only {free} are free: half of that holds less than 1 % of the \
             profile, which is too little to measure; free some space or name another directory",
            profile.name
        )));
    }
    let note = format!(
        "the files were scaled to {:.0} % of the profile's, because it takes about {room} and only {free} are free",
        fits * 100.0
    );
    Ok((fits, Some(note)))
}

#[cfg(test)]
mod tests;

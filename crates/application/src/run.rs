//! Running a profile, or writing down its scenario.

use std::sync::atomic::AtomicBool;

use plumb_block::{Bytes, Clock, Nanos};
use plumb_workload::{Scenario, Stop};

use crate::catalogue::BlockSetting;
use crate::engine::{Conduct, Scratch, Setting, perform};
use crate::error::Error;
use crate::limits::{Limits, Moment, Place};
use crate::measured::Measured;
use crate::profile::{Extent, FileWork, Profile, Variant, Work};
use crate::sqlite;

/// Of the room that is free, so much is used at most.
const ROOM_SHARE: f64 = 0.5;
/// A smaller part of a profile says nothing.
const SCALE_MIN: f64 = 0.01;

/// Runs a profile that works on files in a directory of its own beneath the place, and removes that directory however
/// it ends. `stop` ends it early: what was measured until then is returned. `tell` is called about ten times a second.
///
/// A call that hangs in the kernel is waited for.
///
/// # Errors
/// If the profile or the place or a limit makes no sense; the first call that failed. A failed sync is never retried.
pub fn run(
    profile: &'static Profile,
    variant: &'static Variant,
    place: &Place<'_>,
    limits: &Limits,
    clock: &dyn Clock,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&Moment<'_>),
) -> Result<Measured, Error> {
    limits.validate()?;
    let (path, free, open) = match place {
        Place::Directory { path, free, open } => (path, free, open),
        Place::Device(_) if !profile.needs_directory() => {
            return Err(Error::IsBlocks { profile: profile.name });
        }
        Place::Device(name) => {
            return Err(Error::NeedsDirectory { profile: profile.name, place: name.clone() });
        }
    };
    let conduct = |scale| {
        let (duration, count) = extent_of(profile, limits, scale);
        Conduct { clock, stop, duration, count, seed: limits.seed }
    };
    match &profile.work {
        Work::Blocks(_) => Err(Error::IsBlocks { profile: profile.name }),
        Work::Files(work) => {
            let (scale, note) = scale_of(profile, work, limits, *free)?;
            let setting =
                Setting { variant: variant.name, scale, threads: limits.threads, seed: limits.seed };
            let program = (work.program)(&setting);
            let scratch = Scratch::beneath(path)?;
            let result = open(scratch.path())
                .map_err(|error| Error::of_call(error, false))
                .and_then(|store| perform(program.as_ref(), store.as_ref(), &conduct(scale), tell));
            let mut measured = scratch.remove_after(result)?;
            measured.notes.splice(0..0, note);
            Ok(measured)
        }
        Work::Sqlite(work) => {
            let scratch = Scratch::beneath(path)?;
            let journal = (work.journal)(variant.name);
            let result = sqlite::perform(journal, scratch.path(), &conduct(1.0), limits.threads, tell);
            scratch.remove_after(result)
        }
    }
}

/// The scenario of a block profile on `target`, for the ordinary engine.
///
/// # Errors
/// If the profile is not a block workload, or a limit makes no sense.
pub fn scenario(
    profile: &'static Profile,
    variant: &'static Variant,
    target: &str,
    limits: &Limits,
) -> Result<Scenario, Error> {
    limits.validate()?;
    let Work::Blocks(work) = &profile.work else { return Err(Error::IsNotBlocks { profile: profile.name }) };
    let (duration, operations) = extent_of(profile, limits, 1.0);
    let setting = BlockSetting {
        variant: variant.name,
        target,
        stop: Stop { duration, operations, bytes: None },
        seed: limits.seed,
        threads: limits.threads,
        scale: limits.scale.unwrap_or(1.0),
    };
    Ok((work.0)(&setting))
}

/// The limits that were given, or the profile's own.
fn extent_of(profile: &Profile, limits: &Limits, scale: f64) -> (Option<Nanos>, Option<u64>) {
    match (limits.duration, limits.count, profile.extent) {
        (None, None, Extent::Time(time)) => (Some(time), None),
        (None, None, Extent::Transactions(count)) => (None, Some(count)),
        (None, None, Extent::Tree(files)) => {
            let files = ((files as f64 * scale).round() as u64).max(1);
            (None, Some(files * u64::from(limits.threads.unwrap_or(1))))
        }
        (duration, count, _) => (duration, count),
    }
}

/// How large a part of the files is made, and a note if that is not all because there is no room.
fn scale_of(
    profile: &Profile,
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
        return Err(Error::NoRoom { profile: profile.name, room, free });
    }
    let note = format!(
        "the files were scaled to {:.0} % of the profile's, because it takes about {room} and only {free} are free",
        fits * 100.0
    );
    Ok((fits, Some(note)))
}

#[cfg(test)]
mod tests;

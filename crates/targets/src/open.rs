//! Opens targets by name. All commands of plumb open their targets here.

use std::ffi::OsStr;
use std::sync::Arc;

use plumb_block::{Clock, RealClock, Time};
use plumb_guard::{
    Error, Intent, Name, OpenedTarget, Permission, Result, Scheme, TargetKind, TargetRequest, open_beside,
};
use plumb_linux::FileOptions;
use plumb_path::Survey;
use plumb_sim::model::TypedModel;

/// Opens one target, as [`open_all`] does.
///
/// # Errors
/// Those of [`open_all`].
pub fn open(
    name: &Name,
    intent: Intent,
    permission: &Permission,
    options: FileOptions,
    clock: &Arc<dyn Clock>,
) -> Result<OpenedTarget> {
    let wanted = TargetRequest { name: name.clone(), intent, options };
    one(wanted, permission, &Time::Real(Arc::clone(clock)))
}

fn one(wanted: TargetRequest, permission: &Permission, time: &Time) -> Result<OpenedTarget> {
    let shown = wanted.name.to_string();
    let opened = open_all(&[wanted], permission, time)?;
    opened.into_iter().next().ok_or_else(|| Error::usage(&shown, "it was not opened", ""))
}

/// Opens a target of any kind for reading. A simulated drive gets its own simulated world.
///
/// # Errors
/// Those of [`open_all`].
pub fn open_to_read(name: Name) -> Result<OpenedTarget> {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let time = time_of([&name], &clock);
    let options = FileOptions::read_direct();
    one(TargetRequest { name, intent: Intent::READ, options }, &Permission::default(), &time)
}

/// Opens a target that the kernel does not know for reading: a simulated drive, an NBD export or a cache.
/// Returns `None` for a path.
///
/// # Errors
/// Those of [`open_all`].
pub fn open_foreign(typed: &OsStr) -> Result<Option<OpenedTarget>> {
    // A word that does not parse as a name with a scheme is a path.
    let Ok(name @ Name::Scheme { .. }) = Name::parse(typed) else { return Ok(None) };
    Ok(Some(open_to_read(name)?).filter(|opened| opened.kind.device_kind().is_some()))
}

/// Opens all targets of a run in the given order, or none.
///
/// A file or device that is requested more than once in the same way is shared; requested in different ways,
/// it is opened once for each.
///
/// # Errors
/// The first refusal or failure. Nothing has been written then, and everything created is removed.
pub fn open_all(wanted: &[TargetRequest], permission: &Permission, time: &Time) -> Result<Vec<OpenedTarget>> {
    let places = wanted.iter().cloned().enumerate();
    let (caches, rest): (Vec<_>, Vec<_>) = places.partition(|(_, want)| plumb_caches::is_meant(&want.name));
    let opened = plumb_caches::open_all(&caches, permission, time)?;
    open_beside(opened, rest.into_iter(), permission, time)
}

/// Returns the write path of a target that the kernel does not know, as far as the device describes itself;
/// for a cache with the devices below it. Returns `None` for a file or a block device.
pub fn survey(target: &OpenedTarget) -> Option<Survey> {
    let is_cache = target.kind == TargetKind::Cache;
    let of_cache = is_cache.then(|| plumb_caches::survey(&target.shown).ok().flatten()).flatten();
    of_cache.or_else(|| target.survey())
}

/// Returns the simulated drives behind `name`: the drive itself, or those of a cache that uses only such
/// drives. Returns `None` for other targets.
fn simulated_drives(name: &Name) -> Option<Vec<Name>> {
    match name {
        Name::Scheme { scheme: Scheme::Sim, .. } => Some(vec![name.clone()]),
        _ => plumb_caches::drives_of(name),
    }
}

/// Returns the time of a run on targets with these names: virtual if all of them are simulated drives, so
/// that the run takes only as long as the simulation, otherwise `clock`.
pub fn time_of<'a>(names: impl IntoIterator<Item = &'a Name>, clock: &Arc<dyn Clock>) -> Time {
    let mut names = names.into_iter().peekable();
    if names.peek().is_some() && names.all(|name| simulated_drives(name).is_some()) {
        Time::Virtual(Arc::default())
    } else {
        Time::Real(Arc::clone(clock))
    }
}

/// Returns the seed of all random choices of a run on simulated drives, so that equal names give equal runs.
/// It is derived from the seed of the first drive by mixing, since the drive itself draws from that. Returns
/// `None` if there are other targets.
pub fn seed_of<'a>(names: impl IntoIterator<Item = &'a Name>) -> Option<u64> {
    let drives: Option<Vec<_>> = names.into_iter().map(simulated_drives).collect();
    let mut seeds = drives?.into_iter().flatten().map(|name| match name {
        Name::Scheme { rest, .. } => rest.parse::<TypedModel>().ok().map(|typed| typed.seed),
        _ => None,
    });
    let first = seeds.next()??;
    // The mixing is a bijection, so different drives give different runs.
    seeds
        .all(|seed| seed.is_some())
        .then(|| (first ^ 0x706c_756d_6273_6565).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

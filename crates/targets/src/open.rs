//! From names to open devices: the one door for whatever a user can name.

use std::ffi::OsStr;
use std::sync::Arc;

use plumb_block::{Clock, RealClock, Time};
use plumb_guard::{
    Error, Intent, Name, OpenedTarget, Permission, Result, Scheme, TargetKind, TargetRequest, open_beside,
};
use plumb_linux::FileOptions;
use plumb_path::Survey;
use plumb_sim::model::TypedModel;

/// Opens one target: [`open_all`] for a caller that has just one.
///
/// # Errors
/// As [`open_all`].
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

/// Opens a target of any kind to be looked at. A simulated drive is in a world of its own.
///
/// # Errors
/// As [`open_all`].
pub fn open_to_read(name: Name) -> Result<OpenedTarget> {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let time = time_of([&name], &clock);
    let options = FileOptions::read_direct();
    one(TargetRequest { name, intent: Intent::READ, options }, &Permission::default(), &time)
}

/// Opens to be looked at what the kernel does not know: a simulated drive, an export of an NBD server, a
/// cache. `None` for a path.
///
/// # Errors
/// As [`open_all`].
pub fn open_foreign(typed: &OsStr) -> Result<Option<OpenedTarget>> {
    // A word that is not a name with a scheme is a path, whatever it looks like.
    let Ok(name @ Name::Scheme { .. }) = Name::parse(typed) else { return Ok(None) };
    Ok(Some(open_to_read(name)?).filter(|opened| opened.kind.device_kind().is_some()))
}

/// Opens all targets of a run, in the order given, or none.
///
/// The same file or device may be wanted more than once: if it is wanted in the same way, the device is
/// shared, else it is opened again beside the first.
///
/// # Errors
/// The first refusal or failure. Nothing was written then, and nothing that was made is left behind.
pub fn open_all(wanted: &[TargetRequest], permission: &Permission, time: &Time) -> Result<Vec<OpenedTarget>> {
    let places = wanted.iter().cloned().enumerate();
    let (caches, rest): (Vec<_>, Vec<_>) = places.partition(|(_, want)| plumb_caches::is_meant(&want.name));
    let opened = plumb_caches::open_all(&caches, permission, time)?;
    open_beside(opened, rest.into_iter(), permission, time)
}

/// Returns the way to a target that the kernel does not know: as far as the device says itself, of a cache
/// that was made also what is below. `None` for a file or a block device.
pub fn survey(target: &OpenedTarget) -> Option<Survey> {
    let is_cache = target.kind == TargetKind::Cache;
    let of_cache = is_cache.then(|| plumb_caches::survey(&target.shown).ok().flatten()).flatten();
    of_cache.or_else(|| target.survey())
}

/// Returns the simulated drives that `name` stands for: itself, or those of a cache over such drives alone.
/// `None` for anything else.
fn simulated_drives(name: &Name) -> Option<Vec<Name>> {
    match name {
        Name::Scheme { scheme: Scheme::Sim, .. } => Some(vec![name.clone()]),
        _ => plumb_caches::drives_of(name),
    }
}

/// Returns the time of a run on targets of these names, whose real clock is `clock`. It is virtual if all of
/// them are simulated drives: then the run takes no longer than the simulation.
pub fn time_of<'a>(names: impl IntoIterator<Item = &'a Name>, clock: &Arc<dyn Clock>) -> Time {
    let mut names = names.into_iter().peekable();
    if names.peek().is_some() && names.all(|name| simulated_drives(name).is_some()) {
        Time::Virtual(Arc::default())
    } else {
        Time::Real(Arc::clone(clock))
    }
}

/// Returns the seed that all random choices of a run derive from whose targets are simulated drives, so that
/// the same names give the same run: that of the first drive, mixed, for the drive itself draws from it.
/// `None` if there are other targets.
pub fn seed_of<'a>(names: impl IntoIterator<Item = &'a Name>) -> Option<u64> {
    let drives: Option<Vec<_>> = names.into_iter().map(simulated_drives).collect();
    let mut seeds = drives?.into_iter().flatten().map(|name| match name {
        Name::Scheme { rest, .. } => rest.parse::<TypedModel>().ok().map(|typed| typed.seed),
        _ => None,
    });
    let first = seeds.next()??;
    // A bijection: other drives have other runs.
    seeds
        .all(|seed| seed.is_some())
        .then(|| (first ^ 0x706c_756d_6273_6565).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

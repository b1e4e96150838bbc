//! `plumb cache replace-leg` and `grow`: what changes the log of a cache, served or not.

use std::sync::Arc;
use std::time::Instant;

use plumb_block::{Bytes, RealClock, Time};
use plumb_cache::MissingLegs;
use plumb_report::Format;
use plumb_serve::named::control::Order;
use plumb_targets::Permission;
use plumb_targets::cache::{
    self, CacheConfig, CacheOrder, CacheStatus, DevicePlace, LaidOut, LayoutObserver, NamedCache, Opening,
};

use super::follow::CacheActivity;
use super::laying_out::watched;
use super::orders::{order, refused};
use super::status;
use crate::arguments::cache::{ReplaceLegArguments, ReplaceLogArguments};
use crate::exit::{Exit, Refusal};
use crate::progress::left;
use crate::stop;

/// Puts a device into the place of one of the log, and waits until everything is on it.
pub(super) fn replace_leg(arguments: &ReplaceLegArguments, format: Format) -> anyhow::Result<Exit> {
    let name = &arguments.name;
    let config = CacheConfig::load(&cache::directory(), name).map_err(refused)?;
    let is_lost = |(number, place): &(usize, &DevicePlace)| {
        arguments.lost == number.to_string() || same(&arguments.lost, place)
    };
    let Some((leg, _)) = config.legs.iter().enumerate().find(is_lost) else {
        let legs: Vec<_> = config.legs.iter().map(ToString::to_string).collect();
        let (lost, legs) = (&arguments.lost, legs.join(", "));
        let message = format!(
            "{lost} is not a device of the log of {name}: name one of {legs}, or its number from 0 on"
        );
        return Err(Refusal::new(Exit::Usage, message).into());
    };
    let log = for_server(&arguments.log)?;
    let (overwrite, destroy) = (arguments.overwrite, arguments.destroy.clone());
    let given = CacheOrder::ReplaceLeg { leg, log: log.clone(), overwrite, destroy: destroy.clone() };
    let is_over = |now: &CacheStatus| now.legs[leg].state != "resilvering";
    let end = changed(config, &given, is_over, "is being copied to the new device", |open, laying_out| {
        let permission = Permission { overwrite, destroy, ..Permission::default() };
        open.replace_leg(leg, &log, &permission, laying_out)
    })?;
    let Some((_, end)) = end else { return Ok(Exit::NotMeasured) };
    if end.legs[leg].state != "live" {
        let message = format!(
            "{name}: {log} failed before the copy was complete; the cache continues without it: give \
             another device with the same command"
        );
        return Err(Refusal::new(Exit::Failed, message).into());
    }
    status::show(&end, format)
}

/// Gives a cache another log, and waits until it is in use.
pub(super) fn replace_log(arguments: &ReplaceLogArguments, format: Format) -> anyhow::Result<Exit> {
    let ReplaceLogArguments { name, log, size, overwrite, destroy } = arguments;
    let config = CacheConfig::load(&cache::directory(), name).map_err(refused)?;
    let log = log.iter().map(|typed| for_server(typed)).collect::<anyhow::Result<Vec<_>>>()?;
    let (overwrite, destroy) = (*overwrite, destroy.clone());
    let bytes = size.map(|size| size.0);
    let given = CacheOrder::ReplaceLog { log: log.clone(), size: bytes, overwrite, destroy: destroy.clone() };
    let end = changed(
        config,
        &given,
        |_| true,
        "moves to another log",
        |open, laying_out| {
            let permission = Permission { overwrite, destroy, ..Permission::default() };
            open.replace_log(&log, *size, &permission, laying_out)
        },
    )?;
    match end {
        Some((_, end)) => status::show(&end, format),
        None => Ok(Exit::NotMeasured),
    }
}

/// Returns a name as whoever serves the cache finds it: it has another working directory.
fn for_server(typed: &str) -> anyhow::Result<String> {
    match typed.contains(':') {
        true => Ok(typed.to_owned()),
        false => Ok(std::path::absolute(typed)?.to_string_lossy().into_owned()),
    }
}

fn same(typed: &str, place: &DevicePlace) -> bool {
    let Ok(typed) = DevicePlace::parse(typed) else { return false };
    let at = |path: &str| std::fs::canonicalize(path).ok();
    let are_one = || at(&typed.path).is_some_and(|typed| Some(typed) == at(&place.path));
    typed.part == place.part && (typed.path == place.path || are_one())
}

/// Makes the log larger, and waits for that.
pub(super) fn grow(name: &str, size: Bytes, format: Format) -> anyhow::Result<Exit> {
    let config = CacheConfig::load(&cache::directory(), name).map_err(refused)?;
    let given = CacheOrder::Grow { size: size.0 };
    let is_over = |now: &CacheStatus| !now.growing;
    let end = changed(config, &given, is_over, "makes room for a larger log", |open, laying_out| {
        open.grow(size, laying_out)
    })?;
    let Some((before, end)) = end else { return Ok(Exit::NotMeasured) };
    if end.log_size <= before.log_size {
        let message = format!(
            "{name}: the log was not enlarged, because data in the way cannot be written back; see its \
             status, then try again"
        );
        return Err(Refusal::new(Exit::Failed, message).into());
    }
    status::show(&end, format)
}

/// Has a cache take all of its backing device, which has grown.
pub(super) fn grow_backing(name: &str, format: Format) -> anyhow::Result<Exit> {
    let config = CacheConfig::load(&cache::directory(), name).map_err(refused)?;
    let given = CacheOrder::GrowBacking;
    let end = changed(config, &given, |_| true, "grows", |open, _| open.grow_backing())?;
    end.map_or(Ok(Exit::NotMeasured), |(_, end)| status::show(&end, format))
}

/// Has a served cache carry out an order, or carries out the same on one that is not served, and waits until
/// it is over. How it was before and is then; `None` if that was interrupted: a served cache goes on with it.
fn changed(
    config: CacheConfig,
    given: &CacheOrder,
    is_over: impl Fn(&CacheStatus) -> bool,
    what: &str,
    change: impl FnOnce(&NamedCache, &mut LayoutObserver<'_>) -> plumb_targets::Result<()>,
) -> anyhow::Result<Option<(CacheStatus, CacheStatus)>> {
    let (name, interrupted) = (config.name.clone(), stop::on_signals()?);
    let what = |_: &CacheStatus, _: Bytes| what.to_owned();
    let followed = |now: CacheStatus, look: &dyn Fn() -> anyhow::Result<Option<CacheStatus>>| {
        CacheActivity { look, is_over: &is_over, what: &what }.end(now, &interrupted)
    };
    let look = || order(&name, &Order::Status);
    // Given again the order is not carried out again: it tells how far it is.
    let give = || order(&name, &Order::Own(given.clone()));
    if let Some(before) = look()?
        && let Some(now) = give()?
    {
        let begun = Instant::now();
        let what = |now: &CacheStatus, first: Bytes| match now.log_error {
            Some(_) => super::follow::left(now, first),
            None => laying_out(now, begun),
        };
        let laid_out = CacheActivity { look: &give, is_over: &|now| now.laying_out.is_none(), what: &what };
        let Some(now) = laid_out.end(now, &interrupted)? else { return Ok(None) };
        let end = followed(now, &look)?;
        return Ok(end.map(|end| (before, end)));
    }
    let time = Time::Real(Arc::new(RealClock::start()));
    // The device to be replaced may be gone. Another one may have the only copy.
    let degraded = match given {
        CacheOrder::ReplaceLeg { leg, .. } => MissingLegs::Without(*leg),
        _ => MissingLegs::No,
    };
    let open = NamedCache::open(config, Opening { degraded, ..Opening::STRICT }, &time).map_err(refused)?;
    let before = CacheStatus::open(&open);
    watched(&interrupted, |laying_out| change(&open, laying_out))?;
    let look = || Ok(Some(CacheStatus::open(&open)));
    let end = followed(CacheStatus::open(&open), &look);
    open.stop()?;
    Ok(end?.map(|end| (before, end)))
}

/// Returns how far a served cache is with laying out a file, since that was ordered.
fn laying_out(now: &CacheStatus, begun: Instant) -> String {
    let Some(LaidOut { path, done_bytes, size_bytes }) = &now.laying_out else { return String::new() };
    let left = left(begun, *done_bytes as f64 / (*size_bytes).max(1) as f64);
    let left = left.map(|left| format!(", {left} left")).unwrap_or_default();
    format!("is laying out {path}: {} of {}{left}", Bytes(*done_bytes), Bytes(*size_bytes))
}

//! `plumb cache replace-leg` and `grow`: what changes the log of a cache, served or not.

use std::sync::Arc;

use plumb_block::{Bytes, RealClock, Time};
use plumb_cache::Degraded;
use plumb_serve::named::control::Order;
use plumb_target::Permission;
use plumb_target::cache::{self, CacheConfig, CacheOrder, CacheStatus, NamedCache};

use super::follow::Followed;
use super::{order, refused, status};
use crate::arguments::cache::ReplaceLegArguments;
use crate::exit::{Exit, Refusal};
use crate::stop;

/// Puts a device into the place of one of the log, and waits until everything is on it.
pub(super) fn replace_leg(arguments: &ReplaceLegArguments, json: bool) -> anyhow::Result<Exit> {
    let name = &arguments.name;
    let config = CacheConfig::load(&cache::directory(), name).map_err(refused)?;
    let is_lost = |(number, path): &(usize, &String)| {
        arguments.lost == number.to_string() || same(&arguments.lost, path)
    };
    let Some((leg, _)) = config.legs.iter().enumerate().find(is_lost) else {
        let (lost, legs) = (&arguments.lost, config.legs.join(", "));
        let message =
            format!("{lost} is no device of the log of {name}: name one of {legs}, or its number from 0 on");
        return Err(Refusal::new(Exit::Usage, message).into());
    };
    // Whoever serves the cache has another working directory.
    let log = match arguments.log.contains(':') {
        true => arguments.log.clone(),
        false => std::path::absolute(&arguments.log)?.to_string_lossy().into_owned(),
    };
    let (overwrite, destroy) = (arguments.overwrite, arguments.destroy.clone());
    let given = CacheOrder::ReplaceLeg { leg, log: log.clone(), overwrite, destroy: destroy.clone() };
    let is_over = |now: &CacheStatus| now.legs[leg].state != "resilvering";
    let end = changed(config, &given, is_over, "is being copied to the new device", |open| {
        open.replace_leg(leg, &log, &Permission { overwrite, destroy, ..Permission::default() })
    })?;
    let Some((_, end)) = end else { return Ok(Exit::NotMeasured) };
    if end.legs[leg].state != "live" {
        let message = format!(
            "{name}: {log} failed before it had everything; the cache goes on without it: give another with the same command"
        );
        return Err(Refusal::new(Exit::Failed, message).into());
    }
    status::show(&end, json)
}

fn same(typed: &str, path: &str) -> bool {
    let place = |path: &str| std::fs::canonicalize(path).ok();
    typed == path || place(typed).is_some_and(|typed| Some(typed) == place(path))
}

/// Makes the log larger, and waits for that.
pub(super) fn grow(name: &str, size: Bytes, json: bool) -> anyhow::Result<Exit> {
    let config = CacheConfig::load(&cache::directory(), name).map_err(refused)?;
    let given = CacheOrder::Grow { size: size.0 };
    let end =
        changed(config, &given, |now| !now.growing, "makes room for a larger log", |open| open.grow(size))?;
    let Some((before, end)) = end else { return Ok(Exit::NotMeasured) };
    if end.log_size <= before.log_size {
        let message = format!(
            "{name}: its log is not larger: what is in the way cannot be written back; see its status, then do it again"
        );
        return Err(Refusal::new(Exit::Failed, message).into());
    }
    status::show(&end, json)
}

/// Has a served cache carry out an order, or carries out the same on one that is not served, and waits until it is over. How it was
/// before and is then; `None` if that was interrupted: a served cache goes on with it.
fn changed(
    config: CacheConfig,
    given: &CacheOrder,
    is_over: impl Fn(&CacheStatus) -> bool,
    what: &str,
    change: impl FnOnce(&mut NamedCache) -> plumb_target::Result<()>,
) -> anyhow::Result<Option<(CacheStatus, CacheStatus)>> {
    let (name, interrupted) = (config.name.clone(), stop::on_signals()?);
    let what = |_: &CacheStatus, _: Bytes| what.to_owned();
    let followed = |now: CacheStatus, look: &dyn Fn() -> anyhow::Result<Option<CacheStatus>>| {
        Followed { look, is_over: &is_over, what: &what }.end(now, &interrupted)
    };
    let look = || order(&name, &Order::Status);
    if let Some(before) = look()?
        && let Some(now) = order(&name, &Order::Own(given.clone()))?
    {
        let end = followed(now, &look)?;
        return Ok(end.map(|end| (before, end)));
    }
    let time = Time::Real(Arc::new(RealClock::start()));
    // What is to be replaced may be gone. Another one may have the only copy.
    let degraded = match given {
        CacheOrder::ReplaceLeg { leg, .. } => Degraded::Without(*leg),
        _ => Degraded::No,
    };
    let mut open = NamedCache::open(config, degraded, &time).map_err(refused)?;
    let before = CacheStatus::open(&open);
    change(&mut open).map_err(refused)?;
    let look = || Ok(Some(CacheStatus::open(&open)));
    let end = followed(CacheStatus::open(&open), &look);
    open.stop()?;
    Ok(end?.map(|end| (before, end)))
}

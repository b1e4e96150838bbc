//! `plumb cache replace-leg` and `grow`: what changes the log of a cache, served or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_block::{Bytes, RealClock, Time};
use plumb_serve::named::control::Order;
use plumb_target::Permission;
use plumb_target::cache::{self, CacheConfig, CacheOrder, CacheStatus, NamedCache};

use super::{order, refused, status};
use crate::arguments::cache::ReplaceLegArguments;
use crate::exit::{Exit, Refusal};
use crate::{stop, terminal};

/// How often a cache is asked how far it is.
const LOOK_EVERY: Duration = Duration::from_millis(100);

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
        let message = format!("{name}: {log} failed before it had everything; the cache goes on without it");
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
    let look = || order(&name, &Order::Status);
    if let (Some(before), Some(now)) = (look()?, order(&name, &Order::Own(given.clone()))?) {
        let end = followed(now, look, is_over, (&name, what), &interrupted)?;
        return Ok(end.map(|end| (before, end)));
    }
    let time = Time::Real(Arc::new(RealClock::start()));
    // What is to be replaced may be gone.
    let is_degraded = matches!(given, CacheOrder::ReplaceLeg { .. });
    let mut open = NamedCache::open(config, is_degraded, &time).map_err(refused)?;
    let before = CacheStatus::open(&open);
    change(&mut open).map_err(refused)?;
    let look = || Ok(Some(CacheStatus::open(&open)));
    let end = followed(CacheStatus::open(&open), look, is_over, (&name, what), &interrupted);
    open.stop()?;
    Ok(end?.map(|end| (before, end)))
}

/// Looks until it is over, or somebody interrupts.
fn followed(
    mut now: CacheStatus,
    look: impl Fn() -> anyhow::Result<Option<CacheStatus>>,
    is_over: impl Fn(&CacheStatus) -> bool,
    (name, what): (&str, &str),
    interrupted: &AtomicBool,
) -> anyhow::Result<Option<CacheStatus>> {
    let mut is_said = false;
    while !is_over(&now) {
        if let Some(why) = now.state.as_deref().filter(|state| *state != "serving") {
            return Err(Refusal::new(Exit::Failed, format!("{name}: {why}")).into());
        }
        if interrupted.load(Ordering::Acquire) {
            terminal::say(&format!(
                "plumb: interrupted: {name} still {what}; `plumb cache status {name}` shows it"
            ));
            return Ok(None);
        }
        if !std::mem::replace(&mut is_said, true) {
            terminal::say(&format!("plumb: {name} {what}"));
        }
        std::thread::sleep(LOOK_EVERY);
        let Some(next) = look()? else {
            return Err(Refusal::new(Exit::Failed, format!("{name} is no longer served")).into());
        };
        now = next;
    }
    Ok(Some(now))
}

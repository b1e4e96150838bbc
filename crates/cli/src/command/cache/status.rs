//! `plumb cache status`, `mode` and `tune`: status and settings of caches.

use plumb_caches::{CacheConfig, CacheOrder, CacheStatus, Tuning};
use plumb_report::Format;
use plumb_report::document::cache::{CacheShown, CachesShown};
use plumb_serve::named::control::Order;

use super::orders::{config, order};
use crate::arguments::cache::TuningArguments;
use crate::exit::{self, Exit};
use crate::terminal;

/// Returns the status of a cache, from its server or from its configuration.
pub(super) fn read(name: &str) -> anyhow::Result<CacheStatus> {
    let config = config(name)?;
    Ok(order(name, &Order::Status)?.unwrap_or_else(|| CacheStatus::unserved(&config)))
}

/// Returns the status of the cache `name`, or of all caches. If one of all fails, its error is printed and
/// included in the exit code, and the others are still returned.
pub(super) fn all(name: Option<&str>) -> anyhow::Result<(Vec<CacheStatus>, Exit)> {
    if let Some(name) = name {
        return Ok((vec![read(name)?], Exit::Done));
    }
    let mut found = (Vec::new(), Exit::Done);
    for name in CacheConfig::names(&plumb_caches::directory())? {
        match read(&name) {
            Ok(status) => found.0.push(status),
            Err(error) => found.1 = found.1.and(exit::say(&error)),
        }
    }
    Ok(found)
}

/// Returns the exit code for the state of a cache: data that is lost, or about to be, is a finding.
fn finding(status: &CacheStatus) -> Exit {
    let failed =
        status.state.as_ref().is_some_and(|state| !["recovering", "serving", "stopped"].contains(&&**state));
    let is_lost = status.legs.iter().any(|leg| ["lost", "deleted"].contains(&&*leg.state));
    let is_missing = status.missing_legs().next().is_some() || status.backing.is_missing;
    if failed || is_lost || is_missing || status.backing.is_deleted {
        Exit::Finding
    } else {
        finding_of_data(status)
    }
}

/// Returns the exit code for the data that only a cache holds: a finding if some of it cannot be read or
/// written back.
pub(super) fn finding_of_data(status: &CacheStatus) -> Exit {
    let is_unsound = !status.unreadable.is_empty() || !status.damaged.is_empty();
    if is_unsound || status.write_back_error.is_some() || status.log_error.is_some() {
        Exit::Finding
    } else {
        Exit::Done
    }
}

pub(super) fn run(name: Option<&str>, format: Format) -> anyhow::Result<Exit> {
    let (caches, failed) = all(name)?;
    let exit = caches.iter().map(finding).fold(failed, Exit::and);
    let mut caches: Vec<CacheShown> = caches.into_iter().map(CacheShown::from).collect();
    match (name, caches.pop()) {
        (Some(_), Some(one)) => terminal::show_status(&one, format)?,
        (_, last) => {
            caches.extend(last);
            terminal::show_status(&CachesShown { schema: CachesShown::SCHEMA, caches }, format)?;
        }
    }
    Ok(exit)
}

/// Changes the tuning of a cache.
pub(super) fn tune(
    name: &str,
    writes_back_soon: bool,
    typed: &TuningArguments,
    format: Format,
) -> anyhow::Result<Exit> {
    let before = config(name)?.tuning;
    let before = if writes_back_soon { Tuning { sleep: None, ..before } } else { before };
    change(name, &CacheOrder::Tune { tuning: typed.over(before) }, format)
}

/// Changes the configuration of a cache, and its server if it is served.
pub(super) fn change(name: &str, given: &CacheOrder, format: Format) -> anyhow::Result<Exit> {
    let config = config(name)?;
    let status = match order(name, &Order::Own(given.clone()))? {
        Some(status) => status,
        None => {
            let config = given.configured(config)?;
            config.save(&plumb_caches::directory())?;
            CacheStatus::unserved(&config)
        }
    };
    show(status, format)
}

/// Shows the status of one cache.
pub(super) fn show(status: CacheStatus, format: Format) -> anyhow::Result<Exit> {
    terminal::show_status(&CacheShown::from(status), format)?;
    Ok(Exit::Done)
}

//! `plumb cache status` and `plumb cache mode`: how caches are.

use plumb_cache::Mode;
use plumb_report::Format;
use plumb_report::document::cache::{CacheShown, CachesShown};
use plumb_report::status::Read;
use plumb_serve::named::control::Order;
use plumb_targets::cache::{self, CacheConfig, CacheOrder, CacheStatus, Tuning};
use serde::Serialize;

use super::orders::{order, refused};
use crate::arguments::cache::TuningArguments;
use crate::exit::{self, Exit};
use crate::terminal;

#[derive(Serialize)]
struct Caches {
    schema: &'static str,
    caches: Vec<serde_json::Value>,
}

/// Returns how the cache is: as its server says, or what is known of one that is not served.
pub(super) fn read(name: &str) -> anyhow::Result<CacheStatus> {
    let config = CacheConfig::load(&cache::directory(), name).map_err(refused)?;
    Ok(order(name, &Order::Status)?.unwrap_or_else(|| CacheStatus::unserved(&config)))
}

/// Returns the status of the cache `name`, or of all caches. What is wrong with one of many does not hide the
/// others: it is said, and its exit code is the second.
pub(super) fn all(name: Option<&str>) -> anyhow::Result<(Vec<CacheStatus>, Exit)> {
    if let Some(name) = name {
        return Ok((vec![read(name)?], Exit::Done));
    }
    let mut found = (Vec::new(), Exit::Done);
    for name in CacheConfig::names(&cache::directory()).map_err(refused)? {
        match read(&name) {
            Ok(status) => found.0.push(status),
            Err(error) => found.1 = found.1.and(exit::say(&error)),
        }
    }
    Ok(found)
}

/// Returns the exit code for the state of a cache: what is lost, or about to be, is a finding.
fn finding(status: &CacheStatus) -> Exit {
    let failed =
        status.state.as_ref().is_some_and(|state| !["recovering", "serving", "stopped"].contains(&&**state));
    let is_lost = status.legs.iter().any(|leg| ["lost", "deleted"].contains(&&*leg.state));
    if failed || is_lost { Exit::Finding } else { finding_of_data(status) }
}

/// Returns the exit code for the data that a cache alone holds: a finding if not all of it can be read and
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
    match (&caches[..], name) {
        ([one], Some(_)) => drop(show(one, format)?),
        _ => {
            let caches = caches.iter().map(CacheStatus::document).collect::<Result<_, _>>()?;
            let document = Caches { schema: "plumb/caches/1", caches };
            terminal::show_status(&Read::<CachesShown>::new(&document)?, format)?;
        }
    }
    Ok(exit)
}

/// Changes settings of a cache.
pub(super) fn tune(
    name: &str,
    writes_back_soon: bool,
    typed: &TuningArguments,
    format: Format,
) -> anyhow::Result<Exit> {
    let config = CacheConfig::load(&cache::directory(), name).map_err(refused)?;
    let before = if writes_back_soon { Tuning { sleep: None, ..config.tuning } } else { config.tuning };
    let tuning = typed.over(before);
    let status = match order(name, &Order::Own(CacheOrder::Tune { tuning }))? {
        Some(status) => status,
        None => {
            let config = CacheConfig { tuning, ..config };
            config.save(&cache::directory()).map_err(refused)?;
            CacheStatus::unserved(&config)
        }
    };
    show(&status, format)
}

/// Changes the mode of a cache.
pub(super) fn mode(name: &str, mode: Mode, format: Format) -> anyhow::Result<Exit> {
    let config = CacheConfig::load(&cache::directory(), name).map_err(refused)?;
    let status = match order(name, &Order::Own(CacheOrder::Mode { mode }))? {
        Some(status) => status,
        None => {
            let config = config.in_mode(mode).map_err(refused)?;
            config.save(&cache::directory()).map_err(refused)?;
            CacheStatus::unserved(&config)
        }
    };
    show(&status, format)
}

/// Shows one cache.
pub(super) fn show(status: &CacheStatus, format: Format) -> anyhow::Result<Exit> {
    terminal::show_status(&Read::<CacheShown>::new(&status.document()?)?, format)?;
    Ok(Exit::Done)
}

/// Shows one cache that was stopped just now.
pub(super) fn show_stopped(status: &CacheStatus, format: Format) -> anyhow::Result<Exit> {
    let mut read = Read::<CacheShown>::new(&status.document()?)?;
    read.shown.is_stopped = true;
    terminal::show_status(&read, format)?;
    Ok(Exit::Done)
}

//! `plumb cache verify` and `recover`: a cache that is not served is opened, and closed again.

use std::sync::Arc;

use plumb_block::{RealClock, Time};
use plumb_serve::named::control::Order;
use plumb_target::cache::{self, CacheConfig, CacheStatus, NamedCache};

use super::{order, refused, status};
use crate::exit::{Exit, Refusal};

/// The configuration of a cache that nobody serves.
fn unserved(name: &str) -> anyhow::Result<CacheConfig> {
    let config = CacheConfig::load(&cache::directory(), name).map_err(refused)?;
    match order(name, &Order::Status)? {
        None => Ok(config),
        Some(_) => {
            let message =
                format!("{name} is served, and its log changes: stop it first (`plumb cache stop {name}`)");
            Err(Refusal::new(Exit::Refused, message).into())
        }
    }
}

/// Reads and checks the whole log; nothing is written.
pub(super) fn look(name: &str, json: bool) -> anyhow::Result<Exit> {
    let config = unserved(name)?;
    let time = Time::Real(Arc::new(RealClock::start()));
    let found = NamedCache::look(config, &time).map_err(refused)?;
    status::show(&CacheStatus::open(&found), json)
}

/// Recovers the log as serving would, and leaves it stopped: all of it durable, its devices equal.
pub(super) fn recover(name: &str, json: bool) -> anyhow::Result<Exit> {
    let config = unserved(name)?;
    let time = Time::Real(Arc::new(RealClock::start()));
    let open = NamedCache::open(config, false, &time).map_err(refused)?;
    let found = CacheStatus::open(&open);
    open.stop()?;
    status::show(&found, json)
}

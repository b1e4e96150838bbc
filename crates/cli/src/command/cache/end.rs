//! `plumb cache drain`, `stop` and `detach`: what leads to a cache that holds nothing, or is not there any
//! more.

use std::sync::Arc;

use plumb_block::{Bytes, RealClock, Time};
use plumb_cache::Uuid;
use plumb_serve::named::control::Order;
use plumb_targets::cache::{self, CacheConfig, CacheOrder, CacheStatus, Discarded, NamedCache, Opening};
use serde::Serialize;

use super::follow::{Followed, left};
use super::offline::is_given_up;
use super::{order, refused, status};
use crate::exit::{Exit, Refusal};
use crate::{stop as signals, terminal};

/// Writes everything of a served cache back, and waits for that.
pub(super) fn drain(name: &str, json: bool) -> anyhow::Result<Exit> {
    let stop = signals::on_signals()?;
    let Some(now) = order(name, &Order::Own(CacheOrder::Drain))? else {
        CacheConfig::load(&cache::directory(), name).map_err(refused)?;
        let message = format!(
            "{name} is not served: serve it, or write everything back with `plumb cache detach {name}`"
        );
        return Err(Refusal::new(Exit::Usage, message).into());
    };
    let look = || order(name, &Order::Status);
    // What is written back is durable once the log has let go of it.
    let followed = Followed { look: &look, is_over: &|now| !now.draining, what: &left };
    match followed.end(now, &stop)? {
        Some(end) => Ok(status::show(&end, json)?.and(status::finding_of_data(&end))),
        None => Ok(Exit::NotMeasured),
    }
}

/// Stops serving.
pub(super) fn stop(name: &str, cut_off: bool, json: bool) -> anyhow::Result<Exit> {
    let config = CacheConfig::load(&cache::directory(), name).map_err(refused)?;
    let Some(end) = order(name, &Order::Detach { cut_off })? else {
        return status::show(&CacheStatus::unserved(&config), json);
    };
    let none = CacheStatus { device: None, nbd: None, nbd_uris: Vec::new(), control: None, pid: None, ..end };
    let end = CacheStatus { served: false, ..none };
    if json {
        return status::show(&end, json);
    }
    let left = end.only_in_log();
    terminal::print(&format!("{name}: stopped; {left} only in the log, until it is served again\n"))?;
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct Detached<'a> {
    schema: &'static str,
    name: &'a str,
    uuid: Uuid,
    backing: &'a str,
    discarded: bool,
    /// Bytes that the log could not read, of which the backing device has something older.
    given_up_bytes: u64,
}

/// Losses of data that the user accepts, each for the cache of this UUID alone.
#[derive(Clone, Copy)]
pub(super) struct AcceptedLosses {
    /// Detach without writing back what only the log holds.
    pub(super) discard_dirty: Option<Uuid>,
    /// Detach although the log could not read some blocks, of which the backing device has older ones.
    pub(super) give_up_unreadable: Option<Uuid>,
}

/// Takes a cache away.
pub(super) fn detach(name: &str, cut_off: bool, losses: AcceptedLosses, json: bool) -> anyhow::Result<Exit> {
    let stop = signals::on_signals()?;
    let directory = cache::directory();
    let config = CacheConfig::load(&directory, name).map_err(refused)?;
    let AcceptedLosses { discard_dirty, give_up_unreadable } = losses;
    let gives_up = is_given_up(&config, give_up_unreadable)?;
    // Whoever uses it is named before anything is written back, and nobody writes while that goes on.
    order(name, &Order::Detach { cut_off })?;
    let (mut given_up, mut after) = (0, "check what is on");
    match discard_dirty {
        Some(uuid) => {
            let Discarded { not_erased, backing_gone } =
                cache::discard(&directory, name, uuid).map_err(refused)?;
            if let Some(why) = backing_gone {
                after = "so is what was written back to";
                terminal::say(&format!(
                    "plumb: the backing device is not there, so it was not told: {why}; should it come back, it lacks what only the \
                     log held, and says still that it needs the cache {uuid}, until `plumb cache create --discard-dirty {uuid}` takes it"
                ));
            }
            for why in not_erased {
                terminal::say(&format!(
                    "plumb: not erased, so that it looks like the log of a cache still ({uuid}); no device needs it any more, and \
                     `plumb cache create --destroy` takes it for another: {why}"
                ));
            }
        }
        None => {
            let time = Time::Real(Arc::new(RealClock::start()));
            let open = NamedCache::open(config.clone(), Opening::STRICT, &time).map_err(refused)?;
            open.begin_to_detach();
            let look = || Ok(Some(CacheStatus::open(&open)));
            let followed = Followed { look: &look, is_over: &|_| open.has_stopped(), what: &left };
            if followed.end(CacheStatus::open(&open), &stop)?.is_none() {
                return Ok(Exit::NotMeasured);
            }
            given_up = CacheStatus::open(&open).unreadable.iter().map(|part| part.length).sum();
            open.detached(gives_up).map_err(refused)?;
        }
    }
    if json {
        let (schema, discarded) = ("plumb/cache-detached/1", discard_dirty.is_some());
        terminal::print_json(&Detached {
            schema,
            name,
            uuid: config.uuid,
            backing: &config.backing,
            discarded,
            given_up_bytes: given_up,
        })?;
        return Ok(Exit::Done);
    }
    let backing = &config.backing;
    let but = match given_up {
        0 => String::new(),
        bytes => format!(", but for {} that were given up,", Bytes(bytes)),
    };
    terminal::print(&match discard_dirty {
        None => format!("{name}: gone; {backing} holds everything{but} and is used alone from now on\n"),
        Some(_) => format!("{name}: gone, with what only its log held; {after} {backing}\n"),
    })?;
    Ok(Exit::Done)
}

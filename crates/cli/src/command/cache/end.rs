//! `plumb cache drain`, `stop` and `detach`: what leads to a cache that holds nothing, or is not there any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_block::{Bytes, Nanos, RealClock, Time};
use plumb_cache::Uuid;
use plumb_serve::named::control::Order;
use plumb_target::cache::{self, CacheConfig, CacheOrder, CacheStatus, NamedCache};
use serde::Serialize;

use super::{order, refused, status};
use crate::exit::{Exit, Refusal};
use crate::{stop as signals, terminal};

/// How often a cache is asked how far it is.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often that is told.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// Writes everything back, and waits for that.
pub(super) fn drain(name: &str, json: bool) -> anyhow::Result<Exit> {
    let stop = signals::on_signals()?;
    match drained(name, &stop)? {
        Some(Ok(end)) => status::show(&end, json),
        Some(Err(exit)) => Ok(exit),
        None => {
            CacheConfig::load(&cache::directory(), name).map_err(refused)?;
            let message = format!(
                "{name} is not served: serve it, or write everything back with `plumb cache detach {name}`"
            );
            Err(Refusal::new(Exit::Usage, message).into())
        }
    }
}

/// Stops serving.
pub(super) fn stop(name: &str, cut_off: bool, json: bool) -> anyhow::Result<Exit> {
    let config = CacheConfig::load(&cache::directory(), name).map_err(refused)?;
    let Some(end) = order(name, &Order::Detach { cut_off })? else {
        return status::show(&CacheStatus::unserved(&config), json);
    };
    let end = CacheStatus { served: false, device: None, nbd: None, control: None, pid: None, ..end };
    if json {
        return status::show(&end, json);
    }
    let left = Bytes(end.dirty_bytes.unwrap_or(0));
    terminal::print(&format!("{name}: stopped; {left} only in the log, until it is served again\n"))?;
    Ok(Exit::Done)
}

/// Writes everything of a served cache back; `None` if it is not served, an exit code if it was interrupted.
fn drained(name: &str, stop: &AtomicBool) -> anyhow::Result<Option<Result<CacheStatus, Exit>>> {
    let Some(mut now) = order(name, &Order::Own(CacheOrder::Drain))? else { return Ok(None) };
    let mut progress = Progress::new(name);
    while now.dirty_bytes != Some(0) {
        if let Some(why) = now.state.as_deref().filter(|state| *state != "serving") {
            return Err(Refusal::new(Exit::Failed, format!("{name}: {why}")).into());
        }
        if stop.load(Ordering::Acquire) {
            progress.interrupted(&now);
            return Ok(Some(Err(Exit::NotMeasured)));
        }
        progress.say(&now);
        std::thread::sleep(LOOK_EVERY);
        let Some(next) = order(name, &Order::Status)? else { break };
        now = next;
    }
    Ok(Some(Ok(now)))
}

#[derive(Serialize)]
struct Detached<'a> {
    schema: &'static str,
    name: &'a str,
    uuid: Uuid,
    backing: &'a str,
    discarded: bool,
}

/// Takes a cache away.
pub(super) fn detach(
    name: &str,
    cut_off: bool,
    discard_dirty: Option<Uuid>,
    json: bool,
) -> anyhow::Result<Exit> {
    let stop = signals::on_signals()?;
    let directory = cache::directory();
    let config = CacheConfig::load(&directory, name).map_err(refused)?;
    if discard_dirty.is_none()
        && let Some(Err(exit)) = drained(name, &stop)?
    {
        return Ok(exit);
    }
    // What is written from now on is written back when nobody can write any more.
    order(name, &Order::Detach { cut_off })?;
    match discard_dirty {
        Some(uuid) => drop(cache::discard(&directory, name, uuid).map_err(refused)?),
        None => {
            let time = Time::Real(Arc::new(RealClock::start()));
            let open = NamedCache::open(config.clone(), false, &time).map_err(refused)?;
            open.begin_to_detach();
            let mut progress = Progress::new(name);
            while !open.has_stopped() {
                let now = CacheStatus::open(&open);
                if stop.load(Ordering::Acquire) {
                    progress.interrupted(&now);
                    return Ok(Exit::NotMeasured);
                }
                progress.say(&now);
                std::thread::sleep(LOOK_EVERY);
            }
            open.detached().map_err(refused)?;
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
        })?;
        return Ok(Exit::Done);
    }
    let backing = &config.backing;
    terminal::print(&match discard_dirty {
        None => format!("{name}: gone; {backing} holds everything and is used alone from now on\n"),
        Some(_) => format!("{name}: gone, with what only its log held; check what is on {backing}\n"),
    })?;
    Ok(Exit::Done)
}

/// Tells how far writing back is.
struct Progress<'a> {
    name: &'a str,
    said: Instant,
}

impl<'a> Progress<'a> {
    fn new(name: &'a str) -> Self {
        Self { name, said: Instant::now() }
    }

    fn say(&mut self, now: &CacheStatus) {
        if self.said.elapsed() >= SAY_EVERY {
            self.said = Instant::now();
            let eta = now.drain_eta.map(|eta| format!(", about {}", Nanos::from_secs_f64(eta)));
            terminal::say(&format!(
                "plumb: {}: {} to be written back{}",
                self.name,
                left(now),
                eta.unwrap_or_default()
            ));
        }
    }

    fn interrupted(&self, now: &CacheStatus) {
        let name = self.name;
        terminal::say(&format!(
            "plumb: interrupted: {} of {name} are still to be written back; do it again",
            left(now)
        ));
    }
}

fn left(now: &CacheStatus) -> Bytes {
    Bytes(now.dirty_bytes.unwrap_or(0))
}

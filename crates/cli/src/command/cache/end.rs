//! `plumb cache drain`, `stop` and `detach`: emptying, stopping and removing a cache.

use plumb_block::{Bytes, FailureKind, Time, in_one_line};
use plumb_cache::Uuid;
use plumb_caches::{CacheOrder, CacheStatus, DiscardedCache, NamedCache, Opening};
use plumb_report::Format;
use plumb_report::document::cache::{CacheDetached, CacheShown};
use plumb_report::progress::{CacheActivity, writing_back};
use plumb_serve::named::control::Order;
use plumb_text::shell_word;

use super::orders::{config, order};
use super::status;
use crate::exit::{Exit, Refusal};
use crate::{stop as signals, terminal};

/// Drains a served cache, and waits for that.
pub(super) fn drain(name: &str, format: Format) -> anyhow::Result<Exit> {
    let stop = signals::on_signals()?;
    let Some(now) = order(name, &Order::Own(CacheOrder::Drain))? else {
        config(name)?;
        let message = format!(
            "{name} is not served: serve it, or write everything back with `plumb cache detach {}`",
            shell_word(name)
        );
        return Err(Refusal::new(FailureKind::Usage, message).into());
    };
    let look = || -> anyhow::Result<_> { Ok(order(name, &Order::Status)?) };
    // The log releases data only when it is durable on the backing device.
    let is_over = |now: &CacheStatus| !now.draining && now.serves();
    let followed = CacheActivity { look: &look, is_over: &is_over, what: &writing_back };
    match followed.end(now, &stop)? {
        Some(end) => {
            let finding = status::finding_of_data(&end);
            Ok(status::show(end, format)?.and(finding))
        }
        None => Ok(Exit::NOT_MEASURED),
    }
}

/// Drains a served cache whose log `is_lost` when its server ends. The server would do so itself before it
/// ends; here the progress is visible. Returns false if interrupted.
fn write_back_deleted_log(name: &str, is_lost: impl Fn(&CacheStatus) -> bool) -> anyhow::Result<bool> {
    // A server that does not answer must still get the order to end.
    let Some(now) = order(name, &Order::Status).ok().flatten() else { return Ok(true) };
    let is_needed = is_lost(&now) && now.serves() && now.only_in_log() > Bytes(0);
    if !is_needed || now.backing.is_deleted {
        return Ok(true);
    }
    let stop = signals::on_signals()?;
    let Some(now) = order(name, &Order::Own(CacheOrder::Drain))? else { return Ok(true) };
    let look = || -> anyhow::Result<_> { Ok(order(name, &Order::Status)?) };
    // If the drain fails, the server explains in its answer to the next order why it cannot end.
    let is_over = |now: &CacheStatus| !now.draining || !now.serves() || now.write_back_error.is_some();
    let followed = CacheActivity { look: &look, is_over: &is_over, what: &writing_back };
    Ok(followed.end(now, &stop)?.is_some())
}

/// Stops serving a cache.
pub(super) fn stop(name: &str, cut_off: bool, format: Format) -> anyhow::Result<Exit> {
    let config = config(name)?;
    // A live leg of a mirror keeps the contents of the log.
    if !write_back_deleted_log(name, |now| now.has_no_named_log(config.layout))? {
        return Ok(Exit::NOT_MEASURED);
    }
    let Some(end) = order(name, &Order::Detach { cut_off, identity: None })? else {
        return status::show(CacheStatus::unserved(&config), format);
    };
    let none = CacheStatus { device: None, nbd: None, nbd_uris: Vec::new(), control: None, pid: None, ..end };
    let status = CacheStatus { served: false, ..none };
    terminal::show_status(&CacheShown { status, is_stopped: true }, format)?;
    Ok(Exit::Done)
}

/// Losses of data that the user accepts, each only for the cache with this UUID.
#[derive(Clone, Copy)]
pub(super) struct AcceptedLosses {
    /// Detach without writing data back that only the log holds.
    pub(super) discard_dirty: Option<Uuid>,
    /// Detach although the log cannot read some blocks, of which the backing device has older versions.
    pub(super) give_up_unreadable: Option<Uuid>,
}

/// Reports a log device of a removed cache that was not erased.
fn say_not_erased(uuid: Uuid, why: &plumb_targets::Error) {
    terminal::say(&format!(
        "plumb: not erased, so it still looks like the log of a cache ({uuid}); no device needs it, and \
         `plumb cache create --destroy` can reuse it: {why}"
    ));
}

/// Ends the server of a cache, and returns the status with which it ended; `None` if it is not served. If the
/// caller accepts the loss of what only the log holds, a server that ended with such a loss is no failure.
fn end_server(name: &str, cut_off: bool, accepts_loss: bool) -> anyhow::Result<Option<CacheStatus>> {
    match order(name, &Order::Detach { cut_off, identity: None }) {
        Err(error) if accepts_loss && matches!(order(name, &Order::Status), Ok(None)) => {
            terminal::say(&format!("plumb: {}", in_one_line(&error)));
            Ok(None)
        }
        ended => Ok(ended?),
    }
}

/// Detaches a cache.
pub(super) fn detach(
    name: &str,
    cut_off: bool,
    losses: AcceptedLosses,
    format: Format,
) -> anyhow::Result<Exit> {
    let stop = signals::on_signals()?;
    let config = config(name)?;
    let AcceptedLosses { discard_dirty, give_up_unreadable } = losses;
    let gives_up = config.is_meant(give_up_unreadable)?;
    // The server ends before the cache is drained here: that reports its users, and ends all writes. Only a
    // deleted log must be drained by the server.
    if discard_dirty.is_none() && !write_back_deleted_log(name, CacheStatus::has_deleted_log)? {
        return Ok(Exit::NOT_MEASURED);
    }
    let end = end_server(name, cut_off, discard_dirty.is_some())?;
    // A log without a name cannot be opened again.
    let is_written_back = end.is_some_and(|end| end.has_deleted_log() && end.is_written_back());
    let was_detached = plumb_caches::was_detached(&config);
    let (mut given_up, mut is_backing_gone) = (was_detached.unwrap_or(0), false);
    let has_no_log = is_written_back || was_detached.is_some();
    match discard_dirty.or(Some(config.uuid).filter(|_| has_no_log)) {
        Some(uuid) => {
            let DiscardedCache { not_erased, backing_gone } =
                plumb_caches::discard(&plumb_caches::directory(), name, uuid)?;
            if let Some(why) = backing_gone.filter(|_| was_detached.is_none()) {
                is_backing_gone = true;
                terminal::say(&format!(
                    "plumb: the backing device is missing, so its mark was not removed: {why}; if it comes \
                     back, it lacks the data that only the log held, and says that it needs the cache \
                     {uuid}, until `plumb cache create --discard-dirty {uuid}` reuses it"
                ));
            }
            not_erased.iter().for_each(|why| say_not_erased(uuid, why));
        }
        None => {
            let time = Time::real();
            let open = NamedCache::open(config.clone(), Opening::STRICT, &time)?;
            open.found_elsewhere(&config).iter().for_each(|found| terminal::say(&format!("plumb: {found}")));
            open.begin_to_detach();
            let look = || -> anyhow::Result<_> { Ok(Some(CacheStatus::open(&open))) };
            let followed =
                CacheActivity { look: &look, is_over: &|_| open.has_stopped(), what: &writing_back };
            if followed.end(CacheStatus::open(&open), &stop)?.is_none() {
                return Ok(Exit::NOT_MEASURED);
            }
            given_up = CacheStatus::open(&open).unreadable.iter().map(|part| part.length).sum();
            let not_erased = open.detached(gives_up)?;
            not_erased.iter().for_each(|why| say_not_erased(config.uuid, why));
        }
    }
    let detached = CacheDetached {
        schema: CacheDetached::SCHEMA.to_owned(),
        name: name.to_owned(),
        uuid: config.uuid.to_string(),
        backing: config.backing,
        discarded: discard_dirty.is_some() && was_detached.is_none() && (!is_written_back || is_backing_gone),
        given_up_bytes: given_up,
        is_backing_gone,
    };
    terminal::show_status(&detached, format)?;
    Ok(Exit::Done)
}

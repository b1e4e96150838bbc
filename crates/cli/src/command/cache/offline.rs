//! `plumb cache verify` and `recover`: opening and closing a cache that is not served.

use plumb_block::{FailureKind, Time};
use plumb_cache::{Cache, LegState, MissingLegs, Uuid};
use plumb_caches::{CacheConfig, CacheStatus, NamedCache, Opening};
use plumb_report::Format;
use plumb_serve::named::control::Order;
use plumb_text::shell_word;

use super::orders::{config, order};
use super::status;
use crate::exit::{Exit, Refusal};
use crate::terminal;

/// Returns the configuration of a cache, and refuses one that is served.
fn unserved(name: &str) -> anyhow::Result<CacheConfig> {
    let config = config(name)?;
    match order(name, &Order::Status)? {
        None => Ok(config),
        Some(_) => {
            let message = format!(
                "{name} is served, and its log changes: stop it first (`plumb cache stop {}`)",
                shell_word(name)
            );
            Err(Refusal::new(FailureKind::Refused, message).into())
        }
    }
}

/// Reads and checks the whole log, without writing. Damage and a missing leg are findings, even where
/// recovery would succeed. If recovery would fail because of the missing leg, that is reported. A foreign
/// write to the backing device is a refusal, after the status was shown. With `give_up_lost`, the result is
/// that of a recovery with that option.
pub(super) fn look(name: &str, give_up_lost: Option<Uuid>, format: Format) -> anyhow::Result<Exit> {
    let config = unserved(name)?;
    let gives_up = config.is_meant(give_up_lost)?;
    let time = Time::real();
    let opening = Opening { gives_up_lost: gives_up, ..Opening::STRICT };
    let any = Opening { degraded: MissingLegs::Any, ..opening };
    let found = NamedCache::look(config.clone(), any, &time)?;
    let (is_sound, is_whole) = found.device.look(Cache::status).map_or((false, true), |status| {
        let is_whole = !status.legs.contains(&LegState::Lost);
        (status.findings.is_sound() && status.unreadable.is_empty() && is_whole, is_whole)
    });
    let shown = status::show(CacheStatus::open(&found), format)?;
    let beside = found.written_beside().cloned();
    drop(found);
    if !is_whole && let Err(error) = NamedCache::look(config, opening, &time) {
        terminal::say(&format!("plumb: the cache cannot be recovered or served in this state: {error}"));
    }
    match beside {
        Some(error) => Err(error.into()),
        None => Ok(shown.and(if is_sound { Exit::Done } else { Exit::Finding })),
    }
}

/// Recovers the log as serving would, and stops the cache: all data is then durable, and all legs are equal.
pub(super) fn recover(name: &str, give_up_lost: Option<Uuid>, format: Format) -> anyhow::Result<Exit> {
    let config = unserved(name)?;
    let gives_up = config.is_meant(give_up_lost)?;
    let time = Time::real();
    let opening = Opening { gives_up_lost: gives_up, ..Opening::STRICT };
    let open = NamedCache::open(config, opening, &time)?;
    let found = CacheStatus::open(&open);
    open.stop()?;
    let finding = status::finding_of_data(&found);
    Ok(status::show(found, format)?.and(finding))
}

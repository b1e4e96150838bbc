//! `plumb cache verify` and `recover`: a cache that is not served is opened, and closed again.

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

/// Returns the configuration of a cache that nobody serves.
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

/// Reads and checks the whole log; nothing is written. Damage and a missing device are findings, also where
/// recovery would go on; where recovery would refuse for the missing device, that is said; a backing device
/// that somebody else has written to is a refusal, after what the log holds. With `give_up_lost` as recovery
/// would leave it.
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

/// Recovers the log as serving would, and leaves it stopped: all of it durable, its devices equal.
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

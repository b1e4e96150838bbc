//! Orders to caches that are served.

use std::path::PathBuf;

use anyhow::Context as _;
use plumb_block::shell_word;
use plumb_serve::named::control::{ControlError, Order, RefusedKind, give};
use plumb_serve::named::forget;
use plumb_serve::ublk;
use plumb_state::places;
use plumb_targets::cache::{self, CacheConfig, CacheOrder, CacheStatus};

use crate::command::serving::clear_up;
use crate::exit::{Exit, Refusal};
use crate::terminal;

/// Remedy for a server that does not answer.
const WHEN_SILENT: &str = "; if it is stopped (state T in `ps`), `kill -CONT` resumes it; if one of its \
                           devices does not answer, the kernel log says so; otherwise ask again, since it \
                           may be waiting for a flush. If you kill it, nothing that was acknowledged is lost";

/// Returns the identity of a cache as the contents of a block device.
pub(super) fn block_device_identity(config: &CacheConfig) -> String {
    format!("cache {}", config.uuid)
}

/// Returns the directory of the control sockets of caches, apart from those of drives.
pub(super) fn sockets() -> PathBuf {
    places::cache_sockets(&places::run())
}

/// Gives an order to a cache that is served; `None` if it is not. Servers are found by the name alone: one
/// that serves the cache of another configuration is refused before it gets an order. One that takes long to
/// say who it is, because it ends, gets it all the same.
pub(super) fn order(name: &str, order: &Order<CacheOrder>) -> anyhow::Result<Option<CacheStatus>> {
    let ours = CacheConfig::load(&cache::directory(), name).ok();
    let is_ours =
        |status: &CacheStatus| ours.as_ref().is_none_or(|ours| ours.uuid.to_string() == status.uuid);
    let status = match order {
        Order::Detach { cut_off: true } => return ask(name, order),
        Order::Status => ask(name, order)?,
        _ => give(&sockets(), name, &Order::<CacheOrder>::Status).ok(),
    };
    match status {
        Some(other) if !is_ours(&other) => {
            let message = format!(
                "{name}: the cache that is served under this name is {}, not the one of this state \
                 directory: stop that one first",
                other.uuid
            );
            Err(Refusal::new(Exit::Refused, message).into())
        }
        status if matches!(order, Order::Status) => Ok(status),
        _ => ask(name, order),
    }
}

/// Gives an order to whatever is served under this name; `None` if nothing is.
fn ask(name: &str, order: &Order<CacheOrder>) -> anyhow::Result<Option<CacheStatus>> {
    match give(&sockets(), name, order) {
        Ok(status) => Ok(Some(status)),
        Err(ControlError::NoSuchDrive { .. }) => Ok(None),
        Err(ControlError::Gone { .. }) => after_kill(name).map(|()| None),
        Err(error) => {
            let exit = match &error {
                ControlError::Refused { refused, .. } if refused.kind == RefusedKind::Invalid => Exit::Usage,
                ControlError::Refused { refused, .. } if refused.kind == RefusedKind::UnsafeNow => {
                    Exit::Refused
                }
                _ => Exit::Failed,
            };
            let is_silent = matches!(error, ControlError::Silent { .. });
            let Refusal { exit, message } = Refusal::because(exit, error);
            Err(Refusal::new(exit, if is_silent { message + WHEN_SILENT } else { message }).into())
        }
    }
}

/// Takes away what a killed server has left, and says so: what was acknowledged stands in the log, and its
/// devices are free.
fn after_kill(name: &str) -> anyhow::Result<()> {
    let kept = clear_up(name)?;
    forget(&sockets(), name).with_context(|| format!("cannot clear up after {name}"))?;
    let config = CacheConfig::load(&cache::directory(), name).ok();
    // Without root nobody has made one.
    let waiting = config.and_then(|config| ublk::waiting(&block_device_identity(&config)).ok().flatten());
    let left = match (waiting, kept) {
        (Some(number), _) => format!(
            "/dev/ublkb{number} waits for the next server (`plumb cache serve {} --ublk`), and so do all requests to it",
            shell_word(name)
        ),
        (None, None) => "what it left behind was removed".to_owned(),
        (None, Some(why)) => {
            format!("its block device returns errors, and is removed when its last user closes it ({why})")
        }
    };
    terminal::say(&format!(
        "plumb: the process that served {name} was killed: everything acknowledged is in the log; {left}"
    ));
    Ok(())
}

/// Returns a refusal of the devices with the exit code of its kind.
pub(super) fn refused(error: plumb_targets::Error) -> anyhow::Error {
    Refusal::from(error).into()
}

//! `plumb cache`: write-back caches.

mod advise;
mod change;
mod create;
mod end;
mod follow;
mod laying_out;
mod live;
mod offline;
mod serve;
mod status;

use std::path::PathBuf;

use anyhow::Context as _;
use plumb_report::{Format, Kind};
use plumb_serve::named::control::{ControlError, Order, RefusedKind, give};
use plumb_serve::named::forget;
use plumb_state::places;
use plumb_targets::cache::{self, CacheConfig, CacheOrder, CacheStatus};

use self::end::AcceptedLosses;
use crate::arguments::cache::{CacheArguments, CacheCommand};
use crate::command::serving::clear_up;
use crate::exit::{Exit, Refusal};
use crate::terminal;

/// Does what was typed.
pub(crate) fn run(arguments: &CacheArguments) -> anyhow::Result<Exit> {
    let kind = match arguments.command {
        CacheCommand::Advise(_) | CacheCommand::Detach { .. } => Kind::Status,
        _ => Kind::State,
    };
    let format = match arguments.command {
        CacheCommand::Status { prometheus: true, .. } => Format::Prometheus,
        _ => arguments.printed.format(kind)?,
    };
    match &arguments.command {
        CacheCommand::Create(create) => create::run(create, format),
        CacheCommand::Adopt(adopt) => create::adopt(adopt, format),
        CacheCommand::Advise(advise) => advise::run(advise, format),
        CacheCommand::Serve(serve) => serve::run(serve, format),
        CacheCommand::Status { name, tui: true, .. } => live::run(name.as_deref()),
        CacheCommand::Status { name, .. } => status::run(name.as_deref(), format),
        CacheCommand::Mode { name, mode } => status::mode(name, (*mode).into(), format),
        CacheCommand::Drain { name } => end::drain(name, format),
        CacheCommand::Grow { name, size } => change::grow(name, *size, format),
        CacheCommand::ReplaceLeg(replace) => change::replace_leg(replace, format),
        CacheCommand::ReplaceLog(replace) => change::replace_log(replace, format),
        CacheCommand::Stop { name, cut_off } => end::stop(name, *cut_off, format),
        CacheCommand::Detach { name, cut_off, discard_dirty, give_up_unreadable } => {
            let losses =
                AcceptedLosses { discard_dirty: *discard_dirty, give_up_unreadable: *give_up_unreadable };
            end::detach(name, *cut_off, losses, format)
        }
        CacheCommand::Verify { name } => offline::look(name, None, format),
        CacheCommand::Recover { name, dry_run: true, give_up_lost } => {
            offline::look(name, *give_up_lost, format)
        }
        CacheCommand::Recover { name, dry_run: false, give_up_lost } => {
            offline::recover(name, *give_up_lost, format)
        }
    }
}

/// Remedy for a server that does not answer.
const WHEN_SILENT: &str = "; if it is stopped (state T in `ps`) `kill -CONT` lets it go on, if a device of it does not answer the kernel's \
                           log says so; else ask again: it may be making things durable. Killed, it loses nothing that was acknowledged";

/// Where the control sockets of caches are: apart from those of drives.
fn sockets() -> PathBuf {
    places::cache_sockets(&places::run())
}

/// Gives an order to a cache that is served; `None` if it is not. Servers are found by the name alone: one
/// that serves the cache of another configuration is refused before it gets an order. One that takes long to
/// say who it is, because it ends, gets it all the same.
fn order(name: &str, order: &Order<CacheOrder>) -> anyhow::Result<Option<CacheStatus>> {
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
                "{name}: what is served under this name is the cache {}, which is not that of this state directory: stop that one first",
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
    let left = match kept {
        None => "what it left is taken away".to_owned(),
        Some(why) => format!("its block device answers errors, and goes once it is let go of ({why})"),
    };
    terminal::say(&format!(
        "plumb: the process that served {name} was killed: all that was acknowledged stands in the log; {left}"
    ));
    Ok(())
}

/// A refusal of the devices, as the exit code of its kind.
fn refused(error: plumb_targets::Error) -> anyhow::Error {
    Refusal::from(error).into()
}

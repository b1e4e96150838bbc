//! `plumb cache`: creating, serving, changing and removing write-back caches.

mod advise;
mod change;
mod create;
mod end;
mod laying_out;
mod live;
mod offline;
mod orders;
mod serve;
mod status;

use plumb_caches::CacheOrder;
use plumb_report::{Format, Kind};

use self::end::AcceptedLosses;
use crate::arguments::cache::{CacheArguments, CacheCommand};
use crate::exit::Exit;

/// Runs the command as typed.
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
        CacheCommand::Mode { name, mode } => {
            status::change(name, &CacheOrder::Mode { mode: (*mode).into() }, format)
        }
        CacheCommand::Tune { name, write_back_soon, tuning } => {
            status::tune(name, *write_back_soon, tuning, format)
        }
        CacheCommand::Drain { name } => end::drain(name, format),
        CacheCommand::Grow { name, size, .. } => change::grow(name, *size, format),
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

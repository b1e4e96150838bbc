//! `plumb cache serve`: serves a cache until it is stopped or the command is interrupted.

use anyhow::Context as _;
use plumb_block::FailureKind;
use plumb_cache::MissingLegs;
use plumb_caches::{CacheStatus, Opening, serve_cache, sockets};
use plumb_report::Format;
use plumb_serve::named::control::Order;
use plumb_serve::named::{Ending, ServiceOptions, registry};
use plumb_text::shell_word;

use super::orders::{config, order};
use super::status;
use crate::arguments::cache::ServeArguments;
use crate::command::serving::{name_what_stays, refusal, service_options};
use crate::exit::{Exit, Refusal};
use crate::{stop, terminal};

pub(super) fn run(arguments: &ServeArguments, format: Format) -> anyhow::Result<Exit> {
    let name = &arguments.name;
    let service = service_options(&arguments.exports, "cache")?;
    let config = config(name)?;
    if order(name, &Order::Status)?.is_some() {
        let message = format!(
            "the cache {name} is already served: `plumb cache status {}` shows where",
            shell_word(name)
        );
        return Err(Refusal::new(FailureKind::Refused, message).into());
    }
    let directory = sockets();
    registry::make(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let [stop, cut_off] = stop::on_signals_twice()?;
    let ublk = arguments.exports.ublk.then(|| plumb_serve::named::UblkExport {
        recover: None,
        contents: Some(config.block_device_identity()),
        keeps_acknowledged: true,
    });
    let service = ServiceOptions { directory, name: Some(name.clone()), ublk, ..service };
    let degraded = if arguments.degraded { MissingLegs::Any } else { MissingLegs::No };
    let discards_backing_writes = config.is_meant(arguments.discard_backing_writes)?;
    let opening = Opening { degraded, discards_backing_writes, ..Opening::STRICT };
    let service = serve_cache(config, opening, service).map_err(refusal)??;
    name_what_stays(&service);
    // Clients need not wait until all memory is locked.
    stay_in_memory();
    let schema = CacheStatus::SCHEMA_SERVE.to_owned();
    status::show(CacheStatus { schema, ..service.status() }, format)?;
    service.serve(Ending { stop: &stop, cut_off: &cut_off }).map_err(refusal)?;
    Ok(Exit::Done)
}

/// Locks the memory of this process, because the server of a disk must not be paged out to that disk. If
/// locking is not permitted, the cache serves nevertheless, and that is reported.
fn stay_in_memory() {
    use rustix::mm::{MlockAllFlags, mlockall};
    if let Err(errno) = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE) {
        terminal::say(&format!(
            "plumb: memory is not locked ({}): when memory is short, requests wait for swap; run as root, \
             or raise the limit (ulimit -l)",
            std::io::Error::from(errno)
        ));
    }
}

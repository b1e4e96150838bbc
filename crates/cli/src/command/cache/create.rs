//! `plumb cache create` and `plumb cache adopt`.

use plumb_block::{Bytes, FailureKind};
use plumb_caches::{
    AdoptWanted, CacheConfig, CacheStatus, CreateWanted, DevicePlace, LayoutObserver, Tuning,
};
use plumb_report::Format;
use plumb_targets::Permission;

use super::laying_out::watched;
use super::status;
use crate::arguments::cache::{AdoptArguments, CreateArguments};
use crate::exit::{Exit, Refusal};
use crate::{stop, terminal};

/// Adopts a cache.
pub(super) fn adopt(arguments: &AdoptArguments, format: Format) -> anyhow::Result<Exit> {
    let AdoptArguments { name, backing, log, mode, unmarked } = arguments;
    let mode = mode.map(Into::into);
    let is_known = CacheConfig::load(&plumb_caches::directory(), name).is_ok();
    let adopted = plumb_caches::adopt(
        &plumb_caches::directory(),
        AdoptWanted { name, backing, log, mode, unmarked: *unmarked },
    )?;
    if mode.is_none() && !is_known {
        terminal::say(&format!(
            "plumb: {name} will be served in the mode {}: its devices do not record the earlier mode \
             (`plumb cache mode` changes it)",
            adopted.mode.word()
        ));
    }
    status::show(CacheStatus::unserved(&adopted), format)
}

pub(super) fn run(arguments: &CreateArguments, format: Format) -> anyhow::Result<Exit> {
    let permission = Permission {
        overwrite: arguments.overwrite,
        destroy: arguments.destroy.clone(),
        ..Permission::default()
    };
    if arguments.log.len() < 2 && (arguments.stripe || arguments.mirror) {
        let message = "--stripe and --mirror need several devices: give one --log for each";
        return Err(Refusal::new(FailureKind::Usage, message).into());
    }
    let size = match arguments.size {
        Some(size) => size,
        None => size_of_parts(&arguments.log)?,
    };
    let wanted = CreateWanted {
        name: &arguments.name,
        backing: &arguments.backing,
        legs: &arguments.log,
        layout: arguments.layout(),
        size,
        mode: arguments.mode.into(),
        tuning: arguments.tuning.over(Tuning::default()),
        permission: &permission,
        discard_dirty: arguments.discard_dirty,
    };
    let interrupted = stop::on_signals()?;
    let create = |laying_out: &mut LayoutObserver<'_>| {
        plumb_caches::create(&plumb_caches::directory(), &wanted, Some(laying_out))
    };
    let config = watched(&interrupted, create)?;
    for warning in CacheStatus::unserved(&config).warnings {
        terminal::say(&format!("plumb: warning: {warning}"));
    }
    let schema = CacheStatus::SCHEMA_CREATE.to_owned();
    status::show(CacheStatus { schema, dirty_bytes: Some(0), ..CacheStatus::unserved(&config) }, format)
}

/// Returns the size of a log that uses all of the typed parts: the smallest of their sizes.
fn size_of_parts(typed: &[String]) -> anyhow::Result<Bytes> {
    let places = DevicePlace::parse_all(typed)?;
    let lengths: Option<Vec<_>> = places.iter().map(|place| place.part.map(|part| part.length)).collect();
    lengths.and_then(|lengths| lengths.into_iter().min()).map(Bytes).ok_or_else(|| {
        let message = "say how many bytes are used of each --log: --size 5G, or --log PATH@OFFSET+SIZE";
        Refusal::new(FailureKind::Usage, message).into()
    })
}

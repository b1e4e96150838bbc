//! `plumb cache create`.

use plumb_block::Bytes;
use plumb_targets::Permission;
use plumb_targets::cache::{self, CacheConfig, CacheStatus, CreateWanted, LayingOut};

use super::laying_out::watched;
use super::{refused, status};
use crate::arguments::cache::{AdoptArguments, CreateArguments};
use crate::exit::{Exit, Refusal};
use crate::{stop, terminal};

/// Makes a cache known again.
pub(super) fn adopt(arguments: &AdoptArguments, json: bool) -> anyhow::Result<Exit> {
    let AdoptArguments { name, backing, log, mode, unmarked } = arguments;
    let mode = mode.map(Into::into);
    let is_known = CacheConfig::load(&cache::directory(), name).is_ok();
    let adopted =
        cache::adopt(&cache::directory(), name, (backing, log), (mode, *unmarked)).map_err(refused)?;
    if mode.is_none() && !is_known {
        terminal::say(&format!(
            "plumb: {name} will be served in the mode {}: its devices do not say in which it was (`plumb cache mode` changes it)",
            status::word(adopted.mode)
        ));
    }
    status::show(&CacheStatus::unserved(&adopted), json)
}

pub(super) fn run(arguments: &CreateArguments, json: bool) -> anyhow::Result<Exit> {
    let permission = Permission {
        overwrite: arguments.overwrite,
        destroy: arguments.destroy.clone(),
        ..Permission::default()
    };
    if arguments.log.len() < 2 && (arguments.stripe || arguments.mirror) {
        let message = "--stripe and --mirror say what several devices hold: give --log for each of them";
        return Err(Refusal::new(Exit::Usage, message).into());
    }
    let wanted = CreateWanted {
        name: &arguments.name,
        backing: &arguments.backing,
        legs: &arguments.log,
        layout: arguments.layout(),
        size: arguments.size,
        mode: arguments.mode.into(),
        permission: &permission,
        discard_dirty: arguments.discard_dirty,
    };
    let interrupted = stop::on_signals()?;
    let create =
        |laying_out: &mut LayingOut<'_>| cache::create(&cache::directory(), &wanted, Some(laying_out));
    let config = watched(&interrupted, create)?;
    for warning in CacheStatus::unserved(&config).warnings {
        terminal::say(&format!("plumb: warning: {warning}"));
    }
    if json {
        let status = CacheStatus::unserved(&config);
        let schema = CacheStatus::SCHEMA_CREATE.to_owned();
        return status::show(&CacheStatus { schema, dirty_bytes: Some(0), ..status }, json);
    }
    let name = &config.name;
    let mut text = format!("{name}: {} of log in front of {}\n", Bytes(config.size), config.backing);
    text += &config.legs.iter().map(|leg| format!("  log {leg}\n")).collect::<String>();
    text += &format!("  uuid {}\n", config.uuid);
    text += &format!(
        "  `plumb cache serve {name} --attach` (or --nbd SOCKET) serves it; from now on {} needs it\n",
        config.backing
    );
    terminal::print(&text)?;
    Ok(Exit::Done)
}

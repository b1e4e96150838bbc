//! `plumb cache create`.

use plumb_block::Bytes;
use plumb_target::Permission;
use plumb_target::cache::{self, CacheStatus, CreateWanted};

use super::refused;
use crate::arguments::cache::CreateArguments;
use crate::exit::Exit;
use crate::terminal;

pub(super) fn run(arguments: &CreateArguments, json: bool) -> anyhow::Result<Exit> {
    let permission = Permission {
        overwrite: arguments.overwrite,
        destroy: arguments.destroy.clone(),
        ..Permission::default()
    };
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
    let config = cache::create(&cache::directory(), &wanted).map_err(refused)?;
    if json {
        let status = CacheStatus::unserved(&config);
        let clean = CacheStatus { dirty_bytes: Some(0), dirty_bytes_unknown_because: None, ..status };
        terminal::print_json(&CacheStatus { schema: CacheStatus::SCHEMA_CREATE.to_owned(), ..clean })?;
        return Ok(Exit::Done);
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

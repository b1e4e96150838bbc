//! `plumb drive list`: the built-in models.

use plumb_report::Format;
use plumb_report::document::drive::DriveList;
use plumb_sim::model::Model;

use crate::exit::Exit;
use crate::terminal;

pub(super) fn run(format: Format) -> anyhow::Result<Exit> {
    terminal::show_status(&DriveList::new(Model::all()?), format)?;
    Ok(Exit::Done)
}

//! `plumb drive list`: the models that are shipped.

use plumb_report::Format;
use plumb_report::document::drive::{DriveList, ListedModel};
use plumb_sim::model::{IgnoresFlush, Model, Wce};

use crate::exit::Exit;
use crate::terminal::{self, word};

pub(super) fn run(format: Format) -> anyhow::Result<Exit> {
    let models = Model::all()?.into_iter().map(listed).collect();
    terminal::show_status(&DriveList { schema: DriveList::SCHEMA.to_owned(), models }, format)?;
    Ok(Exit::Done)
}

fn listed(model: Model) -> ListedModel {
    ListedModel {
        write_cache: write_cache(&model),
        size: model.geometry.default_size.0.0,
        kind: word(&model.kind),
        interface: word(&model.interface),
        name: model.name,
        cache: model.cache_summary,
        description: model.description,
        source: model.sources,
    }
}

/// Describes the effect of a power cut on an acknowledged write in the drive.
fn write_cache(model: &Model) -> String {
    let behaviour = &model.behaviour;
    let state = match behaviour.wce {
        Wce::Absent => return "none".to_owned(),
        Wce::On => "on",
        Wce::Off => "off",
    };
    let kept = match (matches!(behaviour.ignores_flush, IgnoresFlush::Never), behaviour.keeps_cache()) {
        (false, _) => "volatile, flushes ignored",
        (true, true) => "protected",
        (true, false) => "volatile",
    };
    format!("{state}, {kept}")
}

//! `plumb drive list`: the models that are shipped.

use plumb_report::Style;
use plumb_report::terminal::{Cell, Ink, Table, hang};
use plumb_sim::model::{IgnoresFlush, Interface, Kind, Model, Wce};
use serde::Serialize;

use crate::exit::Exit;
use crate::terminal;

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    models: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    kind: Kind,
    interface: Interface,
    cache: String,
    size: u64,
    description: String,
    source: Vec<String>,
}

pub(super) fn run(json: bool) -> anyhow::Result<Exit> {
    let models = Model::all()?;
    if json {
        let models = models.into_iter().map(row).collect();
        terminal::print_json(&Document { schema: "plumb/drive-list/1", models })?;
        return Ok(Exit::Done);
    }
    terminal::print(&text(&models, terminal::style()))?;
    Ok(Exit::Done)
}

/// A line for each model, and below it what it stands for.
fn text(models: &[Model], style: Style) -> String {
    let table = Table::of(models)
        .left("model", |model| Cell::inked(Ink::Bold, &model.name))
        .left("kind", |model| word(&model.kind))
        .left("interface", |model| word(&model.interface))
        .right("size", |model| model.geometry.default_size.0.to_string())
        .left("write cache", |model| cache(model))
        .table();
    let shown = table.show(style);
    let mut lines = shown.lines();
    let mut text = lines.next().map(|head| format!("{head}\n")).unwrap_or_default();
    for (line, model) in lines.zip(models) {
        text += &format!("{line}\n{}", hang("      ", &model.description, style.width));
    }
    text += "\n`plumb drive show MODEL` tells what one is made of, `plumb drive serve MODEL` makes one.\n";
    style.finish(text)
}

/// Describes what becomes of an acknowledged write in the drive when its power is cut.
fn cache(model: &Model) -> Cell {
    let behaviour = &model.behaviour;
    let state = match behaviour.wce {
        Wce::Absent => return Cell::plain("none"),
        Wce::On => "on",
        Wce::Off => "off",
    };
    let (ink, kept) = match (matches!(behaviour.ignores_flush, IgnoresFlush::Never), behaviour.keeps_cache())
    {
        (false, _) => (Ink::Red, "volatile, flushes ignored"),
        (true, true) => (Ink::Green, "protected"),
        (true, false) => (Ink::Yellow, "volatile"),
    };
    Cell::inked(ink, format!("{state}, {kept}"))
}

fn row(model: Model) -> Row {
    Row {
        size: model.geometry.default_size.0.0,
        name: model.name,
        kind: model.kind,
        interface: model.interface,
        cache: model.cache_summary,
        description: model.description,
        source: model.sources,
    }
}

/// The word that stands for a value in documents.
pub(super) fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

//! `plumb drive list`: the models that are shipped.

use plumb_sim::model::{Interface, Kind, Model};
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
        let mut text = serde_json::to_string_pretty(&Document { schema: "plumb/drive-list/1", models })?;
        text.push('\n');
        terminal::print(&text)?;
        return Ok(Exit::Done);
    }
    let width = models.iter().map(|model| model.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for model in &models {
        let kind = format!("{} {}", word(&model.interface), word(&model.kind));
        text += &format!("{:width$}  {kind:<14}  {}\n", model.name, model.description);
        text += &format!("{:width$}  cache: {}\n", "", model.cache_summary);
    }
    text += "\n`plumb drive show MODEL` tells what one is made of, `plumb drive serve MODEL` makes one.\n";
    terminal::print(&text)?;
    Ok(Exit::Done)
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

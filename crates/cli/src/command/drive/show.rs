//! `plumb drive show`: what a model is made of, and what it does beside what is published.

use plumb_sim::figures::{self, FigureRow, FigureTable};
use plumb_sim::model::{Interface, Kind, Model};
use serde::Serialize;

use super::list::word;
use crate::arguments::drive::ShowArguments;
use crate::exit::Exit;
use crate::terminal;

/// The seed of the runs that figures are taken from.
const SEED: u64 = 1;

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    name: String,
    kind: Kind,
    interface: Interface,
    cache: String,
    description: String,
    source: Vec<String>,
    parameters: Vec<Parameter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    figures: Option<Vec<Figure>>,
}

#[derive(Serialize)]
struct Parameter {
    name: String,
    value: String,
    source: Option<String>,
}

#[derive(Serialize)]
struct Figure {
    name: String,
    unit: String,
    simulated: f64,
    published: Option<f64>,
    deviation: Option<f64>,
    source: Option<String>,
}

pub(super) fn run(arguments: &ShowArguments) -> anyhow::Result<Exit> {
    let model = super::model(&arguments.model)?;
    let table = arguments.figures.then(|| figures::of(&model, SEED));
    if arguments.json {
        let mut text = serde_json::to_string_pretty(&document(model, table))?;
        text.push('\n');
        terminal::print(&text)?;
    } else {
        terminal::print(&text(&model, table.as_ref()))?;
    }
    Ok(Exit::Done)
}

fn text(model: &Model, table: Option<&FigureTable>) -> String {
    let mut text = format!(
        "{}: {} {}\n{}\ncache: {}\n",
        model.name,
        word(&model.interface),
        word(&model.kind),
        model.description,
        model.cache_summary
    );
    let width = model.figures.iter().map(|figure| figure.path.len()).max().unwrap_or(0);
    text.push('\n');
    for figure in &*model.figures {
        let source = figure.source.as_deref().unwrap_or("no source given");
        text += &format!("{:width$}  {:>12}  {source}\n", figure.path, figure.value);
    }
    text += "\nsources:\n";
    for source in &model.sources {
        text += &format!("  {source}\n");
    }
    if let Some(table) = table {
        text += &format!("\nin virtual time, seed {SEED}:\n{table}");
    }
    text
}

fn document(model: Model, table: Option<FigureTable>) -> Document {
    let parameters = model.figures.iter().map(|figure| Parameter {
        name: figure.path.clone(),
        value: figure.value.clone(),
        source: figure.source.clone(),
    });
    Document {
        schema: "plumb/drive-model/1",
        parameters: parameters.collect(),
        figures: table.map(|table| table.rows.into_iter().map(figure).collect()),
        name: model.name,
        kind: model.kind,
        interface: model.interface,
        cache: model.cache_summary,
        description: model.description,
        source: model.sources,
    }
}

fn figure(row: FigureRow) -> Figure {
    Figure {
        deviation: row.deviation(),
        name: row.name.to_owned(),
        unit: row.unit.to_string(),
        simulated: row.simulated,
        published: row.published,
        source: row.source,
    }
}

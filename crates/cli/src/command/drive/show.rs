//! `plumb drive show`: what a model is made of, and what it does beside what is published.

use plumb_report::Style;
use plumb_report::printable::printable;
use plumb_report::terminal::{Ink, Table, hang};
use plumb_sim::figures::{self, FigureRow};
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
    unit: &'static str,
    simulated: f64,
    published: Option<f64>,
    deviation: Option<f64>,
    source: Option<String>,
}

pub(super) fn run(arguments: &ShowArguments, json: bool) -> anyhow::Result<Exit> {
    let model = super::model(&arguments.model)?;
    let table = arguments.figures.then(|| figures::of(&model, SEED));
    if json {
        terminal::print_json(&document(model, table))?;
    } else {
        terminal::print(&text(&model, table.as_deref(), terminal::style()))?;
    }
    Ok(Exit::Done)
}

fn text(model: &Model, table: Option<&[FigureRow]>, style: Style) -> String {
    let title = style.ink(Ink::Bold, &model.name);
    let mut text = format!("{title}: {} {}\n", word(&model.interface), word(&model.kind));
    text += &hang("  ", &printable(&model.description), style.width);
    text += &hang("  cache: ", &printable(&model.cache_summary), style.width);
    text += "\n";
    text += &parameters(model).show_wrapped(style);
    if !model.sources.is_empty() {
        text += "\nSources\n";
        text.extend(model.sources.iter().map(|source| hang("  - ", &printable(source), style.width)));
    }
    if table.is_some_and(<[FigureRow]>::is_empty) {
        text += "\nThere are no figures of this kind of drive to be measured.\n";
    } else if let Some(table) = table {
        text += &format!("\nIn virtual time, seed {SEED}\n{}", figures_table(table).show_wrapped(style));
    }
    style.finish(text)
}

fn parameters(model: &Model) -> Table {
    Table::of(&*model.figures)
        .left("parameter", |figure| printable(&figure.path))
        .right("value", |figure| printable(&figure.value))
        .left("source", |figure| printable(figure.source.as_deref().unwrap_or("no source given")))
        .table()
}

fn figures_table(figures: &[FigureRow]) -> Table {
    let published = |of: f64| format!("{of:.2}");
    let deviation = |off: f64| format!("{:+.1} %", off * 100.0);
    Table::of(figures)
        .left("figure", |row| format!("{}, {}", row.name, row.unit))
        .right("simulated", |row| format!("{:.2}", row.simulated))
        .right("published", |row| row.published.map(published).unwrap_or_default())
        .right("deviation", |row| row.deviation().map(deviation).unwrap_or_default())
        .left("source", |row| printable(row.source.as_deref().unwrap_or_default()))
        .table()
}

fn document(model: Model, table: Option<Vec<FigureRow>>) -> Document {
    let parameters = model.figures.iter().map(|figure| Parameter {
        name: figure.path.clone(),
        value: figure.value.clone(),
        source: figure.source.clone(),
    });
    Document {
        schema: "plumb/drive-model/1",
        parameters: parameters.collect(),
        figures: table.map(|table| table.into_iter().map(figure).collect()),
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
        unit: row.unit,
        simulated: row.simulated,
        published: row.published,
        source: row.source,
    }
}

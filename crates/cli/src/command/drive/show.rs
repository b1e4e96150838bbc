//! `plumb drive show`: what a model is made of, and what it does beside what is published.

use plumb_report::Format;
use plumb_report::document::drive::{DriveModel, ModelFigure, ModelParameter};
use plumb_sim::figures::{self, FigureRow};

use super::model::model;
use crate::arguments::drive::ShowArguments;
use crate::exit::Exit;
use crate::terminal::{self, word};

pub(super) fn run(arguments: &ShowArguments, format: Format) -> anyhow::Result<Exit> {
    let model = model(&arguments.model)?;
    let figures = arguments.figures.then(|| figures::measure(&model, DriveModel::SEED));
    let parameters = model.figures.iter().map(|figure| ModelParameter {
        name: figure.path.clone(),
        value: figure.value.clone(),
        source: figure.source.clone(),
    });
    let document = DriveModel {
        schema: DriveModel::SCHEMA.to_owned(),
        parameters: parameters.collect(),
        figures: figures.map(|rows| rows.into_iter().map(figure).collect()),
        kind: word(&model.kind),
        interface: word(&model.interface),
        name: model.name,
        cache: model.cache_summary,
        description: model.description,
        source: model.sources,
    };
    terminal::show_status(&document, format)?;
    Ok(Exit::Done)
}

fn figure(row: FigureRow) -> ModelFigure {
    ModelFigure {
        deviation: row.deviation(),
        name: row.name.to_owned(),
        unit: row.unit.to_owned(),
        simulated: row.simulated,
        published: row.published,
        source: row.source,
    }
}

//! `plumb drive show`: parameters of a model, and its figures beside published ones.

use plumb_report::Format;
use plumb_report::document::drive::DriveModel;
use plumb_sim::figures;

use super::model::model;
use crate::arguments::drive::ShowArguments;
use crate::exit::Exit;
use crate::terminal;

pub(super) fn run(arguments: &ShowArguments, format: Format) -> anyhow::Result<Exit> {
    let model = model(&arguments.model)?;
    let figures = arguments.figures.then(|| figures::measure(&model, DriveModel::SEED));
    terminal::show_status(&DriveModel::new(model, figures), format)?;
    Ok(Exit::Done)
}

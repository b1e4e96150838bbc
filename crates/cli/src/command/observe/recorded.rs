//! Recorded observations.

use std::path::Path;

use plumb_block::FailureKind;
use plumb_report::{ObservationDocument, RunContents};

use crate::exit::{Refusal, usage};

/// Opens a recorded observation.
///
/// # Errors
/// If the run is not an observation.
pub(super) fn recorded(run: &Path) -> Result<ObservationDocument, Refusal> {
    let none =
        || Refusal::new(FailureKind::Usage, format!("{} is not a recorded observation", run.display()));
    match RunContents::open(run).map_err(usage)? {
        Some(RunContents::Observation(document)) => Ok(*document),
        _ => Err(none()),
    }
}

//! Access to this machine for comparisons that set its levels and restore it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use plumb_block::in_one_line;
use plumb_compare::setting;
use plumb_policy::claims::Claims;
use plumb_policy::gateway::LiveGateway;
use plumb_state::places;
use plumb_trial::TrialError;

/// Returns this machine in its present state.
pub(crate) fn this() -> Result<Arc<setting::Machine>, TrialError> {
    let claims =
        Claims::load(Path::new(places::CLAIMS)).map_err(|error| TrialError::usage(in_one_line(&error)))?;
    Ok(Arc::new(setting::Machine {
        gateway: Arc::new(LiveGateway::new()),
        claims,
        now: Timestamp::now(),
        journals: places::JOURNALS.into(),
        records: records(),
    }))
}

/// Returns the directory with the records of settings to restore, in the state directory.
pub(crate) fn records() -> PathBuf {
    places::state().join("restore")
}

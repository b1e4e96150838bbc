//! Whose clock a run goes by: the machine's, or that of a simulation.

use std::sync::Arc;

use plumb_block::{Clock, Time};

use crate::name::Name;
use crate::simulated;

/// Returns the time of a run on targets of these names, whose real clock is `clock`. It is virtual if all of
/// them are simulated drives: then the run takes no longer than the simulation.
pub fn time_of<'a>(names: impl IntoIterator<Item = &'a Name>, clock: &Arc<dyn Clock>) -> Time {
    let mut names = names.into_iter().peekable();
    if names.peek().is_some() && names.all(simulated::is_wholly) {
        Time::Virtual(Arc::default())
    } else {
        Time::Real(Arc::clone(clock))
    }
}

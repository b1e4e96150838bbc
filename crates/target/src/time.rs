//! Whose clock a run goes by: the machine's, or that of a simulated world.

use std::sync::Arc;

use plumb_block::Clock;
use plumb_sim::World;

use crate::name::Name;
use crate::simulated;

/// The time of a run.
#[derive(Clone)]
pub enum Time {
    /// The machine's clock. Simulated drives beside real ones go by it too.
    Real(Arc<dyn Clock>),
    /// The clock of a world in which all targets are simulated: it takes no longer than the simulation.
    Virtual(World),
}

impl Time {
    /// The time of a run on targets of these names, whose real clock is `clock`.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a Name>, clock: &Arc<dyn Clock>) -> Self {
        let mut names = names.into_iter().peekable();
        if names.peek().is_some() && names.all(simulated::is_meant) {
            Self::Virtual(World::new())
        } else {
            Self::Real(Arc::clone(clock))
        }
    }

    /// The clock.
    pub fn clock(&self) -> Arc<dyn Clock> {
        match self {
            Self::Real(clock) => Arc::clone(clock),
            Self::Virtual(world) => world.clock(),
        }
    }
}

//! Settings of a controller.

use plumb_block::Nanos;

use crate::message::Identity;

/// Settings of a controller.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Identity of this program; agents must be the same program.
    pub identity: Identity,
    /// True to accept agents of another build of the same version.
    pub any_binary: bool,
    /// Interval of the heartbeats in both directions.
    pub heartbeat: Nanos,
    /// Time limit for the launcher and the agent's first answer.
    pub connect_within: Nanos,
    /// Maximum number of hosts connecting at the same time.
    pub forks: usize,
    /// Time limit for preparing a task, for a task that does not start, and for progress with a task of
    /// unknown length.
    pub prepare_within: Nanos,
    /// Time limit for the result after the expected end of a task.
    pub end_within: Nanos,
    /// Time limit for ending a task after the order to stop.
    pub stop_within: Nanos,
}

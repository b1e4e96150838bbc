//! A state named by the parts that the cut took, so that it can be reported, saved and shown again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::recording::CommandId;

/// Commands and blocks at risk that a cut dropped. Where several commands were in flight over a block, the
/// one submitted last counts as the last to land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Event of the recording before which the power fails.
    pub event: usize,
    /// Lost blocks of each command, where the loss makes a difference. All others survive.
    pub lost: BTreeMap<CommandId, Vec<u64>>,
}

//! A state named by what the cut took, so that it can be reported, saved and shown again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::recording::CommandId;

/// Commands and blocks that a cut dropped, among those at risk. Where several commands were in flight over
/// a block, the one submitted last landed last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The event of the recording before which the power goes.
    pub event: usize,
    /// The blocks that were lost of each command, where that makes a difference; all others survive.
    pub lost: BTreeMap<CommandId, Vec<u64>>,
}

//! Workload under which levels are compared.

use plumb_dialect::native::Words;
use plumb_workload::Scenario;

use crate::command::load::meaning;
use crate::command::profile;
use crate::exit::Refusal;

/// Workload under which levels are compared.
pub(super) struct Workload {
    /// Name of the workload; empty if there is only one.
    pub(super) name: String,
    pub(super) profile: Option<String>,
    pub(super) words: Words,
}

impl Workload {
    /// Returns the scenario of these words over the workload's own.
    pub(super) fn scenario(&self, level: &Words) -> Result<Scenario, Refusal> {
        let words = level.within(&self.words);
        match &self.profile {
            Some(name) => profile::scenario(name, &words),
            None => Ok(meaning(&words)?.scenario),
        }
    }
}

//! Workload under which levels are compared.

use plumb_block::in_one_line;
use plumb_dialect::native::Words;
use plumb_trial::TrialError;
use plumb_workload::Scenario;

use crate::experiment::Level;

/// Function that reads words, in addition to those of an application profile if one is named. The caller
/// opens files of words, and draws seeds.
pub type ReadWords<'a> = dyn Fn(Option<&str>, &Words) -> Result<Scenario, TrialError> + 'a;

/// Workload under which levels are compared.
pub struct Workload<'a> {
    /// Name of the workload; empty if there is only one.
    pub name: String,
    /// Name of the application profile, if the workload is one.
    pub profile: Option<String>,
    /// Words of the workload.
    pub words: Words,
    /// Function that reads words.
    pub read: &'a ReadWords<'a>,
}

impl Workload<'_> {
    /// Returns the scenario of the words of `level`, in addition to the workload's own.
    ///
    /// # Errors
    /// Fails as [`read`](Self::read) does.
    pub fn scenario(&self, level: &Words) -> Result<Scenario, TrialError> {
        (self.read)(self.profile.as_deref(), &level.within(&self.words))
    }
    /// Returns the levels whose words are `typed`, in addition to the workload's own.
    ///
    /// # Errors
    /// A usage error if words make no sense.
    pub fn levels(&self, typed: [&str; 2]) -> Result<Vec<Level>, TrialError> {
        let is_same = typed[0].trim() == typed[1].trim();
        let level = |(letter, typed): (char, &str)| {
            let words = Words::of_line(typed).map_err(|error| TrialError::usage(in_one_line(&error)))?;
            let name = if is_same { format!("{} ({letter})", typed.trim()) } else { typed.trim().to_owned() };
            Ok(Level { name, scenario: self.scenario(&words)? })
        };
        ['a', 'b'].into_iter().zip(typed).map(level).collect()
    }
}

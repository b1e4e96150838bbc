//! Comparison of a state with the moments that it may hold, by the output of a reader.

use plumb_report::document::proof::FailureClass;

use super::moments::{Moment, Moments};
use super::reading::Reading;
use crate::error::{Error, Result};
use crate::posix::Tree;
use crate::subject::Outcome;

/// Maximum number of moments between two acknowledgements at which the reader is run.
const READINGS_MAX: usize = 1000;

impl Moments {
    /// Judges a state by the output of the reader, which `read` runs on the tree of a moment.
    ///
    /// # Errors
    /// The errors of `read`, and a refusal if there are too many moments.
    pub(crate) fn judge_reading(
        &self,
        found: &Reading,
        required: Option<u64>,
        read: &dyn Fn(&Tree) -> Result<Reading>,
    ) -> Result<Outcome> {
        let range = self.since(required);
        if range.len() > READINGS_MAX {
            let what =
                format!("the program changes its files {} times between two acknowledgements", range.len());
            return Err(Error::missing(what, "acknowledge more often, or leave --read out"));
        }
        self.readings.check(|| read(&self.tree(self.last)))?;
        let at = |moment: Moment| self.readings.at(moment, || read(&self.tree(moment)));
        for moment in range.clone().rev().take(1).chain(range.clone()) {
            if at(moment)?.is_same(found) {
                return Ok(Outcome::Intact);
            }
        }
        for moment in self.acknowledged_before(range.start) {
            if at(moment)?.is_same(found) {
                let words = format!("lost: the reader prints what it printed before: {}", found.words);
                return Ok(Outcome::Failed { class: FailureClass::LostAcknowledged, words });
            }
        }
        let words = format!(
            "mixed: the reader prints what it printed at no moment ({}): {}",
            found.status, found.words
        );
        Ok(Outcome::Failed { class: FailureClass::Corrupt, words })
    }
}

//! Execution of the steps of one disk, each journalled before and after, and the final read-back.

use std::sync::atomic::Ordering;

use super::progress::Event;
use super::report::DiskResult;
use super::run::Session;
use crate::journal::{Journal, JournalError, Phase, Record};
use crate::mechanism::{self, Disagreement, Execution, Outcome, ReadBack, Step};
use crate::plan::planned;
use crate::state::on_off;

/// Result of a disk's steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepsEnded {
    /// All steps were executed, or unnecessary.
    All,
    /// The run was interrupted.
    Interrupted,
    /// A step failed; with the error.
    Failed(String),
}

/// Executor for one disk, with a journal.
pub(crate) struct Worker<'a> {
    pub(crate) session: &'a Session<'a>,
    pub(crate) journal: &'a mut Journal,
    pub(crate) phase: Phase,
    pub(crate) disk: &'a str,
}

impl Worker<'_> {
    /// Executes the steps in order, up to the first that fails.
    pub(crate) fn carry_out(&mut self, steps: &[Step]) -> Result<StepsEnded, JournalError> {
        for (number, step) in steps.iter().enumerate() {
            if self.session.stop.load(Ordering::Relaxed) {
                return Ok(StepsEnded::Interrupted);
            }
            if let Some(error) = self.one(number, step, steps.len())? {
                return Ok(StepsEnded::Failed(error));
            }
        }
        Ok(StepsEnded::All)
    }

    /// Executes one step. Returns the error if it failed.
    fn one(&mut self, number: usize, step: &Step, steps: usize) -> Result<Option<String>, JournalError> {
        let (phase, disk) = (self.phase, self.disk.to_owned());
        let said = planned(step);
        (self.session.progress)(&Event::Step { disk: self.disk, step: number, steps, words: &said.words });
        self.journal.record(Record::Intent {
            phase,
            disk: disk.clone(),
            step: number,
            words: format!("{}: {}", said.on, said.words),
            bytes: said.bytes,
        })?;
        match mechanism::execute(self.session.gateway, step) {
            Ok(Execution::Done | Execution::NotNeeded | Execution::Refused) => {
                self.journal.note(Record::Done { phase, disk, step: number })?;
                Ok(None)
            }
            Err(error) => {
                let error = format!("{}: {error}", said.words);
                self.journal.record(Record::StepFailed {
                    phase,
                    disk,
                    step: number,
                    error: error.clone(),
                })?;
                Ok(Some(error))
            }
        }
    }

    /// Journals the result of the read-back.
    pub(crate) fn conclude(&mut self, outcome: &Outcome) -> Result<DiskResult, JournalError> {
        let verified = outcome.disagreements.is_empty();
        let (phase, disk) = (self.phase, self.disk.to_owned());
        let result = if verified {
            self.journal.note(Record::Verified { phase, disk })?;
            DiskResult::Verified
        } else {
            let found = in_words(&outcome.disagreements);
            self.journal.record(Record::Mismatch { phase, disk, found: found.clone() })?;
            DiskResult::Mismatch { found }
        };
        let settled_in = outcome.waited;
        (self.session.progress)(&Event::DiskEnded { disk: self.disk, verified, settled_in });
        Ok(result)
    }

    /// Returns the result of a disk whose step failed, with its present state.
    pub(crate) fn give_up(&self, error: &str, now: &ReadBack) -> DiskResult {
        (self.session.progress)(&Event::DiskEnded {
            disk: self.disk,
            verified: false,
            settled_in: plumb_block::Nanos::ZERO,
        });
        let wce = on_off(now.wce, "unknown");
        let kernel = now.write_cache.as_deref().unwrap_or("unknown");
        DiskResult::Failed {
            error: format!("{error}; now its write cache is {wce}, and the kernel believes {kernel}"),
        }
    }
}

/// Formats disagreements as one line.
pub(crate) fn in_words(disagreements: &[Disagreement]) -> String {
    disagreements.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

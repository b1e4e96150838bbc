//! Failures of a proof, each with its minimal case.

use plumb_report::document::ProofDocument;
use plumb_report::document::proof::{Failure, FailureClass};
use plumb_text::shell_word;

use super::minimal_case::{minimal_case, required_at, submitted};
use super::request::Request;
use crate::error::{ErrorKind, Result};
use crate::explore::Choice;
use crate::judge::{FailingStates, Judge, JudgeResult};
use crate::subject::Outcome;

/// Maximum number of earlier moments tried for a minimal case.
const EARLIER_MAX: usize = 32;

impl Request<'_> {
    /// Adds each class of failure to the document with its minimal case, or with the case as found if the
    /// reduction was interrupted.
    pub(super) fn put_failures(&self, document: &mut ProofDocument, judged: &JudgeResult) -> Result<()> {
        let judge = Judge { until: self.until(self.budget), ..self.judge };
        for class in FailureClass::ALL {
            let Some(failing) = judged.failing.get(&class) else { continue };
            self.begin(&format!("looking for the smallest case: {}", class.name()));
            let (choice, words) = match minimal(&judge, class, failing, judged) {
                Err(_) if self.is_over() => (failing.example.clone(), failing.words.clone()),
                Err(error) if error.kind == ErrorKind::NoSuchState => {
                    let why = "a state that had failed did not when it was checked again: the checker answers differently for the same \
                               state, or it depends on the order of requests in flight together";
                    document.incomplete_because.get_or_insert_with(|| why.to_owned());
                    (failing.example.clone(), failing.words.clone())
                }
                minimal => minimal?,
            };
            let replay = match self.run.path() {
                Some(run) => {
                    let run = shell_word(&run.display().to_string());
                    format!("plumb prove replay {run} {}", class.name())
                }
                None => {
                    "the recording was not kept, so this state cannot be shown again: run without --no-record"
                        .to_owned()
                }
            };
            document.failures.push(Failure {
                class,
                states: failing.count,
                words,
                required: required_at(&self.judge.recorded.recording, choice.event),
                minimal: minimal_case(self, &choice),
                seed: self.judge.seed,
                recording: 0,
                replay,
                change: None,
                change_unknown_because: None,
                accepted: false,
            });
        }
        Ok(())
    }
}

/// Returns the smallest choice that fails in this class at the earliest moment, and the words of the checker.
/// When the time limit passes, it is the smallest one found so far.
fn minimal(
    judge: &Judge<'_>,
    class: FailureClass,
    failing: &FailingStates,
    judged: &JudgeResult,
) -> Result<(Choice, String)> {
    let choice = judge.minimise(&failing.example, class)?;
    if judge.is_late() {
        return Ok((choice, failing.words.clone()));
    }
    let submitted = submitted(&judge.recorded.recording, &choice);
    let earlier = judged.windows.iter().map(|(window, _)| window.event);
    let earlier = earlier.filter(|event| (submitted + 1..choice.event).contains(event));
    for event in earlier.take(EARLIER_MAX).chain([choice.event]) {
        let candidate = Choice { event, lost: choice.lost.clone() };
        match judge.outcome(&candidate)? {
            Outcome::Failed { class: found, words } if found == class => return Ok((candidate, words)),
            Outcome::Failed { .. } | Outcome::Intact => {}
        }
    }
    Ok((choice, failing.words.clone()))
}

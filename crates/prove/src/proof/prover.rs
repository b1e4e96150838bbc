//! What a proof goes by: states of the recording, and of others made from it, judged within the limits that were asked for.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_report::document::ProofDocument;
use plumb_report::document::proof::{Coverage, Failure, FailureClass};
use plumb_report::printable::shell_word;

use super::{Done, INTERRUPTED, Request, Watch, minimal_case};
use crate::error::Result;
use crate::explore::{Choice, Explorer, Limits};
use crate::judge::{FailingStates, Judge, Judged};
use crate::profile::DriveProfile;
use crate::session::Recorded;
use crate::subject::Outcome;

/// At most so many earlier moments are tried for a minimal case.
const EARLIER_MAX: usize = 32;

impl Request<'_> {
    /// The profile of which all is told.
    pub(crate) fn profile(&self) -> &DriveProfile {
        &self.profiles[0]
    }

    /// Whether nothing more shall be explored.
    pub(crate) fn is_over(&self) -> bool {
        self.judge.stop.load(Ordering::Acquire)
    }

    /// Judges the states of a recording of the work, this one or another, until the budget is used up.
    pub(crate) fn explore(
        &self,
        recorded: &Recorded,
        profile: &DriveProfile,
        limits: Limits,
        doing: &str,
        watch: Watch<'_>,
    ) -> Result<Judged> {
        watch(doing, None);
        let halt = AtomicBool::new(false);
        // What was checked is known by what was read of this recording alone.
        let is_kept = std::ptr::eq(recorded, self.judge.recorded) && profile == self.profile();
        let results = self.judge.results.filter(|_| is_kept);
        let judge = Judge { recorded, profile, results, limits, stop: &halt, ..self.judge };
        let of = self.count(&judge.explorer());
        let (began, budget) = (Instant::now(), self.budget.unwrap_or(Duration::MAX));
        let mut judged = judge.judge(&mut |progress| {
            let elapsed = began.elapsed();
            if self.is_over() || elapsed >= budget {
                halt.store(true, Ordering::Release);
            }
            let rest = of.saturating_sub(progress.distinct) as f64;
            let left = (progress.distinct > 0).then(|| elapsed.mul_f64(rest / progress.distinct as f64));
            let left = left.map(|left| left.min(budget.saturating_sub(elapsed)));
            watch(doing, Some(Done { progress, of, elapsed, left }));
        })?;
        if self.is_over() {
            judged.incomplete_because = Some(INTERRUPTED.to_owned());
        } else if halt.into_inner() {
            judged.incomplete_because = None;
        }
        Ok(judged)
    }

    /// How many distinct states there are. That takes a fraction of the time of judging them.
    fn count(&self, explorer: &Explorer<'_>) -> u64 {
        let mut count = 0;
        explorer.explore(&mut |_| {
            count += 1;
            if self.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        count
    }

    /// Puts down what fails, with its minimal case. A case that could not be made smaller, because it was interrupted, is
    /// put down as it was found.
    pub(super) fn put_failures(
        &self,
        document: &mut ProofDocument,
        judged: &Judged,
        watch: Watch<'_>,
    ) -> Result<()> {
        for class in FailureClass::ALL {
            let Some(failing) = judged.failing.get(&class) else { continue };
            watch(&format!("looking for the smallest case that is {}", class.name()), None);
            let (choice, words) = match self.minimal(class, failing, judged) {
                Err(_) if self.is_over() => (failing.example.clone(), failing.words.clone()),
                minimal => minimal?,
            };
            let replay = match &self.run_directory {
                Some(run) => format!("plumb prove replay {} {}", shell_word(run), class.name()),
                None => "nothing was kept to show again: leave --no-record out".to_owned(),
            };
            document.failures.push(Failure {
                class,
                states: failing.count,
                words,
                required: minimal_case::required_at(&self.judge.recorded.recording, choice.event),
                minimal: minimal_case::minimal_case(self, &choice),
                seed: self.judge.seed,
                replay,
                change: None,
            });
        }
        Ok(())
    }

    /// The fewest commands that have to be lost for a failure of this class, as early as that may be, and what the checker
    /// says then.
    fn minimal(
        &self,
        class: FailureClass,
        failing: &FailingStates,
        judged: &Judged,
    ) -> Result<(Choice, String)> {
        let choice = self.judge.minimise(&failing.example, class)?;
        let submitted = minimal_case::submitted(&self.judge.recorded.recording, &choice);
        let earlier = judged.windows.iter().map(|(window, _)| window.event);
        let earlier = earlier.filter(|event| (submitted + 1..choice.event).contains(event));
        for event in earlier.take(EARLIER_MAX).chain([choice.event]) {
            let candidate = Choice { event, lost: choice.lost.clone() };
            match self.judge.outcome(&candidate)? {
                Outcome::Failed { class: found, words } if found == class => return Ok((candidate, words)),
                Outcome::Failed { .. } | Outcome::Intact => {}
            }
        }
        Ok((choice, failing.words.clone()))
    }
}

/// Whether every window was explored whole, and none was left out.
pub(crate) fn is_exhaustive(judged: &Judged) -> bool {
    judged.incomplete_because.is_none()
        && judged.windows.iter().all(|(window, _)| window.coverage == Coverage::Exhaustive)
}

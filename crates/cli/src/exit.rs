//! Exit codes, and how a failure becomes one.

use std::fmt;
use std::process::ExitCode;

use plumb_block::FailureKind;
use plumb_fleet::SessionError;
use plumb_path::{Finding, RecordingError, Severity};
use plumb_policy::error::PolicyError;
use plumb_report::document::FleetDocument;
use plumb_report::printable::printable_text;
use plumb_report::{
    ComparisonDocument, ObservationDocument, ProofDocument, RunDocument, StudyDocument, UNKNOWN,
};
use plumb_serve::named::control::ControlError;
use plumb_state::output::OutputError;
use plumb_targets::cache::OrderError;
use plumb_trial::TrialError;

use crate::strictness::Strictness;

/// How a command ended. When several apply the highest does, except that a finding wins over "could not
/// measure".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done, and nothing was found.
    Done = 0,
    /// Something is unsafe, drifted, lost, or slower.
    Finding = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// The command could not measure, or was interrupted before it had measured all.
    NotMeasured = 3,
    /// Refused, because data could be lost.
    Refused = 4,
    /// The command failed: a flush, a device, a file.
    Failed = 5,
}

impl Exit {
    /// Combines the exit codes of two results.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Finding, Self::NotMeasured) | (Self::NotMeasured, Self::Finding) => Self::Finding,
            (one, two) => one.max(two),
        }
    }
}

impl Exit {
    /// Returns the way in which a command failed that ended so.
    pub(crate) const fn failure(self) -> FailureKind {
        match self {
            Self::Usage => FailureKind::Usage,
            Self::NotMeasured => FailureKind::NotMeasured,
            Self::Refused => FailureKind::Refused,
            Self::Done | Self::Finding | Self::Failed => FailureKind::Failed,
        }
    }
}

/// The only place where a failure becomes an exit code.
impl From<FailureKind> for Exit {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Usage => Self::Usage,
            FailureKind::NotMeasured => Self::NotMeasured,
            FailureKind::Refused => Self::Refused,
            FailureKind::Failed => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Returns how a command ends that found `findings`, whether by a survey or by a measurement: level warning
/// or danger is a finding (docs/OUTCOMES.md).
pub(crate) fn of_findings<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Exit {
    let worst = findings.into_iter().map(|finding| finding.severity).max();
    if worst >= Some(Severity::Warning) { Exit::Finding } else { Exit::Done }
}

/// Returns how a command ends that shows a run, when it ran and whenever it is reported: its end and its
/// verdicts decide.
pub(crate) fn of_run(document: &RunDocument, strictness: Strictness) -> Exit {
    let ended = match (document.failed, document.complete) {
        (true, _) => Exit::Failed,
        (false, true) => Exit::Done,
        (false, false) => Exit::NotMeasured,
    };
    ended.and(of_verdicts(document, strictness))
}

/// Returns how a command ends by the verdicts of a run, and with `strictness` also by that nothing is known.
pub(crate) fn of_verdicts(document: &RunDocument, strictness: Strictness) -> Exit {
    let unknown = document.level == UNKNOWN;
    of_findings(&document.verdicts).and(of_unknown(unknown, strictness))
}

/// Returns how a command ends where it is `unknown` what a sync is worth.
pub(crate) fn of_unknown(unknown: bool, strictness: Strictness) -> Exit {
    if unknown && strictness.strict { Exit::NotMeasured } else { Exit::Done }
}

/// Returns how a command ends that shows an observation: a write that was lost is a finding, and with
/// `strictness` what was not seen is an unknown.
pub(crate) fn of_observation(document: &ObservationDocument, strictness: Strictness) -> Exit {
    let has_lost = document.writeback_errors.as_ref().is_some_and(|errors| !errors.is_empty());
    let finding = if has_lost { Exit::Finding } else { Exit::Done };
    finding.and(of_unknown(document.is_partly_unseen(), strictness))
}

/// Returns how a command ends that shows many hosts. Whatever a host could not do, the result lacks it:
/// it was not measured. With which code the command ended there is told in the result, and is no code of
/// all.
pub(crate) fn of_fleet(document: &FleetDocument, strictness: Strictness) -> Exit {
    let is_whole = document.hosts.iter().all(|host| host.ok);
    let measured = if is_whole { Exit::Done } else { Exit::NotMeasured };
    let unknown = of_unknown(document.level == UNKNOWN, strictness);
    measured.and(of_findings(&document.verdicts)).and(unknown)
}

/// Returns how a command ends that shows a proof: a state that fails is a finding; what could not be judged
/// was not measured.
pub(crate) fn of_proof(document: &ProofDocument) -> Exit {
    let finding = if document.level == "danger" { Exit::Finding } else { Exit::Done };
    let is_whole = document.complete && document.level != "warning";
    finding.and(if is_whole { Exit::Done } else { Exit::NotMeasured })
}

/// Returns the exit code of a command that shows a comparison: a limit that is exceeded is a finding; one
/// that is not decided was not measured.
pub(crate) fn of_comparison(document: &ComparisonDocument) -> Exit {
    let limit = |exceeded: Option<bool>| match exceeded {
        Some(true) => Exit::Finding,
        Some(false) => Exit::Done,
        None => Exit::NotMeasured,
    };
    let is_whole = if document.complete { Exit::Done } else { Exit::NotMeasured };
    let limits = document.chapters().iter().flat_map(|chapter| &chapter.limits);
    limits.fold(is_whole, |exit, result| exit.and(limit(result.exceeded)))
}

/// Returns how a command ends that shows a study: a figure that did not come out is said in it, and is no
/// finding about a device.
pub(crate) fn of_study(document: &StudyDocument) -> Exit {
    if document.complete { Exit::Done } else { Exit::NotMeasured }
}

/// A failure that knows its exit code. Others end with [`Exit::Failed`].
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The code.
    pub(crate) exit: Exit,
    /// Message for stderr.
    pub(crate) message: String,
}

impl Refusal {
    /// Ends with `exit`, saying `message`.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    /// Ends with `exit`, saying `error` and all its causes.
    pub(crate) fn because(exit: Exit, error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::new(exit, format!("{:#}", anyhow::Error::new(error)))
    }
}

/// Returns a [`Refusal`] from the function if the condition holds: its [`Exit`] and its message.
macro_rules! refuse_if {
    ($is_refused:expr, $exit:ident, $message:expr) => {
        if $is_refused {
            return Err($crate::exit::Refusal::new($crate::exit::Exit::$exit, $message).into());
        }
    };
}
pub(crate) use refuse_if;

/// Refuses what was typed, which makes no sense, as `error` says.
pub(crate) fn usage(error: impl std::error::Error + Send + Sync + 'static) -> Refusal {
    Refusal::because(Exit::Usage, error)
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// Says a failure on stderr and gives its code. What clap has to say (help, version, a command line that it
/// cannot take) goes where it belongs.
pub(crate) fn say(failure: &anyhow::Error) -> Exit {
    if let Some(typed) = failure.downcast_ref::<clap::Error>() {
        let code = if typed.use_stderr() { Exit::Usage } else { Exit::Done };
        let plain = typed.render().to_string();
        // The message repeats the words that were typed.
        if printable_text(&plain, false) != plain {
            crate::terminal::say(plain.trim_end());
            return code;
        }
        return match typed.print() {
            // A reader who closed the pipe before the help was out has nothing to be told.
            Err(broken) if broken.kind() != std::io::ErrorKind::BrokenPipe => {
                crate::terminal::say(&format!("plumb: cannot write to stdout: {broken}"));
                Exit::Failed
            }
            _ => code,
        };
    }
    crate::terminal::say(&format!("plumb: {failure:#}"));
    code_of(failure)
}

/// Returns the exit code of a failure: its own, or that of its kind.
pub(crate) fn code_of(failure: &anyhow::Error) -> Exit {
    if let Some(refusal) = failure.downcast_ref::<Refusal>() {
        return refusal.exit;
    }
    let kinds = [
        failure.downcast_ref().map(|error: &plumb_prove::Error| error.kind.failure()),
        failure.downcast_ref().map(|error: &plumb_witness::Error| error.failure),
        failure.downcast_ref().map(|error: &plumb_targets::Error| error.kind().failure()),
        failure.downcast_ref().map(|error: &OutputError| error.kind),
        failure.downcast_ref().map(plumb_measure::Error::failure),
        failure.downcast_ref().map(TrialError::failure),
        failure.downcast_ref().map(PolicyError::failure),
        failure.downcast_ref().map(RecordingError::failure),
        failure.downcast_ref().map(OrderError::failure),
        failure.downcast_ref().map(ControlError::failure),
        failure.downcast_ref().map(SessionError::failure),
    ];
    kinds.into_iter().flatten().next().map_or(Exit::Failed, Exit::from)
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn the_highest_code_applies_but_a_finding_wins_over_not_measured() {
        assert_eq!(Exit::Done.and(Exit::Finding), Exit::Finding);
        assert_eq!(Exit::NotMeasured.and(Exit::Finding), Exit::Finding);
        assert_eq!(Exit::Finding.and(Exit::NotMeasured), Exit::Finding);
        assert_eq!(Exit::Finding.and(Exit::Failed), Exit::Failed);
        assert_eq!(Exit::Done.and(Exit::NotMeasured), Exit::NotMeasured);
    }
}

//! Exit codes, and how a failure becomes one.

use std::fmt;
use std::process::ExitCode;

use plumb_block::FailureKind;
use plumb_caches::OrderError;
use plumb_fleet::SessionError;
use plumb_path::{Finding, RecordingError, Severity};
use plumb_policy::error::PolicyError;
use plumb_report::document::FleetDocument;
use plumb_report::printable::printable_text;
use plumb_report::{
    ComparisonDocument, ObservationDocument, ProofDocument, RenderError, RunDocument, StudyDocument, UNKNOWN,
};
use plumb_serve::named::control::ControlError;
use plumb_state::output::OutputError;
use plumb_trial::TrialError;

use crate::strictness::Strictness;

/// How a command ended. When several apply the highest does, except that a finding wins over "could not
/// measure".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Done, and nothing was found.
    Done,
    /// Something is unsafe, drifted, lost, or slower.
    Finding,
    /// The command failed, or was interrupted before it had measured all.
    Failed(FailureKind),
}

impl Exit {
    /// Not all that was asked for could be measured.
    pub(crate) const NOT_MEASURED: Self = Self::Failed(FailureKind::NotMeasured);

    /// Combines the exit codes of two results.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Finding, Self::NOT_MEASURED) | (Self::NOT_MEASURED, Self::Finding) => Self::Finding,
            (one, two) => one.max(two),
        }
    }

    /// Returns the exit code (docs/OUTCOMES.md).
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Finding => 1,
            Self::Failed(kind) => kind.exit_code(),
        }
    }
}

impl From<FailureKind> for Exit {
    fn from(kind: FailureKind) -> Self {
        Self::Failed(kind)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
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
        (true, _) => FailureKind::Failed.into(),
        (false, true) => Exit::Done,
        (false, false) => Exit::NOT_MEASURED,
    };
    ended.and(of_verdicts(document, strictness))
}

/// Returns how a command ends whose result is whole, or not.
pub(crate) fn of_whole(is_whole: bool) -> Exit {
    if is_whole { Exit::Done } else { Exit::NOT_MEASURED }
}

/// Returns how a command ends by the verdicts of a run, and with `strictness` also by that nothing is known.
pub(crate) fn of_verdicts(document: &RunDocument, strictness: Strictness) -> Exit {
    let unknown = document.level == UNKNOWN;
    of_findings(&document.verdicts).and(of_unknown(unknown, strictness))
}

/// Returns how a command ends where it is `unknown` what a sync is worth.
pub(crate) fn of_unknown(unknown: bool, strictness: Strictness) -> Exit {
    of_whole(!unknown || !strictness.strict)
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
    let unknown = of_unknown(document.level == UNKNOWN, strictness);
    of_whole(is_whole).and(of_findings(&document.verdicts)).and(unknown)
}

/// Returns how a command ends that shows a proof: a state that fails is a finding; what could not be judged
/// was not measured.
pub(crate) fn of_proof(document: &ProofDocument) -> Exit {
    let finding = if document.level == "danger" { Exit::Finding } else { Exit::Done };
    let is_whole = document.complete && document.level != "warning";
    finding.and(of_whole(is_whole))
}

/// Returns the exit code of a command that shows a comparison: a limit that is exceeded is a finding; one
/// that is not decided was not measured, nor levels without a ratio.
pub(crate) fn of_comparison(document: &ComparisonDocument) -> Exit {
    let limit = |exceeded: Option<bool>| match exceeded {
        Some(true) => Exit::Finding,
        Some(false) => Exit::Done,
        None => Exit::NOT_MEASURED,
    };
    let chapters = || document.chapters().iter();
    let mut judged = chapters().filter(|chapter| chapter.blocks > 0).flat_map(ComparisonDocument::contrasts);
    let is_whole = judged.all(|contrast| contrast.ratio.is_some());
    let limits = chapters().flat_map(|chapter| &chapter.limits);
    limits.fold(of_whole(document.complete && is_whole), |exit, result| exit.and(limit(result.exceeded)))
}

/// Returns how a command ends that shows a study: a figure that did not come out is said in it, and is no
/// finding about a device.
pub(crate) fn of_study(document: &StudyDocument) -> Exit {
    of_whole(document.complete)
}

/// A failure that knows its kind. Others are [`FailureKind::Failed`].
#[derive(Debug)]
pub(crate) struct Refusal {
    /// Kind of the failure, from which the exit code follows.
    pub(crate) kind: FailureKind,
    /// Message for stderr.
    pub(crate) message: String,
}

impl Refusal {
    /// Makes a failure of `kind` that says `message`.
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Makes a failure of `kind` that says `error` and all its causes.
    pub(crate) fn because(kind: FailureKind, error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::new(kind, format!("{:#}", anyhow::Error::new(error)))
    }
}

/// Returns a [`Refusal`] from the function if the condition holds: its [`FailureKind`] and its message.
macro_rules! refuse_if {
    ($is_refused:expr, $kind:ident, $message:expr) => {
        if $is_refused {
            return Err($crate::exit::Refusal::new(plumb_block::FailureKind::$kind, $message).into());
        }
    };
}
pub(crate) use refuse_if;

/// Refuses what was typed, which makes no sense, as `error` says.
pub(crate) fn usage(error: impl std::error::Error + Send + Sync + 'static) -> Refusal {
    Refusal::because(FailureKind::Usage, error)
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
        let code = if typed.use_stderr() { FailureKind::Usage.into() } else { Exit::Done };
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
                FailureKind::Failed.into()
            }
            _ => code,
        };
    }
    crate::terminal::say(&format!("plumb: {failure:#}"));
    kind_of(failure).into()
}

/// Returns the kind of a failure, from which the exit code follows.
pub(crate) fn kind_of(failure: &anyhow::Error) -> FailureKind {
    if let Some(refusal) = failure.downcast_ref::<Refusal>() {
        return refusal.kind;
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
        failure.downcast_ref().map(RenderError::failure),
    ];
    kinds.into_iter().flatten().next().unwrap_or(FailureKind::Failed)
}

#[cfg(test)]
mod tests {
    use super::{ComparisonDocument, Exit, FailureKind, of_comparison};

    #[test]
    fn the_highest_code_applies_but_a_finding_wins_over_not_measured() {
        assert_eq!(Exit::Done.and(Exit::Finding), Exit::Finding);
        assert_eq!(Exit::NOT_MEASURED.and(Exit::Finding), Exit::Finding);
        assert_eq!(Exit::Finding.and(Exit::NOT_MEASURED), Exit::Finding);
        assert_eq!(Exit::Finding.and(Exit::Failed(FailureKind::Failed)), Exit::Failed(FailureKind::Failed));
        assert_eq!(Exit::Done.and(Exit::NOT_MEASURED), Exit::NOT_MEASURED);
    }

    #[test]
    fn levels_without_a_ratio_were_not_measured() {
        let document = ComparisonDocument { complete: true, blocks: 12, ..ComparisonDocument::default() };
        assert_eq!(of_comparison(&document), Exit::NOT_MEASURED);
        let practice = ComparisonDocument { blocks: 0, ..document };
        assert_eq!(of_comparison(&practice), Exit::Done, "a prediction");
    }
}

//! Exit codes of commands, and their derivation from results and failures. The codes are defined in
//! docs/OUTCOMES.md.

use std::fmt;
use std::process::ExitCode;

use plumb_block::FailureKind;
use plumb_caches::OrderError;
use plumb_fleet::SessionError;
use plumb_linux::descriptors::lacks_stdout;
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

/// Result of a command. If several apply, the highest counts, except that a finding outranks "not measured".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// The command is done, and found nothing.
    Done,
    /// The command found something unsafe, drifted, lost, or slower.
    Finding,
    /// The command failed, or ended before it had measured everything.
    Failed(FailureKind),
}

impl Exit {
    /// Result of a command that could not measure everything it should.
    pub(crate) const NOT_MEASURED: Self = Self::Failed(FailureKind::NotMeasured);

    /// Returns the result of a command with two results.
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

/// Returns the exit code for findings of a survey or a measurement: severity warning or danger is a finding
/// (docs/OUTCOMES.md).
pub(crate) fn of_findings<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Exit {
    let worst = findings.into_iter().map(|finding| finding.severity).max();
    if worst >= Some(Severity::Warning) { Exit::Finding } else { Exit::Done }
}

/// Returns the exit code for a run, whether just finished or read from a recording, by its ending and its
/// verdicts.
pub(crate) fn of_run(document: &RunDocument, strictness: Strictness) -> Exit {
    let ended = match (document.failed, document.complete) {
        (true, _) => FailureKind::Failed.into(),
        (false, true) => Exit::Done,
        (false, false) => Exit::NOT_MEASURED,
    };
    ended.and(of_verdicts(document, strictness))
}

/// Returns the exit code for a complete or incomplete result.
pub(crate) fn of_whole(is_whole: bool) -> Exit {
    if is_whole { Exit::Done } else { Exit::NOT_MEASURED }
}

/// Returns the exit code for the verdicts of a run; with `strictness`, an unknown level counts as not
/// measured.
pub(crate) fn of_verdicts(document: &RunDocument, strictness: Strictness) -> Exit {
    let unknown = document.level == UNKNOWN;
    of_findings(&document.verdicts).and(of_unknown(unknown, strictness))
}

/// Returns the exit code for a result that may be unknown.
pub(crate) fn of_unknown(unknown: bool, strictness: Strictness) -> Exit {
    of_whole(!unknown || !strictness.strict)
}

/// Returns the exit code for an observation: a lost write is a finding, and with `strictness`, incomplete
/// tracing counts as an unknown.
pub(crate) fn of_observation(document: &ObservationDocument, strictness: Strictness) -> Exit {
    let has_lost = document.writeback_errors.as_ref().is_some_and(|errors| !errors.is_empty());
    let finding = if has_lost { Exit::Finding } else { Exit::Done };
    finding.and(of_unknown(document.is_partly_unseen(), strictness))
}

/// Returns the exit code for many hosts. If a host failed, the result is incomplete, whatever the exit code
/// on that host; the result document has that code.
pub(crate) fn of_fleet(document: &FleetDocument, strictness: Strictness) -> Exit {
    let is_whole = document.hosts.iter().all(|host| host.ok);
    let unknown = of_unknown(document.level == UNKNOWN, strictness);
    of_whole(is_whole).and(of_findings(&document.verdicts)).and(unknown)
}

/// Returns the exit code for a proof: a failing state is a finding, and an incomplete judgement counts as not
/// measured.
pub(crate) fn of_proof(document: &ProofDocument) -> Exit {
    let finding = if document.level == "danger" { Exit::Finding } else { Exit::Done };
    let is_whole = document.complete && document.level != "warning";
    finding.and(of_whole(is_whole))
}

/// Returns the exit code for a comparison: an exceeded limit is a finding; an undecided limit and levels
/// without a ratio count as not measured.
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

/// Returns the exit code for a study. A figure that differs from the field report is not a finding about a
/// device.
pub(crate) fn of_study(document: &StudyDocument) -> Exit {
    of_whole(document.complete)
}

/// Failure with a kind. A failure without one is [`FailureKind::Failed`].
#[derive(Debug)]
pub(crate) struct Refusal {
    /// Kind of the failure, which determines the exit code.
    pub(crate) kind: FailureKind,
    /// Message for stderr.
    pub(crate) message: String,
}

impl Refusal {
    /// Creates a failure of `kind` with this message.
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Creates a failure of `kind` with the message of `error` and all its causes.
    pub(crate) fn because(kind: FailureKind, error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::new(kind, format!("{:#}", anyhow::Error::new(error)))
    }
}

/// Returns a [`Refusal`] with this [`FailureKind`] and message from the enclosing function if the condition
/// holds.
macro_rules! refuse_if {
    ($is_refused:expr, $kind:ident, $message:expr) => {
        if $is_refused {
            return Err($crate::exit::Refusal::new(plumb_block::FailureKind::$kind, $message).into());
        }
    };
}
pub(crate) use refuse_if;

/// Creates a usage error with the message of `error`.
pub(crate) fn usage(error: impl std::error::Error + Send + Sync + 'static) -> Refusal {
    Refusal::because(FailureKind::Usage, error)
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// Prints a failure to stderr, and returns its exit code. Output of clap (help, version, usage errors) goes
/// to the stream that clap chooses.
pub(crate) fn say(failure: &anyhow::Error) -> Exit {
    if let Some(typed) = failure.downcast_ref::<clap::Error>() {
        let code = if typed.use_stderr() { FailureKind::Usage.into() } else { Exit::Done };
        let plain = typed.render().to_string();
        // The message of clap repeats the typed words, which may contain control characters.
        if printable_text(&plain, false) != plain {
            crate::terminal::say(plain.trim_end());
            return code;
        }
        let printed = match typed.use_stderr() || !lacks_stdout() {
            true => typed.print(),
            false => Err(std::io::Error::other("it is closed")),
        };
        return match printed {
            // A reader that closed the pipe needs no message.
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

/// Returns the kind of a failure, which determines the exit code.
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

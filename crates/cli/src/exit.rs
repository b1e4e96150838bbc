//! Exit codes, and how a failure becomes one.

use std::fmt;
use std::process::ExitCode;

use plumb_path::{Finding, Severity};
use plumb_report::RunDocument;

/// How a command ended. When several apply the highest does, except that a finding wins over "could not measure".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done, and nothing was found.
    Done = 0,
    /// Something is unsafe, drifted, lost, or slower.
    Finding = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// It could not be measured, or was interrupted before all was.
    NotMeasured = 3,
    /// Refused, because data could be lost.
    Refused = 4,
    /// It failed: a flush, a device, a file.
    Failed = 5,
}

impl Exit {
    /// The code of two ends together.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Finding, Self::NotMeasured) | (Self::NotMeasured, Self::Finding) => Self::Finding,
            (one, two) => one.max(two),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Whether a run found something: a check if something is unsafe or not as it should be; a load as
/// [`is_found_by_a_load`].
pub(crate) fn is_found(document: &RunDocument) -> bool {
    match document.is_check() {
        true => document.verdicts.iter().any(|verdict| verdict.severity >= Severity::Warning),
        false => is_found_by_a_load(&document.verdicts),
    }
}

/// Whether a load found something. It measures what it was told to: that this is unusual is no finding. That data is at
/// risk is one, that the storage failed although the load went on, and that an application would not bear it.
fn is_found_by_a_load(verdicts: &[Finding]) -> bool {
    let always = ["limit-missed", "operations-failed"];
    verdicts
        .iter()
        .any(|verdict| verdict.severity >= Severity::Danger || always.contains(&verdict.id.as_str()))
}

/// A failure that knows its exit code. Others end with [`Exit::Failed`].
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The code.
    pub(crate) exit: Exit,
    /// What to say on stderr.
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

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// Says a failure on stderr and gives its code.
pub(crate) fn say(failure: &anyhow::Error) -> Exit {
    crate::terminal::say(&format!("plumb: {failure:#}"));
    failure.downcast_ref::<Refusal>().map_or(Exit::Failed, |refusal| refusal.exit)
}

/// Prints what clap has to say (help, version, or a refusal) and gives its code.
pub(crate) fn of_refusal(refusal: &clap::Error) -> ExitCode {
    // A reader who closed the pipe before the help was out has nothing to be told.
    let code = if refusal.use_stderr() { Exit::Usage } else { Exit::Done };
    match refusal.print() {
        Ok(()) => code.into(),
        Err(broken) if broken.kind() == std::io::ErrorKind::BrokenPipe => code.into(),
        Err(_) => Exit::Failed.into(),
    }
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

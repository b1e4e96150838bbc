//! Limits of a profile as findings.

use plumb_application::{LimitResult, LimitVerdict};
use plumb_path::{Finding, Severity};

/// Returns the findings for the limits: a limit that is missed is a warning.
pub(crate) fn findings(judged: &[LimitResult]) -> Vec<Finding> {
    judged.iter().map(finding).collect()
}

fn finding(judged: &LimitResult) -> Finding {
    let (id, severity, remedy) = match judged.standing {
        LimitVerdict::Met => ("limit-met", Severity::Info, "Nothing to do."),
        LimitVerdict::Missed => (
            "limit-missed",
            Severity::Warning,
            "Do not run this application here, or move what it syncs to a faster place; plumb check says what a sync costs.",
        ),
        LimitVerdict::Unmeasured => ("limit-unmeasured", Severity::Info, "Run longer to measure it."),
    };
    Finding {
        id: id.to_owned(),
        severity,
        sentence: format!("{}.", judged.sentence),
        evidence: vec![format!("{}: {}", judged.criterion.id, judged.criterion.in_words())],
        remedy: remedy.to_owned(),
    }
}

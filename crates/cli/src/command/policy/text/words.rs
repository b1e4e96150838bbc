//! One word for each value, the same in the table, the detail view and the metrics.

use plumb_path::Severity;

use super::layout::Ink;

pub(super) const fn on_off(value: Option<bool>) -> &'static str {
    plumb_policy::state::on_off(value, "?")
}

pub(super) const fn yes_no(value: Option<bool>) -> &'static str {
    match value {
        Some(true) => "yes",
        Some(false) => "no",
        None => "?",
    }
}

pub(super) const fn severity_ink(severity: Severity) -> Ink {
    match severity {
        Severity::Danger => Ink::Red,
        Severity::Warning => Ink::Yellow,
        Severity::Info => Ink::Dim,
    }
}

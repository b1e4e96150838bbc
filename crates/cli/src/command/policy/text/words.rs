//! One word for each value, the same in the table, the detail view and the metrics.

use plumb_path::Severity;
use plumb_policy::view::ProtectionRank;

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

pub(super) const fn rank(rank: ProtectionRank) -> &'static str {
    match rank {
        ProtectionRank::Declared => "declared",
        ProtectionRank::HealthConfirmed => "health-confirmed",
        ProtectionRank::ModelList => "model-list",
        ProtectionRank::AdministratorsWord => "administrators-word",
        ProtectionRank::TimingHint => "timing-hint",
    }
}

/// Where a rank stands on the ladder of confidence: 1 is the best of 5.
pub(super) const fn rung(rank: ProtectionRank) -> u8 {
    match rank {
        ProtectionRank::Declared => 1,
        ProtectionRank::HealthConfirmed => 2,
        ProtectionRank::ModelList => 3,
        ProtectionRank::AdministratorsWord => 4,
        ProtectionRank::TimingHint => 5,
    }
}

pub(super) const fn severity_ink(severity: Severity) -> Ink {
    match severity {
        Severity::Danger => Ink::Red,
        Severity::Warning => Ink::Yellow,
        Severity::Info => Ink::Dim,
    }
}

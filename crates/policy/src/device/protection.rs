//! Selection of the claim of power-loss protection: the best rank, unless the drive reports a failure.

use jiff::Timestamp;

use super::claims::Claims;
use super::drive::Drive;
use super::identity::Names;
use super::models;
use crate::view::{Protection, ProtectionRank};

/// Returns the best claim for a disk at the time `now`.
pub(super) fn claim(drive: &Drive, names: &Names, claims: &Claims, now: Timestamp) -> Option<Protection> {
    // A drive's report that its protection has failed overrides all claims.
    if drive.backup_failed || drive.capacitor_health == Some(0) {
        return None;
    }
    let declared = drive.declared.as_ref().map(|claim| at_rank(claim.clone(), ProtectionRank::Declared));
    declared.or_else(|| confirmed(drive)).or_else(|| listed(names)).or_else(|| word(names, claims, now))
}

fn at_rank(claim: String, rank: ProtectionRank) -> Protection {
    Protection { claim, rank, until: None }
}

/// Returns the claim confirmed by the drive's health. OCP Datacenter NVMe SSD 2.0, 4.8.6: 100 is the factory
/// state, 1 is just enough.
fn confirmed(drive: &Drive) -> Option<Protection> {
    let health = drive.capacitor_health?;
    let claim = format!("the drive reports {health} % of the energy that protects its cache (OCP log C0h)");
    Some(at_rank(claim, ProtectionRank::HealthConfirmed))
}

fn listed(names: &Names) -> Option<Protection> {
    let model = names.model.as_deref()?;
    // Drives report their manufacturer either in the model name or separately.
    let with_vendor = names.vendor.as_ref().map(|vendor| format!("{vendor} {model}"));
    let entry = models::find(model).or_else(|| models::find(&with_vendor?))?;
    Some(at_rank(format!("{} ({})", entry.what, entry.source), ProtectionRank::ModelList))
}

fn word(names: &Names, claims: &Claims, now: Timestamp) -> Option<Protection> {
    let claim = claims.about(names.identity.as_deref()?).filter(|claim| claim.until > now)?;
    Some(Protection {
        claim: format!("{} says so: {}", claim.who, claim.reason),
        rank: ProtectionRank::AdministratorsWord,
        until: Some(claim.until.to_string()),
    })
}

//! Healing the traps H1 to H5: the kernel, or a layer above, keeps flushes from a drive whose cache is on.
//!
//! A heal is planned, applied and journalled like every change, with
//! [`PlanRequest::Heal`](crate::plan::PlanRequest::Heal); the drive stays as it is. It is not rolled back:
//! that would be to set the trap again.
//!
//! A disk on which flushes are suppressed because a claim of protection is recorded is in no trap.

use crate::claims::protection;
use crate::device::Reader;
use crate::mechanism::{self, Goal, Material, Step};
use crate::state::State;
use crate::view::DeviceView;

/// Goal that a healed disk agrees with.
pub const HEALED: Goal = Goal { state: State::On, saved: None };

/// Returns the steps that heal a disk; none if nothing is wrong, if its cache is off, or if it is meant to be
/// so.
pub fn steps(reader: &Reader<'_>, view: &DeviceView, material: &Material) -> Vec<Step> {
    let found = mechanism::read_back(reader.gateway, material);
    let kernel_drops = found.write_cache.as_deref() == Some("write through");
    let is_meant = kernel_drops && protection(view, reader.claims, reader.now).is_ok();
    let is_wrong = !mechanism::disagreements(material.kind, HEALED, &found).is_empty();
    if material.wce && is_wrong && !is_meant { mechanism::heal(material) } else { Vec::new() }
}

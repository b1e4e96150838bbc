//! Healing of traps H1 to H5: the kernel, or a layer above, withholds flushes from a drive with an enabled
//! cache.
//!
//! A heal is planned, applied and journalled like every change, with
//! [`PlanRequest::Heal`](crate::plan::PlanRequest::Heal); the drive itself is not changed. A heal is not
//! rolled back, since that would restore the trap.
//!
//! Suppressed flushes are not a trap if a claim of protection is recorded for the disk.

use crate::claims::protection;
use crate::device::Reader;
use crate::mechanism::{self, Goal, Material, Step};
use crate::state::State;
use crate::view::DeviceView;

/// Goal for a healed disk.
pub(crate) const HEALED: Goal = Goal { state: State::On, saved: None };

/// Returns the steps that heal a disk; none if it has no trap, its cache is disabled, or the state is
/// intended.
pub fn steps(reader: &Reader<'_>, view: &DeviceView, material: &Material) -> Vec<Step> {
    let found = mechanism::read_back(reader.gateway, material);
    let kernel_drops = found.write_cache.as_deref() == Some("write through");
    let is_meant = kernel_drops && protection(view, reader.claims, reader.now).is_ok();
    let is_wrong = !mechanism::disagreements(material.kind, HEALED, &found).is_empty();
    if material.wce && is_wrong && !is_meant { mechanism::heal(material) } else { Vec::new() }
}

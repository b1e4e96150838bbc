//! Steps from the present state of a disk to the requested one.

use super::document::PlanRequest;
use super::siblings;
use crate::device::{self, Reader};
use crate::heal;
use crate::mechanism::{self, Goal, Material, Step};
use crate::state::State;
use crate::view::{DeviceView, Refusal};

/// Returns the steps for the request; none if the disk and all layers above are in the requested state. Disks
/// that share the drive's cache are checked, too, in their present state.
pub(crate) fn route(
    reader: &Reader<'_>,
    view: &DeviceView,
    material: &Material,
    asked: PlanRequest,
    goal: Goal,
) -> Result<Vec<Step>, Refusal> {
    if asked == PlanRequest::Heal {
        return Ok(heal::steps(reader, view, material));
    }
    let others = device::siblings(reader.gateway.tree(), &view.name);
    if !others.is_empty() && siblings::switches_the_drive(view, goal) {
        for other in &others {
            let gone = |_| {
                Refusal::new(
                    format!("{other}, which has the same write cache as {}, cannot be read", view.name),
                    "look with `plumb policy show --all`, and plan again",
                )
            };
            siblings::allow(reader, view, &reader.one(other).map_err(gone)?, asked)?;
        }
    }
    to_goal(reader, material, goal)
}

/// Returns the steps of [`mechanism::steps`]. If the disk itself is there but a layer above still drops
/// flushes, returns the steps that heal that.
pub(crate) fn to_goal(reader: &Reader<'_>, material: &Material, goal: Goal) -> Result<Vec<Step>, Refusal> {
    let steps = mechanism::steps(material, goal)?;
    let stale_above = || {
        let found = mechanism::read_back(reader.gateway, material);
        !mechanism::disagreements(material.kind, goal, &found).is_empty()
    };
    if steps.is_empty() && goal.state == State::On && stale_above() {
        return Ok(mechanism::heal(material));
    }
    let others = device::siblings(reader.gateway.tree(), &material.disk.name);
    if others.is_empty() {
        return Ok(steps);
    }
    Ok(siblings::flushed(reader, &others, steps))
}

//! The steps from where a disk is to where it is to be.

use jiff::Timestamp;

use super::document::Asked;
use crate::claims::Claims;
use crate::gateway::Gateway;
use crate::heal;
use crate::mechanism::{self, Goal, Material, Step};
use crate::state::State;
use crate::view::{DeviceView, Refusal};

/// The steps for what is asked; none if the disk and all above it are there.
pub(crate) fn way(
    gateway: &dyn Gateway,
    read: (&DeviceView, &Material),
    asked: Asked,
    goal: Goal,
    words: (&Claims, Timestamp),
) -> Result<Vec<Step>, Refusal> {
    let (view, material) = read;
    match asked {
        Asked::Heal => Ok(heal::steps(gateway, view, material, words.0, words.1)),
        _ => to_goal(gateway, material, goal),
    }
}

/// As [`mechanism::steps`], and where the disk itself is there, but a layer above still drops flushes, what heals that.
pub(crate) fn to_goal(gateway: &dyn Gateway, material: &Material, goal: Goal) -> Result<Vec<Step>, Refusal> {
    let steps = mechanism::steps(material, goal)?;
    let stale_above = || {
        let found = mechanism::read_back(gateway, material);
        !mechanism::disagreements(material.kind, goal, &found).is_empty()
    };
    if steps.is_empty() && goal.state == State::On && stale_above() {
        return Ok(mechanism::heal(material));
    }
    Ok(steps)
}

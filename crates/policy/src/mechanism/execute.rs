//! Carries out one step of a plan.

use plumb_block::Errno;

use super::read_back::{POLL, SETTLE_MAX};
use super::{Condition, Step};
use crate::gateway::{Gateway, GatewayError};

/// Outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Execution {
    /// The step was carried out.
    Done,
    /// The step was not needed: what it is for holds already.
    NotNeeded,
    /// The kernel refused it, as it may: reading back tells.
    Refused,
}

/// Carries out `step`, unless its goal is already met.
///
/// # Errors
/// As [`Gateway::carry_out`]. Whatever is said here, only reading back tells what is.
pub fn execute(gateway: &dyn Gateway, step: &Step) -> Result<Execution, GatewayError> {
    if let Some(condition) = &step.after {
        wait(gateway, condition);
    }
    if step.only_unless.as_ref().is_some_and(|condition| holds(gateway, condition)) {
        return Ok(Execution::NotNeeded);
    }
    match gateway.carry_out(&step.disk, &step.change) {
        Ok(()) => Ok(Execution::Done),
        Err(GatewayError::Os { errno: Errno::EINVAL, .. }) if step.may_be_refused => Ok(Execution::Refused),
        Err(error) => Err(error),
    }
}

fn holds(gateway: &dyn Gateway, condition: &Condition) -> bool {
    gateway.tree().text(&condition.path).is_ok_and(|says| says == condition.says)
}

/// Until it holds, or for as long as the slowest adapter takes: reading back then tells what is.
fn wait(gateway: &dyn Gateway, condition: &Condition) {
    let start = gateway.now();
    while !holds(gateway, condition) && gateway.now().since(start) < SETTLE_MAX {
        gateway.sleep(POLL);
    }
}

//! Execution of one step of a plan.

use plumb_block::Errno;

use super::read_back::{POLL, SETTLE_MAX};
use super::{Condition, Step};
use crate::gateway::{Gateway, GatewayError};

/// Outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Execution {
    /// The step was executed.
    Done,
    /// The step was unnecessary, because its goal was already met.
    NotNeeded,
    /// The kernel refused the step, as is permitted; reading back shows the effect.
    Refused,
}

/// Executes `step`, unless its goal is already met.
///
/// # Errors
/// Fails as [`Gateway::carry_out`] does. In any case only reading back shows the effect.
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

/// Waits until the condition holds, at most as long as the slowest adapter takes; reading back then shows the
/// effect.
fn wait(gateway: &dyn Gateway, condition: &Condition) {
    let start = gateway.now();
    while !holds(gateway, condition) && gateway.now().since(start) < SETTLE_MAX {
        gateway.sleep(POLL);
    }
}

//! Decision whether a disk can be brought into a state, and the claim that this relies on.

use jiff::Timestamp;

use super::document::PlanRequest;
use crate::claims::{Claims, protection};
use crate::device::refusal_for;
use crate::state::{FoundState, State};
use crate::view::{DeviceView, Protection, Refusal};

/// Finding that the layer above may permanently remember the kernel's view, which enabling would make wrong.
const REMEMBERS: &str = "h10-zfs-remembers";

/// Returns the claim that the change would rely on, or the reason why it is refused.
pub(crate) fn judge(
    view: &DeviceView,
    goal: PlanRequest,
    claims: &Claims,
    now: Timestamp,
) -> Result<Option<Protection>, Refusal> {
    let Some(state) = goal.state() else { return view.refusal.clone().map_or(Ok(None), Err) };
    // Reported first and completely: an expired claim is more informative than none.
    if state == State::Protected && view.refusal.is_none() {
        let reason = match protection(view, claims, now) {
            Ok(claim) => return refusal_for(view, state).map_or(Ok(Some(claim)), Err),
            Err(reason) => reason,
        };
        let remedy = "record who says so and until when (`plumb policy claim`), or use the state `on`, in which flushes are sent";
        return Err(Refusal { reason, remedy: remedy.to_owned() });
    }
    if let Some(refusal) = refusal_for(view, state) {
        return Err(refusal);
    }
    let enables = state == State::On && view.state == FoundState::Off;
    match view.findings.iter().find(|finding| enables && finding.id == REMEMBERS) {
        Some(finding) => Err(Refusal::new(
            format!("with the cache of {} on, flushes might not be sent: {}", view.name, finding.sentence),
            "export the pool, change the disk, and import the pool again",
        )),
        None => Ok(None),
    }
}

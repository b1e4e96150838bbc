//! Exploration without any of the recorded flushes. They are left out together, since a single one may be
//! redundant because of the others. The result counts only if every window enlarged by that was explored
//! exhaustively.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use plumb_block::Op;
use plumb_report::document::proof::{Coverage, FlushesLeftOut};

use super::trial::trying;
use crate::error::Result;
use crate::explore::{Explorer, Limits};
use crate::proof::Request;
use crate::recording::Event;
use crate::session::RecordedWork;

/// Maximum number of states enumerated to find out whether all can be explored.
const STATES_MAX: u64 = 10_000;

/// Explores the recording without its flushes. Returns `None` if it has none, or if too much would be at risk
/// to explore everything.
pub(super) fn explore_without_flushes(request: &Request<'_>) -> Result<Option<FlushesLeftOut>> {
    let (changed, flushes) = without_flushes(request.judge.recorded);
    let limits = request.judge.limits;
    let limits = Limits { states: STATES_MAX.min(limits.states), visits: 0, ..limits };
    let RecordedWork { recording, from, until, .. } = &changed;
    let explorer = Explorer { recording, from: *from, until: *until, limits, ..request.judge.explorer() };
    // Enumerates without checking.
    let windows = explorer.explore(&mut |_| ControlFlow::Continue(()));
    if flushes == 0 || windows.iter().any(|window| window.coverage != Coverage::Exhaustive) {
        return Ok(None);
    }
    let doing = trying(&format!("{flushes} flushes left out"));
    let judged = request.explore(&changed, request.profile(), limits, &doing)?;
    let left = FlushesLeftOut { flushes, explored: judged.counts.distinct, failing: judged.counts.failing };
    Ok(Some(left).filter(|_| judged.is_exhaustive()))
}

/// Returns the recording without the flushes of the work, and their number.
fn without_flushes(recorded: &RecordedWork) -> (RecordedWork, u64) {
    let mut changed = (*recorded.recording).clone();
    let work = recorded.from..recorded.until;
    let mut flushes = BTreeSet::new();
    let (mut number, mut until) = (0, recorded.until);
    changed.events.retain(|(_, event)| {
        let is_work = work.contains(&number);
        number += 1;
        let is_left_out = match event {
            Event::Submitted(id) if is_work && recorded.recording.commands[id.0 as usize].op == Op::Flush => {
                flushes.insert(*id)
            }
            Event::Completed(id) | Event::Failed(id) => flushes.contains(id),
            _ => false,
        };
        until -= usize::from(is_left_out && is_work);
        !is_left_out
    });
    (RecordedWork { recording: Arc::new(changed), until, ..recorded.clone() }, flushes.len() as u64)
}

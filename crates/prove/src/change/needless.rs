//! Sync calls that can be removed: for each the program runs again without it, as if it had succeeded, and
//! the new recording is explored.
//!
//! A call is needless if every state of the new recording was explored and none fails; on a mounted file
//! system also those of recordings with chosen writeback, since without the sync other orders of writeback
//! are permitted. Calls that can be removed individually need not be removable together, which is also tried.

use plumb_block::Nanos;
use plumb_report::document::ProofDocument;
use plumb_report::document::proof::{NeedlessSync, SyncsLeftOut, VerifiedBy, Writeback};

use super::trial::trying;
use crate::error::Result;
use crate::proof::{Again, Request, plans};
use crate::recording::{Event, Recording};
use crate::session::{Trace, record_traced};
use crate::trace::SyncCall;

/// Maximum number of sync calls tried, one after another.
const CALLS_MAX: usize = 64;
/// Time limit of all new runs, as a multiple of the budget of one exploration.
const BUDGETS: u64 = 3;

/// Result of a run without certain calls.
enum Trial {
    /// Every distinct state was explored, and none fails.
    Needless {
        explored: u64,
    },
    Needed,
    /// The run was not possible, or not all states were explored.
    Unknown,
}

struct Search<'r, 'a> {
    request: &'r Request<'a>,
    again: &'r Again,
    until: Nanos,
}

/// Adds the removable sync calls to the document.
pub(crate) fn put_needless(request: &Request<'_>, document: &mut ProofDocument) -> Result<()> {
    let (Some(again), recorded) = (request.again, request.judge.recorded) else { return Ok(()) };
    let until = request.until(request.budget.saturating_mul(BUDGETS));
    let search = Search { request, again, until };
    let calls = &recorded.sync_calls;
    let (mut tried, mut needless) = (0, Vec::new());
    for call in calls.iter().take(CALLS_MAX) {
        if search.is_over() {
            break;
        }
        match search.without(std::slice::from_ref(call))? {
            Trial::Unknown => {}
            Trial::Needed => tried += 1,
            Trial::Needless { explored } => {
                tried += 1;
                needless.push((call, explored));
            }
        }
    }
    let mut together: Vec<SyncCall> = Vec::new();
    for (call, _) in &needless {
        let more: Vec<SyncCall> = together.iter().chain([*call]).cloned().collect();
        let goes = more.len() == 1
            || (!search.is_over() && matches!(search.without(&more)?, Trial::Needless { .. }));
        if goes {
            together = more;
        }
    }
    let is_drive = recorded.layout.is_none();
    document.syncs_left_out = Some(SyncsLeftOut {
        calls: calls.len() as u64,
        tried,
        seconds: calls.iter().map(|call| call.took.as_secs_f64()).sum(),
    });
    document.needless_syncs = needless
        .iter()
        .map(|(call, explored)| NeedlessSync {
            number: call.number,
            call: call.name.clone(),
            file: if call.path.as_os_str().is_empty() {
                ".".to_owned()
            } else {
                call.path.display().to_string()
            },
            seconds: call.took.as_secs_f64(),
            flushes: is_drive.then(|| flushes(&recorded.recording, recorded.began, call)),
            explored: *explored,
            verified_by: VerifiedBy::NewRun,
            together: together.contains(call),
        })
        .collect();
    Ok(())
}

impl Search<'_, '_> {
    fn is_over(&self) -> bool {
        self.request.is_over_at(self.until)
    }

    /// Runs the program without these calls, with each choice of writeback.
    fn without(&self, calls: &[SyncCall]) -> Result<Trial> {
        let judge = &self.request.judge;
        let names: Vec<String> = calls.iter().map(ToString::to_string).collect();
        let doing = trying(&format!("the program without {}", names.join(" and ")));
        let mut ways: Vec<Option<Writeback>> = vec![None];
        if judge.file_system.is_mounted() {
            let (plans, systematic) = plans(judge.file_system, &judge.recorded.syncs, judge.seed);
            ways.extend(plans.take(systematic as usize).map(Some));
        }
        let mut all = 0;
        for writeback in ways {
            if self.is_over() {
                return Ok(Trial::Unknown);
            }
            self.request.begin(&doing);
            let trace = Trace { left_out: calls, writeback, ..Trace::new(&self.again.program) };
            let run = record_traced(&**judge.subject, trace, &self.again.options, judge.stop);
            let Ok((recorded, _)) = run else { return Ok(Trial::Unknown) };
            let is_same_run = recorded.ended_because.is_none()
                && recorded.unseen.is_empty()
                && recorded.facts.acknowledgements == judge.recorded.facts.acknowledgements
                && recorded.sync_calls.len() == judge.recorded.sync_calls.len()
                && calls.iter().all(|call| recorded.sync_calls.iter().any(|other| other.is_same(call)));
            if !is_same_run {
                return Ok(Trial::Unknown);
            }
            let explored = self.request.explore(&recorded, self.request.profile(), judge.limits, &doing)?;
            match (explored.counts.failing, explored.is_exhaustive()) {
                (1.., _) => return Ok(Trial::Needed),
                (0, false) => return Ok(Trial::Unknown),
                (0, true) => all += explored.counts.distinct,
            }
        }
        Ok(Trial::Needless { explored: all })
    }
}

/// Returns the number of flushes sent to the drive during a call.
fn flushes(recording: &Recording, began: Nanos, call: &SyncCall) -> u64 {
    let from = call.at.since(began);
    let during = from..=from.saturating_add(call.took);
    let is_flush = |event: &Event| match event {
        Event::Submitted(id) => recording.commands[id.0 as usize].op == plumb_block::Op::Flush,
        _ => false,
    };
    recording.events.iter().filter(|(at, event)| during.contains(at) && is_flush(event)).count() as u64
}

//! A sync call that the program does not make: it runs again and the call is made for it, which is recorded
//! and explored.
//!
//! A program under strace(1) is slower, and may order its writes otherwise. It was under strace when it was
//! recorded first, too, so that what is gone was removed by the call.

use plumb_block::in_one_line;
use plumb_report::document::ProofDocument;
use plumb_report::document::proof::{ChangeKind, FailureClass};

use super::trial::{trying, verified};
use crate::error::Result;
use crate::proof::{Again, Request, Watch};
use crate::session::{Trace, record_traced};
use crate::subject::Program;

/// At most so many sync calls are tried.
const CANDIDATES_MAX: usize = 8;

/// Puts into the document, for each failure, the first sync call that removes it.
pub(super) fn put(
    request: &Request<'_>,
    how: &Again,
    document: &mut ProofDocument,
    watch: Watch<'_>,
) -> Result<()> {
    let judge = &request.judge;
    let mut open: Vec<FailureClass> = document.failures.iter().map(|failure| failure.class).collect();
    for injection in request.judge.recorded.missing_syncs.iter().take(CANDIDATES_MAX) {
        if open.is_empty() || request.is_over() {
            break;
        }
        let what = injection.to_string();
        let doing = trying(&what);
        watch(&doing, None);
        let injections = std::slice::from_ref(injection);
        let Program { line, user, .. } = &how.program;
        let trace = Trace { line, injections, left_out: &[], writeback: how.writeback, user: user.as_ref() };
        let again = record_traced(&**judge.subject, trace, &how.options, judge.stop);
        let (recorded, traced) = match again {
            Ok(again) => again,
            Err(error) => {
                document.notes.push(format!("{what} could not be tried: {}", in_one_line(&error)));
                continue;
            }
        };
        let is_same = recorded.ended_because.is_none()
            && recorded.facts.acknowledgements == request.judge.recorded.facts.acknowledgements;
        if !is_same || traced.injected == 0 {
            continue;
        }
        let after = request.explore(&recorded, request.profile(), judge.limits, &doing, watch)?;
        for failure in &mut document.failures {
            let is_gone = after.incomplete_because.is_none() && !after.failing.contains_key(&failure.class);
            if is_gone && open.contains(&failure.class) {
                open.retain(|class| *class != failure.class);
                failure.change = Some(verified(ChangeKind::SyncCall, &what, failure.class, &after));
            }
        }
    }
    Ok(())
}

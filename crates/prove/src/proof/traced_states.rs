//! States that a power cut may leave of a program traced in place, each compared with the files that the
//! program had made visible.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Clock, Nanos};
use plumb_report::document::power::{TraceFailure, TraceStates};

use crate::error::Result;
use crate::explore::Limits;
use crate::file_system::FileSystem;
use crate::judge::Judge;
use crate::profile::DriveProfile;
use crate::session::RecordedWork;
use crate::subject::{CheckBy, Program, Programs, Subject};

/// Explores the states of a program whose system calls were followed, until `budget` is used up or `stop` is
/// set.
///
/// # Errors
/// If states could not be judged at all.
pub(super) fn traced_states(
    work: &RecordedWork,
    stop: &Arc<AtomicBool>,
    clock: &dyn Clock,
    budget: Nanos,
) -> Result<TraceStates> {
    // No program is run: states are compared with the moments of the work.
    let subject: Arc<dyn Subject> = Arc::new(Programs {
        run: Program::acknowledging(String::new()),
        check: CheckBy::Moments(None),
        recover: None,
        setup: None,
        timeout: budget,
        stop: Arc::clone(stop),
    });
    let judge = Judge {
        recorded: work,
        profile: &DriveProfile::parse("volatile", work.recording.logical_block)?,
        limits: Limits::default(),
        seed: 1,
        subject: &subject,
        file_system: FileSystem::Posix,
        workers: 0,
        directory: &std::env::temp_dir(),
        timeout: budget,
        stop,
        clock,
        until: clock.now().saturating_add(budget),
        mount_here: false,
        results: None,
    };
    let judged = judge.judge(&mut |_| {})?;
    let late = || format!("the states were explored for {} s, and not all of them", budget.as_secs_f64());
    let unexplored = || judged.not_exhaustive_because(judge.limits);
    let incomplete_because = match judged.out_of_time {
        true => Some(late()),
        false => judged.incomplete_because.clone().or_else(unexplored),
    };
    let unseen = work.unseen.first().or(work.seen_in_part.first()).cloned();
    let failures = judged.failing.iter().map(|(class, failing)| TraceFailure {
        class: class.name().to_owned(),
        states: failing.count,
        words: failing.words.clone(),
    });
    Ok(TraceStates {
        explored: judged.counts.distinct,
        failing: judged.counts.failing,
        exhaustive: judged.is_exhaustive(),
        incomplete_because: incomplete_because.or(unseen),
        failures: failures.collect(),
    })
}

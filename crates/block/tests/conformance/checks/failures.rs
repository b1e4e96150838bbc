//! Failed flushes, requests without an answer, queues dropped with requests in flight.

use super::super::rig::Rig;
use super::super::session::{Carrier, CheckResult, Session, fail};
use crate::device::Wait;
use crate::request::{LbaRange, Op, Outcome, Payload};
use crate::units::Nanos;

/// Checks that after a failed flush the device reports that, and every later flush fails: on the same queue,
/// on one that was open, and on one opened later.
pub(super) fn a_failed_flush_latches(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    let mut session = Session::start(rig, seed, 2)?;
    session.rig.fail_next_flush()?;
    let part = session.some_part();
    let write = session.submit(0, Op::Write { fua: false }, part, Carrier::Pattern)?;
    session.must_be_done(write)?;
    let flush = session.submit(0, Op::Flush, LbaRange::EMPTY, Carrier::None)?;
    let Outcome::Failed(errno) = session.outcome_of(flush)? else {
        return fail("the flush that the rig made fail did not");
    };
    match session.device.latched() {
        Some(latch) if latch.errno == errno => {}
        other => return fail(format!("after a flush failed with {errno:?} the latch is {other:?}")),
    }
    let later = session.device.open_queue(session.rig.queue_options());
    session.queues.push(later.or_else(|error| fail(format!("no queue after the failure: {error}")))?);
    for attempt in 0..3 {
        for queue in 0..session.queues.len() {
            let flush = session.submit(queue, Op::Flush, LbaRange::EMPTY, Carrier::None)?;
            match session.outcome_of(flush)? {
                Outcome::Failed(_) => {}
                other => {
                    return fail(format!("flush {attempt} on queue {queue} after a failed one: {other:?}"));
                }
            }
        }
        // A write in between, accepted or refused, must not let a later flush succeed.
        let part = session.some_part();
        let write = session.submit(1, Op::Write { fua: false }, part, Carrier::Pattern)?;
        session.outcome_of(write)?;
    }
    Ok(())
}

/// Checks that an unanswered request completes as unknown, not before its deadline, and only once even if the
/// answer comes later. Its blocks are then old, new or unreadable.
pub(super) fn past_its_deadline_a_request_is_unknown(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    for carrier in [Carrier::Pattern, Carrier::Buffer] {
        let mut session = Session::start(&mut *rig, seed, 2)?;
        session.rig.hold_next_request()?;
        let part = session.some_part();
        let deadline = session.rig.clock().now().saturating_add(Nanos::millis(20));
        let (tag, request) = session.prepare(0, Op::Write { fua: false }, part, carrier, Some(deadline))?;
        if session.queues[0].submit(request).is_err() {
            return fail("an empty queue is full");
        }
        match session.outcome_of(tag)? {
            Outcome::Unknown => {}
            other => return fail(format!("a held request ended as {other:?}")),
        }
        let now = session.rig.clock().now();
        if now < deadline {
            return fail(format!("given up at {now}, before its deadline at {deadline}"));
        }
        session.read_all(1)?;
        session.rig.release_held();
        (0..20).try_for_each(|_| session.poll_all())?;
        session.read_all(0)?;
    }
    Ok(())
}

/// Checks that dropping a queue with requests of every kind in flight waits for the device, and that all
/// buffers are free afterwards.
pub(super) fn a_dropped_queue_frees_its_buffers(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    let mut session = Session::start(rig, seed, 1)?;
    session.queues.clear();
    let before = session.pool.available();
    for polled in [false, true] {
        let queue = session.device.open_queue(session.rig.queue_options());
        session.queues.push(queue.or_else(|error| fail(format!("no queue: {error}")))?);
        for part in session.parts(8).into_iter().take(4) {
            let (_, request) = session.prepare(0, Op::Write { fua: false }, part, Carrier::Buffer, None)?;
            debug_assert!(matches!(request.payload, Payload::Bytes(_)));
            if session.queues[0].submit(request).is_err() {
                break;
            }
        }
        let part = session.some_part();
        let (_, read) = session.prepare(0, Op::Read, part, Carrier::Buffer, None)?;
        drop(session.queues[0].submit(read));
        if polled {
            session.poll_one(0, Wait::NONE)?;
        }
        session.queues.clear();
        let after = session.pool.available();
        if after != before {
            return fail(format!(
                "{before} buffers were free before the queue, {after} after it was dropped"
            ));
        }
    }
    Ok(())
}

//! Checks of the requests that a queue refuses, and of the way in which it refuses them.

use super::super::rig::Rig;
use super::super::session::{Carrier, CheckResult, Session, Stop, fail};
use crate::device::{QueueFull, Wait};
use crate::error::Errno;
use crate::pattern::Pattern;
use crate::request::{LbaRange, Op, Outcome, Payload, Request, Tag};
use crate::units::Lba;

/// Number of requests beyond its depth that a queue is offered.
const TOO_MANY: u32 = 64;

/// Checks that a queue takes as many requests as its depth, returns further ones unchanged, and takes them
/// later.
pub(super) fn a_full_queue_gives_the_request_back(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    let mut session = Session::start(rig, seed, 1)?;
    let depth = session.rig.queue_options().depth;
    let mut taken = 0;
    let mut back = None;
    while taken < depth + TOO_MANY {
        let part = session.some_part();
        let (tag, request) = session.prepare(0, Op::Write { fua: false }, part, Carrier::Pattern, None)?;
        let payload = format!("{:?}", request.payload);
        match session.queues[0].submit(request) {
            Ok(()) => taken += 1,
            Err(QueueFull(request)) => {
                if request.tag != tag || request.range != part || format!("{:?}", request.payload) != payload
                {
                    return fail(format!(
                        "another request came back: {request:?}, not tag {} {part:?}",
                        tag.0
                    ));
                }
                back = Some(request);
                break;
            }
        }
    }
    if taken < depth {
        return fail(format!("a queue of depth {depth} took only {taken} requests"));
    }
    let Some(mut request) = back else {
        session.finish_all()?;
        return Err(Stop::Skipped(format!("the queue never was full, with {taken} requests in it")));
    };
    for _ in 0..1000 {
        session.poll_all()?;
        match session.queues[0].submit(request) {
            Ok(()) => {
                session.finish_all()?;
                return session.read_all(0);
            }
            Err(QueueFull(again)) => request = again,
        }
    }
    fail("the queue stays full though it is polled")
}

/// Checks that requests outside the device or off its grid fail with EINVAL, and change nothing.
pub(super) fn nonsense_fails_with_einval(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    let mut session = Session::start(rig, seed, 1)?;
    let blocks = session.info.blocks();
    let inside = LbaRange::new(session.range.lba, 2);
    let (block, seed) = (session.info.logical_block, session.seed());
    let pattern = |range: LbaRange| Payload::Pattern(Pattern { seed, lba: range.lba, generation: u64::MAX });
    let mut nonsense: Vec<(&str, Op, LbaRange, Payload)> = Vec::new();
    for range in [
        LbaRange::new(Lba(blocks), 1),
        LbaRange::new(Lba(blocks - 1), 2),
        LbaRange::new(Lba(u64::MAX), 1),
        LbaRange::new(Lba(1), u64::MAX),
        LbaRange::new(Lba(0), 0),
    ] {
        nonsense.push(("a read outside", Op::Read, range, Payload::None));
        nonsense.push(("a write outside", Op::Write { fua: false }, range, pattern(range)));
        let zeroes = Op::WriteZeroes { fua: false, no_hole: false, fast_only: false };
        nonsense.push(("zeroes outside", zeroes, range, Payload::None));
    }
    nonsense.push(("a write without bytes", Op::Write { fua: false }, inside, Payload::None));
    nonsense.push(("a discard with bytes", Op::Discard, inside, pattern(inside)));
    for length in [block, block * 3] {
        let Some(buffer) = session.pool.take(length) else { return fail("no buffer in the rig's pool") };
        nonsense.push(("a read of another length", Op::Read, inside, Payload::Into(buffer)));
        let Some(buffer) = session.pool.take(length) else { return fail("no buffer in the rig's pool") };
        let bytes = Payload::Bytes(buffer.freeze());
        nonsense.push(("a write of another length", Op::Write { fua: false }, inside, bytes));
    }
    for (index, (what, op, range, payload)) in nonsense.into_iter().enumerate() {
        let tag = Tag(u64::MAX - 1 - index as u64);
        let request = Request { tag, op, range, payload, deadline: None };
        let outcome = outcome_alone(&mut session, request)?;
        if outcome != Outcome::Failed(Errno::EINVAL) {
            return fail(format!("{what}, {range:?}, ended as {outcome:?} instead of EINVAL"));
        }
    }
    session.read_all(0)
}

/// Submits one request that the session does not record, with no other in flight.
fn outcome_alone(session: &mut Session<'_>, request: Request) -> CheckResult<Outcome> {
    let tag = request.tag;
    if session.queues[0].submit(request).is_err() {
        return fail("an empty queue is full");
    }
    let mut completions = Vec::new();
    for _ in 0..1000 {
        let deadline = session.rig.clock().now().saturating_add(crate::units::Nanos::millis(100));
        session.queues[0]
            .poll(Wait::one_until(deadline), &mut completions)
            .or_else(|error| fail(format!("polling: {error}")))?;
        match completions.pop() {
            Some(completion) if completion.tag == tag => return Ok(completion.outcome),
            Some(other) => return fail(format!("tag {} came, {} was asked", other.tag.0, tag.0)),
            None => session.rig.let_time_pass(),
        }
    }
    fail("a request outside the device is never answered")
}

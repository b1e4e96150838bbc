//! Checks that acknowledged data is visible, on every queue.

use super::super::rig::Rig;
use super::super::session::{Carrier, CheckResult, Session};
use crate::request::{LbaRange, Op};

/// Checks that a write completed on one queue is read on another, without a flush in between.
pub(super) fn writes_are_visible_on_every_queue(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    let mut session = Session::start(rig, seed, 3)?;
    for round in 0..60 {
        let (writer, reader) = (round % 3, (round + 1 + round / 3 % 2) % 3);
        let part = session.some_part();
        let fua = session.below(4) == 0;
        let tag = session.submit(writer, Op::Write { fua }, part, Carrier::Buffer)?;
        session.must_be_done(tag)?;
        let tag = session.submit(reader, Op::Read, part, Carrier::Buffer)?;
        session.must_be_done(tag)?;
    }
    Ok(())
}

/// Checks reads beside overlapping writes of every kind: each read returns an allowed version of each block.
pub(super) fn reads_are_never_stale(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    let mut session = Session::start(rig, seed, 3)?;
    for _ in 0..300 {
        let queue = session.below(3) as usize;
        // Few blocks, so that requests overlap.
        let mut part = session.some_part();
        part.lba.0 = session.range.lba.0 + part.lba.0 % 8;
        let zeroes = Op::WriteZeroes { fua: false, no_hole: false, fast_only: false };
        let (op, range) = match session.below(8) {
            0 => (zeroes, part),
            1 => (Op::Flush, LbaRange::EMPTY),
            2..=4 => (Op::Write { fua: false }, part),
            _ => (Op::Read, part),
        };
        session.submit(queue, op, range, Carrier::Buffer)?;
        // The pool holds at least twice the depth; more than four under way might empty it.
        if session.under_way() >= 4 {
            session.poll_all()?;
        }
        if session.under_way() >= 6 {
            session.finish_all()?;
        }
    }
    session.finish_all()?;
    session.read_all(1)
}

//! Checks that durable data survives a power cut, and that no impossible data appears after one. All checks
//! require a rig that can cut the power, and repeat, since a single cut may spare everything by chance.

use super::super::rig::Rig;
use super::super::session::{Carrier, CheckResult, Session};
use crate::device::Wait;
use crate::request::{LbaRange, Op};
use crate::units::Bytes;

/// Number of cuts in each situation.
const ROUNDS: u64 = 12;

/// Checks that writes, discards and zeroes completed on one queue are durable after a flush on another.
pub(super) fn a_flush_covers_every_queue(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    for round in 0..ROUNDS {
        let mut session = Session::start(&mut *rig, seed + round, 3)?;
        for part in session.parts(4) {
            let queue = session.below(2) as usize;
            session.submit(queue, Op::Write { fua: false }, part, Carrier::Pattern)?;
        }
        session.finish_all()?;
        let zeroes = Op::WriteZeroes { fua: false, no_hole: false, fast_only: false };
        let part = session.some_part();
        session.submit(0, zeroes, part, Carrier::None)?;
        session.finish_all()?;
        let flush = session.submit(2, Op::Flush, LbaRange::EMPTY, Carrier::None)?;
        session.must_be_done(flush)?;
        session.cut_and_judge()?;
    }
    Ok(())
}

/// Checks that completed writes and zeroes with FUA are durable without a flush.
pub(super) fn fua_is_durable(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    for round in 0..ROUNDS {
        let mut session = Session::start(&mut *rig, seed + round, 2)?;
        for (index, part) in session.parts(4).into_iter().enumerate() {
            let zeroes = Op::WriteZeroes { fua: true, no_hole: false, fast_only: false };
            let op = if index % 4 == 3 { zeroes } else { Op::Write { fua: true } };
            session.submit(index % 2, op, part, Carrier::Pattern)?;
        }
        session.finish_all()?;
        session.cut_and_judge()?;
    }
    Ok(())
}

/// Checks that of several completed versions, none from before the last durable one comes back, for every way
/// to write either.
pub(super) fn nothing_older_replaces_the_durable(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    for round in 0..ROUNDS {
        let mut session = Session::start(&mut *rig, seed + round, 2)?;
        let discards = session.info.discard_max > Bytes(0);
        for part in session.parts(2) {
            for _ in 0..3 {
                let op = match session.below(3) {
                    0 if discards => Op::Discard,
                    1 => Op::WriteZeroes { fua: false, no_hole: false, fast_only: false },
                    _ => Op::Write { fua: false },
                };
                let queue = session.below(2) as usize;
                let tag = session.submit(queue, op, part, Carrier::Pattern)?;
                session.must_be_done(tag)?;
            }
            let tag = session.submit(0, Op::Write { fua: true }, part, Carrier::Pattern)?;
            session.must_be_done(tag)?;
        }
        session.cut_and_judge()?;
    }
    Ok(())
}

/// Checks that writes in flight at the cut leave each block old, new or unreadable, but not torn.
pub(super) fn blocks_do_not_tear(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    for round in 0..ROUNDS {
        let mut session = Session::start(&mut *rig, seed + round, 2)?;
        for part in session.parts(8) {
            let queue = session.below(2) as usize;
            session.submit(queue, Op::Write { fua: false }, part, Carrier::Pattern)?;
        }
        session.poll_one(0, Wait::NONE)?;
        session.poll_one(1, Wait::NONE)?;
        session.cut_and_judge()?;
    }
    Ok(())
}

/// Checks the state after a random mixture of all operations on three queues, cut at a random moment.
pub(super) fn any_cut_leaves_an_allowed_state(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    for round in 0..ROUNDS * 2 {
        let mut session = Session::start(&mut *rig, seed + round, 3)?;
        let discards = session.info.discard_max > Bytes(0);
        for _ in 0..session.below(120) {
            let queue = session.below(3) as usize;
            let mut part = session.some_part();
            part.lba.0 = session.range.lba.0 + part.lba.0 % 12;
            let (op, range) = match session.below(10) {
                0 => (Op::Flush, LbaRange::EMPTY),
                1 if discards => (Op::Discard, part),
                2 => (Op::WriteZeroes { fua: false, no_hole: false, fast_only: false }, part),
                3 => (Op::WriteZeroes { fua: true, no_hole: true, fast_only: false }, part),
                4 | 5 => (Op::Write { fua: true }, part),
                _ => (Op::Write { fua: false }, part),
            };
            session.submit(queue, op, range, Carrier::Pattern)?;
            if session.below(3) == 0 {
                session.poll_all()?;
            }
        }
        session.cut_and_judge()?;
    }
    Ok(())
}

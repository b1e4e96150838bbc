//! Discard and write-zeroes.

use super::super::rig::Rig;
use super::super::session::{Carrier, CheckResult, Session, Stop, fail};
use crate::error::Errno;
use crate::info::ExtentState;
use crate::request::{LbaRange, Op, Outcome};
use crate::units::Bytes;

/// Checks that after a discard a block reads as before or as zeroes, and as zeroes if the device promises
/// that; and that a write after a discard counts.
pub(super) fn discarded_blocks_read_as_allowed(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    let mut session = Session::start(rig, seed, 2)?;
    if session.info.discard_max == Bytes(0) {
        let part = session.some_part();
        let tag = session.submit(0, Op::Discard, part, Carrier::None)?;
        return match session.outcome_of(tag)? {
            Outcome::Failed(Errno::EOPNOTSUPP) => {
                Err(Stop::Skipped("the device does not discard, and says so with EOPNOTSUPP".to_owned()))
            }
            other => fail(format!("a device without discard answered one with {other:?}")),
        };
    }
    for round in 0..30 {
        let part = grain_of(&mut session);
        let discard = session.submit(0, Op::Discard, part, Carrier::None)?;
        session.must_be_done(discard)?;
        if round % 2 == 0 {
            let tag = session.submit(1, Op::Write { fua: false }, part, Carrier::Pattern)?;
            session.must_be_done(tag)?;
        }
        let tag = session.submit(1, Op::Read, part, Carrier::Buffer)?;
        session.must_be_done(tag)?;
    }
    session.read_all(0)
}

/// Checks that every form of write-zeroes reads back as zeroes; the fast form may fail, but only with
/// EOPNOTSUPP.
pub(super) fn written_zeroes_read_as_zeroes(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    let mut session = Session::start(rig, seed, 2)?;
    for round in 0..32 {
        let (fua, no_hole, fast_only) = (round & 1 != 0, round & 2 != 0, round & 4 != 0);
        let part = grain_of(&mut session);
        let op = Op::WriteZeroes { fua, no_hole, fast_only };
        let tag = session.submit(0, op, part, Carrier::None)?;
        match session.outcome_of(tag)? {
            Outcome::Done => {}
            Outcome::Failed(Errno::EOPNOTSUPP) if fast_only => {}
            other => return fail(format!("{op:?} ended as {other:?}")),
        }
        let tag = session.submit(1, Op::Read, part, Carrier::Buffer)?;
        session.must_be_done(tag)?;
        let tag = session.submit(1, Op::Write { fua: false }, part, Carrier::Pattern)?;
        session.must_be_done(tag)?;
    }
    session.read_all(0)
}

/// Checks that with `no_hole` the space stays reserved: no extent of the range is a hole afterwards.
pub(super) fn zeroes_without_holes_keep_their_space(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    let mut session = Session::start(rig, seed, 1)?;
    let mut known = false;
    for part in session.parts(16) {
        let op = Op::WriteZeroes { fua: true, no_hole: true, fast_only: false };
        let tag = session.submit(0, op, part, Carrier::None)?;
        session.must_be_done(tag)?;
        let extents = session.device.extents(part).or_else(|error| fail(format!("extents: {error}")))?;
        if extents.iter().any(|extent| extent.state == ExtentState::Hole) {
            return fail(format!("zeroes without holes left one: {extents:?}"));
        }
        known |= extents.iter().any(|extent| extent.state != ExtentState::Unknown);
    }
    if known {
        Ok(())
    } else {
        Err(Stop::Skipped("the device does not know what is behind its blocks".to_owned()))
    }
}

/// Returns a range of whole physical blocks, for devices that round a discard down to them.
fn grain_of(session: &mut Session<'_>) -> LbaRange {
    let nlb = session.info.physical_block.0 / session.info.logical_block.0;
    let parts = session.parts(nlb.max(1));
    let index = session.below(parts.len() as u64) as usize;
    parts[index]
}

//! Checks of a device's description of itself, and of the return of requests, tags and payloads.

use super::super::rig::Rig;
use super::super::session::{Carrier, CheckResult, Session, fail};
use crate::device::Wait;
use crate::error::Errno;
use crate::request::{LbaRange, Op, Outcome};
use crate::units::Bytes;

/// Checks that the numbers are consistent, and that a second query returns the same.
pub(super) fn info_is_sane(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    let session = Session::bare(rig, seed, 0)?;
    let info = &session.info;
    let power_of_two = |bytes: Bytes| bytes.0.is_power_of_two();
    let rules = [
        ("the logical block is a power of two of 512 or more", {
            power_of_two(info.logical_block) && info.logical_block.0 >= 512
        }),
        ("the physical block is a power of two and not smaller than the logical", {
            power_of_two(info.physical_block) && info.physical_block >= info.logical_block
        }),
        ("the capacity is a whole number of blocks, and not zero", {
            info.size > Bytes(0) && info.size.0.is_multiple_of(info.logical_block.0)
        }),
        ("the DMA alignment is a power of two", power_of_two(info.dma_alignment)),
        ("a transfer of one block is possible", info.transfer_max >= info.logical_block),
        ("the atomic unit is a whole number of blocks", {
            info.atomic_unit >= info.logical_block && info.atomic_unit.0.is_multiple_of(info.logical_block.0)
        }),
        ("the atomic boundary is none, or not smaller than the unit", {
            info.atomic_boundary == Bytes(0) || info.atomic_boundary >= info.atomic_unit
        }),
        ("a device that cannot discard promises nothing about it", {
            info.discard_max > Bytes(0) || !info.discard_zeroes
        }),
    ];
    for (rule, holds) in rules {
        if !holds {
            return fail(format!("not so: {rule}; {info:?}"));
        }
    }
    let again = session.device.info();
    if again.generation == info.generation && again != *info {
        return fail(format!("the generation stayed, the rest changed: {info:?}, then {again:?}"));
    }
    if session.device.latched().is_some() {
        return fail("a renewed device is latched");
    }
    if !info.holds(session.range) || session.range.nlb < 64 {
        return fail(format!("the rig's range {:?} is not 64 blocks of the device", session.range));
    }
    Ok(())
}

/// Checks that the extents that extents() returns are in order and without gaps.
pub(super) fn extents_cover_the_range(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    let session = Session::start(rig, seed, 1)?;
    let (start, end) = (session.range.lba.0 + 3, session.range.end().0 - 3);
    let asked = LbaRange::new(crate::units::Lba(start), end - start);
    let extents = session.device.extents(asked).or_else(|error| fail(format!("extents: {error}")))?;
    let mut cursor = start;
    for extent in &extents {
        if extent.range.lba.0 != cursor || extent.range.nlb == 0 {
            return fail(format!("the extents of {asked:?} have gaps or overlap: {extents:?}"));
        }
        cursor = extent.range.end().0;
    }
    if cursor != end {
        return fail(format!("the extents of {asked:?} end at {cursor}: {extents:?}"));
    }
    Ok(())
}

/// Runs many requests of every kind on three queues: the session checks that each tag comes back exactly
/// once, from its own queue, with plausible times.
pub(super) fn every_tag_comes_back_once(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    let mut session = Session::start(rig, seed, 3)?;
    for step in 0..200 {
        let queue = session.below(3) as usize;
        let part = session.some_part();
        let (op, range) = match session.below(4) {
            0 => (Op::Read, part),
            1 => (Op::Write { fua: false }, part),
            2 => (Op::Write { fua: true }, part),
            _ => (Op::Flush, LbaRange::EMPTY),
        };
        session.submit(queue, op, range, Carrier::Pattern)?;
        if step % 7 == 0 {
            session.poll_one(queue, Wait::NONE)?;
        }
    }
    session.finish_all()?;
    // A completion that is still to come would be the second one of its request.
    (0..20).try_for_each(|_| session.poll_all())
}

/// Checks that buffers come back with the completion, unchanged, and can be used again.
pub(super) fn payloads_come_back(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    let mut session = Session::start(rig, seed, 1)?;
    let before = session.pool.available();
    for _ in 0..40 {
        let part = session.some_part();
        session.submit(0, Op::Write { fua: false }, part, Carrier::Buffer)?;
        session.submit(0, Op::Read, part, Carrier::Buffer)?;
        if session.under_way() >= 4 {
            session.finish_all()?;
        }
    }
    session.finish_all()?;
    // A queue may keep scratch buffers, but no more than it can use at once.
    let depth = session.rig.queue_options().depth as usize;
    let after = session.pool.available();
    if after + depth < before {
        return fail(format!("{before} buffers were free before, {after} after everything came back"));
    }
    Ok(())
}

/// Checks that a pattern reads back as the bytes that it represents, and that reads without a buffer
/// complete, too.
pub(super) fn patterns_are_their_bytes(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    let mut session = Session::start(rig, seed, 1)?;
    for carrier in [Carrier::Pattern, Carrier::Buffer] {
        for part in session.parts(5) {
            let tag = session.submit(0, Op::Write { fua: false }, part, carrier)?;
            session.must_be_done(tag)?;
        }
        session.read_all(0)?;
    }
    let part = session.some_part();
    let tag = session.submit(0, Op::Read, part, Carrier::None)?;
    session.must_be_done(tag)
}

/// Checks that polling an idle queue returns no completion and does not wait, for any kind of wait.
pub(super) fn an_idle_queue_does_not_wait(rig: &mut dyn Rig, seed: u64) -> CheckResult {
    let mut session = Session::bare(rig, seed, 1)?;
    session.poll_one(0, Wait::NONE)?;
    session.poll_one(0, Wait::ONE)?;
    session.poll_one(0, Wait { completions: 1000, patience: None, deadline: None })?;
    // A queue that waits for more requests than are in flight returns when these have completed.
    let part = session.some_part();
    let tag = session.submit(0, Op::Read, part, Carrier::None)?;
    for _ in 0..1000 {
        session.poll_one(0, Wait { completions: 1000, patience: None, deadline: None })?;
        if session.under_way() == 0 {
            break;
        }
        session.rig.let_time_pass();
    }
    match session.outcome_of(tag)? {
        Outcome::Done | Outcome::Failed(Errno::EIO) => Ok(()),
        other => fail(format!("a read ended as {other:?}")),
    }
}

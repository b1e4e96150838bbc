//! Growing the log during service, and adopting a grown backing device.
//!
//! The ring gets more positions, and a rotation with which no segment that holds data moves. Such a rotation
//! exists while these segments do not wrap around the end of the ring. Destaging brings this about; meanwhile
//! no segment is started at the start of the ring.
//!
//! The new shape is used once two versions of the superblock with it are durable, so that no slot has the old
//! one.
//!
//! ```text
//!   the mark states no witness ──► caller: mark with the new size, at the new end of the device
//!                                  ──► other witnesses, superblocks with the new size
//! ```
//!
//! A larger device has other witnesses, so a mark must not state one with the contents of another.

use plumb_block::{Bytes, DeviceInfo, LbaRange};

use crate::action::Wait;
use crate::base::{Base, Condition};
use crate::geometry::Geometry;
use crate::mark::Marks;
use crate::seal::SEALED;

/// Returns the number of segments of a leg after growing: see [`Cache::may_grow`](crate::Cache::may_grow).
pub(crate) fn grown_to(base: &Base, size: Bytes, legs: &[Option<DeviceInfo>]) -> Result<u64, String> {
    let geometry = base.log.geometry;
    let per_leg = Geometry::per_leg(size, geometry.segment_blocks);
    let grown = Geometry { per_leg, ..geometry };
    if base.seal.is_some() {
        return Err(SEALED.to_owned());
    }
    if base.condition != Condition::Serving || base.log.grows_to.is_some() {
        return Err(
            "the cache does not serve, or its log is already being enlarged: wait until that is done"
                .to_owned(),
        );
    }
    if per_leg <= geometry.per_leg || !grown.is_sound() {
        let (used, segment) = (base.superblock.geometry.leg_size(), Bytes(geometry.segment_bytes()));
        return Err(format!(
            "its log already uses {used} of each device, and {size} would not hold another segment of \
             {segment}. A log cannot be made smaller: detach the cache and create it again for that"
        ));
    }
    for leg in base.superblock.written().iter() {
        let Some(info) = legs.get(leg).and_then(Option::as_ref) else { continue };
        if info.size < grown.leg_size() {
            let (name, found) = (&info.name, info.size);
            return Err(format!(
                "{name} has {found}, less than the {size} that are to be used: make it larger first"
            ));
        }
    }
    Ok(per_leg)
}

/// Returns true if the log has as many segments as fit in `size` of each leg, or is growing to that.
pub(crate) fn is_grown_to(base: &Base, size: Bytes) -> bool {
    let geometry = base.log.geometry;
    base.log.grows_to.unwrap_or(geometry.per_leg) == Geometry::per_leg(size, geometry.segment_blocks)
}

/// Starts to grow: see [`Cache::grow`](crate::Cache::grow).
pub(crate) fn grow(base: &mut Base, size: Bytes, legs: Vec<Option<DeviceInfo>>) -> Result<(), String> {
    base.log.grows_to = Some(grown_to(base, size, &legs)?);
    base.devices.set_legs(legs);
    base.log.end_reads_before(base.log.tail);
    Ok(())
}

/// Requests the superblock with the new shape once no segment has to move for it.
pub(crate) fn advance(base: &mut Base) {
    let Some(per_leg) = base.log.grows_to.filter(|_| base.superblock.geometry == base.log.geometry) else {
        return;
    };
    if let Some(grown) = base.log.grown(per_leg) {
        base.superblock.geometry = grown;
        base.begin_epoch();
        if !base.options.waits.hold(Wait::EpochDurable) {
            base.take_shape();
        }
    }
}

/// Prepares to adopt more of the backing device: see [`Cache::silence_mark`](crate::Cache::silence_mark).
pub(crate) fn silence_mark(base: &mut Base, marks: &mut Marks) -> Result<(), String> {
    if base.seal.is_some() {
        return Err(SEALED.to_owned());
    }
    if base.condition != Condition::Serving {
        return Err("the cache does not serve".to_owned());
    }
    marks.silence();
    base.io.step();
    Ok(())
}

/// Adopts `size` of the backing device: see [`Cache::grow_backing`](crate::Cache::grow_backing).
pub(crate) fn grow_backing(
    base: &mut Base,
    marks: &mut Marks,
    size: Bytes,
    witnesses: Vec<LbaRange>,
) -> Result<(), String> {
    let before = base.devices.backing().size;
    if base.condition != Condition::Serving || base.seal.is_some() || !marks.is_silent() {
        return Err("the cache does not serve, or its mark is not silent".to_owned());
    }
    if size < before || !size.0.is_multiple_of(base.log.geometry.logical_block) {
        return Err(format!(
            "the cache covers {before} of its backing device and cannot be resized to {size}"
        ));
    }
    base.devices.grow_backing(size);
    marks.take_witnesses(base, witnesses);
    base.superblock.backing_size = size;
    base.begin_epoch();
    Ok(())
}

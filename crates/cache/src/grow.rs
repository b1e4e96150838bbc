//! A log that gets larger while it is served.
//!
//! The ring gets more positions, and another rotation with which no segment moves that holds something. There
//! is one while these segments do not go round the end of the ring: destaging gets there, and no segment is
//! begun at the start of the ring meanwhile.
//!
//! The new shape is in use once two versions of the superblock that have it are durable: then no slot is left
//! with the old one.

use plumb_block::{Bytes, DeviceInfo};

use crate::action::Wait;
use crate::core::{Condition, Core};
use crate::geometry::Geometry;
use crate::resilver::SEALED;

impl Core {
    /// Returns the number of segments that a leg has once the log has grown so: see
    /// [`Cache::may_grow`](crate::Cache::may_grow).
    pub(crate) fn grown_to(&self, size: Bytes, legs: &[Option<DeviceInfo>]) -> Result<u64, String> {
        let geometry = self.log.geometry;
        let per_leg = Geometry::per_leg(size, geometry.segment_blocks);
        let grown = Geometry { per_leg, ..geometry };
        if self.seal.is_some() {
            return Err(SEALED.to_owned());
        }
        if self.condition != Condition::Serving || self.log.grows_to.is_some() {
            return Err("the cache does not serve, or its log grows already: wait for that".to_owned());
        }
        if per_leg <= geometry.per_leg || !grown.is_sound() {
            let (used, segment) = (self.superblock.geometry.leg_size(), Bytes(geometry.segment_bytes()));
            return Err(format!(
                "its log takes {used} of each device, and {size} hold no segment of {segment} more. A log is never made smaller: detach \
                 the cache and create it anew for that"
            ));
        }
        for leg in self.superblock.written().iter() {
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

    /// Begins to grow: see [`Cache::grow`](crate::Cache::grow).
    pub(crate) fn grow(&mut self, size: Bytes, legs: Vec<Option<DeviceInfo>>) -> Result<(), String> {
        self.log.grows_to = Some(self.grown_to(size, &legs)?);
        self.devices.set_legs(legs);
        Ok(())
    }

    /// Has the new shape written, once no segment has to move for it.
    pub(crate) fn go_on_growing(&mut self) {
        let Some(per_leg) = self.log.grows_to.filter(|_| self.superblock.geometry == self.log.geometry)
        else {
            return;
        };
        if let Some(grown) = self.log.grown(per_leg) {
            self.superblock.geometry = grown;
            self.begin_epoch();
            if !self.options.waits.hold(Wait::EpochDurable) {
                self.take_shape();
            }
        }
    }

    /// The shape that the superblocks have is in use from now on.
    pub(crate) fn take_shape(&mut self) {
        self.log.geometry = self.superblock.geometry;
        self.log.grows_to = None;
    }
}

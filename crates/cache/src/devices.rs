//! Devices below the cache: their properties, and commands in their blocks.

use plumb_block::{Buffer, BufferMut, Bytes, DeviceInfo, Lba, LbaRange, Op, Payload};

use crate::action::{Command, Member, Purpose};
use crate::settings::{BUFFER, LOG_BLOCK};

/// Descriptions of the legs and of the backing device.
#[derive(Debug, Clone)]
pub(crate) struct Devices {
    /// Properties of each leg by number; `None` for a missing leg.
    legs: Vec<Option<DeviceInfo>>,
    backing: DeviceInfo,
}

/// Position of a run of log blocks on a leg.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LegBlocks {
    pub(crate) leg: usize,
    /// First log block, counted from the start of the leg.
    pub(crate) at: u64,
    pub(crate) blocks: u64,
}

impl Devices {
    pub(crate) fn new(legs: Vec<Option<DeviceInfo>>, backing: DeviceInfo) -> Self {
        Self { legs, backing }
    }

    /// Returns the number of legs, including missing ones.
    pub(crate) fn leg_count(&self) -> usize {
        self.legs.len()
    }

    pub(crate) fn leg(&self, leg: usize) -> Option<&DeviceInfo> {
        self.legs.get(leg).and_then(Option::as_ref)
    }

    /// Returns the present legs.
    pub(crate) fn present_legs(&self) -> impl Iterator<Item = &DeviceInfo> {
        self.legs.iter().flatten()
    }

    pub(crate) fn backing(&self) -> &DeviceInfo {
        &self.backing
    }

    /// Records that the backing device has grown to `size`.
    pub(crate) fn grow_backing(&mut self, size: Bytes) {
        self.backing.size = size;
    }

    /// Replaces or removes a leg's device.
    pub(crate) fn set_leg(&mut self, leg: usize, info: Option<DeviceInfo>) {
        self.legs[leg] = info;
    }

    /// Replaces the descriptions of all legs.
    pub(crate) fn set_legs(&mut self, legs: Vec<Option<DeviceInfo>>) {
        self.legs = legs;
    }

    /// Returns the largest transfer to a leg in bytes, a multiple of the log block.
    pub(crate) fn leg_transfer_max(&self) -> u64 {
        let smallest = self.present_legs().map(|info| info.transfer_max).min().unwrap_or(BUFFER).min(BUFFER);
        smallest.round_down(Bytes(LOG_BLOCK)).0.max(LOG_BLOCK)
    }

    /// Returns the largest transfer to the backing device that the cache uses, in bytes.
    pub(crate) fn backing_transfer_max(&self) -> u64 {
        let block = self.backing.logical_block;
        self.backing.transfer_max.min(BUFFER).round_down(block).0.max(block.0)
    }

    /// Creates the command that reads log blocks of a leg.
    pub(crate) fn read_leg(&self, from: LegBlocks, purpose: Purpose, into: BufferMut) -> Command {
        self.leg_command(from, purpose, Op::Read, Payload::Into(into))
    }

    /// Creates the command that writes `bytes` to a leg at log block `at`.
    pub(crate) fn write_leg(&self, leg: usize, at: u64, purpose: Purpose, bytes: Buffer) -> Command {
        let to = LegBlocks { leg, at, blocks: bytes.len() as u64 / LOG_BLOCK };
        self.leg_command(to, purpose, Op::Write { fua: false }, Payload::Bytes(bytes))
    }

    fn leg_command(&self, place: LegBlocks, purpose: Purpose, op: Op, payload: Payload) -> Command {
        let scale = LOG_BLOCK / self.leg(place.leg).map_or(LOG_BLOCK, |info| info.logical_block.0);
        let range = LbaRange::new(Lba(place.at * scale), place.blocks * scale);
        Command { member: Member::Leg(place.leg), purpose, op, range, payload }
    }
}

/// Checks that a cache can use the device's logical block size.
pub(crate) fn block_fits(device: &DeviceInfo) -> Result<(), String> {
    let (name, block) = (&device.name, device.logical_block);
    if (Bytes(512)..=Bytes(LOG_BLOCK)).contains(&block) && block.0.is_power_of_two() {
        return Ok(());
    }
    Err(format!("{name} has logical blocks of {block}: expected 512 bytes to 4 KiB"))
}

/// Checks that a leg accepts the smallest record in one transfer.
pub(crate) fn transfer_fits(leg: &DeviceInfo) -> Result<(), String> {
    let (name, most, least) = (&leg.name, leg.transfer_max, Bytes(2 * LOG_BLOCK));
    if most >= least {
        Ok(())
    } else {
        Err(format!("{name} takes transfers of at most {most}: a log needs {least}"))
    }
}

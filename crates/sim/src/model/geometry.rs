//! Kind of drive that a model is, and the drive's description of itself.

use plumb_block::{Bytes, DeviceInfo, Nanos, VolatileCache};
use serde::{Deserialize, Serialize};

use super::limits::{Check, Limits};
use super::quantity::Size;

/// Kind of a drive, by what moves, or does not, inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A spinning disk.
    Hdd,
    /// Flash behind a controller.
    Ssd,
    /// A flash stick.
    Usb,
    /// Several drives behind a controller or a network.
    Array,
    /// Nothing: contents are dropped, reads return zeroes.
    Null,
    /// Memory: contents are kept, nothing takes time.
    Memory,
}

/// Interface that a drive is attached by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interface {
    /// Serial ATA, or its parallel ancestor.
    Sata,
    /// Serial-attached SCSI.
    Sas,
    /// NVM Express.
    Nvme,
    /// A USB bridge.
    Usb,
    /// Another host.
    Network,
    /// None: it is memory of this process.
    Memory,
}

/// Properties that a drive reports in IDENTIFY, or in its SCSI pages.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// The unit of addressing.
    pub logical_block: Size,
    /// The unit in which the medium writes without reading first; the logical block if it is not said.
    pub physical_block: Option<Size>,
    /// The capacity where none is asked for.
    pub default_size: Size,
    /// The largest single transfer.
    #[serde(default = "transfer_max")]
    pub transfer_max: Size,
    /// The unit of a discard; absent if the drive has none.
    pub discard_granularity: Option<Size>,
    /// True if discarded blocks read as zeroes, promised by the drive.
    #[serde(default)]
    pub discard_zeroes: bool,
    /// Size up to which a write is all or nothing across a power cut; a logical block if it is not said.
    pub atomic_unit: Option<Size>,
    /// A write across a multiple of this is not atomic; absent or zero if there is no such boundary.
    pub atomic_boundary: Option<Size>,
    /// True if FUA is understood by the drive itself.
    #[serde(default)]
    pub fua_native: bool,
    /// Revolutions per minute, where the drive states that it rotates.
    pub rotation_rpm: Option<u32>,
}

const fn transfer_max() -> Size {
    Size(Bytes::mib(1))
}

impl Geometry {
    /// The sizes that a drive of this model may have: whole logical blocks, not none, at most 1 PiB.
    pub const SIZES: std::ops::RangeInclusive<u64> = Bytes::mib(1).0..=1 << 50;

    /// Returns the description that a drive of `size` reports of itself. `volatile_cache` is not the model's
    /// to say but the state of the drive.
    pub fn device_info(&self, name: &str, size: Bytes, volatile_cache: VolatileCache) -> DeviceInfo {
        let block = self.logical_block.0;
        let size_or_block = |size: Option<Size>| size.map_or(block, |size| size.0);
        DeviceInfo {
            physical_block: size_or_block(self.physical_block),
            transfer_max: self.transfer_max.0,
            discard_max: self.discard_granularity.map_or(Bytes(0), |_| Bytes::gib(2)),
            discard_zeroes: self.discard_zeroes,
            atomic_unit: size_or_block(self.atomic_unit),
            atomic_boundary: self.atomic_boundary.map_or(Bytes(0), |size| size.0),
            volatile_cache,
            fua_native: self.fua_native,
            revolution: self.rotation_rpm.map(|rpm| Nanos(60_000_000_000 / u64::from(rpm))),
            ..DeviceInfo::plain(name, size, block)
        }
    }
}

impl Limits for Geometry {
    fn limits(&self, check: &mut Check) {
        let block = self.logical_block.0.0;
        let power = |size: u64| size.is_power_of_two() && (512..=65536).contains(&size);
        check.that("logical_block", power(block), "a power of two from 512 to 64 KiB");
        let block = block.max(1);
        let whole = |size: u64, max: u64| size >= block && size.is_multiple_of(block) && size <= max;
        let physical = self.physical_block.map_or(block, |size| size.0.0);
        check.that(
            "physical_block",
            power(physical) && physical >= block,
            "a power of two, at least the logical block",
        );
        let size = self.default_size.0.0;
        check.that(
            "default_size",
            Self::SIZES.contains(&size) && size.is_multiple_of(block),
            "whole logical blocks, 1 MiB to 1 PiB",
        );
        check.that(
            "transfer_max",
            whole(self.transfer_max.0.0, 64 << 20),
            "whole logical blocks, at most 64 MiB",
        );
        let granularity = self.discard_granularity.map_or(block, |size| size.0.0);
        check.that("discard_granularity", whole(granularity, 1 << 30), "whole logical blocks, at most 1 GiB");
        let atomic = self.atomic_unit.map_or(block, |size| size.0.0);
        check.that("atomic_unit", whole(atomic, 64 << 20), "whole logical blocks, at most 64 MiB");
        let boundary = self.atomic_boundary.map_or(0, |size| size.0.0);
        check.that(
            "atomic_boundary",
            boundary == 0 || (whole(boundary, 1 << 30) && boundary >= atomic),
            "zero, or whole logical blocks and at least the atomic unit",
        );
        check.within("rotation_rpm", &self.rotation_rpm.unwrap_or(7200), &(1000..=30_000));
    }
}

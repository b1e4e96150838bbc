//! Kind of a drive, and its description of itself.

use plumb_block::{Bytes, DeviceInfo, Nanos, VolatileCache};
use serde::{Deserialize, Serialize};

use super::limits::{Check, Limits};
use super::quantity::Size;

/// Kind of a drive, by its technology.
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
    /// Null drive: writes are discarded, reads return zeroes.
    Null,
    /// Memory: contents are kept, operations take no time.
    Memory,
}

/// Interface of a drive.
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
    /// Network to another host.
    Network,
    /// None: memory of this process.
    Memory,
}

/// Properties that a drive reports in IDENTIFY or SCSI pages.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Logical block: unit of addressing.
    pub logical_block: Size,
    /// Unit that the medium writes without a read-modify-write; the logical block by default.
    pub physical_block: Option<Size>,
    /// Default capacity.
    pub default_size: Size,
    /// Maximum size of a transfer.
    #[serde(default = "transfer_max")]
    pub transfer_max: Size,
    /// Granularity of a discard; absent if discards are not supported.
    pub discard_granularity: Option<Size>,
    /// True if the drive guarantees that discarded blocks read as zeroes.
    #[serde(default)]
    pub discard_zeroes: bool,
    /// Size up to which a write is atomic across a power cut; a logical block by default.
    pub atomic_unit: Option<Size>,
    /// Boundary of atomic writes: a write across a multiple of it is not atomic. Absent or zero if there is
    /// none.
    pub atomic_boundary: Option<Size>,
    /// True if the drive implements FUA.
    #[serde(default)]
    pub fua_native: bool,
    /// Revolutions per minute, if the drive reports that it rotates.
    pub rotation_rpm: Option<u32>,
}

const fn transfer_max() -> Size {
    Size(Bytes::mib(1))
}

impl Geometry {
    /// Permitted sizes of a drive, in bytes.
    pub const SIZES: std::ops::RangeInclusive<u64> = Bytes::mib(1).0..=1 << 50;

    /// Returns the description that a drive of `size` reports. `volatile_cache` is the current state of the
    /// drive.
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

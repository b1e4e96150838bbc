//! What each request of the kernel becomes for the device: a pure function of its descriptor and the geometry.
//!
//! | asked | becomes |
//! |---|---|
//! | READ, WRITE | one read or write, with FUA if it is asked for; EINVAL off the grid of logical blocks or beyond the end |
//! | FLUSH | a flush, always |
//! | DISCARD | a discard: the block layer expects nothing of what is read afterwards |
//! | WRITE_ZEROES | write-zeroes, which keep the space if NOUNMAP is set |
//! | anything else | EOPNOTSUPP |

use plumb_block::{Bytes, DeviceInfo, Errno, Lba, LbaRange, Op};

use super::wire::{self, Descriptor, Kind, Parameters, SECTOR};
use crate::error::{ExportError, Result};

/// The most data of a request that the kernel is allowed.
const REQUEST_MAX: Bytes = Bytes::kib(512);
const PAGE: Bytes = Bytes::kib(4);
/// A write-zeroes has no limit in [`DeviceInfo`]; more than this at once would hold the others up.
const ZEROES_MAX: Bytes = Bytes::mib(32);

/// What requests are held against, and the block device's parameters. Taken when it is exported: a change of size is not
/// followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Geometry {
    pub(super) block: u64,
    pub(super) size: u64,
    pub(super) request_max: Bytes,
    pub(super) parameters: Parameters,
}

/// What to do with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    Read(LbaRange),
    Write {
        range: LbaRange,
        fua: bool,
    },
    Flush,
    /// Without data.
    Clear {
        op: Op,
        range: LbaRange,
    },
    Refuse(Errno),
}

impl Geometry {
    /// Of a device.
    ///
    /// # Errors
    /// [`Geometry`](ExportError::Geometry) if the block layer cannot have its block or size, or it takes less than a page at a time.
    pub(super) fn new(info: &DeviceInfo, read_only: bool) -> Result<Self> {
        let refused = |why: String| ExportError::Geometry {
            device: info.name.clone(),
            how: "exported through ublk",
            why,
        };
        let block = info.logical_block;
        if !block.0.is_power_of_two() || !(SECTOR..=PAGE.0).contains(&block.0) {
            return Err(refused(format!("its logical block is {block}, and 512 to 4096 bytes are possible")));
        }
        if info.size < block || i64::try_from(info.size.0).is_err() {
            return Err(refused(format!(
                "its size is {}, and 1 block to 2^63 - 1 bytes are possible",
                info.size
            )));
        }
        let request_max = info.transfer_max.min(REQUEST_MAX).round_down(PAGE);
        if request_max.0 == 0 {
            return Err(refused(format!("it takes {} at a time, and {PAGE} are needed", info.transfer_max)));
        }
        let size = info.size.round_down(block);
        Ok(Self {
            block: block.0,
            size: size.0,
            request_max,
            parameters: Parameters {
                attributes: attributes(info, read_only),
                logical_shift: shift(block),
                physical_shift: shift(physical(info)),
                io_opt_shift: shift(physical(info)),
                io_min_shift: shift(physical(info)),
                request_sectors_max: sectors(request_max),
                sectors: size.0 / SECTOR,
                discard_granularity: block.0 as u32,
                discard_sectors_max: sectors(info.discard_max.round_down(block)),
                write_zeroes_sectors_max: sectors(ZEROES_MAX.round_down(block)),
            },
        })
    }

    /// What `asked` becomes.
    pub(super) fn plan(&self, asked: &Descriptor) -> Plan {
        if asked.kind == Kind::Flush {
            return Plan::Flush;
        }
        if asked.kind == Kind::Other {
            return Plan::Refuse(Errno::EOPNOTSUPP);
        }
        let Some(range) = self.range(asked) else { return Plan::Refuse(Errno::EINVAL) };
        let is_transfer = u64::from(asked.sectors) * SECTOR <= self.request_max.0;
        match asked.kind {
            Kind::Read if is_transfer => Plan::Read(range),
            _ if asked.kind != Kind::Read && self.is_read_only() => Plan::Refuse(Errno(EROFS)),
            Kind::Write if is_transfer => Plan::Write { range, fua: asked.fua },
            Kind::Discard => Plan::Clear { op: Op::Discard, range },
            Kind::WriteZeroes => {
                let op = Op::WriteZeroes { fua: asked.fua, no_hole: asked.no_unmap, fast_only: false };
                Plan::Clear { op, range }
            }
            _ => Plan::Refuse(Errno::EINVAL),
        }
    }

    fn is_read_only(&self) -> bool {
        self.parameters.attributes & wire::READ_ONLY != 0
    }

    /// The blocks that are meant, if there are any, on the grid and within the device.
    fn range(&self, asked: &Descriptor) -> Option<LbaRange> {
        let start = asked.start.checked_mul(SECTOR)?;
        let length = u64::from(asked.sectors) * SECTOR;
        let is_within = start.checked_add(length)? <= self.size;
        let is_on_grid = start.is_multiple_of(self.block) && length.is_multiple_of(self.block);
        (is_within && is_on_grid && length > 0)
            .then(|| LbaRange::new(Lba(start / self.block), length / self.block))
    }
}

/// Read-only file system; errno(3).
const EROFS: i32 = 30;

/// A cache always: it may be turned on later, which the kernel could not be told, and a flush of nothing costs little.
fn attributes(info: &DeviceInfo, read_only: bool) -> u32 {
    let mut attributes = wire::VOLATILE_CACHE;
    for (is_so, attribute) in [
        (info.fua_native, wire::FUA),
        (info.revolution.is_some(), wire::ROTATIONAL),
        (read_only, wire::READ_ONLY),
    ] {
        attributes |= if is_so { attribute } else { 0 };
    }
    attributes
}

/// What the block layer takes for one: a power of two, not less than the logical block.
fn physical(info: &DeviceInfo) -> Bytes {
    let physical = info.physical_block.0;
    let is_possible = physical.is_power_of_two() && physical > info.logical_block.0 && physical <= 1 << 30;
    if is_possible { info.physical_block } else { info.logical_block }
}

fn shift(bytes: Bytes) -> u8 {
    // Of 64 bits.
    bytes.0.trailing_zeros() as u8
}

/// As many as a field holds, in whole pages.
fn sectors(bytes: Bytes) -> u32 {
    u32::try_from(bytes.0 / SECTOR).unwrap_or(!7)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn geometry(block: u64) -> Geometry {
        let plain = DeviceInfo::plain("a test", Bytes::mib(1), Bytes(block));
        Geometry::new(&DeviceInfo { discard_max: Bytes::kib(64), ..plain }, false).unwrap()
    }

    fn asked(kind: Kind, start: u64, sectors: u32) -> Descriptor {
        Descriptor { kind, fua: false, no_unmap: false, sectors, start }
    }

    #[test]
    fn parameters_follow_the_device() {
        let info = DeviceInfo {
            physical_block: Bytes(4096),
            fua_native: true,
            discard_max: Bytes(u64::MAX),
            ..DeviceInfo::plain("a test", Bytes::mib(64), Bytes(512))
        };
        let parameters = Geometry::new(&info, false).unwrap().parameters;
        assert_eq!(parameters.attributes, wire::VOLATILE_CACHE | wire::FUA);
        assert_eq!(
            (parameters.logical_shift, parameters.physical_shift, parameters.io_min_shift),
            (9, 12, 12)
        );
        assert_eq!((parameters.sectors, parameters.request_sectors_max), (131_072, 1024));
        assert_eq!(parameters.discard_sectors_max, 0xFFFF_FFF8);
        let read_only = Geometry::new(&info, true).unwrap();
        assert_eq!(read_only.parameters.attributes & wire::READ_ONLY, wire::READ_ONLY);
        assert_eq!(read_only.plan(&asked(Kind::Write, 0, 8)), Plan::Refuse(Errno(EROFS)));
        for (size, block, transfer) in [(1 << 20, 8192, 1 << 20), (0, 512, 1 << 20), (1 << 20, 512, 2048)] {
            let plain = DeviceInfo::plain("a test", Bytes(size), Bytes(block));
            let info = DeviceInfo { transfer_max: Bytes(transfer), ..plain };
            assert!(matches!(Geometry::new(&info, false), Err(ExportError::Geometry { .. })), "{info:?}");
        }
    }

    #[test]
    fn what_is_asked_is_what_is_done() {
        let geometry = geometry(4096);
        let range = LbaRange::new(Lba(2), 2);
        assert_eq!(geometry.plan(&asked(Kind::Read, 16, 16)), Plan::Read(range));
        let fua = Descriptor { fua: true, ..asked(Kind::Write, 16, 16) };
        assert_eq!(geometry.plan(&fua), Plan::Write { range, fua: true });
        assert_eq!(geometry.plan(&asked(Kind::Discard, 16, 16)), Plan::Clear { op: Op::Discard, range });
        let keep = Descriptor { no_unmap: true, ..asked(Kind::WriteZeroes, 16, 16) };
        let op = Op::WriteZeroes { fua: false, no_hole: true, fast_only: false };
        assert_eq!(geometry.plan(&keep), Plan::Clear { op, range });
        assert_eq!(geometry.plan(&asked(Kind::Flush, u64::MAX, 0)), Plan::Flush);
        assert_eq!(geometry.plan(&asked(Kind::Other, 0, 8)), Plan::Refuse(Errno::EOPNOTSUPP));
    }

    #[test]
    fn what_is_off_the_grid_or_beyond_the_end_is_refused() {
        let geometry = geometry(4096);
        for (start, sectors) in [(1, 8), (0, 7), (2048, 8), (2040, 16), (u64::MAX, 8), (1 << 55, 8), (0, 0)] {
            for kind in [Kind::Read, Kind::Write, Kind::Discard, Kind::WriteZeroes] {
                let plan = geometry.plan(&asked(kind, start, sectors));
                assert_eq!(plan, Plan::Refuse(Errno::EINVAL), "{kind:?} of {sectors} at {start}");
            }
        }
        assert_eq!(
            geometry.plan(&asked(Kind::Write, 0, 1032)),
            Plan::Refuse(Errno::EINVAL),
            "too much at once"
        );
    }

    proptest! {
        #[test]
        fn no_bytes_reach_beyond_the_device(bytes in any::<[u8; 24]>(), near in any::<bool>(), block in 9_u32..13) {
            let mut bytes = bytes;
            if near {
                // Small numbers, which random ones hardly ever are.
                bytes[0] %= 8;
                bytes[5..8].fill(0);
                bytes[10..16].fill(0);
            }
            let geometry = geometry(1 << block);
            let range = match geometry.plan(&Descriptor::parse(&bytes)) {
                Plan::Read(range) | Plan::Write { range, .. } => {
                    prop_assert!(range.nlb * geometry.block <= geometry.request_max.0);
                    range
                }
                Plan::Clear { range, .. } => range,
                Plan::Flush | Plan::Refuse(_) => return Ok(()),
            };
            prop_assert!(range.nlb > 0 && range.end().0 <= geometry.size / geometry.block);
        }
    }
}

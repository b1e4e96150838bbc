//! Translation of kernel requests to device requests: a pure function of the descriptor and the geometry.
//!
//! | asked | becomes |
//! |---|---|
//! | READ, WRITE | one read or write, with FUA if it is asked for; EINVAL off the grid of logical blocks or beyond the end |
//! | FLUSH | a flush, always |
//! | DISCARD | a discard: the block layer makes no assumption about later reads |
//! | WRITE_ZEROES | write-zeroes, which keep the space if NOUNMAP is set |
//! | anything else | EOPNOTSUPP |

use plumb_block::{Bytes, DeviceInfo, Errno, LbaRange, Op};

use super::wire::{self, Descriptor, Kind, Parameters, SECTOR};
use crate::block_layer::{Grid, ZEROES_MAX};
use crate::error::Result;

/// Maximum data of a kernel request.
const REQUEST_MAX: Bytes = Bytes::kib(512);

/// Grid for checking requests, and parameters of the block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Geometry {
    pub(super) grid: Grid,
    pub(super) parameters: Parameters,
}

/// Action for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    Read(LbaRange),
    Write {
        range: LbaRange,
        fua: bool,
    },
    Flush,
    /// Operation without data.
    Clear {
        op: Op,
        range: LbaRange,
    },
    Refuse(Errno),
}

impl Geometry {
    /// Creates the geometry of a device.
    ///
    /// # Errors
    /// [`Geometry`](crate::ExportError::Geometry) if the block layer does not support its block size or size,
    /// or it accepts less than a page at a time.
    pub(super) fn new(info: &DeviceInfo) -> Result<Self> {
        let grid = Grid::new(info, "exported through ublk", REQUEST_MAX)?;
        let block = info.logical_block;
        Ok(Self {
            grid,
            parameters: Parameters {
                attributes: attributes(info),
                logical_shift: shift(block),
                physical_shift: shift(physical(info)),
                io_opt_shift: shift(physical(info)),
                io_min_shift: shift(physical(info)),
                request_sectors_max: sectors(grid.transfer_max),
                sectors: grid.size / SECTOR,
                discard_granularity: block.0 as u32,
                discard_sectors_max: sectors(info.discard_max.round_down(block)),
                write_zeroes_sectors_max: sectors(ZEROES_MAX.round_down(block)),
            },
        })
    }

    /// Returns the geometry with the size of `other`.
    pub(super) fn sized_as(self, other: &Parameters) -> Self {
        let grid = Grid { size: other.sectors * SECTOR, ..self.grid };
        Self { grid, parameters: Parameters { sectors: other.sectors, ..self.parameters } }
    }

    /// Returns the action for the request `asked`.
    pub(super) fn plan(&self, asked: &Descriptor) -> Plan {
        if asked.kind == Kind::Flush {
            return Plan::Flush;
        }
        if asked.kind == Kind::Other {
            return Plan::Refuse(Errno::EOPNOTSUPP);
        }
        let Some(range) = self.range(asked) else { return Plan::Refuse(Errno::EINVAL) };
        let is_transfer = u64::from(asked.sectors) * SECTOR <= self.grid.transfer_max.0;
        match asked.kind {
            Kind::Read if is_transfer => Plan::Read(range),
            Kind::Write if is_transfer => Plan::Write { range, fua: asked.fua },
            Kind::Discard => Plan::Clear { op: Op::Discard, range },
            Kind::WriteZeroes => {
                let op = Op::WriteZeroes { fua: asked.fua, no_hole: asked.no_unmap, fast_only: false };
                Plan::Clear { op, range }
            }
            _ => Plan::Refuse(Errno::EINVAL),
        }
    }

    /// Returns the requested blocks; `None` if the range is empty, off the grid or outside the device.
    fn range(&self, asked: &Descriptor) -> Option<LbaRange> {
        self.grid.range(asked.start.checked_mul(SECTOR)?, u64::from(asked.sectors) * SECTOR)
    }
}

/// Returns the attributes. A cache is always reported: it may be enabled later without notice to the kernel,
/// and an unneeded flush is cheap.
fn attributes(info: &DeviceInfo) -> u32 {
    let mut attributes = wire::VOLATILE_CACHE;
    for (is_so, attribute) in [(info.fua_native, wire::FUA), (info.revolution.is_some(), wire::ROTATIONAL)] {
        attributes |= if is_so { attribute } else { 0 };
    }
    attributes
}

/// Returns the physical block if the block layer accepts it, else the logical block: it must be a power of
/// two, and not smaller than the logical block.
fn physical(info: &DeviceInfo) -> Bytes {
    let physical = info.physical_block.0;
    let is_possible = physical.is_power_of_two() && physical > info.logical_block.0 && physical <= 1 << 30;
    if is_possible { info.physical_block } else { info.logical_block }
}

fn shift(bytes: Bytes) -> u8 {
    // A count of trailing zeros in 64 bits fits.
    bytes.0.trailing_zeros() as u8
}

/// Converts to sectors, limited to the largest number of whole pages that the field holds.
fn sectors(bytes: Bytes) -> u32 {
    u32::try_from(bytes.0 / SECTOR).unwrap_or(!7)
}

#[cfg(test)]
mod tests {
    use plumb_block::Lba;
    use proptest::prelude::*;

    use super::*;
    use crate::error::ExportError;

    fn geometry(block: u64) -> Geometry {
        let plain = DeviceInfo::plain("a test", Bytes::mib(1), Bytes(block));
        Geometry::new(&DeviceInfo { discard_max: Bytes::kib(64), ..plain }).unwrap()
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
        let parameters = Geometry::new(&info).unwrap().parameters;
        assert_eq!(parameters.attributes, wire::VOLATILE_CACHE | wire::FUA);
        assert_eq!(
            (parameters.logical_shift, parameters.physical_shift, parameters.io_min_shift),
            (9, 12, 12)
        );
        assert_eq!((parameters.sectors, parameters.request_sectors_max), (131_072, 1024));
        assert_eq!(parameters.discard_sectors_max, 0xFFFF_FFF8);
        for (size, block, transfer) in [(1 << 20, 8192, 1 << 20), (0, 512, 1 << 20), (1 << 20, 512, 2048)] {
            let plain = DeviceInfo::plain("a test", Bytes(size), Bytes(block));
            let info = DeviceInfo { transfer_max: Bytes(transfer), ..plain };
            assert!(matches!(Geometry::new(&info), Err(ExportError::Geometry { .. })), "{info:?}");
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
                // Small numbers, which are rare among random ones.
                bytes[0] %= 8;
                bytes[5..8].fill(0);
                bytes[10..16].fill(0);
            }
            let geometry = geometry(1 << block);
            let range = match geometry.plan(&Descriptor::parse(&bytes)) {
                Plan::Read(range) | Plan::Write { range, .. } => {
                    prop_assert!(range.nlb * geometry.grid.block <= geometry.grid.transfer_max.0);
                    range
                }
                Plan::Clear { range, .. } => range,
                Plan::Flush | Plan::Refuse(_) => return Ok(()),
            };
            prop_assert!(range.nlb > 0 && range.end().0 <= geometry.grid.size / geometry.grid.block);
        }
    }
}

//! Translation of kernel requests to device requests: a pure function of the request and the geometry.
//!
//! | asked | becomes |
//! |---|---|
//! | READ, WRITE | one read or write; EINVAL off the grid of logical blocks |
//! | FSYNC | a flush, always |
//! | FALLOCATE 0x3 (punch a hole) | discards if the device promises that discarded blocks read as zeroes; EOPNOTSUPP if it has none; else write-zeroes that may unmap |
//! | FALLOCATE 0x11 (zero a range) | write-zeroes that keep the space |
//! | WRITE to the control file | a call of the function in [`ControlFile`](super::ControlFile); nothing for the device |
//!
//! The loop driver sends a write-zeroes that may unmap as 0x3, like a discard, so the range must read as
//! zeroes afterwards: a discard without a guarantee would expose old data. EOPNOTSUPP disables discards of
//! the loop device, and the block layer then writes zeroes explicitly. FUA never arrives: the block layer
//! sends a write followed by a flush.

use plumb_block::{DeviceInfo, Errno, LbaRange, Op};

use super::wire::{self, Answer, Attributes, CONTROL, Call, DISK, Frame, ROOT, Span};
use crate::block_layer::{Grid, ZEROES_MAX};

/// Geometry that the requests of an attachment are checked against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Geometry {
    pub(super) grid: Grid,
    /// The logical block in bytes.
    pub(super) block: u32,
    punch: Punch,
    /// True if there is a control file.
    has_control: bool,
}

/// Implementation of hole punching.
#[derive(Debug, Clone, Copy)]
enum Punch {
    /// Discards of up to this many blocks, which then read as zeroes.
    Discard { blocks: u64 },
    /// Write-zeroes, because discarded blocks are not guaranteed to read as zeroes.
    WriteZeroes,
    /// Not supported.
    None,
}

/// Action for a request.
#[derive(Debug)]
pub(super) enum Plan {
    /// Do nothing, and send no answer.
    Silence,
    Answer(Answer),
    Refuse(Errno),
    /// Negotiate the protocol.
    Init {
        major: u32,
        minor: u32,
        flags: u64,
    },
    Read(LbaRange),
    Write(LbaRange),
    Flush,
    Zero(Zeroing),
    /// Find the next data or hole.
    Seek {
        offset: u64,
        whence: u32,
    },
    /// Pass the data to the owner of the control file.
    Control {
        length: u32,
    },
}

/// A range to zero in pieces, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Zeroing {
    pub(super) op: Op,
    rest: LbaRange,
    piece_blocks: u64,
}

impl Iterator for Zeroing {
    type Item = LbaRange;

    fn next(&mut self) -> Option<LbaRange> {
        let nlb = self.rest.nlb.min(self.piece_blocks);
        let piece = LbaRange::new(self.rest.lba, nlb);
        self.rest = LbaRange::new(piece.end(), self.rest.nlb - nlb);
        (nlb > 0).then_some(piece)
    }
}

impl Geometry {
    /// Creates the geometry of a device with this grid.
    pub(super) fn new(info: &DeviceInfo, grid: Grid, has_control: bool) -> Self {
        let punch = match info.discard_max.0 / grid.block {
            0 => Punch::None,
            blocks if info.discard_zeroes => Punch::Discard { blocks },
            _ => Punch::WriteZeroes,
        };
        // The block is at most a page, so it fits.
        Self { grid, block: grid.block as u32, punch, has_control }
    }

    pub(super) fn plan(&self, frame: &Frame<'_>) -> Plan {
        let Some(call) = frame.call else { return Plan::Refuse(Errno::EINVAL) };
        match call {
            Call::Init { major, minor, flags } => Plan::Init { major, minor, flags },
            Call::Forget => Plan::Silence,
            Call::Lookup { name } if frame.node == ROOT => {
                if name == wire::DISK_NAME.as_bytes() {
                    Plan::Answer(Answer::entry(&self.disk()))
                } else if self.has_control && name == wire::CONTROL_NAME.as_bytes() {
                    Plan::Answer(Answer::entry(&Attributes::control(self.block)))
                } else {
                    Plan::Refuse(ENOENT)
                }
            }
            Call::Lookup { .. } => Plan::Refuse(ENOENT),
            Call::Getattr => match frame.node {
                ROOT => Plan::Answer(Answer::attributes(&Attributes::root(self.block))),
                DISK => Plan::Answer(Answer::attributes(&self.disk())),
                CONTROL => Plan::Answer(Answer::attributes(&Attributes::control(self.block))),
                _ => Plan::Refuse(ENOENT),
            },
            Call::Statfs => Plan::Answer(Answer::statfs(self.grid.size, self.block)),
            Call::Readdir { offset, size } => Plan::Answer(Answer::directory(offset, size, self.has_control)),
            Call::Release => Plan::Answer(Answer::default()),
            Call::Other => Plan::Refuse(ENOSYS),
            _ if frame.node == CONTROL => self.control(call),
            Call::Setattr => Plan::Refuse(ENOSYS),
            _ if frame.node != DISK => Plan::Refuse(Errno::EINVAL),
            Call::Open => Plan::Answer(Answer::open(DISK)),
            Call::Read(span) => self.read(span),
            Call::Write(span) => self.range(span).map_or(Plan::Refuse(Errno::EINVAL), Plan::Write),
            Call::Fsync => Plan::Flush,
            Call::Fallocate { span, mode } => self.zero(span, mode),
            Call::Lseek { offset, whence } => Plan::Seek { offset, whence },
        }
    }

    /// Plans a request for the control file. Truncation by shells and syncs by some programs succeed without
    /// effect, because ENOSYS would disable all later fsyncs of the connection.
    fn control(&self, call: Call<'_>) -> Plan {
        match call {
            Call::Open => Plan::Answer(Answer::open(CONTROL)),
            Call::Setattr => Plan::Answer(Answer::attributes(&Attributes::control(self.block))),
            Call::Fsync => Plan::Answer(Answer::default()),
            Call::Write(Span { length, .. }) => {
                u32::try_from(length).map_or(Plan::Refuse(Errno::EINVAL), |length| Plan::Control { length })
            }
            _ => Plan::Refuse(Errno::EINVAL),
        }
    }

    fn disk(&self) -> Attributes {
        Attributes::disk(self.grid.size, self.block)
    }

    /// Plans a read; one across the end is shortened.
    fn read(&self, span: Span) -> Plan {
        let length = span.length.min(self.grid.size.saturating_sub(span.offset));
        if length == 0 {
            return Plan::Answer(Answer::default());
        }
        self.range(Span { length, ..span }).map_or(Plan::Refuse(Errno::EINVAL), Plan::Read)
    }

    fn zero(&self, span: Span, mode: u32) -> Plan {
        let Some(rest) = self.range(span) else { return Plan::Refuse(Errno::EINVAL) };
        let zeroes = |no_hole| Op::WriteZeroes { fua: false, no_hole, fast_only: false };
        let zeroes_blocks = (ZEROES_MAX.0 / u64::from(self.block)).max(1);
        let (op, piece_blocks) = match (mode, self.punch) {
            (wire::PUNCH, Punch::Discard { blocks }) => (Op::Discard, blocks),
            (wire::PUNCH, Punch::WriteZeroes) => (zeroes(false), zeroes_blocks),
            (wire::ZERO, _) => (zeroes(true), zeroes_blocks),
            _ => return Plan::Refuse(Errno::EOPNOTSUPP),
        };
        Plan::Zero(Zeroing { op, rest, piece_blocks })
    }

    fn range(&self, span: Span) -> Option<LbaRange> {
        self.grid.range(span.offset, span.length)
    }
}

pub(super) const ENOENT: Errno = Errno(2);
/// No such address: the result of an unsuccessful seek.
pub(super) const ENXIO: Errno = Errno(6);
const ENOSYS: Errno = Errno(38);

#[cfg(test)]
mod tests {
    use plumb_block::{Bytes, Lba};

    use super::*;

    fn geometry(discard_max: u64, discard_zeroes: bool) -> Geometry {
        let plain = DeviceInfo::plain("a test", Bytes::mib(1), Bytes(4096));
        let info = DeviceInfo { discard_max: Bytes(discard_max), discard_zeroes, ..plain };
        let grid = Grid::new(&info, "attached", Bytes::mib(1)).unwrap();
        Geometry::new(&info, grid, false)
    }

    fn plan(geometry: Geometry, call: Call<'_>) -> Plan {
        geometry.plan(&Frame { unique: 1, node: DISK, call: Some(call) })
    }

    fn pieces(plan: &Plan) -> (Op, Vec<(u64, u64)>) {
        let Plan::Zero(zeroing) = plan else { panic!("{plan:?} zeroes nothing") };
        (zeroing.op, (*zeroing).map(|piece| (piece.lba.0, piece.nlb)).collect())
    }

    #[test]
    fn holes_are_discards_only_where_these_read_as_zeroes() {
        let call = Call::Fallocate { span: Span { offset: 8192, length: 20480 }, mode: wire::PUNCH };
        assert_eq!(pieces(&plan(geometry(9000, true), call)), (Op::Discard, vec![(2, 2), (4, 2), (6, 1)]));
        let zeroes = Op::WriteZeroes { fua: false, no_hole: false, fast_only: false };
        assert_eq!(pieces(&plan(geometry(9000, false), call)), (zeroes, vec![(2, 5)]));
        for without in [geometry(0, true), geometry(4095, true)] {
            assert!(matches!(plan(without, call), Plan::Refuse(Errno::EOPNOTSUPP)));
        }
        let keep = Op::WriteZeroes { fua: false, no_hole: true, fast_only: false };
        let call = Call::Fallocate { span: Span { offset: 0, length: 4096 }, mode: wire::ZERO };
        assert_eq!(pieces(&plan(geometry(9000, true), call)), (keep, vec![(0, 1)]));
    }

    #[test]
    fn what_is_off_the_grid_or_beyond_the_end_is_refused() {
        let geometry = geometry(0, false);
        for (offset, length) in [
            (512, 4096),
            (0, 512),
            (1 << 20, 4096),
            ((1 << 20) - 4096, 8192),
            (u64::MAX - 4095, 4096),
            (0, 0),
        ] {
            let span = Span { offset, length };
            for call in [Call::Write(span), Call::Fallocate { span, mode: wire::PUNCH }] {
                let plan = plan(geometry, call);
                assert!(matches!(plan, Plan::Refuse(Errno::EINVAL)), "{call:?} became {plan:?}");
            }
        }
    }

    #[test]
    fn a_read_over_the_end_gets_what_is_there() {
        let span = Span { offset: (1 << 20) - 4096, length: 131_072 };
        let Plan::Read(range) = plan(geometry(0, false), Call::Read(span)) else { panic!("no read") };
        assert_eq!(range, LbaRange::new(Lba(255), 1));
        let span = Span { offset: 1 << 20, length: 4096 };
        assert!(
            matches!(plan(geometry(0, false), Call::Read(span)), Plan::Answer(answer) if answer.bytes().is_empty())
        );
    }
}

//! Negotiated properties of an export, and the translation of requests to commands.

use plumb_block::{Bytes, DeviceInfo, Errno, Op, Request, VolatileCache};

use crate::nbd::wire::{Command, CommandFlags, PAYLOAD_MAX_BYTES, TransmissionFlags};

/// Minimum logical block size, guaranteed to users of a device.
const BLOCK_MIN_BYTES: u64 = 512;
/// Maximum accepted block size.
const BLOCK_MAX_BYTES: u32 = 1 << 20;
/// Maximum size of a discard: a multiple of any block, and well below the 32-bit limit of the field.
const TRIM_MAX_BYTES: u64 = 1 << 30;
/// Maximum size of a piece of zeroes that must be sent as data.
const ZEROES_MAX_BYTES: u64 = 1 << 20;

/// Block sizes reported by a server, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockSizes {
    pub(super) minimum: u32,
    pub(super) preferred: u32,
    pub(super) maximum: u32,
}

/// Sizes defined by the protocol for a server that reports none.
const UNSTATED: BlockSizes = BlockSizes { minimum: 1, preferred: 4096, maximum: PAYLOAD_MAX_BYTES };

/// A negotiated export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Export {
    pub(super) flags: TransmissionFlags,
    /// True if reads are answered in chunks.
    pub(super) is_structured: bool,
    /// Number of `base:allocation`, if supported by the server.
    pub(super) allocation_context: Option<u32>,
    size: u64,
    logical_block: u64,
    physical_block: u64,
    transfer_max: u64,
}

/// Command for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) command: Command,
    pub(super) flags: CommandFlags,
    pub(super) offset: u64,
    pub(super) length: u64,
    /// Maximum length of a piece.
    pub(super) piece_max: u64,
    /// True if a flush must follow because FUA is not supported.
    pub(super) then_flush: bool,
    /// True if zeroes must be sent as data.
    pub(super) sends_zeroes: bool,
}

impl Plan {
    pub(super) fn new(command: Command, offset: u64, length: u64, piece_max: u64) -> Self {
        let flags = CommandFlags::default();
        Self { command, flags, offset, length, piece_max, then_flush: false, sends_zeroes: false }
    }
}

impl Export {
    /// Creates an export of `size` bytes.
    ///
    /// # Errors
    /// If the numbers are invalid; with a description.
    pub(super) fn new(
        size: u64,
        flags: TransmissionFlags,
        sizes: Option<BlockSizes>,
    ) -> Result<Self, String> {
        let BlockSizes { minimum, preferred, maximum } = sizes.unwrap_or(UNSTATED);
        if !minimum.is_power_of_two() || minimum > BLOCK_MAX_BYTES || maximum < minimum {
            return Err(format!(
                "it demands blocks of {minimum} to {maximum} bytes; expected a power of two of at most 1 MiB, and a \
                 larger maximum"
            ));
        }
        let logical_block = u64::from(minimum).max(BLOCK_MIN_BYTES);
        let transfer_max = u64::from(maximum.min(PAYLOAD_MAX_BYTES));
        let transfer_max = transfer_max - transfer_max % logical_block;
        let size = size - size % logical_block;
        if size == 0 || transfer_max == 0 || size > i64::MAX as u64 {
            return Err(format!(
                "its size of {size} bytes and its largest transfer of {maximum} bytes cannot be used with blocks of \
                 {logical_block} bytes"
            ));
        }
        let believable = preferred.is_power_of_two() && preferred <= BLOCK_MAX_BYTES;
        let physical_block = if believable { u64::from(preferred).max(logical_block) } else { logical_block };
        Ok(Self {
            flags,
            is_structured: false,
            allocation_context: None,
            size,
            logical_block,
            physical_block,
            transfer_max,
        })
    }

    fn can(&self, flags: TransmissionFlags) -> bool {
        self.flags.has(flags)
    }

    /// Returns true if a flush on one connection covers all.
    pub(super) fn is_multi_conn(&self) -> bool {
        self.can(TransmissionFlags::CAN_MULTI_CONN)
    }

    /// Returns true if only reads and flushes are permitted.
    pub(super) fn is_read_only(&self) -> bool {
        self.can(TransmissionFlags::READ_ONLY)
    }

    /// Returns the logical block in bytes.
    pub(super) fn logical_block(&self) -> u64 {
        self.logical_block
    }

    /// Describes the export as a device called `name`.
    ///
    /// A server that supports FLUSH is assumed to have an enabled volatile cache. Without FLUSH nothing is
    /// known about durability, so the cache is unknown.
    pub(super) fn info(&self, name: &str) -> DeviceInfo {
        let can_trim = self.can(TransmissionFlags::SEND_TRIM) && !self.is_read_only();
        let cached = self.can(TransmissionFlags::SEND_FLUSH);
        DeviceInfo {
            physical_block: Bytes(self.physical_block),
            // Sockets accept data at any address.
            dma_alignment: Bytes(1),
            transfer_max: Bytes(self.transfer_max),
            discard_max: Bytes(if can_trim { self.size.min(TRIM_MAX_BYTES) } else { 0 }),
            volatile_cache: if cached { VolatileCache::Enabled } else { VolatileCache::Unknown },
            fua_native: self.can(TransmissionFlags::SEND_FUA),
            is_read_only: self.is_read_only(),
            ..DeviceInfo::plain(name, Bytes(self.size), Bytes(self.logical_block))
        }
    }

    /// Returns the command for `request`.
    ///
    /// # Errors
    /// EINVAL outside the device or off its grid, EOPNOTSUPP and EROFS for operations that the export does
    /// not support.
    pub(super) fn plan(&self, request: &Request) -> Result<Plan, Errno> {
        if request.op == Op::Flush {
            return self.plan_flush();
        }
        let (offset, length) = self.place(request)?;
        if self.is_read_only() && request.op != Op::Read {
            return Err(Errno::EROFS);
        }
        let plan = |command, piece_max| Plan::new(command, offset, length, piece_max);
        match request.op {
            Op::Flush => self.plan_flush(),
            Op::Read => Ok(plan(Command::READ, self.transfer_max)),
            Op::Write { fua } => self.with_fua(plan(Command::WRITE, self.transfer_max), fua),
            Op::Discard if self.can(TransmissionFlags::SEND_TRIM) => Ok(plan(Command::TRIM, TRIM_MAX_BYTES)),
            Op::Discard => Err(Errno::EOPNOTSUPP),
            Op::WriteZeroes { fua, no_hole, fast_only } => {
                let mut plan = if self.can(TransmissionFlags::SEND_WRITE_ZEROES) {
                    plan(Command::WRITE_ZEROES, self.transfer_max)
                } else {
                    let piece_max = self.transfer_max.min(ZEROES_MAX_BYTES.max(self.logical_block));
                    Plan { sends_zeroes: true, ..plan(Command::WRITE, piece_max) }
                };
                if fast_only && !self.can(TransmissionFlags::SEND_FAST_ZERO) {
                    return Err(Errno::EOPNOTSUPP);
                }
                if !plan.sends_zeroes {
                    plan.flags.0 |= if no_hole { CommandFlags::NO_HOLE.0 } else { 0 };
                    plan.flags.0 |= if fast_only { CommandFlags::FAST_ZERO.0 } else { 0 };
                } else if fast_only {
                    return Err(Errno::EOPNOTSUPP);
                }
                self.with_fua(plan, fua)
            }
        }
    }

    fn plan_flush(&self) -> Result<Plan, Errno> {
        if !self.can(TransmissionFlags::SEND_FLUSH) {
            return Err(Errno::EOPNOTSUPP);
        }
        Ok(Plan::new(Command::FLUSH, 0, 0, 0))
    }

    fn with_fua(&self, mut plan: Plan, fua: bool) -> Result<Plan, Errno> {
        if !fua {
            return Ok(plan);
        }
        if self.can(TransmissionFlags::SEND_FUA) {
            plan.flags = plan.flags.with(CommandFlags::FUA);
        } else if self.can(TransmissionFlags::SEND_FLUSH) {
            plan.then_flush = true;
        } else {
            return Err(Errno::EOPNOTSUPP);
        }
        Ok(plan)
    }

    /// Returns offset and length of a request in bytes, if its payload fits.
    fn place(&self, request: &Request) -> Result<(u64, u64), Errno> {
        let block = self.logical_block;
        let range = request.range;
        let end = range.lba.0.checked_add(range.nlb).ok_or(Errno::EINVAL)?;
        if range.nlb == 0 || end > self.size / block {
            return Err(Errno::EINVAL);
        }
        let length = range.nlb * block;
        if request.carries(Bytes(length)) { Ok((range.lba.0 * block, length)) } else { Err(Errno::EINVAL) }
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::{Lba, LbaRange, Payload, Tag};

    use super::*;

    const ALL: TransmissionFlags = TransmissionFlags(0b1111_1110_1101);

    fn export(flags: TransmissionFlags) -> Export {
        let sizes = BlockSizes { minimum: 1, preferred: 4096, maximum: u32::MAX };
        Export::new(1_000_000, flags, Some(sizes)).unwrap()
    }

    fn request(op: Op) -> Request {
        Request { tag: Tag(1), op, range: LbaRange::new(Lba(2), 4), payload: Payload::None, deadline: None }
    }

    #[test]
    fn sizes_that_cannot_be_are_refused_and_odd_ones_rounded() {
        let flags = TransmissionFlags::HAS_FLAGS;
        let info = export(flags).info("x");
        assert_eq!(
            (info.size, info.logical_block, info.transfer_max),
            (Bytes(999_936), Bytes(512), Bytes::mib(32))
        );
        for (minimum, maximum) in [(3, 4096), (0, 4096), (4096, 512), (1 << 21, 1 << 25), (1, 100)] {
            let sizes = BlockSizes { minimum, preferred: 4096, maximum };
            assert!(Export::new(1 << 30, flags, Some(sizes)).is_err(), "{sizes:?}");
        }
        assert!(Export::new(511, flags, None).is_err() && Export::new(u64::MAX, flags, None).is_err());
    }

    #[test]
    fn without_flush_nothing_is_claimed_about_the_cache() {
        assert_eq!(export(TransmissionFlags::HAS_FLAGS).info("x").volatile_cache, VolatileCache::Unknown);
        assert_eq!(export(ALL).info("x").volatile_cache, VolatileCache::Enabled);
        let read_only = TransmissionFlags(ALL.0 | TransmissionFlags::READ_ONLY.0);
        assert!(export(read_only).info("x").is_read_only && !export(ALL).info("x").is_read_only);
        let bare = export(TransmissionFlags::HAS_FLAGS);
        assert_eq!(bare.plan(&request(Op::Flush)), Err(Errno::EOPNOTSUPP));
        let zeroes = Op::WriteZeroes { fua: true, no_hole: false, fast_only: false };
        assert_eq!(bare.plan(&request(zeroes)), Err(Errno::EOPNOTSUPP), "FUA without FUA and without flush");
    }

    #[test]
    fn fua_is_the_servers_or_a_flush() {
        let zeroes = Op::WriteZeroes { fua: true, no_hole: true, fast_only: false };
        let native = export(ALL).plan(&request(zeroes)).unwrap();
        assert_eq!(native.flags, CommandFlags::FUA.with(CommandFlags::NO_HOLE));
        assert!(!native.then_flush && !native.sends_zeroes);
        let emulated = export(TransmissionFlags::SEND_FLUSH).plan(&request(zeroes)).unwrap();
        assert_eq!((emulated.command, emulated.flags), (Command::WRITE, CommandFlags::default()));
        assert!(emulated.then_flush && emulated.sends_zeroes);
    }

    #[test]
    fn what_an_export_cannot_do_is_refused() {
        let fast = Op::WriteZeroes { fua: false, no_hole: false, fast_only: true };
        let no_fast = export(TransmissionFlags::SEND_WRITE_ZEROES);
        assert_eq!(no_fast.plan(&request(fast)), Err(Errno::EOPNOTSUPP));
        assert!(export(ALL).plan(&request(fast)).is_ok());
        assert_eq!(no_fast.plan(&request(Op::Discard)), Err(Errno::EOPNOTSUPP));
        assert_eq!(export(TransmissionFlags::READ_ONLY).plan(&request(Op::Discard)), Err(Errno::EROFS));
        assert_eq!(export(ALL).plan(&request(Op::Write { fua: false })), Err(Errno::EINVAL), "without bytes");
    }
}

//! Meaning of a request for the device, or the reason to refuse it. Pure.

use plumb_block::{DeviceInfo, Lba, LbaRange};

use crate::nbd::server::handshake::Session;
use crate::nbd::wire::{Command, CommandFlags, PAYLOAD_MAX_BYTES, RequestHeader, WireErrno};

/// Properties of the device and the session for checking requests.
pub(super) struct Rules {
    /// Device properties at the start of the session.
    pub(super) info: DeviceInfo,
    is_structured: bool,
    has_allocation: bool,
}

/// Action for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    Read(LbaRange),
    Write { range: LbaRange, fua: bool },
    Flush,
    Trim { range: LbaRange, fua: bool },
    Zeroes { range: LbaRange, fua: bool, no_hole: bool, fast_only: bool },
    Status { range: LbaRange, is_one: bool },
    Leave,
}

/// Reason to refuse a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) errno: WireErrno,
    /// Message for users.
    pub(super) why: &'static str,
}

const fn invalid(why: &'static str) -> Refusal {
    Refusal { errno: WireErrno::EINVAL, why }
}

impl Rules {
    pub(super) fn new(session: &Session) -> Self {
        let served = &session.served;
        Self {
            info: served.device.device.info(),
            is_structured: session.is_structured,
            has_allocation: session.has_allocation,
        }
    }

    /// Returns the action for `header`.
    pub(super) fn plan(&self, header: &RequestHeader) -> Result<Plan, Refusal> {
        let flags = header.flags;
        let fua = flags.has(CommandFlags::FUA);
        self.check_flags(header)?;
        match header.command {
            Command::DISC => Ok(Plan::Leave),
            Command::FLUSH if header.offset == 0 && header.length == 0 => Ok(Plan::Flush),
            Command::FLUSH => Err(invalid("a flush has neither offset nor length")),
            Command::READ => self.payload_range(header).map(Plan::Read),
            Command::WRITE => {
                self.check_writable()?;
                Ok(Plan::Write { range: self.payload_range(header)?, fua })
            }
            Command::TRIM => {
                self.check_writable()?;
                if self.info.discard_max < self.info.logical_block {
                    return Err(Refusal { errno: WireErrno::ENOTSUP, why: "the device does not discard" });
                }
                Ok(Plan::Trim { range: self.range(header)?, fua })
            }
            Command::WRITE_ZEROES => {
                self.check_writable()?;
                let no_hole = flags.has(CommandFlags::NO_HOLE);
                let fast_only = flags.has(CommandFlags::FAST_ZERO);
                Ok(Plan::Zeroes { range: self.range(header)?, fua, no_hole, fast_only })
            }
            Command::BLOCK_STATUS if self.has_allocation => {
                Ok(Plan::Status { range: self.range(header)?, is_one: flags.has(CommandFlags::REQ_ONE) })
            }
            Command::BLOCK_STATUS => Err(invalid("no metadata context was negotiated")),
            _ => Err(invalid("this server does not know the command")),
        }
    }

    /// Checks the flags: FUA is valid for every command, others only for some.
    fn check_flags(&self, header: &RequestHeader) -> Result<(), Refusal> {
        let own = match header.command {
            Command::READ if self.is_structured => CommandFlags::DF,
            Command::WRITE_ZEROES => CommandFlags::NO_HOLE.with(CommandFlags::FAST_ZERO),
            Command::BLOCK_STATUS => CommandFlags::REQ_ONE,
            _ => CommandFlags::default(),
        };
        if header.flags.has_beyond(own.with(CommandFlags::FUA)) {
            return Err(invalid("a flag that the command does not have"));
        }
        Ok(())
    }

    const fn check_writable(&self) -> Result<(), Refusal> {
        if self.info.is_read_only {
            return Err(Refusal { errno: WireErrno::EPERM, why: "the export is read-only" });
        }
        Ok(())
    }

    fn payload_range(&self, header: &RequestHeader) -> Result<LbaRange, Refusal> {
        if header.length > PAYLOAD_MAX_BYTES {
            return Err(invalid("more than 32 MiB at once"));
        }
        self.range(header)
    }

    /// Returns the blocks of a request. Beyond the end, commands that need space fail with no space, as the
    /// protocol demands.
    fn range(&self, header: &RequestHeader) -> Result<LbaRange, Refusal> {
        let block = self.info.logical_block.0;
        let length = u64::from(header.length);
        if length == 0 {
            return Err(invalid("a length of zero"));
        }
        if !header.offset.is_multiple_of(block) || !length.is_multiple_of(block) {
            return Err(invalid("off the grid of logical blocks"));
        }
        let range = LbaRange::new(Lba(header.offset / block), length / block);
        if self.info.holds(range) {
            return Ok(range);
        }
        let needs_space = matches!(header.command, Command::WRITE | Command::WRITE_ZEROES);
        let errno = if needs_space { WireErrno::ENOSPC } else { WireErrno::EINVAL };
        Err(Refusal { errno, why: "past the end of the export" })
    }
}

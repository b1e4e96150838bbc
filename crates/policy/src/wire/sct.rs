//! SMART Command Transport: status, and Feature Control of the write cache. ACS-4 8 (8.3.5 Feature Control), log E0h.
//!
//! A command is a block written to log E0h, in words, little endian:
//! ```text
//! word 0 action code (4: Feature Control)   1 function (1 set, 2 return state, 3 return options)
//!      2 feature code (1: write cache)      3 state   4 option flags (bit 0: kept over a power cycle)
//! ```
//! State and options come back in the COUNT and LBA registers.

use super::little;
use super::sense::AtaStatus;

/// The log that carries SCT commands and status.
pub const LOG: u8 = 0xe0;
const BLOCK_BYTES: usize = 512;

/// Who decides on the write cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteCache {
    /// SET FEATURES does.
    AtaControlled,
    /// On, whatever SET FEATURES says: it is accepted and ignored.
    ForcedOn,
    /// Off, in the same way.
    ForcedOff,
}

impl WriteCache {
    /// The state's number. ACS-4 table 196.
    pub const fn code(self) -> u16 {
        match self {
            Self::AtaControlled => 1,
            Self::ForcedOn => 2,
            Self::ForcedOff => 3,
        }
    }

    /// The state with this number.
    pub const fn from_code(code: u16) -> Option<Self> {
        match code {
            1 => Some(Self::AtaControlled),
            2 => Some(Self::ForcedOn),
            3 => Some(Self::ForcedOff),
            _ => None,
        }
    }

    /// As it is written in documents.
    pub const fn word(self) -> &'static str {
        match self {
            Self::AtaControlled => "ata-controlled",
            Self::ForcedOn => "forced-on",
            Self::ForcedOff => "forced-off",
        }
    }
}

/// The block that sets the state; `kept` over a power cycle.
pub fn set(state: WriteCache, kept: bool) -> Vec<u8> {
    block([4, 1, 1, state.code(), u16::from(kept)])
}

/// The block that asks for the state.
pub fn ask_state() -> Vec<u8> {
    block([4, 2, 1, 0, 0])
}

fn block(words: [u16; 5]) -> Vec<u8> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(BLOCK_BYTES, 0);
    bytes
}

/// The state in the registers after [`ask_state`].
pub fn state(registers: AtaStatus) -> Option<WriteCache> {
    WriteCache::from_code(u16::from(registers.count) | u16::from(registers.lba_low) << 8)
}

/// What a command block asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Set the state of the write cache, kept or not.
    Set(WriteCache, bool),
    /// Return it.
    AskState,
    /// Return the options.
    AskOptions,
}

/// Reads a command block; `None` if it is another command.
pub fn read(block: &[u8]) -> Option<Command> {
    let word = |at: usize| little::<2>(block, at * 2);
    if (word(0)?, word(2)?) != (4, 1) {
        return None;
    }
    match word(1)? {
        1 => Some(Command::Set(WriteCache::from_code(word(3)? as u16)?, word(4)? & 1 == 1)),
        2 => Some(Command::AskState),
        3 => Some(Command::AskOptions),
        _ => None,
    }
}

/// The SCT status response, the log read. ACS-4 8.2.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Word 0, the format: 2 or 3.
    pub format: u16,
    /// Byte 10: what the drive does; 5 is an SCT command in the background.
    pub device_state: u8,
    /// Bytes 14-15, the extended status: FFFFh while a command runs, 0 after success.
    pub extended_status: u16,
    /// Bytes 16-17, the action code of the last command.
    pub action: u16,
    /// Bytes 18-19, its function.
    pub function: u16,
}

/// Reads the status; `None` if it is too short or of an unknown format.
pub fn status(bytes: &[u8]) -> Option<Status> {
    if bytes.len() < BLOCK_BYTES {
        return None;
    }
    let format = little::<2>(bytes, 0)? as u16;
    matches!(format, 2 | 3).then_some(Status {
        format,
        device_state: *bytes.get(10)?,
        extended_status: little::<2>(bytes, 14)? as u16,
        action: little::<2>(bytes, 16)? as u16,
        function: little::<2>(bytes, 18)? as u16,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_as_they_were_made() {
        for state in [WriteCache::AtaControlled, WriteCache::ForcedOn, WriteCache::ForcedOff] {
            assert_eq!(read(&set(state, true)), Some(Command::Set(state, true)));
            assert_eq!(WriteCache::from_code(state.code()), Some(state));
        }
        assert_eq!(read(&ask_state()), Some(Command::AskState));
        assert_eq!(&set(WriteCache::ForcedOff, true)[..10], [4, 0, 1, 0, 1, 0, 3, 0, 1, 0]);
        assert_eq!(read(&[0; 512]), None);
    }

    #[test]
    fn the_state_is_in_the_registers() {
        let registers = AtaStatus { error: 0, count: 2, lba_low: 0, lba_mid: 0, lba_high: 0, status: 0x50 };
        assert_eq!(state(registers), Some(WriteCache::ForcedOn));
        assert_eq!(state(AtaStatus { lba_low: 1, ..registers }), None);
        let mut bytes = vec![0_u8; 512];
        bytes[0] = 3;
        bytes[14..16].fill(0xff);
        assert_eq!(status(&bytes).map(|status| status.extended_status), Some(0xffff));
        bytes[0] = 9;
        assert_eq!(status(&bytes), None);
    }
}

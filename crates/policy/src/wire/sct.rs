//! SMART Command Transport: status, and Feature Control of the write cache. ACS-4 8 (8.3.5 Feature Control),
//! log E0h.
//!
//! A command is a block written to log E0h, in words, little endian:
//! ```text
//! word 0 action code (4: Feature Control)   1 function (1 set, 2 return state, 3 return options)
//!      2 feature code (1: write cache)      3 state   4 option flags (bit 0: kept over a power cycle)
//! ```
//! State and options are returned in the COUNT and LBA registers.

use super::little;
use plumb_linux::command::sense::AtaStatus;

/// Log for SCT commands and status.
pub const LOG: u8 = 0xe0;
const BLOCK_BYTES: usize = 512;

/// Control of the write cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteCache {
    /// By SET FEATURES.
    AtaControlled,
    /// Forced on: the drive accepts SET FEATURES but ignores it.
    ForcedOn,
    /// Forced off: the drive accepts SET FEATURES but ignores it.
    ForcedOff,
}

impl WriteCache {
    /// Returns the state's code. ACS-4 table 196.
    pub const fn code(self) -> u16 {
        match self {
            Self::AtaControlled => 1,
            Self::ForcedOn => 2,
            Self::ForcedOff => 3,
        }
    }

    /// Returns the state with this code.
    pub(crate) const fn from_code(code: u16) -> Option<Self> {
        match code {
            1 => Some(Self::AtaControlled),
            2 => Some(Self::ForcedOn),
            3 => Some(Self::ForcedOff),
            _ => None,
        }
    }

    /// Returns the state's name in documents.
    pub const fn word(self) -> &'static str {
        match self {
            Self::AtaControlled => "ata-controlled",
            Self::ForcedOn => "forced-on",
            Self::ForcedOff => "forced-off",
        }
    }
}

/// Creates the block that sets the state, saved across a power cycle if `kept`.
pub fn set(state: WriteCache, kept: bool) -> Vec<u8> {
    block([4, 1, 1, state.code(), u16::from(kept)])
}

/// Creates the block that queries the state.
pub fn ask_state() -> Vec<u8> {
    block([4, 2, 1, 0, 0])
}

fn block(words: [u16; 5]) -> Vec<u8> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(BLOCK_BYTES, 0);
    bytes
}

/// Returns the state in the registers after [`ask_state`].
pub fn state(registers: AtaStatus) -> Option<WriteCache> {
    WriteCache::from_code(u16::from(registers.count) | u16::from(registers.lba_low) << 8)
}

/// Returns the state that a command block sets, and whether it is saved; `None` if it is another command.
pub fn read_set(block: &[u8]) -> Option<(WriteCache, bool)> {
    let word = |at: usize| little::<2>(block, at * 2);
    if (word(0)?, word(1)?, word(2)?) != (4, 1, 1) {
        return None;
    }
    Some((WriteCache::from_code(word(3)? as u16)?, word(4)? & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_as_they_were_made() {
        for state in [WriteCache::AtaControlled, WriteCache::ForcedOn, WriteCache::ForcedOff] {
            assert_eq!(read_set(&set(state, true)), Some((state, true)));
            assert_eq!(WriteCache::from_code(state.code()), Some(state));
        }
        assert_eq!(read_set(&ask_state()), None);
        assert_eq!(&set(WriteCache::ForcedOff, true)[..10], [4, 0, 1, 0, 1, 0, 3, 0, 1, 0]);
        assert_eq!(read_set(&[0; 512]), None);
    }

    #[test]
    fn the_state_is_in_the_registers() {
        let registers = AtaStatus { error: 0, count: 2, lba_low: 0, status: 0x50 };
        assert_eq!(state(registers), Some(WriteCache::ForcedOn));
        assert_eq!(state(AtaStatus { lba_low: 1, ..registers }), None);
    }
}

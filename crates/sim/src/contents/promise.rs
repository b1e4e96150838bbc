//! What a drive is made of and what it keeps of what it says: [`Shape`], [`Promise`], [`Backing`], and the data that
//! comes with a command.

use std::fs::File;

use plumb_block::{Bytes, Errno, Pattern};

/// The smallest logical block of a drive.
const LOGICAL_BLOCK_MIN: Bytes = Bytes(512);
/// The largest logical block of a drive.
const LOGICAL_BLOCK_MAX: Bytes = Bytes::kib(64);
/// The largest drive: 1 PiB.
const SIZE_MAX: Bytes = Bytes(1 << 50);

/// The geometry of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The unit of addressing, and of tearing: a power of two from 512 bytes to 64 KiB.
    pub logical_block: Bytes,
    /// How many of them; at most 1 PiB together.
    pub blocks: u64,
}

impl Shape {
    /// Refuses what cannot be a drive.
    pub(super) fn check(self) -> Result<Self, ContentsError> {
        let block = self.logical_block;
        let fits = block >= LOGICAL_BLOCK_MIN && block <= LOGICAL_BLOCK_MAX && block.0.is_power_of_two();
        if !fits {
            return Err(ContentsError::LogicalBlock { given: block });
        }
        if self.blocks == 0 || self.blocks > SIZE_MAX.0 / block.0 {
            return Err(ContentsError::Size { blocks: self.blocks, logical_block: block });
        }
        Ok(self)
    }
}

/// Whether a drive does what a command asks for, or only answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FuaKept {
    /// It does.
    #[default]
    Honoured,
    /// It answers as if it had.
    Ignored,
}

/// Which of the answered flushes took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlushKept {
    /// All.
    #[default]
    Always,
    /// None: the drive lies.
    Never,
    /// A flush takes effect only when this many more were answered: at a cut the last ones are found to be lies.
    AllButLast(u32),
}

/// What the drive keeps of what it says. An honest drive keeps all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// Whether answered writes are at risk: there is a cache, it is on, and nothing protects it. Without it what
    /// completes is durable, and only what is in flight is at risk.
    pub volatile: bool,
    /// FUA.
    pub fua: FuaKept,
    /// FLUSH.
    pub flush: FlushKept,
    /// Whether a discarded block reads as zeroes. If not, a discard may take effect or be ignored.
    pub discard_zeroes: bool,
    /// How long a write may be to be all or nothing across a cut; one logical block always is.
    pub atomic_unit: Bytes,
    /// A write that crosses a multiple of this is not atomic; 0: there is no such boundary.
    pub atomic_boundary: Bytes,
}

impl Promise {
    /// A drive with its volatile cache on that does what it says.
    pub const fn volatile(logical_block: Bytes) -> Self {
        Self {
            volatile: true,
            fua: FuaKept::Honoured,
            flush: FlushKept::Always,
            discard_zeroes: true,
            atomic_unit: logical_block,
            atomic_boundary: Bytes(0),
        }
    }

    /// A drive without a volatile cache, or with one that is off or protected.
    pub const fn durable(logical_block: Bytes) -> Self {
        Self { volatile: false, ..Self::volatile(logical_block) }
    }
}

/// The data of a command. Bytes are copied.
#[derive(Debug, Clone, Copy)]
pub enum Data<'a> {
    /// None: a flush, a discard, a write of zeroes.
    None,
    /// Bytes that regenerate; kept as such.
    Pattern(Pattern),
    /// Bytes, as long as the range.
    Bytes(&'a [u8]),
}

/// Where what is durable is kept. What is not durable is always in memory.
#[derive(Debug, Default)]
pub enum Backing {
    /// In memory, patterns as such.
    #[default]
    Memory,
    /// In a file, sparse, patterns made into bytes: what the file holds is on the medium, so that killing the process
    /// is a power cut (one that loses all that is at risk). The caller opens it, makes it as long as the drive and
    /// holds it alone.
    File(File),
    /// Nowhere: nothing is kept and all reads as zeroes.
    Nothing,
}

/// Why there can be no such contents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentsError {
    /// The logical block is none.
    #[error("a logical block of {given} is not possible: use a power of two from 512 bytes to 64 KiB")]
    LogicalBlock {
        /// What was asked for.
        given: Bytes,
    },
    /// The drive is too small or too large.
    #[error("{blocks} blocks of {logical_block} are not possible: a drive has from one block to 1 PiB")]
    Size {
        /// What was asked for.
        blocks: u64,
        /// The length of each.
        logical_block: Bytes,
    },
    /// The atomic unit or its boundary is no multiple of a logical block.
    #[error(
        "an atomic unit of {unit} with a boundary of {boundary} is not possible: use multiples of {logical_block}"
    )]
    Atomic {
        /// The unit.
        unit: Bytes,
        /// The boundary.
        boundary: Bytes,
        /// What both must be multiples of; the unit is at least one.
        logical_block: Bytes,
    },
}

impl From<ContentsError> for plumb_block::Error {
    fn from(error: ContentsError) -> Self {
        Self::new(plumb_block::ErrorKind::Invalid, "make", "the contents of a drive")
            .because(error.to_string())
    }
}

/// The backing file failed. The first failure stays: what is durable is not known any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot {operation} the backing file at byte {offset}: {errno}; the drive can only answer with errors now"
)]
pub struct BackingError {
    /// What was being done: "read", "write", "punch a hole in", "sync".
    pub operation: &'static str,
    /// Where in the file.
    pub offset: u64,
    /// What the system said.
    pub errno: Errno,
}

impl BackingError {
    /// What the drive answers its commands with.
    pub const fn errno(&self) -> Option<Errno> {
        Some(self.errno)
    }
}

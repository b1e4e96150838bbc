//! Promises of a device that it really keeps.

use crate::atomicity::Atomicity;

/// Treatment of FUA by a device: done, or only answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FuaKept {
    /// The device carries out FUA.
    #[default]
    Honoured,
    /// The device answers as if it had carried out FUA.
    Ignored,
}

/// Completed flushes that took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlushKept {
    /// All.
    #[default]
    Always,
    /// None: the device lies.
    Never,
    /// A flush takes effect only when this many more have completed: at a cut the last ones turn out to be
    /// lies.
    AllButLast(u32),
}

/// Promises that the device really keeps. An honest device keeps all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// True if completed writes are at risk: there is a cache, it is on, and nothing protects it. Without it
    /// what completes is durable, and only what is in flight is at risk.
    pub volatile: bool,
    /// FUA.
    pub fua: FuaKept,
    /// Flushes.
    pub flush: FlushKept,
    /// True if a discarded block reads as zeroes. If not, a discard may take effect or be ignored.
    pub discard_zeroes: bool,
    /// Writes that are all or nothing across a cut.
    pub atomicity: Atomicity,
}

impl Promise {
    /// A device with its volatile cache on that does what it says; one logical block is atomic.
    pub const VOLATILE: Self = Self {
        volatile: true,
        fua: FuaKept::Honoured,
        flush: FlushKept::Always,
        discard_zeroes: true,
        atomicity: Atomicity::BLOCK,
    };

    /// A device without a volatile cache, or with one that is off or protected.
    pub const DURABLE: Self = Self { volatile: false, ..Self::VOLATILE };
}

//! Guarantees that a device really keeps.

use crate::atomicity::Atomicity;

/// A device's treatment of FUA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FuaKept {
    /// The device executes FUA.
    #[default]
    Honoured,
    /// The device ignores FUA but reports success.
    Ignored,
}

/// Completed flushes that took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlushKept {
    /// All flushes.
    #[default]
    Always,
    /// None: the device lies about flushes.
    Never,
    /// All but the last ones: a flush takes effect only after this many more have completed.
    AllButLast(u32),
}

/// Guarantees that the device really keeps. An honest device keeps all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// True if completed writes are at risk, because a cache exists, is enabled and is not protected.
    /// Otherwise completed writes are durable, and only those in flight are at risk.
    pub volatile: bool,
    /// Treatment of FUA.
    pub fua: FuaKept,
    /// Treatment of flushes.
    pub flush: FlushKept,
    /// True if a discarded block reads as zeroes. Otherwise a discard may have no effect.
    pub discard_zeroes: bool,
    /// Writes that are atomic across a cut.
    pub atomicity: Atomicity,
}

impl Promise {
    /// An honest device with an enabled volatile cache and atomic logical blocks.
    pub const VOLATILE: Self = Self {
        volatile: true,
        fua: FuaKept::Honoured,
        flush: FlushKept::Always,
        discard_zeroes: true,
        atomicity: Atomicity::BLOCK,
    };

    /// A device without a volatile cache, or with a disabled or protected one.
    pub const DURABLE: Self = Self { volatile: false, ..Self::VOLATILE };
}

//! Values with few named possibilities.

use plumb_workload::{Arrival, DurableWrite, EngineChoice, FlushCall, Layout, PageCache, Priority, Walk};

use super::Vocabulary;

/// Method of `sync-every`: a call after writes, or durable writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::native) enum SyncKind {
    /// A flush after a number of writes.
    Call(FlushCall),
    /// Every n-th write is a durable one.
    Dsync,
}

macro_rules! choices {
    ($kind:ty, $expected:literal: $($name:literal $value:expr),+) => {
        impl Vocabulary for $kind {
            const EXPECTED: &'static str = $expected;

            fn names() -> Vec<&'static str> {
                vec![$($name),+]
            }

            fn parse(text: &str) -> Option<Self> {
                match text {
                    $($name => Some($value),)+
                    _ => None,
                }
            }

            fn show(&self) -> String {
                let named = [$(($name, $value)),+].into_iter().find(|(_, value)| value == self);
                named.map_or_else(String::new, |(name, _)| name.to_owned())
            }
        }
    };
}

choices!(SyncKind, "fdatasync, fsync, dsync or range":
    "fdatasync" Self::Call(FlushCall::Fdatasync), "fsync" Self::Call(FlushCall::Fsync), "dsync" Self::Dsync,
    "range" Self::Call(FlushCall::Range));
choices!(DurableWrite, "dsync or sync": "dsync" Self::Dsync, "sync" Self::Sync);
choices!(Walk, "each, interlocked or parallel":
    "each" Self::Each, "interlocked" Self::Interlocked, "parallel" Self::Parallel);
choices!(EngineChoice, "auto, io-uring or synchronous":
    "auto" Self::Auto, "io-uring" Self::IoUring, "synchronous" Self::Synchronous);
choices!(PageCache, "as-is, evicted or loaded":
    "as-is" Self::AsIs, "evicted" Self::Evicted, "loaded" Self::Loaded);
choices!(Layout, "written, reserved or holes":
    "written" Self::Written, "reserved" Self::Reserved, "holes" Self::Holes);
choices!(Arrival, "fixed or poisson": "fixed" Self::Fixed, "poisson" Self::Poisson);
choices!(Priority, "idle, low or normal": "idle" Self::Idle, "low" Self::Low, "normal" Self::Normal);

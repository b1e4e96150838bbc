//! Values with few possibilities.

use plumb_workload::{Arrival, DurableWrite, Engine, FlushCall, Priority, Walk};

use crate::native::typed::Choice;

/// How `sync-every` makes writes durable: by a call after them, or by the write itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::native) enum SyncKind {
    /// A flush after so many writes.
    Call(FlushCall),
    /// One of so many writes is a durable one.
    Dsync,
}

impl Choice for SyncKind {
    const EXPECTED: &'static str = "fdatasync, fsync, dsync or range";
    const NAMES: &'static [(&'static str, Self)] = &[
        ("fdatasync", Self::Call(FlushCall::Fdatasync)),
        ("fsync", Self::Call(FlushCall::Fsync)),
        ("dsync", Self::Dsync),
        ("range", Self::Call(FlushCall::Range)),
    ];
}

impl Choice for DurableWrite {
    const EXPECTED: &'static str = "dsync or sync";
    const NAMES: &'static [(&'static str, Self)] = &[("dsync", Self::Dsync), ("sync", Self::Sync)];
}

impl Choice for Walk {
    const EXPECTED: &'static str = "each, interlocked or parallel";
    const NAMES: &'static [(&'static str, Self)] =
        &[("each", Self::Each), ("interlocked", Self::Interlocked), ("parallel", Self::Parallel)];
}

impl Choice for Engine {
    const EXPECTED: &'static str = "auto, io-uring or synchronous";
    const NAMES: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("io-uring", Self::IoUring), ("synchronous", Self::Synchronous)];
}

impl Choice for Arrival {
    const EXPECTED: &'static str = "fixed or poisson";
    const NAMES: &'static [(&'static str, Self)] = &[("fixed", Self::Fixed), ("poisson", Self::Poisson)];
}

impl Choice for Priority {
    const EXPECTED: &'static str = "idle, low or normal";
    const NAMES: &'static [(&'static str, Self)] =
        &[("idle", Self::Idle), ("low", Self::Low), ("normal", Self::Normal)];
}

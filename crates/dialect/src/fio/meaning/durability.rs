//! Durability of writes: `fsync`, `fdatasync`, `sync` and related options.

use std::num::NonZeroU32;

use plumb_workload::{Caching, Durability, DurableWrite, FlushCall};

use super::rw::Rw;
use crate::Error;
use crate::fio::options::Options;
use crate::fio::value::{self, KbBase};

/// Durability of a job, and the calls that provide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sync {
    /// Durability of writes.
    pub(super) durability: Durability,
    /// Call for a flush.
    pub(super) flush: FlushCall,
    /// Form of a durable write.
    pub(super) durable_write: DurableWrite,
}

/// Returns the durability and its calls.
pub(super) fn from_options(options: &Options<'_>, rw: &Rw, caching: Caching) -> Result<Sync, Error> {
    let every = [
        ("fsync", FlushCall::Fsync, options.whole("fsync", 0..=u64::from(u32::MAX))?),
        ("fdatasync", FlushCall::Fdatasync, options.whole("fdatasync", 0..=u64::from(u32::MAX))?),
        (
            "sync_file_range",
            FlushCall::Range,
            options.parsed("sync_file_range", |text| range_every(text, options.base("sync_file_range")))?,
        ),
    ];
    let given: Vec<_> = every
        .into_iter()
        .filter_map(|(name, call, every)| Some((name, call, NonZeroU32::new(every? as u32)?)))
        .collect();
    if let [(first, ..), (second, ..), ..] = given[..] {
        return options.refuse(
            second,
            format!("a job flushes with one call, but {first} is given too"),
            "keep one of them",
        );
    }
    let at_end = options.truth("end_fsync", false)? | options.truth("fsync_on_close", false)?;
    let (mut fua, mut durable_write) = durable_writes(options)?;
    if caching == Caching::Mapped && fua.take().is_some() {
        durable_write = DurableWrite::Dsync;
        options.note("sync has no effect: O_SYNC does not reach the stores of ioengine=mmap");
    }
    let (flush_every, mut flush) = match given[..] {
        [(_, call, every), ..] => (Some(every), call),
        [] => (None, FlushCall::Fdatasync),
    };
    if at_end && flush_every.is_none() {
        flush = FlushCall::Fsync;
    } else if at_end && flush == FlushCall::Range {
        return options.refuse(
            "sync_file_range",
            "a job flushes with one call, but the flush at its end is fsync",
            "leave out end_fsync and fsync_on_close, or use fsync=N",
        );
    } else if at_end && flush == FlushCall::Fdatasync {
        options.note("the flush at the end is fdatasync like the others, which makes the same bytes durable");
    }
    if caching == Caching::Mapped {
        // fio flushes a mapping by msync for either option.
        flush = FlushCall::Fdatasync;
    }
    if flush_every.is_some() && options.whole("iodepth", 1..=u64::MAX)?.is_some_and(|depth| depth > 1) {
        options.note(
            "a flush waits for the writes before it, and the next write for the flush: fio's asynchronous engines send \
             it beside them, where it covers only what has completed",
        );
    }
    let flush_before_next = flush_every.is_some();
    let durability = Durability { flush_every, flush_at_end: at_end, flush_before_next, fua_every: fua };
    if !rw.writes && durability.is_any() {
        options.note("fsync, fdatasync and sync have no effect: the job never writes");
        return Ok(Sync { durability: Durability::default(), flush, durable_write });
    }
    Ok(Sync { durability, flush, durable_write })
}

fn durable_writes(options: &Options<'_>) -> Result<(Option<NonZeroU32>, DurableWrite), Error> {
    Ok(match options.choice("sync", &["none", "0", "sync", "1", "dsync"])? {
        Some("sync" | "1") => (Some(NonZeroU32::MIN), DurableWrite::Sync),
        Some("dsync") => (Some(NonZeroU32::MIN), DurableWrite::Dsync),
        _ => (None, DurableWrite::Dsync),
    })
}

/// Parses `wait_before,write,wait_after:8`, which means after every 8 writes.
fn range_every(text: &str, base: KbBase) -> Result<u64, String> {
    const FLAGS: [&str; 3] = ["wait_before", "write", "wait_after"];
    let (flags, every) = text.split_once(':').ok_or("expected wait_before,write,wait_after:N")?;
    let flags: Vec<&str> = flags.split(',').map(str::trim).collect();
    if let Some(flag) = flags.iter().find(|flag| !FLAGS.contains(flag)) {
        return Err(format!("`{flag}` is neither wait_before, write nor wait_after"));
    }
    if let Some(flag) = FLAGS.iter().find(|flag| !flags.contains(flag)) {
        return Err(format!("lacks {flag}: only wait_before,write,wait_after:{every} is supported"));
    }
    match value::whole(every, base)? {
        every @ 0..=0xffff_ffff => Ok(every),
        every => Err(format!("{every} writes are too many")),
    }
}

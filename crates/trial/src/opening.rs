//! From how a job wants its targets opened to what `linux` is told.

use plumb_linux::{Access, Caching, DurableWrite, EngineChoice, FileOptions, FlushCall};
use plumb_workload::{self as workload, Opening};

/// The options of `opening`, for writing or not.
pub(crate) fn options(opening: Opening, writes: bool) -> FileOptions {
    let access = if writes { Access::ReadWrite } else { Access::ReadOnly };
    let caching = match opening.caching {
        workload::Caching::Cached | workload::Caching::Mapped => Caching::Buffered,
        workload::Caching::Direct => Caching::Direct,
        workload::Caching::DropBehind => Caching::Uncached,
    };
    let engine = match (opening.caching, opening.engine) {
        (workload::Caching::Mapped, _) => EngineChoice::Mapped,
        (_, workload::Engine::Auto) => EngineChoice::Auto,
        (_, workload::Engine::IoUring) => EngineChoice::IoUring,
        (_, workload::Engine::Synchronous) => EngineChoice::Positioned,
    };
    let flush = match opening.flush {
        workload::FlushCall::Fdatasync => FlushCall::Fdatasync,
        workload::FlushCall::Fsync => FlushCall::Fsync,
        workload::FlushCall::Range => FlushCall::SyncFileRange,
    };
    let durable_write = match opening.durable_write {
        workload::DurableWrite::Dsync => DurableWrite::Dsync,
        workload::DurableWrite::Sync => DurableWrite::Sync,
    };
    FileOptions::new(access, caching).engine(engine).flush(flush).durable_write(durable_write)
}

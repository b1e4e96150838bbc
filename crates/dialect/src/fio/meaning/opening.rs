//! Engine, depth and use of the page cache.

use plumb_workload::{Caching, EngineChoice, Workload};

use crate::Error;
use crate::fio::options::Options;

/// Opening of targets, and depth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Queueing {
    /// Name of the engine as typed.
    pub(super) name: String,
    /// Interface for requests to the kernel.
    pub(super) engine: EngineChoice,
    /// Use of the page cache.
    pub(super) caching: Caching,
    /// True if each write is atomic: executed as a whole or refused.
    pub(super) untorn: bool,
    /// Number of requests in flight.
    pub(super) depth: u32,
}

/// Returns the queueing.
pub(super) fn from_options(options: &Options<'_>) -> Result<Queueing, Error> {
    let name = options.text("ioengine")?.unwrap_or("psync");
    let engine = engine(options, name)?;
    let mapped = name == "mmap";
    let caching = caching(options, mapped)?;
    let depth = depth(options, name, engine == EngineChoice::Synchronous)?;
    if name == "libaio" && caching != Caching::Direct {
        options.note(
            "libaio without direct=1 waits for each request in fio; here buffered requests are in flight \
                      together as far as the kernel allows",
        );
    }
    let untorn = options.truth("atomic", false)?;
    if untorn && caching != Caching::Direct {
        return Err(options.error("atomic", "is for direct I/O: add direct=1"));
    }
    Ok(Queueing { name: name.to_owned(), engine, caching, untorn, depth })
}

fn engine(options: &Options<'_>, name: &str) -> Result<EngineChoice, Error> {
    Ok(match name {
        "psync" | "sync" | "pvsync" | "pvsync2" | "vsync" => {
            if name == "vsync" {
                options.note("vsync: neighbouring requests are not coalesced; each is one call");
            }
            EngineChoice::Synchronous
        }
        "mmap" => EngineChoice::Synchronous,
        "io_uring" => EngineChoice::IoUring,
        "libaio" | "posixaio" => {
            options.note(format!("ioengine={name}: requests go through io_uring where that is allowed"));
            EngineChoice::Auto
        }
        "nbd" | "null" => EngineChoice::Auto,
        "io_uring_cmd" | "sg" | "nvme" => {
            return options.refuse(
                "ioengine",
                format!("is {name}: commands past the block layer are not sent"),
                "use ioengine=io_uring with direct=1",
            );
        }
        _ => {
            let expected = "psync, sync, pvsync, pvsync2, libaio, io_uring, mmap, posixaio, nbd or null";
            return Err(options.error("ioengine", format!("is {name}: expected {expected}")));
        }
    })
}

fn caching(options: &Options<'_>, mapped: bool) -> Result<Caching, Error> {
    let direct = options.truth("direct", false)?;
    let buffered = options.truth("buffered", true)?;
    let direct = match (options.get("direct"), options.get("buffered")) {
        (Some(_), Some(_)) if options.is_after("buffered", "direct") => !buffered,
        (Some(_), _) => direct,
        (None, Some(_)) => !buffered,
        (None, None) => false,
    };
    let drop_behind = options.whole("uncached", 0..=1)? == Some(1);
    match (direct, mapped, drop_behind) {
        (true, true, _) => options.refuse(
            "direct",
            "a mapping is the page cache: mmap cannot go past it",
            "leave out direct=1, or use ioengine=psync",
        ),
        (true, _, true) => Err(options.error("uncached", "is for the page cache, which direct=1 goes past")),
        (_, true, true) => Err(options.error("uncached", "does not reach loads and stores of mmap")),
        (true, ..) => Ok(Caching::Direct),
        (_, true, _) => Ok(Caching::Mapped),
        (_, _, true) => Ok(Caching::DropBehind),
        _ => Ok(Caching::Cached),
    }
}

fn depth(options: &Options<'_>, engine: &str, synchronous: bool) -> Result<u32, Error> {
    let depth = options.whole("iodepth", 1..=u64::from(Workload::DEPTH_MAX))?.unwrap_or(1) as u32;
    if synchronous && depth > 1 {
        options.note(format!(
            "iodepth={depth} with ioengine={engine}: calls come one after the other, so the depth is 1; \
             ioengine=io_uring or numjobs makes more at a time"
        ));
        return Ok(1);
    }
    Ok(depth)
}

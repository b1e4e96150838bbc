//! SQLIO: command line, parameter file and output.
//!
//! SQLIO was retired in 2015. Its switches are implemented from its readme and published command lines, and
//! could not be verified against the program; uncertain ones are refused. The layout of the output follows
//! published runs of v1.5.SG.

mod arguments;
mod meaning;
mod param_file;
mod text;

pub use arguments::parse;
pub use text::text;

use plumb_workload::Affinity;

/// Text printed by `-?`.
pub const USAGE: &str = include_str!("usage.txt");

/// A run requested on a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Writes instead of reads (`-kW`).
    pub writes: bool,
    /// Measured time in seconds (`-s`), without a warm-up.
    pub seconds: u32,
    /// Size of an I/O in bytes (`-b`, in KiB).
    pub block: u64,
    /// Order of offsets (`-f`).
    pub pattern: Pattern,
    /// Outstanding I/Os of each thread (`-o`); 0 for one synchronous I/O at a time.
    pub outstanding: u32,
    /// Blocks to skip at the start of each file (`-S`).
    pub start_block: u64,
    /// Caches in use (`-B`).
    pub buffering: Buffering,
    /// Print latencies (`-L`).
    pub latency: bool,
    /// I/Os of a run (`-i`), which has no effect here.
    pub ios_per_run: Option<u32>,
    /// Parameter file (`-F`).
    pub param_file: Option<String>,
    /// Files to test.
    pub files: Vec<File>,
}

/// Order of offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Each I/O starts at the end of the previous one.
    Sequential,
    /// Random offsets.
    Random,
    /// Offsets at a distance of this many blocks.
    Stripe(u32),
}

/// Caches in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffering {
    /// None: O_DIRECT and durable writes (`-BN`).
    None,
    /// Page cache and device cache (`-BY`).
    All,
    /// Device cache only (`-BH`).
    Hardware,
    /// Page cache, with durable writes (`-BS`).
    Software,
}

/// A file or drive to test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Name as typed; a drive is `#N`.
    pub name: String,
    /// Number of threads.
    pub threads: u32,
    /// Placement of the threads.
    pub affinity: Affinity,
    /// Size of the file to create, in bytes; `None` to leave it unchanged.
    pub size: Option<u64>,
}

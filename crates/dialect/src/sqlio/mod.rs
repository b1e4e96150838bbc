//! SQLIO: its command line, parameter file and output.
//!
//! SQLIO was retired in 2015. What its switches mean is recalled from its readme and from command lines in
//! articles, and could not be checked against the program; what is not certain is refused rather than
//! guessed. The layout of the output follows runs of v1.5.SG that were published.

mod arguments;
mod meaning;
mod param_file;
mod text;

pub use arguments::parse;
pub use text::text;

use plumb_workload::Affinity;

/// Text that `-?` prints.
pub const USAGE: &str = include_str!("usage.txt");

/// A run that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Writes instead of reads (`-kW`).
    pub writes: bool,
    /// Measured seconds (`-s`); there is no warm-up.
    pub seconds: u32,
    /// Bytes of an I/O (`-b`, in KiB).
    pub block: u64,
    /// Where I/Os go (`-f`).
    pub pattern: Pattern,
    /// Outstanding I/Os of each thread (`-o`); 0: one at a time.
    pub outstanding: u32,
    /// Blocks that are left out at the start of each file (`-S`).
    pub start_block: u64,
    /// Caches between the program and the medium (`-B`).
    pub buffering: Buffering,
    /// Print latencies (`-L`).
    pub latency: bool,
    /// I/Os of a run (`-i`): makes no difference where it is taken.
    pub ios_per_run: Option<u32>,
    /// The parameter file, if there is one (`-F`).
    pub param_file: Option<String>,
    /// Files to test.
    pub files: Vec<File>,
}

/// Order of the offsets of I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Each I/O after the end of the one before.
    Sequential,
    /// Random offsets.
    Random,
    /// Offsets with a distance of this many blocks.
    Stripe(u32),
}

/// Caches between the program and the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffering {
    /// Nothing: past the page cache, durable writes (`-BN`).
    None,
    /// All: page cache and the device's cache (`-BY`).
    All,
    /// The device's cache (`-BH`).
    Hardware,
    /// The page cache, but durable writes (`-BS`).
    Software,
}

/// A file, or a drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Name as typed; a drive is `#N`.
    pub name: String,
    /// Number of threads that work on it.
    pub threads: u32,
    /// Where they run.
    pub affinity: Affinity,
    /// How large it is made, in bytes; `None`: as it is.
    pub size: Option<u64>,
}

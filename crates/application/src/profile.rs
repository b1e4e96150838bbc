//! Definition of a profile: its pattern, the source of the pattern, and its work. The data is in
//! `profiles.toml`.

use plumb_block::{Bytes, FlushCall};
use plumb_workload::{Access, Durability, Rate};
use serde::Deserialize;

use crate::catalogue::ProgramName;
use crate::criteria::Criterion;
use crate::sqlite::{Journal, Synchronous};

/// Workload named after an application.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name of the profile.
    pub name: String,
    /// Summary in one line.
    pub summary: String,
    /// Description of the calls.
    pub pattern: String,
    /// Kind of evidence for the pattern.
    pub provenance: Provenance,
    /// Source of the pattern, and what of it is estimated.
    pub source: String,
    /// Description of what the profile does not model.
    pub leaves_out: String,
    /// Limits that users of the application demand of storage; a missed limit is a finding.
    #[serde(default)]
    pub criteria: Vec<Criterion>,
    /// Variants of the profile, never empty; the first is the default.
    pub variants: Vec<Variant>,
    /// Length of a run by default.
    pub extent: Extent,
    /// Work of the profile.
    pub work: Work,
}

/// Kind of evidence for a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// Traced system calls of the application, or the application itself.
    Traced,
    /// Documentation of the application, or the definition of a benchmark.
    Published,
    /// General knowledge of such applications; the numbers are estimates.
    Modelled,
}

/// Variant of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Name of the variant, which follows the profile's name and a colon.
    pub name: String,
    /// Summary in one line.
    pub summary: String,
    /// Number of threads; `None`: that of the profile.
    pub(crate) threads: Option<u32>,
}

/// Length of a run by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// Time in seconds.
    Seconds(u64),
    /// Number of transactions.
    Transactions(u64),
    /// Number of files, each of which is one transaction; fewer if the files are scaled down.
    Files(u64),
}

/// Work of a profile.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Block operations on any block target: see [`scenario`](crate::scenario).
    Blocks(Vec<BlockWork>),
    /// File operations in a directory: see [`run`](crate::run()).
    Files(FileWork),
    /// Transactions of the real SQLite in a directory: see [`run`](crate::run()).
    Sqlite(SqliteWork),
}

/// Job of a block workload with direct I/O.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockWork {
    /// Name of the job in the scenario.
    pub(crate) name: String,
    /// Name of the only variant that has the job; `None`: all variants.
    pub(crate) variant: Option<String>,
    /// Start of the part of the target that is used.
    #[serde(default)]
    pub(crate) offset: Bytes,
    pub(crate) length: Option<Bytes>,
    /// Lengths of operations, each with its share in percent.
    pub(crate) lengths: Vec<(Bytes, u8)>,
    pub(crate) access: Access,
    pub(crate) write_percent: u8,
    pub(crate) depth: u32,
    #[serde(default)]
    pub(crate) durability: Durability,
    pub(crate) flush: Option<FlushCall>,
    pub(crate) rate: Option<Rate>,
    /// Approximate number of operations of the other jobs between two of this one, for runs limited by a
    /// count.
    pub(crate) operations_between: Option<u64>,
    /// True if the job has one thread, whatever the limits say.
    #[serde(default)]
    pub(crate) single_thread: bool,
}

/// Program that works on files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileWork {
    /// Program that does the work.
    pub(crate) program: ProgramName,
    /// Number of threads, unless the variant has its own; `None`: 1.
    pub(crate) threads: Option<u32>,
    /// Most bytes in one call, for which memory is allocated before the measurement; `None`: 64 KiB.
    pub(crate) call_bytes_max: Option<u64>,
    /// Approximate space in bytes for all files, unscaled.
    pub(crate) room: Bytes,
    /// True if each thread takes this space; false if all threads take it together.
    pub(crate) each_thread: bool,
}

/// SQLite with one kind of journal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqliteWork {
    /// True for a write-ahead log, false for a rollback journal.
    wal: bool,
}

impl SqliteWork {
    /// Returns the journal mode, with the `synchronous` setting of the variant.
    pub(crate) fn journal(&self, variant: &str) -> Journal {
        let synchronous = match variant {
            "normal" => Synchronous::Normal,
            "extra" => Synchronous::Extra,
            _ => Synchronous::Full,
        };
        if self.wal { Journal::Wal(synchronous) } else { Journal::Delete(synchronous) }
    }
}

impl Provenance {
    /// Returns the name for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Traced => "traced",
            Self::Published => "published",
            Self::Modelled => "modelled",
        }
    }
}

impl Profile {
    /// Returns the default variant.
    pub fn default_variant(&self) -> &Variant {
        // A test of the catalogue checks that every profile has a variant.
        &self.variants[0]
    }

    /// Returns the variant of this name.
    pub fn variant(&self, name: &str) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// Returns true if the profile needs a directory, not a block target.
    pub const fn needs_directory(&self) -> bool {
        !matches!(self.work, Work::Blocks(_))
    }
}

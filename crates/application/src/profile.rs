//! Definition of a profile: a pattern, where it is known from, and how it is carried out. All of it is data,
//! in `profiles.toml`.

use plumb_block::{Bytes, FlushCall};
use plumb_workload::{Access, Durability, Rate};
use serde::Deserialize;

use crate::catalogue::ProgramName;
use crate::criteria::Criterion;
use crate::sqlite::{Journal, Synchronous};

/// A workload that is named after an application.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name as typed.
    pub name: String,
    /// Summary in one line.
    pub summary: String,
    /// Description of what the profile does, call by call.
    pub pattern: String,
    /// How its pattern is known.
    pub provenance: Provenance,
    /// The source, and what of the pattern is estimated.
    pub source: String,
    /// Description of what the profile does not model.
    pub leaves_out: String,
    /// Limits that its users expect a place to keep; a limit that is missed is a finding.
    #[serde(default)]
    pub criteria: Vec<Criterion>,
    /// The ways to run it; the first is taken unless another is named. Never empty.
    pub variants: Vec<Variant>,
    /// Time that it runs by default.
    pub extent: Extent,
    /// How it is carried out.
    pub work: Work,
}

/// How a pattern is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// Derived from the system calls of the application, or the application itself.
    Traced,
    /// Derived from the application's documentation, or from a benchmark's definition.
    Published,
    /// Derived from general knowledge of such programs; the figures are estimates.
    Modelled,
}

/// A way to run a profile.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Name as typed after the profile's name and a colon.
    pub name: String,
    /// Summary in one line.
    pub summary: String,
    /// Number of threads that it has, if not as many as the profile.
    pub(crate) threads: Option<u32>,
}

/// Time that a profile runs by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// Time in seconds.
    Seconds(u64),
    /// Number of transactions.
    Transactions(u64),
    /// Each of so many files once, which are a transaction each; fewer if the files are scaled.
    Files(u64),
}

/// How a profile is carried out.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Block operations by the ordinary engine, on any block target: see [`scenario`](crate::scenario).
    Blocks(Vec<BlockWork>),
    /// Calls on files in a directory: see [`run`](crate::run()).
    Files(FileWork),
    /// Transactions of the real SQLite in a directory: see [`run`](crate::run()).
    Sqlite(SqliteWork),
}

/// A job of a block workload, past the page cache.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockWork {
    /// The job's name in the scenario.
    pub(crate) name: String,
    /// Only in the variant of this name.
    pub(crate) variant: Option<String>,
    /// The part of the target that is touched; to its end unless a length is said.
    #[serde(default)]
    pub(crate) offset: Bytes,
    pub(crate) length: Option<Bytes>,
    /// Lengths of operations, and of 100 how many.
    pub(crate) lengths: Vec<(Bytes, u8)>,
    pub(crate) access: Access,
    pub(crate) write_percent: u8,
    pub(crate) depth: u32,
    #[serde(default)]
    pub(crate) durability: Durability,
    pub(crate) flush: Option<FlushCall>,
    pub(crate) rate: Option<Rate>,
    /// About how many operations the other jobs do between two of this one, where a count ends the run and
    /// not time.
    pub(crate) operations_between: Option<u64>,
    /// One thread, however many are asked for.
    #[serde(default)]
    pub(crate) single_thread: bool,
}

/// A program over files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileWork {
    /// Program that does the work.
    pub(crate) program: ProgramName,
    /// Number of threads that it has, unless the variant says otherwise; 1 if `None`.
    pub(crate) threads: Option<u32>,
    /// The most bytes that one call moves, so that memory for it is there before anything is measured; 64 KiB
    /// if `None`.
    pub(crate) call_bytes_max: Option<u64>,
    /// How much room it takes at full size, about.
    pub(crate) room: Bytes,
    /// True if each thread takes so much, rather than all together.
    pub(crate) each_thread: bool,
}

/// SQLite in one of its modes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqliteWork {
    /// True for a write-ahead log, false for a rollback journal.
    wal: bool,
}

impl SqliteWork {
    /// Returns the journal, with `synchronous` as the variant is called.
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
    /// Returns the name as printed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Traced => "traced",
            Self::Published => "published",
            Self::Modelled => "modelled",
        }
    }
}

impl Profile {
    /// Returns the variant that is taken unless another is named.
    pub fn default_variant(&self) -> &Variant {
        // Variants are never empty: a test of the catalogue holds that.
        &self.variants[0]
    }

    /// Returns the variant of that name.
    pub fn variant(&self, name: &str) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// Returns true if it needs a directory, rather than anything that has blocks.
    pub const fn needs_directory(&self) -> bool {
        !matches!(self.work, Work::Blocks(_))
    }
}

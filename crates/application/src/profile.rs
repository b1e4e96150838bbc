//! What a profile is: a pattern, where it is known from, and how it is carried out.

use plumb_block::{Bytes, Nanos};
use plumb_workload::Scenario;

use crate::catalogue::BlockSetting;
use crate::criteria::Criterion;
use crate::engine::{Program, Setting};
use crate::sqlite::Journal;

/// A workload that is named after an application.
#[derive(Debug)]
pub struct Profile {
    /// As it is typed.
    pub name: &'static str,
    /// In one line.
    pub summary: &'static str,
    /// What it does, call by call.
    pub pattern: &'static str,
    /// How its pattern is known.
    pub provenance: Provenance,
    /// The source, and what of the pattern is estimated.
    pub source: &'static str,
    /// What it does not model.
    pub leaves_out: &'static str,
    /// What its users expect of a place; a limit that is missed is a finding.
    pub criteria: &'static [Criterion],
    /// The ways to run it; the first is taken unless another is named. Never empty.
    pub variants: &'static [Variant],
    /// How long it runs unless that is said.
    pub extent: Extent,
    /// How it is carried out.
    pub work: Work,
}

/// How a pattern is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provenance {
    /// From the system calls of the application, or it is the application itself.
    Traced,
    /// From its documentation, or from a benchmark's definition.
    Published,
    /// From what is known of such programs; the figures are estimates.
    Modelled,
}

/// A way to run a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// As it is typed after the profile's name and a colon.
    pub name: &'static str,
    /// In one line.
    pub summary: &'static str,
}

/// How long a profile runs unless that is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// For a time.
    Time(Nanos),
    /// For so many transactions.
    Transactions(u64),
    /// Each of so many files once, which are a transaction each; fewer if the files are scaled.
    Tree(u64),
}

/// How a profile is carried out.
#[derive(Debug)]
pub enum Work {
    /// By the ordinary engine, on anything that has blocks: see [`scenario`](crate::scenario).
    Blocks(BlockWork),
    /// By calls on files in a directory: see [`run`](crate::run()).
    Files(FileWork),
    /// By the real SQLite in a directory: see [`run`](crate::run()).
    Sqlite(SqliteWork),
}

/// A block workload.
#[derive(Debug)]
pub struct BlockWork(pub(crate) fn(&BlockSetting<'_>) -> Scenario);

/// A program over files.
#[derive(Debug)]
pub struct FileWork {
    /// Makes it.
    pub(crate) program: fn(&Setting) -> Box<dyn Program>,
    /// How much room it takes at full size, about.
    pub(crate) room: Bytes,
    /// Whether each thread takes so much, rather than all together.
    pub(crate) each_thread: bool,
}

/// SQLite in one of its modes.
#[derive(Debug)]
pub struct SqliteWork {
    /// By the variant's name.
    pub(crate) journal: fn(&str) -> Journal,
}

impl Provenance {
    /// As it is printed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Traced => "traced",
            Self::Published => "published",
            Self::Modelled => "modelled",
        }
    }
}

impl Profile {
    /// The variant that is taken unless another is named.
    pub fn default_variant(&self) -> &'static Variant {
        // Variants are never empty: a test of the catalogue holds that.
        &self.variants[0]
    }

    /// The variant of that name.
    pub fn variant(&self, name: &str) -> Option<&'static Variant> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// Whether it needs a directory, rather than anything that has blocks.
    pub const fn needs_directory(&self) -> bool {
        !matches!(self.work, Work::Blocks(_))
    }
}

//! Arguments of `plumb check`.

use std::path::PathBuf;

use clap::Args;
use plumb_block::{Bytes, Nanos};

use super::output::PrintFormat;
use super::running::{Detail, RecordingArguments, time_within_a_day};
use crate::strictness::Strictness;

/// Arguments of `plumb check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The directory to check, a simulated drive such as sim:consumer-nvme-ssd?wce=off, or a write-back cache
    /// that is not served
    #[arg(value_name = "PATH|sim:MODEL|cache:NAME", default_value = ".")]
    pub(crate) target: PathBuf,

    /// Measured time, such as 500ms, 1m, or seconds
    #[arg(long, default_value = "20s", value_name = "TIME", visible_alias = "duration", value_parser = time_within_a_day)]
    pub(crate) seconds: Nanos,

    /// Check a cache on real devices; the data at its beginning is lost
    #[arg(long)]
    pub(crate) overwrite: bool,

    /// Size of the test file, such as 256M, or of the used part of a drive; default 256M, at most a tenth of
    /// the free space
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,

    /// Seed of all random choices; default from the clock, and always recorded
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    #[command(flatten)]
    pub(crate) printed: PrintFormat,

    #[command(flatten)]
    pub(crate) strictness: Strictness,

    #[command(flatten)]
    pub(crate) recording: RecordingArguments,

    #[command(flatten)]
    pub(crate) detail: Detail,
}

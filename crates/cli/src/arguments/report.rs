//! Arguments of `plumb report`.

use std::path::PathBuf;

use clap::Args;

use super::output::{OutputArguments, PrintFormat};
use super::running::Detail;
use crate::strictness::Strictness;

/// Arguments of `plumb report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// The directory of a run, or a result of DiskSpd (XML, text) or fio (JSON); default the newest in
    /// plumb-runs
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<PathBuf>,

    /// Number of the result in a file with several results of DiskSpd or fio, from 1 on
    #[arg(long, value_name = "N", requires = "run")]
    pub(crate) result: Option<usize>,

    /// Recording that the host made while this run, a load or an observation, ran in its guest: both are
    /// shown as one path
    #[arg(long, value_name = "HOST-RUN", requires = "run")]
    pub(crate) beneath: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) printed: PrintFormat,

    /// Write to FILE instead of stdout; an error leaves FILE as it was
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) writing: OutputArguments,

    #[command(flatten)]
    pub(crate) strictness: Strictness,

    #[command(flatten)]
    pub(crate) detail: Detail,
}

//! Arguments of `plumb survey`.

use std::path::PathBuf;

use clap::Args;
use plumb_block::Bytes;
use plumb_path::PAGE_SIZES;

use super::output::{OutputArguments, PrintFormat};
use crate::strictness::Strictness;

/// Arguments of `plumb survey`.
#[derive(Debug, Args)]
pub(crate) struct SurveyArguments {
    /// Paths, block devices, sim:MODEL or NBD URIs; default the current directory, or the target of the
    /// recording
    #[arg(value_name = "PATH|DEV", conflicts_with = "all")]
    pub(crate) targets: Vec<PathBuf>,

    /// Survey every file system on a block device, and every disk without one
    #[arg(long)]
    pub(crate) all: bool,

    /// Survey the disks of the virtual machines that run here, from the hypervisor down: its cache mode, what
    /// becomes of flushes, and the image
    #[arg(long, conflicts_with_all = ["all", "targets", "record", "from"])]
    pub(crate) guests: bool,

    /// Follow the disks of this virtual machine on its host, by what `plumb survey --guests --json` printed
    /// there; a disk is known by its serial number
    #[arg(long, value_name = "FILE", conflicts_with_all = ["guests", "record", "now"])]
    pub(crate) host_survey: Option<PathBuf>,

    /// Add what a power cut would take now: from memory, by process, from the journal, caches and the
    /// drive. Only the live machine has it: not with --record, --from or --guests
    #[arg(long, conflicts_with_all = ["guests", "record", "from"])]
    pub(crate) now: bool,

    /// Say only of pages of this size whether a power cut tears them: 4k, 8k, 16k, 32k, 64k; several with
    /// commas
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = page_size)]
    pub(crate) page_size: Vec<u64>,

    #[command(flatten)]
    pub(crate) printed: PrintFormat,

    /// Also record what was read (/proc, /sys, answers of drives) in DIR, to survey it again elsewhere
    #[arg(long, value_name = "DIR", conflicts_with = "from")]
    pub(crate) record: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) writing: OutputArguments,

    /// Survey a recording instead of this machine
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) strictness: Strictness,
}

/// Parses a page size of a database, and returns it in bytes.
fn page_size(typed: &str) -> Result<u64, String> {
    let expected = "expected the size of a database page: 4k, 8k, 16k, 32k or 64k";
    let size = typed.parse().ok().map(|Bytes(bytes)| bytes);
    size.filter(|size| PAGE_SIZES.contains(size)).ok_or_else(|| expected.to_owned())
}

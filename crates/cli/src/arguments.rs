//! What can be typed. What it means is decided by the commands.

pub(crate) mod drive;
pub(crate) mod policy;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use plumb_block::Bytes;
use plumb_report::Format;

/// How deep does a write go? Survey, measure and judge the write path.
#[derive(Debug, Parser)]
#[command(name = "plumb", version, about, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 nothing found, 1 finding, 2 usage, 3 could not measure, \
                        4 refused for safety, 5 failed.\nResults go to stdout, progress to stderr.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Where writes become durable here, what a durable write costs, and what is wrong
    Check(CheckArguments),
    /// The write path from the application to the drive, layer by layer
    Survey(SurveyArguments),
    /// A workload on files and disks, measured at the application and at the storage
    Load(Box<LoadArguments>),
    /// The same, by DiskSpd's command line
    #[command(disable_help_flag = true)]
    Diskspd(ForeignArguments),
    /// The same, by SQLIO's command line
    #[command(disable_help_flag = true)]
    Sqlio(ForeignArguments),
    /// The same, by fio's command line and job files
    #[command(disable_help_flag = true)]
    Fio(ForeignArguments),
    /// Simulated drives, and block devices with a power switch made of them
    Drive(drive::DriveArguments),
    /// The write caches of disks: shown, planned, changed with a way back, kept
    Policy(Box<policy::PolicyArguments>),
    /// Any format of a recorded run, from the recording alone
    Report(ReportArguments),
    /// Shell completions, on stdout
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
    /// Manual pages, into a directory
    #[command(hide = true)]
    Manual {
        /// The directory, which must exist
        directory: PathBuf,
    },
}

/// Surveys the write path beneath a directory, measures a short load on a file of its own, and judges what it saw.
/// Safe on a live system: it never touches other files, takes at most a tenth of the free space, and removes its
/// file at the end and when interrupted. Needs no root; what root would add is said.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The directory whose write path is checked, or a simulated drive such as sim:consumer-nvme-ssd?wce=off
    #[arg(value_name = "PATH|sim:MODEL", default_value = ".")]
    pub(crate) target: PathBuf,

    /// How long to measure, in seconds
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,

    /// Size of the test file, such as 256M; default 256M or a tenth of the free space; of a simulated drive, the part used
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,

    /// Directory for the recording and report.html; default plumb-check-TIME in the current directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Seed of all random choices; default from the clock, and always recorded
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// One JSON document on stdout instead of the terminal report
    #[arg(long)]
    pub(crate) json: bool,
}

/// Follows the write path from a directory, file or block device down to the drive and says for each layer what it
/// caches and what it does with FLUSH and FUA, with evidence. Writes nothing to any device.
#[derive(Debug, Args)]
pub(crate) struct SurveyArguments {
    /// A path, a block device, sim:MODEL or an NBD URI; default the current directory, or what was recorded
    #[arg(value_name = "PATH|DEV", conflicts_with = "all")]
    pub(crate) target: Option<PathBuf>,

    /// Every file system that is kept on block devices, and every disk without one
    #[arg(long)]
    pub(crate) all: bool,

    /// One JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,

    /// Also record all that was read (of /proc, /sys and drive answers) in DIR, to be surveyed again elsewhere
    #[arg(long, value_name = "DIR", conflicts_with = "from")]
    pub(crate) record: Option<PathBuf>,

    /// Survey a recording instead of this machine
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
}

/// Runs a workload on files and disks, and shows what the application saw beside what the storage was handed.
///
/// A target is a path, a block device, or #N for the Nth disk; one that ends in .toml is a file of these same words.
/// Reading is always safe. Writing to a file that plumb did not make, or to a disk, needs --overwrite; to a disk that is
/// in use or holds something recognised, --destroy with its serial.
#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// Run like an application: NAME or NAME:VARIANT; --explain lists and explains them
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Say what a profile does, on what that rests, and what it leaves out, and run nothing; without --profile, list them
    #[arg(long)]
    pub(crate) explain: bool,

    #[command(flatten)]
    pub(crate) words: plumb_dialect::native::Words,

    #[command(flatten)]
    pub(crate) own: OwnArguments,
}

/// What any command that runs a workload takes, whatever its language.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct OwnArguments {
    /// Write to files that plumb did not make, and to disks that hold nothing recognised
    #[arg(long)]
    pub(crate) overwrite: bool,

    /// Write to this disk although it is in use or holds something: its serial, to be typed in full
    #[arg(long, value_name = "SERIAL")]
    pub(crate) destroy: Vec<String>,

    /// One JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,

    /// Watch it live: rates, latencies and flushes of each target, at the application and at the storage
    #[arg(long)]
    pub(crate) tui: bool,

    /// Print what would be run, in plumb's own words, and run nothing
    #[arg(long)]
    pub(crate) show_workload: bool,

    /// Directory for the recording; default plumb-load-TIME in the current directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// A command line in another language, taken as it is.
#[derive(Debug, Args)]
pub(crate) struct ForeignArguments {
    /// Its own arguments; before or among them plumb's --overwrite, --destroy SERIAL, --json, --tui, --show-workload,
    /// --out DIR
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
}

/// Rebuilds a report from the directory of a run, asking no device.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// The directory of a run
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// terminal, html, json, csv, prometheus or fio
    #[arg(long, value_name = "FORMAT", default_value = "terminal")]
    pub(crate) format: Format,

    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,

    /// Write to FILE, whole or not at all, instead of stdout
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

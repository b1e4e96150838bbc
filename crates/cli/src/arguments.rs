//! The arguments of the commands, as typed. The commands decide what they mean.

pub(crate) mod cache;
pub(crate) mod drive;
mod effect;
pub(crate) mod exports;
pub(crate) mod names;
pub(crate) mod output;
pub(crate) mod policy;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use plumb_block::{Bytes, Nanos};
use plumb_path::PAGE_SIZES;
use plumb_report::{Style, Verbosity};

pub(crate) use self::effect::Effect;
use crate::arguments::output::{OutputArguments, Printed};
use crate::strictness::Strictness;
use crate::terminal;

/// How deep does a write go? Survey, measure and judge the write path.
#[derive(Debug, Parser)]
#[command(name = "plumb", version, about, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Judge a directory: where a write is durable, and what it costs
    Check(CheckArguments),
    /// Show the write path layer by layer, down to the drive
    Survey(SurveyArguments),
    /// Run a workload, measured at the application and at the storage
    Load(Box<LoadArguments>),
    /// Compare caches, drives or anything else, in interleaved blocks
    Compare(Box<crate::command::compare::CompareArguments>),
    /// Show what other programs ask of a device, and who waits for syncs
    Observe(Box<crate::command::observe::ObserveArguments>),
    /// Reproduce five field reports on write caches, on simulated drives
    Study(Box<crate::command::study::StudyArguments>),
    /// Prove what survives a power cut, in every state that it may leave
    Prove(crate::command::prove::ProveArguments),
    /// Show, change, roll back and persist the write caches of disks
    Policy(Box<policy::PolicyArguments>),
    /// Put a crash-safe write-back cache in front of a slow disk
    Cache(cache::CacheArguments),
    /// Serve simulated drives as block devices, and cut their power
    Drive(drive::DriveArguments),
    /// Run checks, surveys and loads on many hosts at once
    Fleet(Box<crate::command::fleet::FleetArguments>),
    /// Show a recorded run in any format, without asking a device
    Report(ReportArguments),
    /// Explain a rule that a report names in brackets
    Explain {
        /// The rule, such as page-cache; without it all are listed, by layer
        rule: Option<String>,
    },
    /// Put back what killed plumb processes left on this machine
    Restore(crate::command::restore::RestoreArguments),
    /// Run a command line of DiskSpd
    #[command(disable_help_flag = true)]
    Diskspd(ForeignArguments),
    /// Run a command line of SQLIO
    #[command(disable_help_flag = true)]
    Sqlio(ForeignArguments),
    /// Run a command line or job files of fio
    #[command(disable_help_flag = true)]
    Fio(ForeignArguments),
    /// Answer the controller of many hosts, which starts this
    Agent(crate::command::agent::AgentArguments),
    /// Write the manual pages into a directory
    Manual {
        /// The directory, which must exist
        directory: PathBuf,

        #[command(flatten)]
        writing: OutputArguments,
    },
    /// Print shell completions
    Completions {
        /// The shell
        #[arg(required_unless_present = "names")]
        shell: Option<clap_complete::Shell>,

        /// Print the names of one kind, which the scripts ask for
        #[arg(long, value_enum, hide = true, value_name = "KIND", conflicts_with = "shell")]
        names: Option<names::Names>,
    },
}

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

    /// Check a cache that has to do with real devices: what is at its beginning goes
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
    pub(crate) printed: Printed,

    #[command(flatten)]
    pub(crate) strictness: Strictness,

    #[command(flatten)]
    pub(crate) recording: RecordingArguments,

    #[command(flatten)]
    pub(crate) detail: Detail,
}

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

    /// Say only of pages of this size whether a power cut tears them: 4k, 8k, 16k, 32k, 64k; several with
    /// commas
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = page_size)]
    pub(crate) page_size: Vec<u64>,

    #[command(flatten)]
    pub(crate) printed: Printed,

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

/// Arguments of `plumb load`.
#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// Run an application profile: NAME or NAME:VARIANT; --explain lists them
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Explain the profile, its sources and its limits, and run nothing; without --profile, list all profiles
    #[arg(long)]
    pub(crate) explain: bool,

    #[command(flatten)]
    pub(crate) words: plumb_dialect::native::Words,

    #[command(flatten)]
    pub(crate) own: OwnArguments,

    #[command(flatten)]
    pub(crate) detail: Detail,
}

/// Options of every command that runs a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct OwnArguments {
    /// Write to files that plumb did not make, and to disks, if they have no signature
    #[arg(long)]
    pub(crate) overwrite: bool,

    /// Write to the disk with this serial, or to the file at this path, although it is in use or has a
    /// signature
    #[arg(long, value_name = "SERIAL")]
    pub(crate) destroy: Vec<String>,

    #[command(flatten)]
    pub(crate) printed: Printed,

    /// Show a live view: rates, latencies and flushes of each target, at the application and at the storage
    #[arg(long)]
    pub(crate) tui: bool,

    /// Print the workload in plumb's own language, and run nothing
    #[arg(long)]
    pub(crate) show_workload: bool,

    /// Remove the targets at the end, of those files that plumb has made
    #[arg(long)]
    pub(crate) remove_after: bool,

    #[command(flatten)]
    pub(crate) strictness: Strictness,

    #[command(flatten)]
    pub(crate) recording: RecordingArguments,
}

/// How much of a report is shown.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Report")]
pub(crate) struct Detail {
    /// Show everything: all figures, all that was found, the whole write path
    #[arg(long, short)]
    verbose: bool,

    /// Show the verdict alone
    #[arg(long, short, conflicts_with = "verbose")]
    quiet: bool,
}

impl Detail {
    /// Everything, unless the verdict alone is asked for.
    pub(crate) const fn or_everything(self) -> Self {
        Self { verbose: !self.quiet, ..self }
    }

    /// How to write for stdout.
    pub(crate) fn style(self) -> Style {
        let verbosity = match self {
            Self { quiet: true, .. } => Verbosity::Quiet,
            Self { verbose: true, .. } => Verbosity::Verbose,
            _ => Verbosity::Normal,
        };
        Style { verbosity, ..terminal::style() }
    }
}

/// Where a run is recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Recording")]
pub(crate) struct RecordingArguments {
    /// Directory for the recording and report.html, which must be new or empty; default
    /// plumb-runs/TIME-COMMAND
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Replace the run that is recorded in the directory of --out
    #[arg(long, requires = "out")]
    pub(crate) replace: bool,

    /// Record nothing
    #[arg(long, conflicts_with = "out")]
    pub(crate) no_record: bool,
}

/// One of the sizes of pages that a survey answers for, in bytes.
fn page_size(typed: &str) -> Result<u64, String> {
    let expected = "expected the size of a database page: 4k, 8k, 16k, 32k or 64k";
    let size = typed.parse().ok().map(|Bytes(bytes)| bytes);
    size.filter(|size| PAGE_SIZES.contains(size)).ok_or_else(|| expected.to_owned())
}

/// A time from 100 ms to a day.
pub(crate) fn time_within_a_day(typed: &str) -> Result<Nanos, String> {
    let expected = "expected a time of 100ms to 24h, such as 500ms, 1m30s, 20";
    let time = typed.parse().ok().filter(|time| (Nanos::millis(100)..=Nanos::secs(86_400)).contains(time));
    time.ok_or_else(|| expected.to_owned())
}

/// A command line of another program.
#[derive(Debug, Args)]
pub(crate) struct ForeignArguments {
    /// The arguments of that program, and plumb's own options, which --help lists
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
}

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

    /// Recording that the host of a guest made while this run was in the guest, of a load or an observation:
    /// both are shown as one path
    #[arg(long, value_name = "HOST-RUN", requires = "run")]
    pub(crate) beneath: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) printed: Printed,

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

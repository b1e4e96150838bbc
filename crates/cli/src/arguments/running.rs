//! Options common to several commands: of runs, of their recordings, and of their reports.

use std::path::PathBuf;

use clap::Args;
use plumb_block::Nanos;
use plumb_report::{Style, Verbosity};
use plumb_targets::Permission;

use super::output::PrintFormat;
use crate::strictness::Strictness;
use crate::terminal;

/// Options of every command that runs a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct OwnArguments {
    /// Write to files that plumb did not make, and to disks, if they have no signature
    ///
    /// The output files of `plumb fio` may be such files, too.
    #[arg(long)]
    pub(crate) overwrite: bool,

    /// Write to the disk with this serial, or to the file at this path, although it is in use or has a
    /// signature
    #[arg(long, value_name = "SERIAL")]
    pub(crate) destroy: Vec<String>,

    #[command(flatten)]
    pub(crate) printed: PrintFormat,

    /// Show a live view: rates, latencies and flushes of each target, at the application and at the storage
    #[arg(long)]
    pub(crate) tui: bool,

    /// Print the workload in plumb's own language, and run nothing
    #[arg(long, conflicts_with_all = ["json", "format"])]
    pub(crate) show_workload: bool,

    /// Remove at the end those target files that plumb has made
    #[arg(long)]
    pub(crate) remove_after: bool,

    #[command(flatten)]
    pub(crate) strictness: Strictness,

    #[command(flatten)]
    pub(crate) recording: RecordingArguments,
}

impl OwnArguments {
    /// Returns the permission to overwrite targets.
    pub(crate) fn permission(&self) -> Permission {
        let (overwrite, destroy) = (self.overwrite, self.destroy.clone());
        Permission { overwrite, destroy, ..Permission::default() }
    }
}

/// Amount of a report that is shown.
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
    /// Returns the same with all details, unless only the verdict is requested.
    pub(crate) const fn or_everything(self) -> Self {
        Self { verbose: !self.quiet, ..self }
    }

    /// Returns the style for stdout.
    pub(crate) fn style(self) -> Style {
        let verbosity = match self {
            Self { quiet: true, .. } => Verbosity::Quiet,
            Self { verbose: true, .. } => Verbosity::Verbose,
            _ => Verbosity::Normal,
        };
        Style { verbosity, ..terminal::style() }
    }
}

/// Place of the recording of a run.
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

/// Parses a time from 100 ms to 24 h.
pub(crate) fn time_within_a_day(typed: &str) -> Result<Nanos, String> {
    let expected = "expected a time of 100ms to 24h, such as 500ms, 1m30s, 20";
    let time = typed.parse().ok().filter(|time| (Nanos::millis(100)..=Nanos::secs(86_400)).contains(time));
    time.ok_or_else(|| expected.to_owned())
}

//! Arguments of `plumb drive`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use plumb_block::Bytes;

use super::exports::{ExportArguments, Switch};
use super::output::PrintFormat;

/// Arguments of `plumb drive`.
#[derive(Debug, Args)]
#[command(mut_args(|argument| argument.global(true)))]
pub(crate) struct DriveArguments {
    #[command(subcommand)]
    pub(crate) command: DriveCommand,

    #[command(flatten)]
    pub(crate) printed: PrintFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DriveCommand {
    /// List the models
    List,
    /// Show the parameters of a model, their sources, and its figures beside published ones
    Show(ShowArguments),
    /// Serve a drive in real time until it is detached or the command is interrupted
    Serve(Box<ServeArguments>),
    /// Cut the power of a served drive, now or at a chosen moment
    ///
    /// Requests in flight get no answer. NBD connections end, idle ones too; clients connect again after
    /// `plumb drive power-on`. An attached device answers every request with an I/O error.
    Cut(CutArguments),
    /// Turn the power on again; the drive serves the data that survived
    ///
    /// The write cache is on or off as it was when the drive was served; `plumb drive set` does not outlast a
    /// power cut.
    ///
    /// An attached device that a program had open or mounted when the power was cut still answers every
    /// request with an I/O error, also those of other programs, until it is closed and unmounted. The
    /// programs are named. Then the kernel drops its cache of the device, as if the machine had lost power
    /// too, and the device serves requests again.
    PowerOn {
        /// The name of the drive
        name: String,
    },
    /// Show the state of a served drive, or of all served drives
    Status {
        /// The name of the drive; without it all are shown
        name: Option<String>,
    },
    /// Turn the write cache of a drive on or off, until its power is cut
    Set {
        /// The name of the drive
        name: String,

        /// The volatile write cache
        #[arg(long, value_enum)]
        wce: Switch,
    },
    /// Make commands of a drive fail, hang or be slow: `WHAT:EFFECT[:WHEN]`, such as write:eio:nth=100
    Fault(FaultArguments),
    /// Stop serving a drive: its exports and its process end
    ///
    /// A drive in use stays, and its users are named. This also removes what a killed process left of its
    /// drive.
    Detach(DetachArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The name of a model, or the path of a model file; ?PARAMETER=VALUE after it changes a parameter
    pub(crate) model: String,

    /// Also run the drive in virtual time, and show its figures beside the published ones
    #[arg(long)]
    pub(crate) figures: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The name of a model, or the path of a model file; ?PARAMETER=VALUE after it changes a parameter
    pub(crate) model: String,

    /// Name of the drive; default the name of the model, with a number if that is taken
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Capacity; default that of the model
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,

    /// Where durable data is kept: `memory`, or a file, which is the medium and outlives the process. A
    /// missing or empty file is made; any other file must be the medium of such a drive
    #[arg(long, value_name = "FILE|memory", default_value = "memory")]
    pub(crate) backing: PathBuf,

    /// Use a --backing FILE that plumb did not make: its content is the content of the drive, and will be
    /// overwritten
    #[arg(long, requires = "backing")]
    pub(crate) overwrite: bool,

    /// Use a --backing FILE although a write-back cache needs it, and what only that cache holds is lost: its
    /// absolute path
    #[arg(long, value_name = "PATH", requires = "backing")]
    pub(crate) destroy: Vec<String>,

    /// Seed of all random choices: which writes survive a power cut, which blocks are damaged
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    #[command(flatten)]
    pub(crate) exports: ExportArguments,

    /// Take over /dev/ublkbN of a killed server, and serve the requests that wait there; needs the same
    /// --backing FILE
    #[arg(long, value_name = "N", requires = "ublk")]
    pub(crate) recover: Option<u32>,

    /// The volatile write cache when the power comes on; default that of the model
    #[arg(long, value_enum)]
    pub(crate) wce: Option<Switch>,

    /// Make commands fail, hang or be slow: `WHAT:EFFECT[:WHEN]`, such as flush:eio:nth=3; may be given
    /// several times
    #[arg(long, value_name = "FAULT")]
    pub(crate) fault: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CutArguments {
    /// The name of the drive
    pub(crate) name: String,

    /// When the Nth write from now arrives at the drive; a large write over NBD counts as several,
    /// write-zeroes as a write
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), group = "when")]
    pub(crate) at_write: Option<u64>,

    /// When the Nth flush from now arrives at the drive; FUA on a drive without FUA counts as a flush
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), group = "when")]
    pub(crate) at_flush: Option<u64>,

    /// At a random moment in a window, such as flush:3:submitted..flush:3:completed
    #[arg(long, value_name = "EVENT..EVENT", group = "when")]
    pub(crate) between: Option<String>,

    /// Cancel a cut that has not happened yet
    #[arg(long, group = "when")]
    pub(crate) disarm: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FaultArguments {
    /// The name of the drive
    pub(crate) name: String,

    /// The fault
    #[arg(required_unless_present = "clear", conflicts_with = "clear")]
    pub(crate) fault: Option<String>,

    /// Remove all faults
    #[arg(long)]
    pub(crate) clear: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DetachArguments {
    /// The name of the drive
    pub(crate) name: String,

    /// Do this even if the drive is in use: its users get I/O errors
    #[arg(long, visible_alias = "force")]
    pub(crate) cut_off: bool,
}

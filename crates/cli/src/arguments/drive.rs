//! What can be typed after `plumb drive`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use plumb_block::Bytes;

/// Simulated drives: what there is, what each is made of, one of them as a block device with a power switch.
///
/// In any command that takes a device, `sim:MODEL?wce=off&seed=7` is such a drive too, in virtual time.
#[derive(Debug, Args)]
pub(crate) struct DriveArguments {
    #[command(subcommand)]
    pub(crate) command: DriveCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DriveCommand {
    /// The models that are shipped
    List {
        /// One JSON document on stdout
        #[arg(long)]
        json: bool,
    },
    /// What a model is made of, where each figure comes from, and what it does beside what is published
    Show(ShowArguments),
    /// Serve a drive of a model, in real time, until it is detached or the command is interrupted
    Serve(Box<ServeArguments>),
    /// Cut the power of a drive that is being served, now or at a chosen moment
    Cut(CutArguments),
    /// Turn the power on again: the drive serves what survived
    ///
    /// What the kernel has cached of an attached drive is forgotten before, as in a machine that lost power with it. What is mounted
    /// keeps its own cache: unmount it first.
    PowerOn(NamedArguments),
    /// How a drive is that is being served; all of them without a name
    Status {
        /// Its name
        name: Option<String>,

        /// One JSON document on stdout
        #[arg(long)]
        json: bool,
    },
    /// Switch the write cache of a drive
    Set {
        /// Its name
        name: String,

        /// The volatile write cache
        #[arg(long, value_enum)]
        wce: Switch,

        /// One JSON document on stdout: the state afterwards
        #[arg(long)]
        json: bool,
    },
    /// Let commands of a drive fail, hang or be slow: WHAT:EFFECT[:WHEN], such as write:eio:nth=100
    Fault(FaultArguments),
    /// Take a drive away: no more exports, and its process ends
    Detach(NamedArguments),
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

impl Switch {
    pub(crate) const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The name of a shipped model, or the path of a model file
    pub(crate) model: String,

    /// Also run the drive in virtual time, and show its figures beside those that are published
    #[arg(long)]
    pub(crate) figures: bool,

    /// One JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The name of a shipped model, or the path of a model file
    pub(crate) model: String,

    /// What to call this drive; default the model's name, with a number if it is taken
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Its capacity; default the model's
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,

    /// Where what is durable is kept: a file, which then is the medium and outlives the process, or `memory`
    #[arg(long, value_name = "FILE|memory", default_value = "memory")]
    pub(crate) backing: PathBuf,

    /// Seed of everything random: what survives a power cut, where damage strikes
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Serve it over NBD on this unix socket
    #[arg(long, value_name = "SOCKET")]
    pub(crate) nbd: Option<PathBuf>,

    /// Attach it to the kernel as a loop device (needs root)
    #[arg(long)]
    pub(crate) attach: bool,

    /// The volatile write cache when the power comes on; default the model's
    #[arg(long, value_enum)]
    pub(crate) wce: Option<Switch>,

    /// Let commands fail, hang or be slow: WHAT:EFFECT[:WHEN], such as flush:eio:nth=3; may be given several times
    #[arg(long, value_name = "FAULT")]
    pub(crate) fault: Vec<String>,

    /// One JSON document on stdout when it is ready
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CutArguments {
    /// The name of the drive
    pub(crate) name: String,

    /// When the Nth write from now arrives
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), group = "when")]
    pub(crate) at_write: Option<u64>,

    /// When the Nth flush from now arrives
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), group = "when")]
    pub(crate) at_flush: Option<u64>,

    /// At a random moment in a window, such as flush:3:submitted..flush:3:completed
    #[arg(long, value_name = "EVENT..EVENT", group = "when")]
    pub(crate) between: Option<String>,

    /// One JSON document on stdout: the state afterwards
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FaultArguments {
    /// The name of the drive
    pub(crate) name: String,

    /// The fault
    #[arg(required_unless_present = "clear", conflicts_with = "clear")]
    pub(crate) fault: Option<String>,

    /// Take all faults away
    #[arg(long)]
    pub(crate) clear: bool,

    /// One JSON document on stdout: the state afterwards
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NamedArguments {
    /// The name of the drive
    pub(crate) name: String,

    /// One JSON document on stdout: the state afterwards
    #[arg(long)]
    pub(crate) json: bool,
}

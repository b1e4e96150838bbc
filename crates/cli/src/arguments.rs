//! Arguments of the commands as typed. The commands interpret them. Doc comments of arguments are the help
//! text.

pub(crate) mod cache;
pub(crate) mod check;
pub(crate) mod drive;
mod effect;
pub(crate) mod exports;
pub(crate) mod line;
pub(crate) mod load;
pub(crate) mod names;
pub(crate) mod output;
pub(crate) mod policy;
pub(crate) mod report;
pub(crate) mod running;
pub(crate) mod survey;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use self::check::CheckArguments;
pub(crate) use self::effect::Effect;
use self::load::{ForeignArguments, LoadArguments};
use self::output::OutputArguments;
use self::report::ReportArguments;
use self::survey::SurveyArguments;

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
    /// Explain a rule that a report names
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
        #[arg(required = true)]
        shell: Option<clap_complete::Shell>,

        /// Print the names of one kind, which the scripts ask for
        #[arg(long, value_enum, hide = true, value_name = "KIND", conflicts_with = "shell")]
        names: Option<names::Names>,
    },
}

//! `plumb prove`: proofs of what survives a power cut. One file per command, with its arguments.

mod app;
mod campaign;
mod ci;
mod cut;
mod progress;
mod replay;
mod subject;
mod trace;
mod verify;
mod witness;
mod writer;

use clap::{Args, Subcommand};

use crate::exit::Exit;

/// Arguments of `plumb prove`.
#[derive(Debug, Args)]
pub(crate) struct ProveArguments {
    #[command(subcommand)]
    command: ProveCommand,
}

#[derive(Debug, Subcommand)]
enum ProveCommand {
    /// Record an application on a drive, and explore every state that a power cut may leave
    App(Box<app::AppArguments>),
    /// Prove a program on a build server: without root, on a file system that promises only what POSIX does
    Ci(Box<ci::CiArguments>),
    /// Cut the power of a program that `plumb prove app --name NAME` runs
    Cut(cut::CutArguments),
    /// Show a failing state of a proof again, or mount it for a look
    Replay(replay::ReplayArguments),
    /// Find what a program renames, creates and writes without a sync
    Trace(trace::TraceArguments),
    /// Do the work of a built-in subject, in a process of its own that can be traced
    #[command(hide = true)]
    Subject(subject::SubjectArguments),
    /// Record on another machine what was acknowledged before the power went
    Witness(witness::WitnessArguments),
    /// Write to a drive, and tell a witness what it acknowledged
    Writer(Box<writer::WriterArguments>),
    /// After the power came back, compare the drive with what the witness recorded
    Verify(verify::VerifyArguments),
    /// Cut the power of a drive many times, and verify it after each cut
    Campaign(Box<campaign::CampaignArguments>),
}

impl ProveArguments {
    /// Returns true if a drive is only read.
    pub(crate) fn reads(&self) -> bool {
        matches!(self.command, ProveCommand::Verify(_))
    }

    /// Returns true if another command runs this one as a part of its work.
    pub(crate) fn is_part_of_another(&self) -> bool {
        matches!(self.command, ProveCommand::Subject(_))
    }
}

/// Runs the command as typed.
pub(crate) fn run(arguments: ProveArguments) -> anyhow::Result<Exit> {
    match arguments.command {
        ProveCommand::App(app) => app::run(*app),
        ProveCommand::Ci(ci) => ci::run(&ci),
        ProveCommand::Cut(cut) => cut::run(&cut),
        ProveCommand::Replay(replay) => replay::run(&replay),
        ProveCommand::Trace(trace) => trace::run(&trace),
        ProveCommand::Subject(subject) => subject::run(&subject),
        ProveCommand::Witness(witness) => witness::run(witness),
        ProveCommand::Writer(writer) => writer::run(&writer),
        ProveCommand::Verify(verify) => verify::run(&verify),
        ProveCommand::Campaign(campaign) => campaign::run(*campaign),
    }
}

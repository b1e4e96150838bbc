//! Options for reaching hosts.

use clap::Args;
use plumb_block::{FailureKind, Nanos};
use plumb_dialect::native::split;
use plumb_fleet::agent::HEARTBEAT_MAX;
use plumb_fleet::{Session, hosts};

use crate::arguments::running::RecordingArguments;
use crate::exit::{Refusal, usage};
use crate::surroundings::out;
use crate::{files, stop};

/// Options that say how hosts are reached.
#[derive(Debug, Args)]
#[command(next_help_heading = "Hosts")]
pub(super) struct Reach {
    /// The hosts: names with commas and ranges, a[01-08,12],db1, or a file with such names in its lines
    #[arg(long, value_name = "FILE|NAMES", allow_hyphen_values = true)]
    hosts: String,

    /// Command that runs another command on {host}, which may be written {pod} or {node}
    #[arg(long, value_name = "WORDS", default_value = "ssh -o BatchMode=yes {host}")]
    launcher: String,

    /// Name or path of plumb on the hosts
    #[arg(long, value_name = "PROGRAM", default_value = "plumb", conflicts_with = "push")]
    remote_plumb: String,

    /// Copy this program to each host first, and remove it afterwards
    #[arg(long)]
    push: bool,

    /// Accept another build of the same version on the hosts
    #[arg(long)]
    any_build: bool,

    /// How many hosts are connected at one time
    #[arg(long, value_name = "N", default_value = "32", value_parser = clap::value_parser!(u16).range(1..))]
    forks: u16,

    /// How long an agent may take to answer
    #[arg(long, value_name = "TIME", default_value = "30s")]
    connect_timeout: Nanos,

    /// How long a host may take to prepare its targets, or to run a command; after that the others start
    /// without it
    #[arg(long, value_name = "TIME", default_value = "2h")]
    prepare_timeout: Nanos,

    /// Interval of the heartbeats between agents and controller; after two missed ones and a second, either
    /// side gives up
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = heartbeat)]
    heartbeat: Nanos,
}

impl Reach {
    /// Creates the session, without starting agents.
    ///
    /// # Errors
    /// If an option is invalid.
    pub(super) fn session(&self, recording: &RecordingArguments) -> anyhow::Result<Session> {
        // The launcher may contain secrets, so the message does not repeat it.
        let unreadable = || Refusal::new(FailureKind::Usage, "--launcher: a quote has no end");
        let reach = plumb_fleet::Reach {
            names: hosts::of_argument(&self.hosts, &files::read).map_err(usage)?,
            launcher: split(&self.launcher).ok_or_else(unreadable)?,
            remote_plumb: self.remote_plumb.clone(),
            push: self.push,
            any_build: self.any_build,
            forks: usize::from(self.forks),
            connect_within: self.connect_timeout,
            prepare_within: self.prepare_timeout,
            heartbeat: self.heartbeat,
        };
        Ok(Session::open(reach, out(recording, "fleet"), stop::on_signals()?)?)
    }
}

/// Parses a time from 100 ms to a minute.
fn heartbeat(typed: &str) -> Result<Nanos, String> {
    let expected = "expected a time of 100ms to 1m, such as 2s";
    let time = typed.parse().ok().filter(|time| (Nanos::millis(100)..=HEARTBEAT_MAX).contains(time));
    time.ok_or_else(|| expected.to_owned())
}

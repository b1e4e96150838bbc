//! `plumb fleet`: loads, checks and surveys on many hosts, through the launcher that the site already has.

mod compare;
mod load;
mod progress;
mod record;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use clap::{Args, Parser as _, Subcommand};
use plumb_block::{Clock as _, Nanos};
use plumb_dialect::native::split;
use plumb_fleet::{Controller, Launcher, MonotonicClock, Processes, Settings, Task, hosts, merge};
use plumb_report::document::FleetDocument;
use plumb_report::{Format, Style, render, verdict};
use plumb_trial::environment;

use self::progress::Progress;
use crate::arguments::{Arguments, Detail, RecordingArguments};
use crate::command::agent::own_identity;
use crate::exit::{self, Exit, Refusal, usage};
use crate::surroundings::{argv, time_of_day};
use crate::{files, stop, terminal};

const EXAMPLES: &str = "\
Examples:
  plumb fleet survey --hosts 'a[01-08],db1' /srv
  plumb fleet load --hosts hosts.txt /srv/io.dat --size 1G --random --write 100 --block-size 8k --depth 64
  plumb fleet load --hosts 'a[01-08]' --scale 1,2,4,8 --push /srv/io.dat --size 1G --random
  plumb fleet check --hosts a,b --launcher 'srun -w {host} sh -c' /srv
  plumb fleet compare --hosts 'a[1-8]' --factor buffering=direct,cached /srv/io.dat --size 1G --random --duration 5s
  plumb fleet policy-show --hosts 'db[1-4]' --json

The launcher's words are followed by the remote command as one word, as ssh takes it; a launcher that starts no shell there needs
`sh -c` at its end. It must not ask for anything: keys are the launcher's business. Exit codes: 1 something was found, 3 a host is missing.";

/// What `plumb fleet` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FleetArguments {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Run a workload on all hosts at the same time, each on its own targets
    Load(Box<load::LoadArguments>),
    /// Compare levels of a factor on all hosts at once, in interleaved blocks
    Compare(Box<compare::FleetCompareArguments>),
    /// Check a directory on each host
    Check(CommandArguments),
    /// Show the write path on each host
    Survey(CommandArguments),
    /// Show the write caches of each host
    PolicyShow(CommandArguments),
}

/// How hosts are reached.
#[derive(Debug, Args)]
#[command(next_help_heading = "Hosts")]
struct Reach {
    /// The hosts: a file with one a line, or names with commas and ranges: a[01-08],db1
    #[arg(long, value_name = "FILE|NAMES", allow_hyphen_values = true)]
    hosts: String,

    /// What starts a command on {host}
    #[arg(long, value_name = "WORDS", default_value = "ssh {host}")]
    launcher: String,

    /// What plumb is called on the hosts
    #[arg(long, value_name = "PROGRAM", default_value = "plumb", conflicts_with = "push")]
    remote_plumb: String,

    /// Copy this program to each host first, and take it away afterwards
    #[arg(long)]
    push: bool,

    /// Take another build of the same version on the hosts as it is
    #[arg(long)]
    any_build: bool,

    /// How many hosts are connected at one time
    #[arg(long, value_name = "N", default_value = "32", value_parser = clap::value_parser!(u16).range(1..))]
    forks: u16,

    /// How long a host may take until its agent has answered
    #[arg(long, value_name = "TIME", default_value = "30s")]
    connect_timeout: Nanos,

    /// How often agents and controller hear of each other; after two of them and a second without, either gives up
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = heartbeat)]
    heartbeat: Nanos,
}

/// What a command takes that each host runs for itself.
#[derive(Debug, Args)]
struct CommandArguments {
    #[command(flatten)]
    reach: Reach,

    #[command(flatten)]
    recording: RecordingArguments,

    /// Print one JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    detail: Detail,

    /// What the command takes on each host; {host} stands for its name
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// A time from 100 ms to a minute.
fn heartbeat(typed: &str) -> Result<Nanos, String> {
    let expected = "expected a time of 100ms to 1m, such as 2s";
    let time = typed.parse().ok().filter(|time| (Nanos::millis(100)..=Nanos::secs(60)).contains(time));
    time.ok_or_else(|| expected.to_owned())
}

/// Runs what was typed.
pub(crate) fn run(arguments: &FleetArguments) -> anyhow::Result<Exit> {
    match &arguments.command {
        FleetCommand::Load(load) => load::run(load),
        FleetCommand::Compare(compare) => compare::run(compare),
        FleetCommand::Check(check) => run_command(&["check", "--no-record"], check),
        FleetCommand::Survey(survey) => run_command(&["survey"], survey),
        FleetCommand::PolicyShow(policy) => run_command(&["policy", "show"], policy),
    }
}

/// Runs a command of plumb on each host.
fn run_command(words: &[&str], typed: &CommandArguments) -> anyhow::Result<Exit> {
    let command = |host: &str| -> Vec<String> {
        let own = words.iter().map(|word| (*word).to_owned()).chain(["--json".to_owned()]);
        let given = typed.arguments.iter().filter(|word| *word != "--json");
        own.chain(given.map(|word| word.replace("{host}", host))).collect()
    };
    let mut session = Session::open(&typed.reach)?;
    // What no host could take is told before any is asked.
    for host in &session.names {
        Arguments::try_parse_from(["plumb".to_owned()].into_iter().chain(command(host)))?;
    }
    let named: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with('-')).collect();
    let names = session.names.clone();
    let task = |number: usize| Some(Task::Command { arguments: command(&names[number]) });
    session.run(&task, &mut Progress::lines())?;
    let answers = merge::answers(&mut session.controller);
    session.leave()?;
    let document = FleetDocument { command: named.join(" "), ..merge::document(&answers) };
    let document = concluded(document, &answers);
    let document = record::keep(document, &answers, &typed.recording)?;
    let as_json = typed.json || typed.arguments.iter().any(|word| word == "--json");
    show(&document, as_json, typed.detail.style())?;
    Ok(exit_of(&document))
}

/// The document with what is known of the controller, judged.
fn concluded(mut document: FleetDocument, answers: &[merge::Answer]) -> FleetDocument {
    document.environment = environment(&argv(), &time_of_day());
    verdict::conclude_fleet(&mut document, &merge::findings(answers));
    document
}

fn show(document: &FleetDocument, as_json: bool, style: Style) -> anyhow::Result<()> {
    let format = if as_json { Format::Json } else { Format::Terminal };
    terminal::print(&render(document, format, style)?)?;
    if let Some(directory) = &document.run_directory {
        terminal::say(&format!("plumb: report: {directory}/{}", Format::Html.file_name()));
    }
    Ok(())
}

/// How a command ends that shows many hosts: as the worst of them, and without one of them it was not measured.
pub(crate) fn exit_of(document: &FleetDocument) -> Exit {
    let of_host = |exit: Option<u8>| match exit {
        Some(0 | 1) => Exit::Done,
        Some(2) => Exit::Usage,
        Some(4) => Exit::Refused,
        Some(5) => Exit::Failed,
        _ => Exit::NotMeasured,
    };
    let worst = document.hosts.iter().fold(Exit::Done, |exit, host| exit.and(of_host(host.exit)));
    worst.and(exit::of_findings(&document.verdicts))
}

/// Agents on many hosts.
struct Session {
    names: Vec<String>,
    controller: Controller,
    processes: Processes,
    stop: Arc<AtomicBool>,
}

impl Session {
    /// The agents that are reached so; none is started yet.
    fn open(reach: &Reach) -> anyhow::Result<Self> {
        let names = named_hosts(&reach.hosts)?;
        let unreadable =
            || Refusal::new(Exit::Usage, format!("--launcher {}: a quote has no end", reach.launcher));
        let words = split(&reach.launcher).ok_or_else(unreadable)?;
        let empty = || Refusal::new(Exit::Usage, "--launcher: no program is named, such as ssh {host}");
        let launcher = Launcher::new(words, &reach.remote_plumb).ok_or_else(empty)?;
        let program = reach.push.then(|| PathBuf::from("/proc/self/exe"));
        let settings = Settings {
            identity: own_identity()?,
            any_binary: reach.any_build,
            heartbeat: reach.heartbeat,
            connect_within: reach.connect_timeout,
            forks: usize::from(reach.forks),
            stop_within: Nanos::secs(30),
        };
        Ok(Self {
            controller: Controller::new(settings, &names),
            processes: Processes::new(launcher, &names, program),
            names,
            stop: stop::on_signals()?,
        })
    }

    /// Has each host do its task, to the end.
    fn run(&mut self, task: &dyn Fn(usize) -> Option<Task>, progress: &mut Progress) -> anyhow::Result<()> {
        let clock = MonotonicClock;
        self.controller.begin(task);
        let stop = Arc::clone(&self.stop);
        self.processes
            .drive(
                &mut self.controller,
                &Controller::is_done,
                (&clock, &*self.stop),
                &mut |controller, now| {
                    progress.look(controller, now, &stop);
                },
            )
            .context("cannot wait for the hosts")
    }

    /// Ends all agents.
    fn leave(&mut self) -> anyhow::Result<()> {
        let clock = MonotonicClock;
        self.controller.leave(clock.now());
        // Whoever waits for the end of launchers is not to be hurried again.
        let stop = AtomicBool::new(false);
        self.processes
            .drive(&mut self.controller, &Controller::has_left, (&clock, &stop), &mut |_, _| {})
            .context("cannot wait for the hosts")
    }
}

/// The hosts that were typed, or those of a file.
fn named_hosts(typed: &str) -> Result<Vec<String>, Refusal> {
    if !std::path::Path::new(typed).is_file() {
        return hosts::of_list(typed).map_err(usage);
    }
    let text =
        files::read(typed).map_err(|error| Refusal::new(Exit::Usage, format!("--hosts {typed}: {error}")))?;
    hosts::of_file(&text).map_err(|error| Refusal::new(Exit::Usage, format!("--hosts {typed}: {error}")))
}

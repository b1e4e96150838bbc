//! `plumb fleet`: loads, checks and surveys on many hosts, through the launcher that the site already has.

mod compare;
mod load;
mod progress;

use std::path::Path;

use clap::{Arg, Args, Parser as _, Subcommand};
use plumb_block::{Nanos, in_one_line};
use plumb_dialect::native::split;
use plumb_fleet::agent::HEARTBEAT_MAX;
use plumb_fleet::record::{self, Command, Content, Recording};
use plumb_fleet::{Session, Task, hosts, merge};
use plumb_path::Survey;
use plumb_policy::view::PolicyDocument;
use plumb_report::document::{CheckDocument, FleetDocument, FleetRecording};
use plumb_report::{Format, Kind, Style, UNKNOWN};
use plumb_trial::TrialEnded;

use self::progress::Progress;
use crate::arguments::output::Printed;
use crate::arguments::{Arguments, Detail, RecordingArguments};
use crate::command::running::exit_of_end;
use crate::exit::{self, Exit, Refusal, usage};
use crate::strictness::Strictness;
use crate::surroundings::{argv, out, time_of_day};
use crate::{files, stop, terminal};

/// Arguments of `plumb fleet`.
#[derive(Debug, Args)]
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
    /// The hosts: names with commas and ranges, a[01-08,12],db1, or a file with such names in its lines
    #[arg(long, value_name = "FILE|NAMES", allow_hyphen_values = true)]
    hosts: String,

    /// Command that starts another on {host}, which may be written {pod} or {node}
    #[arg(long, value_name = "WORDS", default_value = "ssh -o BatchMode=yes {host}")]
    launcher: String,

    /// Name or path of plumb on the hosts
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

    /// How long a host may take to make its targets ready, or to run a command; it is given up then, and the
    /// others start without it
    #[arg(long, value_name = "TIME", default_value = "2h")]
    prepare_timeout: Nanos,

    /// How often agents and controller hear of each other; after two of them and a second without, either
    /// gives up
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = heartbeat)]
    heartbeat: Nanos,
}

impl Reach {
    /// Creates the agents that are reached so; none is started yet.
    ///
    /// # Errors
    /// If what was typed makes no sense.
    fn session(&self, recording: &RecordingArguments) -> anyhow::Result<Session> {
        // Words of the launcher may hold secrets: they are not repeated.
        let unreadable = || Refusal::new(Exit::Usage, "--launcher: a quote has no end");
        let reach = plumb_fleet::Reach {
            names: named_hosts(&self.hosts)?,
            launcher: split(&self.launcher).ok_or_else(unreadable)?,
            remote_plumb: self.remote_plumb.clone(),
            push: self.push,
            any_build: self.any_build,
            forks: usize::from(self.forks),
            connect_within: self.connect_timeout,
            prepare_within: self.prepare_timeout,
            heartbeat: self.heartbeat,
        };
        Ok(Session::open(reach, out(recording, "fleet"), stop::on_signals()?).map_err(Refusal::from)?)
    }
}

/// Reads the hosts that were typed, or those of a file. No host has a name with a slash, or one that ends as
/// that of a text does; and what is there and is no directory is meant as the file.
fn named_hosts(typed: &str) -> Result<Vec<String>, Refusal> {
    let path = Path::new(typed);
    let is_there = path.symlink_metadata().is_ok_and(|found| !found.is_dir());
    if !is_there && !typed.contains('/') && !typed.ends_with(".txt") {
        return hosts::of_list(typed).map_err(usage);
    }
    let wrong = |why: &dyn std::fmt::Display| Refusal::new(Exit::Usage, format!("--hosts {typed}: {why}"));
    let found = path.metadata().map_err(|error| wrong(&error))?;
    if !found.is_file() {
        return Err(wrong(
            &"it is not a regular file: name a file with the hosts in its lines, or type them with commas",
        ));
    }
    hosts::of_file(&files::read(typed).map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))
}

/// Arguments of a command that each host runs for itself.
#[derive(Debug, Args)]
struct CommandArguments {
    #[command(flatten)]
    reach: Reach,

    #[command(flatten)]
    recording: RecordingArguments,

    #[command(flatten)]
    printed: Printed,

    #[command(flatten)]
    detail: Detail,

    #[command(flatten)]
    strictness: Strictness,

    /// Arguments of the command on each host; {host} stands for its name
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// A time from 100 ms to a minute.
fn heartbeat(typed: &str) -> Result<Nanos, String> {
    let expected = "expected a time of 100ms to 1m, such as 2s";
    let time = typed.parse().ok().filter(|time| (Nanos::millis(100)..=HEARTBEAT_MAX).contains(time));
    time.ok_or_else(|| expected.to_owned())
}

/// Runs what was typed.
pub(crate) fn run(arguments: &FleetArguments) -> anyhow::Result<Exit> {
    match &arguments.command {
        FleetCommand::Load(load) => load::run(load),
        FleetCommand::Compare(compare) => compare::run(compare),
        FleetCommand::Check(check) => run_command(&["check", "--no-record"], CheckDocument::SCHEMA, check),
        FleetCommand::Survey(survey) => run_command(&["survey"], Survey::SCHEMA, survey),
        FleetCommand::PolicyShow(policy) => run_command(&["policy", "show"], PolicyDocument::SCHEMA, policy),
    }
}

/// Runs a command of plumb on each host, which prints a document of this schema.
fn run_command(words: &[&str], schema: &str, typed: &CommandArguments) -> anyhow::Result<Exit> {
    let command = |host: &str| -> Vec<String> {
        let own = words.iter().map(|word| (*word).to_owned()).chain(["--json".to_owned()]);
        let given = typed.arguments.iter().filter(|word| *word != "--json");
        own.chain(given.map(|word| word.replace("{host}", host))).collect()
    };
    if let Some(word) = misplaced(&typed.arguments) {
        let problem =
            format!("{word} is an option of `plumb fleet`: type it before the words that each host is given");
        return Err(Refusal::new(Exit::Usage, problem).into());
    }
    let as_json = typed.arguments.iter().any(|word| word == "--json");
    let printed = Printed { json: typed.printed.json || as_json, ..typed.printed };
    let format = printed.format(Kind::Fleet)?;
    let mut session = typed.reach.session(&typed.recording)?;
    // Words that no host could accept are reported before any host is contacted.
    for host in &session.names {
        Arguments::try_parse_from(["plumb".to_owned()].into_iter().chain(command(host)))?;
    }
    let named: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with('-')).collect();
    let names = session.names.clone();
    let task =
        |number: usize| Some(Task::Command { arguments: command(&names[number]), schema: schema.to_owned() });
    let begun = FleetDocument { command: named.join(" "), ..FleetDocument::default() };
    let (answers, recording) = session
        .recorded(begun_now(), begun, Content::Answers, |session, kept| {
            session.run(&task, None, kept, &mut Progress::default())?;
            session.answers()
        })
        .map_err(Refusal::from)?;
    conclude(recording, answers, format, typed.detail.style(), typed.strictness)
}

/// An option of this command among the words of each host, where it would mean nothing. `--json` is taken
/// from there, too.
fn misplaced(words: &[String]) -> Option<&String> {
    let own = CommandArguments::augment_args(clap::Command::new("fleet"));
    let is_meant = |word: &str| {
        let typed = word.split_once('=').map_or(word, |(option, _)| option);
        let is_long =
            |argument: &Arg| argument.get_long().is_some_and(|long| typed.strip_prefix("--") == Some(long));
        let is_short =
            |argument: &Arg| argument.get_short().is_some_and(|short| typed == format!("-{short}"));
        typed != "--json" && own.get_arguments().any(|argument| is_long(argument) || is_short(argument))
    };
    words.iter().find(|word| is_meant(word))
}

/// Ends the recording with what the hosts answered, and shows it.
fn conclude(
    recording: Recording,
    mut answers: Vec<merge::Answer<'_>>,
    format: Format,
    style: Style,
    strictness: Strictness,
) -> anyhow::Result<Exit> {
    let mut document = record::document(&recording.begun, &mut answers);
    let kept = recording.finish(&document, &answers, document.incomplete_because.clone(), time_of_day());
    let exit = exit_of_recording(kept, &mut document.notes, &mut document.run_directory);
    let recording = FleetRecording::of(document, &record::histograms(&answers));
    terminal::show(&recording, format, style)?;
    terminal::say_report(recording.document.run_directory.as_ref());
    Ok(exit.and(exit_of(&recording.document, strictness)))
}

/// The command line as typed, but of the launcher only its program: a password may be among its words.
fn recorded_argv() -> Vec<String> {
    let program = |words: &str| format!("{} ...", words.split_whitespace().next().unwrap_or_default());
    let mut is_launcher = false;
    let recorded = |word: String| {
        if std::mem::replace(&mut is_launcher, word == "--launcher") {
            return program(&word);
        }
        match word.strip_prefix("--launcher=") {
            Some(words) => format!("--launcher={}", program(words)),
            None => word,
        }
    };
    argv().into_iter().map(recorded).collect()
}

/// The command that is recorded, which begins now.
fn begun_now() -> Command {
    Command { argv: recorded_argv(), started_at: time_of_day() }
}

/// How a command ends whose recording `ended` so. What is wrong with it is said, also in the result.
fn exit_of_recording(
    ended: plumb_measure::Result<()>,
    notes: &mut Vec<String>,
    run_directory: &mut Option<String>,
) -> Exit {
    let Err(error) = ended else { return Exit::Done };
    let why = format!("the recording is not whole: {}", in_one_line(&error));
    terminal::say(&format!("plumb: {why}"));
    notes.push(why);
    *run_directory = None;
    exit_of_end(&TrialEnded::Complete.unrecorded(&error))
}

/// How a command ends that shows many hosts. Whatever a host could not do, the result lacks it: it was not
/// measured. With which code the command ended there is told in the result, and is no code of all.
pub(crate) fn exit_of(document: &FleetDocument, strictness: Strictness) -> Exit {
    let is_whole = document.hosts.iter().all(|host| host.ok);
    let measured = if is_whole { Exit::Done } else { Exit::NotMeasured };
    let unknown = exit::of_unknown(document.level == UNKNOWN, strictness);
    measured.and(exit::of_findings(&document.verdicts)).and(unknown)
}

//! `plumb fleet`: loads, comparisons, checks and surveys on many hosts, through the launcher of the site.

mod compare;
mod ending;
mod load;
mod progress;
mod reach;

use clap::{Arg, Args, Subcommand};
use plumb_block::FailureKind;
use plumb_fleet::Task;
use plumb_fleet::record::Content;
use plumb_path::Survey;
use plumb_policy::view::PolicyDocument;
use plumb_report::Kind;
use plumb_report::document::{CheckDocument, FleetDocument};

use self::ending::{begun_now, conclude};
use self::progress::Progress;
use self::reach::Reach;
use crate::arguments::check::CheckArguments;
use crate::arguments::line::parse;
use crate::arguments::output::PrintFormat;
use crate::arguments::policy::PolicyArguments;
use crate::arguments::running::{Detail, RecordingArguments};
use crate::arguments::survey::SurveyArguments;
use crate::exit::{Exit, Refusal};
use crate::strictness::Strictness;

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

/// Arguments of a command that each host runs for itself.
#[derive(Debug, Args)]
struct CommandArguments {
    #[command(flatten)]
    reach: Reach,

    #[command(flatten)]
    recording: RecordingArguments,

    #[command(flatten)]
    printed: PrintFormat,

    #[command(flatten)]
    detail: Detail,

    #[command(flatten)]
    strictness: Strictness,

    /// Arguments of the command on each host; {host} stands for its name
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs the command line as typed.
pub(crate) fn run(arguments: &FleetArguments) -> anyhow::Result<Exit> {
    match &arguments.command {
        FleetCommand::Load(load) => load::run(load),
        FleetCommand::Compare(compare) => compare::run(compare),
        FleetCommand::Check(check) => {
            run_command::<CheckArguments>(&["check", "--no-record"], CheckDocument::SCHEMA, check)
        }
        FleetCommand::Survey(survey) => run_command::<SurveyArguments>(&["survey"], Survey::SCHEMA, survey),
        FleetCommand::PolicyShow(policy) => {
            run_command::<PolicyArguments>(&["policy", "show"], PolicyDocument::SCHEMA, policy)
        }
    }
}

/// Runs a command of plumb on each host. `T` has its arguments, and `schema` is that of its document.
fn run_command<T: Args>(words: &[&str], schema: &str, typed: &CommandArguments) -> anyhow::Result<Exit> {
    let command = |host: &str| -> Vec<String> {
        let own = words.iter().map(|word| (*word).to_owned()).chain(["--json".to_owned()]);
        let given = typed.arguments.iter().filter(|word| *word != "--json");
        own.chain(given.map(|word| word.replace("{host}", host))).collect()
    };
    if let Some(word) = misplaced(&typed.arguments) {
        let problem =
            format!("{word} is an option of `plumb fleet`: type it before the words that each host is given");
        return Err(Refusal::new(FailureKind::Usage, problem).into());
    }
    let as_json = typed.arguments.iter().any(|word| word == "--json");
    let printed = PrintFormat { json: typed.printed.json || as_json, ..typed.printed.clone() };
    let format = printed.format(Kind::Fleet)?;
    let mut session = typed.reach.session(&typed.recording)?;
    // Invalid words are reported before a host is contacted.
    for host in &session.names {
        parse::<T>(command(host))?;
    }
    let named: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with('-')).collect();
    let names = session.names.clone();
    let task =
        |number: usize| Some(Task::Command { arguments: command(&names[number]), schema: schema.to_owned() });
    let begun = FleetDocument { command: named.join(" "), ..FleetDocument::default() };
    let (answers, recording) = session.recorded(begun_now(), begun, Content::Answers, |session, kept| {
        let mut progress = Progress::default();
        session.run(&task, None, kept, &mut |hosts, now, trouble| progress.look(hosts, now, trouble))?;
        session.answers()
    })?;
    conclude(recording, answers, format, typed.detail.style(), typed.strictness)
}

/// Returns an option of this command that was typed among the words of the hosts, where it has no effect.
/// `--json` is accepted there.
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

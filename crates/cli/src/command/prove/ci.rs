//! `plumb prove ci`: a proof on the POSIX model for a build server.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use plumb_block::{FailureKind, Nanos};
use plumb_prove::proof::files_of;
use plumb_report::export::{annotations, baseline};
use plumb_report::quantity::counted;
use plumb_report::{Format, Kind, ProofDocument, render};
use plumb_text::shell_word;

use super::app::{self, AppArguments, Keep};
use crate::arguments::line::parse;
use crate::arguments::output::{OutputArguments, PrintFormat};
use crate::arguments::running::{Detail, RecordingArguments};
use crate::exit::{self, Exit, Refusal, usage};
use crate::surroundings::time_of_day;
use crate::{files, terminal};

/// Arguments of `plumb prove ci`.
#[derive(Debug, Clone, Args)]
pub(crate) struct CiArguments {
    /// Result without which the command fails
    #[arg(long, value_name = "RESULT", default_value = "no-failure")]
    require: Requirement,

    /// Accept the failures that FILE lists, one a line: they do not fail the command
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,

    /// Write all failures of this run to FILE, for --baseline in later runs; this run still exits with 1
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<PathBuf>,

    /// A shell command that prepares the directory before the power can go
    #[arg(long, value_name = "CMD")]
    setup: Option<String>,

    /// The checker, a shell command that looks at a state and exits with 0 (intact), 1 (lost) or 2 (corrupt)
    ///
    /// Without a checker plumb compares each state with the files that the program had made visible.
    #[arg(long, value_name = "CMD", conflicts_with = "read")]
    check: Option<String>,

    /// Without --check compare what this shell command prints of a state, and not the files
    #[arg(long, value_name = "CMD")]
    read: Option<String>,

    /// Name under which `plumb prove cut NAME` cuts the power of the running program
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Time limit of the exploration
    #[arg(long, value_name = "TIME", default_value = "60s")]
    budget: Nanos,

    /// Seed of all random choices, so that each build explores the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Write the result to FILE as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Write the page to FILE
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,

    /// Write the failures to FILE as a Code Quality report of GitLab
    #[arg(long, value_name = "FILE")]
    gitlab: Option<PathBuf>,

    /// Print the failures as annotations of GitHub; the default where GITHUB_ACTIONS is `true`
    #[arg(long)]
    github: bool,

    #[command(flatten)]
    printed: PrintFormat,

    #[command(flatten)]
    writing: OutputArguments,

    #[command(flatten)]
    detail: Detail,

    #[command(flatten)]
    recorded_in: RecordingArguments,

    /// The program and its arguments; a single word is given to the shell
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Result without which the command fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Requirement {
    /// Every state was explored, and none fails.
    Proved,
    /// No explored state fails.
    NoFailure,
}

/// Proves the program, and writes the results for a build server.
pub(crate) fn run(typed: &CiArguments) -> anyhow::Result<Exit> {
    let format = typed.printed.format(Kind::Proof)?;
    let accepted = typed.baseline.as_deref().map(accepted).transpose()?.unwrap_or_default();
    let outputs = [&typed.junit, &typed.page, &typed.gitlab, &typed.write_baseline];
    let outputs = outputs.into_iter().flatten().map(PathBuf::as_path);
    let outputs = typed.writing.each(outputs, &read_by(typed))?;
    let (run, mut document) = app::proved(app_arguments(typed)?, Keep::default())?;
    for failure in &mut document.failures {
        failure.accepted = accepted.contains(&failure.fingerprint());
    }
    let style = typed.detail.style();
    let kept = run.finish(&document, time_of_day());
    let at = annotated(typed);
    let texts = [
        typed.junit.as_ref().map(|_| render(&document, Format::Junit, style)).transpose()?,
        typed.page.as_ref().map(|_| render(&document, Format::Html, style)).transpose()?,
        typed.gitlab.as_ref().map(|_| annotations::gitlab(&document, &at)),
        typed.write_baseline.as_ref().map(|_| baseline::write(&document)),
    ];
    for (output, text) in outputs.iter().zip(texts.iter().flatten()) {
        output.write(text.as_bytes())?;
    }
    terminal::show(&document, format, style)?;
    if let Some(path) = &typed.write_baseline {
        terminal::say(&format!("plumb: {}", written(&document, path)));
    }
    if typed.github || std::env::var_os("GITHUB_ACTIONS").is_some_and(|set| set == "true") {
        terminal::say(annotations::github(&document, &at).trim_end());
    }
    kept?;
    Ok(ended(typed.require, &document))
}

/// Returns the named files that the command reads.
fn read_by(typed: &CiArguments) -> Vec<PathBuf> {
    let line = typed.command.join(" ");
    let lines = [&line].into_iter().chain(&typed.setup).chain(&typed.check).chain(&typed.read);
    files_of(lines).into_iter().chain(typed.baseline.clone()).collect()
}

/// Returns the arguments of the equivalent `plumb prove app`.
fn app_arguments(typed: &CiArguments) -> Result<AppArguments, Refusal> {
    let line = match &typed.command[..] {
        [line] => line.clone(),
        // `from_here` resolves an unquoted `./PROGRAM` against the current directory.
        [program, rest @ ..] => {
            rest.iter().fold(program.clone(), |line, word| line + " " + &shell_word(word))
        }
        [] => String::new(),
    };
    let words = ["app", "--fs=posix", "--run", &line].map(str::to_owned);
    let mut app: AppArguments = parse(words).map_err(usage)?;
    let CiArguments { setup, check, read, name, recorded_in, .. } = typed.clone();
    (app.setup, app.check, app.read, app.name, app.recorded_in) = (setup, check, read, name, recorded_in);
    (app.budget, app.seed) = (typed.budget, Some(typed.seed));
    Ok(app)
}

/// Returns the file for annotations: the program, if it is a file below the current directory.
fn annotated(typed: &CiArguments) -> String {
    let first = typed.command.iter().flat_map(|word| word.split_whitespace()).next().unwrap_or_default();
    let program = first.strip_prefix("./").unwrap_or(first);
    let is_here = Path::new(program).is_relative() && Path::new(program).is_file();
    if is_here { program.to_owned() } else { ".".to_owned() }
}

/// Reads the fingerprints of accepted failures from a baseline file.
fn accepted(path: &Path) -> Result<BTreeSet<String>, Refusal> {
    let text = files::read(&path.to_string_lossy()).map_err(|error| error.to_string());
    let read = text.and_then(|text| baseline::read(&text));
    read.map_err(|why| Refusal::new(FailureKind::Usage, format!("--baseline {}: {why}", path.display())))
}

/// Returns a message about a baseline that was written, and its use.
fn written(document: &ProofDocument, path: &Path) -> String {
    let path = path.display();
    match document.failures.iter().filter(|failure| !failure.accepted).count() {
        0 => format!("{path} accepts {}", counted(document.failures.len() as u64, "failure")),
        new => format!(
            "{path} accepts {} in later runs that name it with --baseline; this run does not accept {new} \
             of them, and exits with 1",
            counted(document.failures.len() as u64, "failure")
        ),
    }
}

/// Returns the exit code: a failure that is not accepted is a finding, and a result below the required one
/// counts as not measured.
fn ended(require: Requirement, document: &ProofDocument) -> Exit {
    let is_all_accepted = document.failures.iter().all(|failure| failure.accepted);
    if !document.failures.is_empty() && is_all_accepted {
        return exit::of_whole(require != Requirement::Proved);
    }
    let is_enough = document.proved || require == Requirement::NoFailure;
    exit::of_proof(document).and(exit::of_whole(is_enough))
}

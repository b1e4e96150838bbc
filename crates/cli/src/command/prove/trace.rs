//! `plumb prove trace`: which files a program syncs, and what it leaves to luck.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_linux::child::{self, Limits};
use plumb_prove::trace::{TraceDocument, Tracer};
use plumb_report::Style;
use plumb_report::terminal::{Cell, Ink, Table};

use super::failing_drive;
use crate::exit::{Exit, Refusal};
use crate::{stop, terminal};

/// What `plumb prove trace` takes.
#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// Look at files beneath this directory; default: the one where the program starts
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "fail_fsync")]
    beneath: Option<PathBuf>,
    /// Start the program in an empty ext4 file system on a simulated drive whose first write of file data
    /// fails, so that an fsync fails as on a broken drive: see whether the program ignores that, or tries
    /// again and believes it (takes root)
    #[arg(long)]
    fail_fsync: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The program and its arguments. What it writes to stdout goes to stderr
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Traces the program, and prints what it leaves to luck.
pub(crate) fn run(arguments: TraceArguments) -> anyhow::Result<Exit> {
    let stop = stop::on_signals()?;
    let mut document = if arguments.fail_fsync {
        failing_drive::with(&|place| traced(&arguments.command, place, Some(place), &stop))?
    } else {
        let here = std::env::current_dir().context("cannot find the current directory")?;
        traced(&arguments.command, arguments.beneath.as_deref().unwrap_or(&here), None, &stop)?
    };
    document.command = arguments.command;
    if arguments.json {
        terminal::print_json(&document)?;
    } else {
        terminal::print(&text(&document, terminal::style()))?;
    }
    if !document.findings.is_empty() {
        return Ok(Exit::Finding);
    }
    if stop.load(Ordering::Acquire) || document.failed_writes == Some(0) {
        return Ok(Exit::NotMeasured);
    }
    Ok(Exit::Done)
}

/// Runs the program to its end, in `directory` if one is given, and audits what it does beneath `root`.
fn traced(
    typed: &[String],
    root: &Path,
    directory: Option<&Path>,
    stop: &AtomicBool,
) -> anyhow::Result<TraceDocument> {
    let tracer = Tracer::start(root, Vec::new(), None)?;
    let (program, rest) = typed.split_first().context("no program was given")?;
    let mut command = Command::new(program);
    command.args(rest);
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    // A group of its own does not get what the terminal reads, but can be ended as a whole.
    let stdin = if std::io::stdin().is_terminal() { Stdio::null() } else { Stdio::inherit() };
    let mut command = tracer.command(&command);
    command.stdin(stdin).stdout(std::io::stderr());
    let limits = Limits { timeout: None, stop, grace: Duration::ZERO, kills_leftovers: false };
    let status = child::run(command, Vec::new(), limits).context("cannot run strace")?.status;
    let traced = tracer.finish()?;
    if traced.calls.is_empty() && !status.success() {
        let problem = format!("`{program}` could not be traced: strace ended with {status}");
        return Err(Refusal::new(Exit::NotMeasured, problem).into());
    }
    let document = TraceDocument::of(&traced, status.success());
    Ok(TraceDocument { ended: status.to_string(), ..document })
}

fn text(document: &TraceDocument, style: Style) -> String {
    let mut out = match document.findings.len() {
        0 => "Nothing was left to luck".to_owned(),
        1 => "1 thing was left to luck".to_owned(),
        count => format!("{count} things were left to luck"),
    };
    out += &format!(" beneath {}; the program ended with {}.\n", document.beneath, document.ended);
    match document.failed_writes {
        Some(0) => out += "No write of file data reached the drive, so none could fail: nothing is known.\n",
        Some(_) => out += "A write of the drive failed beneath the program, as was asked for.\n",
        None => {}
    }
    let findings = Table::of(&document.findings)
        .left("file", |finding| Cell::inked(Ink::Bold, &finding.path))
        .left("left to luck", |finding| &finding.sentence);
    out.extend(findings.if_any().map(|table| format!("\n{}", table.show_wrapped(style))));
    let synced = Table::of(&document.synced)
        .left("synced", |(path, _)| *path)
        .right("times", |(_, count)| count.to_string());
    out.extend(synced.if_any().map(|table| format!("\n{}", table.show(style))));
    for (way, count) in &document.not_seen {
        out += &format!("\nNot seen: what was written through {way}, which was set up {count} times.\n");
    }
    out
}

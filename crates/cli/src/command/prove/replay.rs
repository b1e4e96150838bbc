//! `plumb prove replay`: checks a failing state again, or mounts it.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use clap::Args;
use plumb_block::FailureKind;
use plumb_block::wait::{LOOK_EVERY, is_readable_soon};
use plumb_linux::orphans::Adoption;
use plumb_prove::explore::Choice;
use plumb_prove::file_system::FileSystem;
use plumb_prove::proof::{KeptRecording, ReadyRecording, recording_of};
use plumb_prove::session::private_mounts;
use plumb_prove::subject::Outcome;
use plumb_report::document::power::ProveReplay;
use plumb_report::document::proof::{Failure, FailureClass};
use plumb_report::{Format, Kind, ProofDocument, RunContents};

use crate::arguments::output::PrintFormat;
use crate::exit::{Exit, Refusal, refuse_if};
use crate::{stop, terminal};

/// Arguments of `plumb prove replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// The directory of a run of `plumb prove app`
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// The class of the failure, such as lost-acknowledged; default the worst one
    #[arg(value_name = "FAILURE")]
    failure: Option<String>,

    /// Mount the state at DIR for a look, and run no checker; until Enter or Ctrl-C. A state of --fs posix is
    /// made in DIR, which is empty, and stays there
    #[arg(long, value_name = "DIR", conflicts_with_all = ["json", "format"])]
    mount: Option<PathBuf>,

    /// Let this kernel mount the states of a drive that breaks its contract: the kernel may crash
    #[arg(long)]
    mount_here: bool,

    #[command(flatten)]
    printed: PrintFormat,
}

/// Runs the command as typed.
pub(crate) fn run(typed: &ReplayArguments) -> anyhow::Result<Exit> {
    let format = typed.printed.format(Kind::Status)?;
    let document = match RunContents::open(&typed.run) {
        Ok(Some(RunContents::Proof(document))) => document,
        opened => {
            let why = opened.err().map_or(String::new(), |error| format!("{error}; "));
            return Err(wrong(typed, &format!("{why}expected the directory of a proof")).into());
        }
    };
    let failure = chosen(typed, &document)?;
    let kept = KeptRecording::open(&recording_of(&typed.run, failure.recording))?;
    let stop = stop::on_signals()?;
    let _adoption = Adoption::begin().context("cannot adopt the processes that programs leave running")?;
    let drive = std::slice::from_ref(&document.drive);
    let mut ready = ReadyRecording::new(kept, drive, typed.mount_here, &stop)?;
    ready.confine(None)?;
    let choice = Choice::from(&failure.minimal);
    match &typed.mount {
        Some(directory) if ready.kept.file_system.is_posix() => copy(&ready, &choice, directory),
        Some(directory) => mount_and_wait(&ready, &choice, directory, &stop),
        None => {
            if !ready.kept.file_system.is_posix() {
                private_mounts()?;
            }
            report(failure, &ready.judge().outcome(&choice)?, format)
        }
    }
}

/// Returns the failure of the typed class, or the first one.
fn chosen<'a>(typed: &ReplayArguments, document: &'a ProofDocument) -> Result<&'a Failure, Refusal> {
    let failures = &document.failures;
    let is_it = |failure: &&Failure| typed.failure.as_deref().is_none_or(|it| it == failure.class.name());
    failures.iter().find(is_it).ok_or_else(|| match &typed.failure {
        Some(failure) if !failures.is_empty() => {
            let names: Vec<&str> = failures.iter().map(|failure| failure.class.name()).collect();
            wrong(typed, &format!("no state failed as `{failure}`: expected one of {}", names.join(", ")))
        }
        _ => wrong(typed, "that run found no failing state, so there is none to show"),
    })
}

fn wrong(typed: &ReplayArguments, what: &str) -> Refusal {
    Refusal::new(FailureKind::Usage, format!("{}: {what}", typed.run.display()))
}

fn report(failure: &Failure, outcome: &Outcome, format: Format) -> anyhow::Result<Exit> {
    let class = failure.class.name();
    let (found, words) = match outcome {
        Outcome::Intact => (None, None),
        Outcome::Failed { class, words } => (Some(class.name().to_owned()), Some(words.clone())),
    };
    // A state after a second cut may fail in any way.
    let any = failure.class == FailureClass::RecoveryNotIdempotent && found.is_some();
    let reproduced = any || found.as_deref() == Some(class);
    let replayed = ProveReplay {
        schema: ProveReplay::SCHEMA.to_owned(),
        class: class.to_owned(),
        required: failure.required,
        reproduced,
        found,
        words,
    };
    terminal::show_status(&replayed, format)?;
    Ok(if reproduced { Exit::Finding } else { Exit::NOT_MEASURED })
}

/// Creates the state in an empty directory.
fn copy(ready: &ReadyRecording, choice: &Choice, at: &Path) -> anyhow::Result<Exit> {
    let is_empty = std::fs::read_dir(at).is_ok_and(|mut entries| entries.next().is_none());
    let problem = format!("--mount {}: expected an existing, empty directory", at.display());
    refuse_if!(!is_empty, Usage, problem);
    ready.judge().make_in(choice, at)?;
    terminal::print(&format!("The state is in {}.\n", at.display()))?;
    Ok(Exit::Done)
}

/// Mounts the state, and waits.
fn mount_and_wait(
    ready: &ReadyRecording,
    choice: &Choice,
    at: &Path,
    stop: &AtomicBool,
) -> anyhow::Result<Exit> {
    let problem = format!("--mount {}: expected an existing directory", at.display());
    refuse_if!(!at.is_dir(), Usage, problem);
    let mut held = ready.judge().hold(choice)?;
    let said = if ready.kept.file_system == FileSystem::None {
        format!("The state is on {}. Enter or Ctrl-C takes it away.\n", held.path().display())
    } else {
        held.bind_at(at)?;
        format!("The state is mounted at {}. Enter or Ctrl-C unmounts it.\n", at.display())
    };
    let waited = terminal::print(&said).and_then(|()| wait(stop));
    held.release()?;
    waited.map(|()| Exit::Done)
}

/// Waits for Enter or a signal. Without a terminal there may be no line to read, and only a signal ends the
/// wait.
fn wait(stop: &AtomicBool) -> anyhow::Result<()> {
    let stdin = std::io::stdin();
    let mut is_open = true;
    while !stop.load(Ordering::Acquire) {
        match is_open {
            true if !is_readable_soon(stdin.as_fd()).context("cannot wait for a key")? => {}
            true if stdin.read_line(&mut String::new())? > 0 => break,
            true => is_open = false,
            false => std::thread::sleep(LOOK_EVERY.into()),
        }
    }
    Ok(())
}

//! `plumb prove replay`: a failing state again, put before the checker or mounted for a look.

use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_linux::apart;
use plumb_prove::explore::Limits;
use plumb_prove::file_system::FileSystem;
use plumb_prove::judge::Judge;
use plumb_prove::proof::{Case, Kept};
use plumb_prove::subject::Outcome;
use rustix::mount::{UnmountFlags, mount_bind, unmount};
use serde::Serialize;

use super::{judging, kept_run};
use crate::exit::{Exit, Refusal};
use crate::{stop, terminal};

/// How often whoever waits for a key looks for signals.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What `plumb prove replay` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 1 the state fails as it did, 0 with --mount, 3 the checker says something else now. It takes root, FUSE \
                        and a loop device. What is written to a mounted state is forgotten."
)]
pub(crate) struct ReplayArguments {
    /// The directory of a `plumb prove app`
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// The class of the failure, such as lost-acknowledged; default the worst one
    #[arg(value_name = "FAILURE")]
    failure: Option<String>,

    /// Mount the state at DIR for a look, and run no checker; until Enter or Ctrl-C
    #[arg(long, value_name = "DIR")]
    mount: Option<PathBuf>,

    /// Let this kernel mount what a drive left that breaks its contract: it may crash
    #[arg(long)]
    mount_here: bool,

    /// Print one JSON document
    #[arg(long, conflicts_with = "mount")]
    json: bool,
}

/// What came of it.
#[derive(Serialize)]
struct Replayed<'a> {
    schema: &'static str,
    class: &'a str,
    required: Option<u64>,
    /// Whether it fails as it did.
    reproduced: bool,
    /// What the checker says now; null if it finds nothing.
    found: Option<&'a str>,
    words: Option<&'a str>,
}

/// Does what was typed.
pub(crate) fn run(typed: &ReplayArguments) -> anyhow::Result<Exit> {
    let case = chosen(typed)?;
    let kept = kept_run::load(&kept_run::recording_of(&typed.run))?;
    let recorded = &kept.recorded;
    let profiles = judging::profiles(std::slice::from_ref(&case.drive), recorded.recording.logical_block)?;
    judging::allow(&profiles, kept.file_system, typed.mount_here)?;
    let stop = stop::on_signals()?;
    let timeout = Duration::from_secs_f64(kept.check_timeout);
    let subject = judging::subject(&kept.subject, timeout, &stop)?;
    let judge = Judge {
        recording: &recorded.recording,
        from: recorded.from,
        until: recorded.until,
        profile: &profiles[0],
        limits: Limits::default(),
        seed: 0,
        subject: &subject,
        file_system: kept.file_system,
        workers: 1,
        directory: &std::env::temp_dir(),
        timeout,
        stop: &stop,
        mount_here: typed.mount_here,
        results: None,
    };
    match &typed.mount {
        Some(directory) => look(&judge, &case, &kept, directory, &stop),
        None => {
            let found = judge.outcome(&case.choice).map_err(judging::judging)?;
            said(typed, &case, &found)
        }
    }
}

/// The case that was typed, or the first.
fn chosen(typed: &ReplayArguments) -> anyhow::Result<Case> {
    let cases = kept_run::cases(&typed.run)?;
    let names: Vec<&str> = cases.iter().map(|case| case.class.name()).collect();
    let wanted = typed.failure.as_deref();
    let found = cases.iter().find(|case| wanted.is_none_or(|wanted| wanted == case.class.name()));
    let run = typed.run.display();
    found.cloned().ok_or_else(|| {
        let message = match (&names[..], wanted) {
            ([], _) => format!("{run}: no state failed in that run, so there is none to show"),
            (_, wanted) => {
                let wanted = wanted.unwrap_or_default();
                format!(
                    "{run}: no state failed as `{wanted}` in that run: expected one of {}",
                    names.join(", ")
                )
            }
        };
        Refusal::new(Exit::Usage, message).into()
    })
}

fn said(typed: &ReplayArguments, case: &Case, found: &Outcome) -> anyhow::Result<Exit> {
    let class = case.class.name();
    let (now, words) = match found {
        Outcome::Intact => (None, None),
        Outcome::Failed { class, words } => (Some(class.name()), Some(words.as_str())),
    };
    let reproduced = now == Some(class);
    if typed.json {
        let schema = "plumb/prove-replay/1";
        let replayed = Replayed { schema, class, required: case.required, reproduced, found: now, words };
        terminal::print(&(serde_json::to_string_pretty(&replayed)? + "\n"))?;
    } else {
        let required =
            case.required.map_or("nothing".to_owned(), |number| format!("acknowledgement {number}"));
        let verdict = match (reproduced, now) {
            (true, _) => format!("fails again: {class}"),
            (false, Some(now)) => {
                format!("fails as {now} now; it failed as {class}, so the checker is not deterministic")
            }
            (false, None) => {
                format!("is intact now; it failed as {class}, so the checker is not deterministic")
            }
        };
        let words = words.map_or(String::new(), |words| format!("The checker says: {words}\n"));
        terminal::print(&format!("The state {verdict}. {required} had to be found.\n{words}"))?;
    }
    Ok(if reproduced { Exit::Finding } else { Exit::NotMeasured })
}

/// Mounts the state, and waits.
fn look(judge: &Judge<'_>, case: &Case, kept: &Kept, at: &Path, stop: &AtomicBool) -> anyhow::Result<Exit> {
    if !at.is_dir() {
        let message = format!("--mount {}: expected an existing directory", at.display());
        return Err(Refusal::new(Exit::Usage, message).into());
    }
    let held = judge.hold(&case.choice).map_err(judging::judging)?;
    let bare = kept.file_system == FileSystem::None;
    if bare {
        terminal::print(&format!(
            "The state is on {}. Enter or Ctrl-C takes it away.\n",
            held.path().display()
        ))?;
        wait(stop)?;
    } else {
        let path = held.path();
        let bound = apart::run(|| mount_bind(path, at))?;
        bound.with_context(|| format!("cannot mount at {}", at.display()))?;
        let said = terminal::print(&format!(
            "The state is mounted at {}. Enter or Ctrl-C unmounts it.\n",
            at.display()
        ));
        let waited = said.and_then(|()| wait(stop));
        apart::run(|| unmount(at, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW))?
            .with_context(|| format!("cannot unmount {}", at.display()))?;
        waited?;
    }
    held.release().map_err(judging::judging)?;
    Ok(Exit::Done)
}

/// Until Enter is pressed or a signal comes. Without a terminal there may be no line to read.
fn wait(stop: &AtomicBool) -> anyhow::Result<()> {
    let (pressed, key) = channel();
    let read = move || {
        let mut line = String::new();
        if std::io::stdin().lock().read_line(&mut line).is_ok_and(|read| read > 0) {
            // Whoever waited may have gone.
            pressed.send(()).unwrap_or_default();
        } else {
            std::mem::forget(pressed);
        }
    };
    std::thread::Builder::new().name("key".to_owned()).spawn(read).context("cannot wait for a key")?;
    while !stop.load(Ordering::Acquire) {
        match key.recv_timeout(LOOK_AGAIN) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(())
}

//! Leftovers of killed plumb processes on this machine, and their restoration.
//!
//! A killed run leaves changed settings, instances of the kernel's tracing, and files for the log of a cache;
//! a killed server leaves block devices and its control socket. A command that changes something first
//! restores the leftovers of runs; other commands only report them. `plumb restore` restores everything.
//! Leftovers of living processes are never touched: each kind identifies a dead owner by a lock, a process
//! number or a connection.

use plumb_block::{FailureKind, in_one_line};
use plumb_caches::LeftFiles;
use plumb_compare::setting::{self, LeftChanges};
use plumb_linux::tracing::LeftInstance;
use plumb_report::document::restore::{
    Leftover, LeftoverGroup, LeftoverKind as Kind, LeftoverOutcome as Outcome,
};
use plumb_serve::named::{forget, registry};
use plumb_serve::{attach, ublk};
use plumb_state::places;
use plumb_state::whole_file::FileError;
use plumb_trial::TrialError;

use crate::exit::Exit;
use crate::{setting_machine, terminal};

/// Choice between restoring and listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// Only list; nothing is changed.
    Look,
    /// Restore everything that can be restored.
    PutBack,
}

fn leftover(kind: Kind, name: impl Into<String>, outcome: Outcome) -> Leftover {
    Leftover { kind, name: name.into(), outcome, because: None }
}

fn in_use(kind: Kind, name: String, why: String) -> Leftover {
    Leftover { because: Some(why), ..leftover(kind, name, Outcome::InUse) }
}

fn failed(kind: Kind, name: impl Into<String>, error: &(dyn std::error::Error + 'static)) -> Leftover {
    Leftover { because: Some(in_one_line(error)), ..leftover(kind, name, Outcome::Failed) }
}

/// Converts the result of an attempt to restore.
fn after<E: std::error::Error + 'static>(kind: Kind, name: String, attempt: Result<(), E>) -> Leftover {
    match attempt {
        Ok(()) => leftover(kind, name, Outcome::PutBack),
        Err(error) => failed(kind, name, &error),
    }
}

/// Restores the leftovers of killed runs, and reports that. A failure does not stop the command.
pub(crate) fn put_back_runs() {
    let left = of_runs(Attempt::PutBack);
    let (unseen, left): (Vec<&Leftover>, Vec<&Leftover>) = left.iter().partition(|left| is_unseen(left));
    unseen.into_iter().for_each(|left| terminal::say(&unseen_words(left)));
    for group in LeftoverGroup::from_leftovers(left) {
        let words = group.words();
        terminal::say(&match group.outcome {
            Outcome::PutBack => format!("plumb: restored what a killed plumb had left: {words}"),
            _ => format!(
                "plumb: could not restore what a killed plumb had left: {words}; `plumb restore` tries again"
            ),
        });
    }
}

/// Reports leftovers of killed runs in one line, if there are any.
pub(crate) fn tell_of_runs() {
    say_left(&of_runs(Attempt::Look));
}

/// Reports block devices of killed servers in one line, if there are any.
pub(crate) fn tell_of_servers() {
    say_left(&block_devices(Attempt::Look));
}

/// Returns true if this entry stands for records that cannot be listed; there may be no leftovers.
fn is_unseen(left: &Leftover) -> bool {
    left.outcome == Outcome::Failed && left.name == setting_machine::records().display().to_string()
}

fn unseen_words(left: &Leftover) -> String {
    format!("plumb: cannot see whether a killed plumb left anything{}", left.reason())
}

fn say_left(left: &[Leftover]) {
    let (unseen, left): (Vec<&Leftover>, Vec<&Leftover>) = left.iter().partition(|left| is_unseen(left));
    unseen.into_iter().for_each(|left| terminal::say(&unseen_words(left)));
    if left.is_empty() {
        return;
    }
    let all: Vec<String> =
        LeftoverGroup::from_leftovers(left.iter().copied()).iter().map(LeftoverGroup::words).collect();
    let is_setting = left.iter().any(|left| left.kind == Kind::Setting);
    let verb = if is_setting { "restores" } else { "removes" };
    let what = if left.len() == 1 { "it" } else { "them" };
    let all = all.join(", ");
    terminal::say(&format!("plumb: a killed plumb left {all}: `plumb restore` {verb} {what}"));
}

/// Returns all leftovers of killed processes that this user can see.
pub(crate) fn all(attempt: Attempt) -> Vec<Leftover> {
    let mut all = of_runs(attempt);
    let devices = block_devices(attempt);
    // While the device of a killed server stays, its socket is kept as the evidence of the kind of server.
    let stays = devices.iter().any(|device| device.outcome != Outcome::PutBack);
    all.extend(devices);
    all.extend(control_sockets(if stays { Attempt::Look } else { attempt }));
    all
}

fn of_runs(attempt: Attempt) -> Vec<Leftover> {
    let mut all = settings(attempt);
    all.extend(unfinished_logs(attempt));
    for left in LeftInstance::all() {
        all.push(match attempt {
            Attempt::Look => leftover(Kind::TracingInstance, left.name(), Outcome::Left),
            Attempt::PutBack => after(Kind::TracingInstance, left.name(), left.remove()),
        });
    }
    all
}

fn settings(attempt: Attempt) -> Vec<Leftover> {
    let directory = setting_machine::records();
    let records = match setting::left_changes(&directory) {
        Ok(records) => records,
        Err(error) => return vec![failed(Kind::Setting, directory.display().to_string(), &error)],
    };
    let put_back = |left: LeftChanges| -> Result<(), TrialError> {
        let machine = setting_machine::this()?;
        left.put_back(&machine)
    };
    let each = |record: Result<LeftChanges, FileError>| match record {
        Err(error) => {
            let name = "a setting whose record is damaged (put it back by hand, and remove the record)";
            failed(Kind::Setting, name, &error)
        }
        Ok(left) if attempt == Attempt::Look => leftover(Kind::Setting, left.words(), Outcome::Left),
        Ok(left) => after(Kind::Setting, left.words(), put_back(left)),
    };
    records.into_iter().map(each).collect()
}

/// Returns the files of unfinished logs, created by a killed process and named by no configuration.
fn unfinished_logs(attempt: Attempt) -> Vec<Leftover> {
    // The state directory also has the records of settings, so `settings` reports that it cannot be listed.
    let left = LeftFiles::all(&plumb_caches::directory()).unwrap_or_default();
    let each = |left: LeftFiles| match attempt {
        Attempt::Look => leftover(Kind::UnfinishedLog, left.words(), Outcome::Left),
        Attempt::PutBack => after(Kind::UnfinishedLog, left.words(), left.put_back()),
    };
    left.into_iter().map(each).collect()
}

/// Returns the block devices of killed servers. Only root can create or list them.
fn block_devices(attempt: Attempt) -> Vec<Leftover> {
    if !rustix::process::geteuid().is_root() {
        return Vec::new();
    }
    let attached = of_servers(Kind::Attachment, attempt, attach::try_unserved(), || attach::sweep(None));
    let exported = of_servers(Kind::UblkDevice, attempt, ublk::unserved(), || ublk::sweep(None));
    [attached, exported].concat()
}

fn of_servers(
    kind: Kind,
    attempt: Attempt,
    left: Result<Vec<String>, plumb_serve::ExportError>,
    sweep: impl FnOnce() -> Result<attach::Swept, plumb_serve::ExportError>,
) -> Vec<Leftover> {
    let swept = match left {
        // With nothing to remove, a sweep would only create its directory.
        Ok(left) if attempt == Attempt::Look || left.is_empty() => {
            return left.into_iter().map(|name| leftover(kind, name, Outcome::Left)).collect();
        }
        left => left.and_then(|_| sweep()),
    };
    match swept {
        Ok(swept) => {
            let removed = swept.removed.into_iter().map(|name| leftover(kind, name, Outcome::PutBack));
            removed.chain(swept.kept.into_iter().map(|(name, why)| in_use(kind, name, why))).collect()
        }
        Err(error) => vec![failed(kind, "of a killed server", &error)],
    }
}

/// Returns the control sockets of drives, caches and proofs without a server.
fn control_sockets(attempt: Attempt) -> Vec<Leftover> {
    let drives = places::run();
    let mut all = Vec::new();
    for directory in [places::cache_sockets(&drives), places::proof_sockets(&drives), drives] {
        let names = registry::names(&directory).unwrap_or_default();
        for name in names.iter().filter(|name| !registry::is_served(&directory, name)) {
            let path = registry::socket(&directory, name).display().to_string();
            all.push(match attempt {
                Attempt::Look => leftover(Kind::ControlSocket, path, Outcome::Left),
                Attempt::PutBack => after(Kind::ControlSocket, path, forget(&directory, name).map(drop)),
            });
        }
    }
    all
}

/// Returns the exit code for these leftovers: one in use is a refusal, one that is only listed is a finding.
pub(crate) fn exit_of(left: &[Leftover]) -> Exit {
    left.iter().fold(Exit::Done, |exit, left| {
        exit.and(match left.outcome {
            Outcome::PutBack => Exit::Done,
            Outcome::Left => Exit::Finding,
            Outcome::InUse => Exit::Failed(FailureKind::Refused),
            Outcome::Failed => Exit::Failed(FailureKind::Failed),
        })
    })
}

//! `plumb policy persist`: the state of a disk is to outlast power cycles; and what is known of that.

use std::path::Path;

use plumb_block::shell_word;
use plumb_policy::claims;
use plumb_policy::error::PolicyError;
use plumb_policy::persist::{self, Certainty, DesiredState, InstallPaths, Ledger, Reading, means};
use plumb_policy::state::{FoundState, State};
use plumb_policy::view::{DeviceView, Refusal as Refused};
use plumb_report::document::policy::PolicyPersist;
use plumb_report::{Format, Kind};

use super::host::{Host, refusal, refused_disk};
use crate::arguments::policy::PersistArguments;
use crate::exit::{Exit, Refusal, refuse_if};
use crate::terminal;

pub(super) fn run(arguments: &PersistArguments) -> anyhow::Result<Exit> {
    let format = arguments.shared.printed.format(Kind::Status)?;
    let host = Host::new(&arguments.shared)?;
    if !arguments.devices.is_empty() && arguments.root == Path::new("/") {
        host.need_root("make a policy last on this machine")?;
    }
    let ledger_file = arguments.root.join("var/lib/plumb/policy/persistence.json");
    let mut ledger = Ledger::load(&ledger_file).map_err(failed)?;
    if arguments.devices.is_empty() {
        return list(&host, &mut ledger, &ledger_file, format);
    }
    let places = InstallPaths { root: arguments.root.clone(), program: program(arguments)? };
    let done = if arguments.remove {
        remove(&host, arguments, &places, &mut ledger)?
    } else {
        keep(&host, arguments, &places, &mut ledger)?
    };
    ledger.save(&ledger_file).map_err(failed)?;
    let is_here = arguments.root == Path::new("/");
    terminal::show_status(&PolicyPersist { is_here, ..document(ledger, done) }, format)?;
    Ok(Exit::Done)
}

fn failed(error: persist::PersistError) -> anyhow::Error {
    refusal(PolicyError::Persist(error))
}

/// Returns how the rule and the units call plumb.
fn program(arguments: &PersistArguments) -> anyhow::Result<String> {
    let named = arguments.program.clone();
    let own = || Ok::<_, std::io::Error>(std::env::current_exe()?.to_string_lossy().into_owned());
    let program = named.map_or_else(own, Ok)?;
    // udev and systemd split and expand what is not plain.
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if program.starts_with('/') && program.chars().all(plain) {
        return Ok(program);
    }
    let message = format!(
        "`{program}` is not a path that a udev rule can call: give a plain absolute one with --program"
    );
    Err(Refusal::new(Exit::Usage, message).into())
}

/// All disks are looked at before anything is written for one.
pub(super) fn keep(
    host: &Host,
    arguments: &PersistArguments,
    places: &InstallPaths,
    ledger: &mut Ledger,
) -> anyhow::Result<persist::InstallResult> {
    let reader = host.reader()?;
    let boot_id = reader.boot_id();
    let mut desired_states = Vec::new();
    for name in &arguments.devices {
        let view = host.disk(name)?;
        let state = state(host, &view).map_err(|refused| refused_disk(name, &refused))?;
        let means = means(&view, state);
        desired_states.push(DesiredState::from_view(&view, state, means).map_err(failed)?);
        ledger.request(Reading::new(&reader, &view, &boot_id), state, means).map_err(failed)?;
    }
    persist::install(places, &desired_states).map_err(failed)
}

/// Returns the state that is to last; what cannot be brought back is not promised.
fn state(host: &Host, view: &DeviceView) -> Result<State, Refused> {
    if let Some(refused) = &view.refusal {
        return Err(refused.clone());
    }
    match view.state {
        FoundState::Off => Ok(State::Off),
        FoundState::On => Ok(State::On),
        FoundState::Protected => match claims::protection(view, &host.claims, host.now) {
            Ok(_) => Ok(State::Protected),
            Err(reason) => Err(Refused::new(
                format!("its flushes are suppressed, and {reason}"),
                "repair it with `plumb policy heal`, or record a claim with `plumb policy claim`",
            )),
        },
        FoundState::None | FoundState::Unknown => Err(Refused::new(
            "its state is unknown",
            format!("`plumb policy show {}` says what cannot be read", shell_word(&view.name)),
        )),
    }
}

pub(super) fn remove(
    host: &Host,
    arguments: &PersistArguments,
    places: &InstallPaths,
    ledger: &mut Ledger,
) -> anyhow::Result<persist::InstallResult> {
    let mut all = persist::InstallResult { files: Vec::new(), then_run: Vec::new() };
    for name in &arguments.devices {
        let known = host.reader()?.one(name).ok().and_then(|view| view.identity);
        let identity = known.unwrap_or_else(|| name.clone());
        let done = persist::remove(places, &identity).map_err(failed)?;
        let message =
            format!("no state is kept for {identity}; `plumb policy persist` lists the kept states");
        refuse_if!(done.files.is_empty() && !ledger.forget(&identity), Usage, message);
        ledger.forget(&identity);
        all.files.extend(done.files);
        all.then_run = done.then_run;
    }
    Ok(all)
}

/// Lists what is kept, and how sure it is. What this boot tells of it is noted.
fn list(host: &Host, ledger: &mut Ledger, file: &Path, format: Format) -> anyhow::Result<Exit> {
    let reader = host.reader()?;
    let identities: Vec<String> = ledger.kept.iter().map(|kept| kept.identity.clone()).collect();
    let mut news = false;
    for identity in identities {
        news |= ledger.look(&reader, &identity);
    }
    if news && host.is_root {
        ledger.save(file).map_err(failed)?;
    }
    let lost = ledger.kept.iter().any(|kept| matches!(kept.standing, Certainty::Lost { .. }));
    let exit = if lost { Exit::Finding } else { Exit::Done };
    let nothing = persist::InstallResult { files: Vec::new(), then_run: Vec::new() };
    terminal::show_status(&document(ledger.clone(), nothing), format)?;
    Ok(exit)
}

/// Builds the document of what is kept now, and of what was done for it.
pub(super) fn document(ledger: Ledger, done: persist::InstallResult) -> PolicyPersist {
    let persist::InstallResult { files, then_run } = done;
    let removed = files.iter().filter(|file| file.symlink_metadata().is_err()).cloned().collect();
    PolicyPersist {
        schema: PolicyPersist::SCHEMA,
        kept: ledger.kept,
        files,
        then_run,
        removed,
        is_here: false,
    }
}

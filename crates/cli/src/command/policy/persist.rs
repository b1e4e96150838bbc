//! `plumb policy persist`: the state of a disk is to outlast power cycles; and what is known of that.

use std::path::{Path, PathBuf};

use plumb_policy::claims;
use plumb_policy::device::Reader;
use plumb_policy::error::PolicyError;
use plumb_policy::persist::{
    self, DesiredState, InstallPaths, Kept, Ledger, Means, Reading, Standing, means,
};
use plumb_policy::state::{Found, State};
use plumb_policy::view::{DeviceView, Refusal as Refused};
use serde::Serialize;

use super::host::{Host, refusal, refused_disk};
use super::print;
use crate::arguments::policy::PersistArguments;
use crate::exit::{Exit, Refusal};

/// Document that `--json` prints.
#[derive(Serialize)]
pub(super) struct Document {
    schema: &'static str,
    kept: Vec<Kept>,
    files: Vec<PathBuf>,
    then_run: Vec<&'static str>,
}

impl Document {
    /// Builds the document of what is kept now, and of what was done for it.
    pub(super) fn of(ledger: Ledger, done: persist::Installed) -> Self {
        let persist::Installed { files, then_run } = done;
        Self { schema: "plumb/policy-persist/1", kept: ledger.kept, files, then_run }
    }
}

pub(super) fn run(arguments: &PersistArguments) -> anyhow::Result<Exit> {
    let host = Host::new(&arguments.shared)?;
    if !arguments.devices.is_empty() && arguments.root == Path::new("/") {
        host.need_root("make a policy last on this machine")?;
    }
    let ledger_file = arguments.root.join("var/lib/plumb/policy/persistence.json");
    let mut ledger = Ledger::load(&ledger_file).map_err(failed)?;
    if arguments.devices.is_empty() {
        return list(&host, &mut ledger, &ledger_file, arguments.shared.json);
    }
    let places = InstallPaths { root: arguments.root.clone(), program: program(arguments)? };
    let done = if arguments.remove {
        remove(&host, arguments, &places, &mut ledger)?
    } else {
        keep(&host, arguments, &places, &mut ledger)?
    };
    ledger.save(&ledger_file).map_err(failed)?;
    let document = Document::of(ledger, done);
    print(arguments.shared.json, &document, || page(&document, arguments))?;
    Ok(Exit::Done)
}

fn failed(error: persist::PersistError) -> anyhow::Error {
    refusal(PolicyError::Persist(error))
}

/// How the rule and the units call plumb.
fn program(arguments: &PersistArguments) -> anyhow::Result<String> {
    let named = arguments.program.clone();
    let own = || Ok::<_, std::io::Error>(std::env::current_exe()?.to_string_lossy().into_owned());
    let program = named.map_or_else(own, Ok)?;
    // udev and systemd split and expand what is not plain.
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if program.starts_with('/') && program.chars().all(plain) {
        return Ok(program);
    }
    let message =
        format!("`{program}` is no path that a udev rule can call: give a plain absolute one with --program");
    Err(Refusal::new(Exit::Usage, message).into())
}

/// All disks are looked at before anything is written for one.
pub(super) fn keep(
    host: &Host,
    arguments: &PersistArguments,
    places: &InstallPaths,
    ledger: &mut Ledger,
) -> anyhow::Result<persist::Installed> {
    let (boot_id, reader) = (boot_id(host), host.reader()?);
    let mut desired_states = Vec::new();
    for name in &arguments.devices {
        let view = host.disk(name)?;
        let state = state(host, &view).map_err(|refused| refused_disk(name, &refused))?;
        let means = means(&view, state);
        desired_states.push(DesiredState::of(&view, state, means).map_err(failed)?);
        ledger.request(Reading::of(&reader, &view, &boot_id), state, means).map_err(failed)?;
    }
    persist::install(places, &desired_states).map_err(failed)
}

/// The state that is to last; what cannot be brought back is not promised.
fn state(host: &Host, view: &DeviceView) -> Result<State, Refused> {
    if let Some(refused) = &view.refusal {
        return Err(refused.clone());
    }
    match view.state {
        Found::Off => Ok(State::Off),
        Found::On => Ok(State::On),
        Found::Protected => match claims::protection(view, &host.claims, host.now) {
            Ok(_) => Ok(State::Protected),
            Err(reason) => Err(Refused::new(
                format!("its flushes are suppressed, and {reason}"),
                "mend it with `plumb policy heal`, or record a claim with `plumb policy claim`",
            )),
        },
        Found::None | Found::Unknown => Err(Refused::new(
            "which state it is in is unknown",
            format!("`plumb policy show {}` says what cannot be read", view.name),
        )),
    }
}

pub(super) fn remove(
    host: &Host,
    arguments: &PersistArguments,
    places: &InstallPaths,
    ledger: &mut Ledger,
) -> anyhow::Result<persist::Installed> {
    let mut all = persist::Installed { files: Vec::new(), then_run: Vec::new() };
    for name in &arguments.devices {
        let known = host.reader()?.one(name).ok().and_then(|view| view.identity);
        let identity = known.unwrap_or_else(|| name.clone());
        let done = persist::remove(places, &identity).map_err(failed)?;
        if done.files.is_empty() && !ledger.forget(&identity) {
            let message = format!("nothing is kept for {identity}; `plumb policy persist` lists what is");
            return Err(Refusal::new(Exit::Usage, message).into());
        }
        ledger.forget(&identity);
        all.files.extend(done.files);
        all.then_run = done.then_run;
    }
    Ok(all)
}

/// Lists what is kept, and how sure it is. What this boot tells of it is noted.
fn list(host: &Host, ledger: &mut Ledger, file: &Path, json: bool) -> anyhow::Result<Exit> {
    let reader = host.reader()?;
    let identities: Vec<String> = ledger.kept.iter().map(|kept| kept.identity.clone()).collect();
    let mut news = false;
    for identity in identities {
        news |= update(host, &reader, ledger, &identity);
    }
    if news && host.is_root {
        ledger.save(file).map_err(failed)?;
    }
    let lost = ledger.kept.iter().any(|kept| matches!(kept.standing, Standing::Lost { .. }));
    let exit = if lost { Exit::Finding } else { Exit::Done };
    let nothing = persist::Installed { files: Vec::new(), then_run: Vec::new() };
    print(json, &Document::of(ledger.clone(), nothing), || match &ledger.kept[..] {
        [] => "No policy is kept; `plumb policy persist DEV` keeps the state that a disk is in.\n".to_owned(),
        kept => kept.iter().map(line).collect(),
    })?;
    Ok(exit)
}

/// Holds a disk as it is now against what is kept of it; whether anything new is known.
pub(super) fn update(host: &Host, reader: &Reader<'_>, ledger: &mut Ledger, identity: &str) -> bool {
    let disk = reader.find(identity);
    let view = disk.and_then(|disk| reader.one(&disk.name).ok());
    view.is_some_and(|view| ledger.update(Reading::of(reader, &view, &boot_id(host))))
}

/// The boot that runs; empty where the kernel does not say.
fn boot_id(host: &Host) -> String {
    host.gateway.tree().text("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

fn line(kept: &Kept) -> String {
    let means = match kept.means {
        Means::InTheDrive => "kept by the drive",
        Means::AtEveryStart => "set again at every start",
    };
    let standing = match &kept.standing {
        Standing::Requested => format!("requested at {}, not yet tested by a restart", kept.requested_at),
        Standing::HeldOverReboot { at, evidence } => {
            format!(
                "HELD OVER A REBOOT, seen at {at}: {evidence}; only a power cycle that the drive counts proves it"
            )
        }
        Standing::Proven { at, evidence } => format!("PROVEN at {at}: {evidence}"),
        Standing::Lost { at, evidence } => format!("LOST, seen at {at}: {evidence}"),
    };
    format!("{}: {}, {means}; {standing}\n", kept.identity, kept.state)
}

/// Describes what was written or removed for what is kept, and what to run.
fn page(done: &Document, arguments: &PersistArguments) -> String {
    let mut page: String = done.kept.iter().map(line).collect();
    for file in &done.files {
        let verb = if file.symlink_metadata().is_ok() { "wrote" } else { "removed" };
        page += &format!("  {verb} {}\n", file.display());
    }
    if arguments.root == Path::new("/") && !done.files.is_empty() {
        page += &format!("So that it counts before the next start: {}\n", done.then_run.join("; "));
    }
    page
}

//! `plumb policy persist`: keeping the state of a disk over power cycles, and listing the kept states.

use std::path::Path;

use plumb_policy::error::PolicyError;
use plumb_policy::machine::Machine;
use plumb_policy::persist::{self, Certainty, InstallPaths, InstallResult, Ledger};
use plumb_report::document::policy::PolicyPersist;
use plumb_report::{Format, Kind};

use super::disks::are_disks_of_this_machine;
use crate::arguments::policy::PersistArguments;
use crate::exit::Exit;
use crate::terminal;

pub(super) fn run(arguments: &PersistArguments) -> anyhow::Result<Exit> {
    let format = arguments.shared.printed.format(Kind::Status)?;
    let machine = Machine::this(&arguments.shared.claims)?;
    let is_here = arguments.root == Path::new("/");
    if !arguments.devices.is_empty() && is_here {
        machine.need_root("make a policy last on this machine")?;
    }
    let ledger_file = arguments.root.join("var/lib/plumb/policy/persistence.json");
    let mut ledger = Ledger::load(&ledger_file).map_err(PolicyError::from)?;
    if arguments.devices.is_empty() {
        return list(&machine, &mut ledger, &ledger_file, format);
    }
    let own = || Ok::<_, std::io::Error>(std::env::current_exe()?.to_string_lossy().into_owned());
    let program = arguments.program.clone().map_or_else(own, Ok)?;
    let places = InstallPaths { root: arguments.root.clone(), program };
    places.is_callable().map_err(PolicyError::from)?;
    let done = if arguments.remove {
        persist::keep_no_longer(&machine, &arguments.devices, &places, &mut ledger)?
    } else {
        are_disks_of_this_machine(&arguments.devices)?;
        persist::keep(&machine, &arguments.devices, &places, &mut ledger)?
    };
    ledger.save(&ledger_file).map_err(PolicyError::from)?;
    terminal::show_status(&PolicyPersist { is_here, ..PolicyPersist::new(ledger, done) }, format)?;
    Ok(Exit::Done)
}

/// Lists the kept states with their certainty, and records the evidence of this boot.
fn list(machine: &Machine, ledger: &mut Ledger, file: &Path, format: Format) -> anyhow::Result<Exit> {
    if ledger.look_at_all(&machine.reader()?) && machine.is_root {
        ledger.save(file).map_err(PolicyError::from)?;
    }
    let lost = ledger.kept.iter().any(|kept| matches!(kept.standing, Certainty::Lost { .. }));
    let exit = if lost { Exit::Finding } else { Exit::Done };
    terminal::show_status(&PolicyPersist::new(ledger.clone(), InstallResult::default()), format)?;
    Ok(exit)
}

//! Start and end of the persistence of policies.

use plumb_text::shell_word;

use super::desired::DesiredState;
use super::error::PersistError;
use super::install::{InstallPaths, InstallResult, install, remove};
use super::persistence::persistence;
use super::standing::{Ledger, Reading};
use crate::claims;
use crate::error::PolicyError;
use crate::machine::Machine;
use crate::state::{FoundState, State};
use crate::view::{DeviceView, Refusal};

/// Persists the present states of disks. All disks are checked before anything is written.
///
/// # Errors
/// If a disk is refused, or a file cannot be written.
pub fn keep(
    machine: &Machine,
    names: &[String],
    places: &InstallPaths,
    ledger: &mut Ledger,
) -> Result<InstallResult, PolicyError> {
    let reader = machine.reader()?;
    let boot_id = reader.boot_id();
    let mut desired_states = Vec::new();
    for name in names {
        let view = machine.disk(name)?;
        let state = state(machine, &view).map_err(|refused| PolicyError::refused_disk(name, &refused))?;
        let means = persistence(&view, state);
        desired_states.push(DesiredState::from_view(&view, state, means)?);
        ledger.request(Reading::new(&reader, &view, &boot_id), state, means)?;
    }
    Ok(install(places, &desired_states)?)
}

/// Returns the state to persist; one that cannot be restored is refused.
fn state(machine: &Machine, view: &DeviceView) -> Result<State, Refusal> {
    if let Some(refused) = &view.refusal {
        return Err(refused.clone());
    }
    match view.state {
        FoundState::Off => Ok(State::Off),
        FoundState::On => Ok(State::On),
        FoundState::Protected => match claims::protection(view, &machine.claims, machine.now) {
            Ok(_) => Ok(State::Protected),
            Err(reason) => Err(Refusal::new(
                format!("its flushes are suppressed, and {reason}"),
                "repair it with `plumb policy heal`, or record a claim with `plumb policy claim`",
            )),
        },
        FoundState::None | FoundState::Unknown => Err(Refusal::new(
            "its state is unknown",
            format!("`plumb policy show {}` says what cannot be read", shell_word(&view.name)),
        )),
    }
}

/// Ends the persistence for disks; an absent disk must be named by its identity.
///
/// # Errors
/// If a disk has no persisted state, or a file cannot be written or removed.
pub fn keep_no_longer(
    machine: &Machine,
    names: &[String],
    places: &InstallPaths,
    ledger: &mut Ledger,
) -> Result<InstallResult, PolicyError> {
    let mut all = InstallResult::default();
    for name in names {
        let identity = machine.identity(name)?;
        let done = remove(places, &identity)?;
        if !ledger.forget(&identity) && done.files.is_empty() {
            return Err(PolicyError::NotKept { identity });
        }
        all.files.extend(done.files);
        all.then_run = done.then_run;
    }
    Ok(all)
}

impl InstallPaths {
    /// Checks that the rule and the units can call plumb by this path: udev and systemd split and expand
    /// special characters.
    ///
    /// # Errors
    /// [`PersistError::Program`].
    pub fn is_callable(&self) -> Result<(), PersistError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
        match self.program.starts_with('/') && self.program.chars().all(plain) {
            true => Ok(()),
            false => Err(PersistError::Program { program: self.program.clone() }),
        }
    }
}

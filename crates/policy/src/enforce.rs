//! Restoration of the desired state of every disk, called by the udev rule and the units.
//!
//! Settings that a drive keeps are read before anything is changed, so that "held" and "proven" mean that the
//! drive kept them; settings applied at every start are read afterwards. For a disk that has just appeared,
//! only the change is made: reading is left to the unit at boot.

use std::path::Path;
use std::sync::atomic::Ordering;

use plumb_block::Nanos;
use serde::Serialize;

use crate::apply::{Report, Session, apply_as};
use crate::error::PolicyError;
use crate::journal::JournalError;
use crate::persist::{DesiredState, Ledger, Persistence, load_desired};
use crate::plan::{self, Ask, DiskSelection, Plan, PlanRequest};
use crate::state::State;

/// Maximum wait for the lock, since disks that appear together are processed serially, while udev waits for
/// three minutes.
const LOCK_WAIT_MAX: Nanos = Nanos::secs(120);
/// Interval between attempts to lock.
const LOCK_RETRY: Nanos = Nanos::millis(100);
/// Prefix of the journals of `enforce`, which `rollback` ignores when it looks for the latest apply.
const JOURNAL: &str = "enforce-";

/// Files and directories for an enforcement.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// Directory of the desired states.
    pub desired: &'a Path,
    /// File with the confidence in each desired state.
    pub ledger: &'a Path,
    /// Directory of the journals.
    pub journals: &'a Path,
}

/// Result of an enforcement.
#[derive(Debug, Default, Serialize)]
pub struct Enforcement {
    /// Always [`Enforcement::SCHEMA`].
    pub schema: String,
    /// Number of present disks with a desired state.
    pub disks: usize,
    /// Identities of absent disks with a desired state.
    pub absent: Vec<String>,
    /// Plans made.
    pub plans: Vec<Plan>,
    /// Reports of the plans that changed something.
    pub reports: Vec<Report>,
}

impl Enforcement {
    /// Name and version of the document.
    pub const SCHEMA: &str = "plumb/policy-enforce/1";
}

/// Restores the desired state of every present disk, or only of the one that has just `appeared`.
///
/// # Errors
/// If the desired states or the uses of the disks cannot be read, or a change cannot be journalled.
pub fn enforce(
    session: &Session<'_>,
    places: Places<'_>,
    appeared: Option<&str>,
) -> Result<Enforcement, PolicyError> {
    let desired_states = load_desired(places.desired)?;
    let mut done = Enforcement { schema: Enforcement::SCHEMA.to_owned(), ..Enforcement::default() };
    let present = present(session, desired_states, appeared, &mut done)?;
    let mut ledger = match appeared {
        None => Some(Ledger::load(places.ledger)?),
        Some(_) => None,
    };
    let mut news = note(session, ledger.as_mut(), &present, Persistence::InTheDrive)?;
    for state in [State::Off, State::On, State::Protected] {
        for means in [Persistence::InTheDrive, Persistence::AtEveryStart] {
            let named =
                present.iter().filter(|(desired, _)| desired.state == state && desired.means == means);
            let names: Vec<String> = named.map(|(_, name)| name.clone()).collect();
            if names.is_empty() {
                continue;
            }
            let asked =
                Ask::new(PlanRequest::from(state), DiskSelection::Named(names), session.claims, session.now);
            let ask = Ask { save: means == Persistence::InTheDrive, ..asked };
            let plan = plan::make(session.gateway, &ask)?;
            if !plan.changes.is_empty() {
                done.reports.push(apply(session, &plan, places.journals)?);
            }
            done.plans.push(plan);
        }
    }
    news |= note(session, ledger.as_mut(), &present, Persistence::AtEveryStart)?;
    if let Some(ledger) = ledger.filter(|_| news) {
        ledger.save(places.ledger)?;
    }
    Ok(done)
}

/// Returns the desired states of present disks, with their present names.
fn present(
    session: &Session<'_>,
    desired_states: Vec<DesiredState>,
    appeared: Option<&str>,
    done: &mut Enforcement,
) -> Result<Vec<(DesiredState, String)>, PolicyError> {
    let reader = session.reader()?;
    let mut present = Vec::new();
    for desired in desired_states {
        let found = match appeared {
            Some(name) => reader.disk(name).filter(|disk| disk.identity == desired.identity),
            None => reader.find(&desired.identity),
        };
        match found {
            Some(disk) => present.push((desired, disk.name)),
            None if appeared.is_none() => done.absent.push(desired.identity),
            None => {}
        }
    }
    done.disks = present.len();
    Ok(present)
}

/// Updates the ledger with the present states. Returns true if there is news.
fn note(
    session: &Session<'_>,
    ledger: Option<&mut Ledger>,
    present: &[(DesiredState, String)],
    means: Persistence,
) -> Result<bool, PolicyError> {
    let Some(ledger) = ledger else { return Ok(false) };
    let reader = session.reader()?;
    let of_means = present.iter().filter(|(desired, _)| desired.means == means);
    Ok(of_means.fold(false, |news, (desired, _)| ledger.look(&reader, &desired.identity) || news))
}

/// Applies a plan; waits for other applies.
fn apply(session: &Session<'_>, plan: &Plan, journals: &Path) -> Result<Report, PolicyError> {
    let deadline = session.gateway.now() + LOCK_WAIT_MAX;
    loop {
        match apply_as(session, plan, journals, JOURNAL) {
            Err(PolicyError::Journal(JournalError::Busy { .. }))
                if session.gateway.now() < deadline && !session.stop.load(Ordering::Relaxed) =>
            {
                session.gateway.sleep(LOCK_RETRY);
            }
            ended => return ended,
        }
    }
}

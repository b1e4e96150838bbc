//! Every disk brought to its desired state, as the udev rule and the units ask for it.
//!
//! What a drive keeps by itself is read before anything is changed, so that "held" and "proven" mean that the
//! drive kept it; what is set at every start is read afterwards. A disk that has just appeared is only
//! changed: the unit at boot alone does the reading.

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

/// Disks that appear together are mended one after the other; udev waits for three minutes.
const LOCK_WAIT_MAX: Nanos = Nanos::secs(120);
/// Interval at which a lock is tried again.
const LOCK_RETRY: Nanos = Nanos::millis(100);
/// Prefix of the journals of `enforce`, which `rollback` does not take for the latest apply.
const JOURNAL: &str = "enforce-";

/// Files from which states are enforced.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// Directory of the desired states.
    pub desired: &'a Path,
    /// File that says how sure each of them is.
    pub ledger: &'a Path,
    /// Directory of the journals.
    pub journals: &'a Path,
}

/// Result of an enforcement: what was found and done.
#[derive(Debug, Default, Serialize)]
pub struct Enforcement {
    /// Always [`Enforcement::SCHEMA`].
    pub schema: String,
    /// Number of disks that are here and for which a state is desired.
    pub disks: usize,
    /// Identities for which a state is desired, and which are not here.
    pub absent: Vec<String>,
    /// Plans that were made.
    pub plans: Vec<Plan>,
    /// Outcomes of those that changed something.
    pub reports: Vec<Report>,
}

impl Enforcement {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/policy-enforce/1";
}

/// Brings every disk that is here to its desired state, or only the one that has just `appeared`.
///
/// # Errors
/// If the desired states or what uses the disks cannot be read, or a change cannot be journalled.
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

/// Returns the desired states for disks that are here, with the names that these have now.
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

/// Notes in the ledger how disks are now. Returns whether anything new is known.
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

/// Applies, and waits for others that do.
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

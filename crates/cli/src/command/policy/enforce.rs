//! `plumb policy enforce`: every disk is brought to its desired state. What the udev rule and the units call.
//!
//! What a drive keeps by itself is read before anything is changed, so that "held" and "proven" mean that the
//! drive kept it; what is set at every start is read afterwards. A disk that has just appeared is only
//! changed: the unit at boot alone does the reading.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_policy::apply::{Progress, Report, Session, apply_as};
use plumb_policy::error::PolicyError;
use plumb_policy::journal::JournalError;
use plumb_policy::persist::{DesiredState, Ledger, Means, load_desired};
use plumb_policy::plan::{self, Ask, Asked, Plan, Wanted};
use plumb_policy::state::State;
use serde::Serialize;

use super::host::{Host, refusal};
use super::persist::update;
use super::progress::TerminalProgress;
use super::{print, text};
use crate::arguments::policy::EnforceArguments;
use crate::exit::Exit;
use crate::{stop, terminal};

/// Disks that appear together are mended one after the other; udev waits for three minutes.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(120);

/// Before the names of journals: what is set again at every start is nobody's last apply.
const JOURNAL: &str = "enforce-";

/// Document of what was found and done.
#[derive(Serialize, Default)]
pub(super) struct Document {
    schema: &'static str,
    /// Number of disks for which a state is desired.
    pub(super) disks: usize,
    /// Identities for which a state is desired, and which are not here.
    pub(super) absent: Vec<String>,
    pub(super) plans: Vec<Plan>,
    pub(super) reports: Vec<Report>,
}

pub(super) fn run(arguments: &EnforceArguments) -> anyhow::Result<Exit> {
    let host = Host::new(&arguments.shared)?;
    host.need_root("change the write cache of a disk")?;
    let stop = stop::on_signals()?;
    let progress = TerminalProgress::on_stderr();
    let enforced = enforce(&host, arguments, &stop, &progress);
    drop(progress);
    let (done, exit) = enforced?;
    print(arguments.shared.json, &done, || page(&done))?;
    Ok(exit)
}

/// Brings every disk that is here to its desired state.
pub(super) fn enforce(
    host: &Host,
    arguments: &EnforceArguments,
    stop: &AtomicBool,
    progress: &dyn Progress,
) -> anyhow::Result<(Document, Exit)> {
    let failed = |error| refusal(PolicyError::Persist(error));
    let desired_states = load_desired(&arguments.from).map_err(failed)?;
    let mut done = Document { schema: "plumb/policy-enforce/1", ..Document::default() };
    let present = present(host, desired_states, arguments, &mut done)?;
    let mut ledger = match arguments.udev {
        None => Some(Ledger::load(&arguments.ledger).map_err(failed)?),
        Some(_) => None,
    };
    let mut news = match ledger.as_mut() {
        Some(ledger) => note(host, ledger, &present, Means::InTheDrive)?,
        None => false,
    };
    let mut exit = Exit::Done;
    for state in [State::Off, State::On, State::Protected] {
        for means in [Means::InTheDrive, Means::AtEveryStart] {
            let named =
                present.iter().filter(|(desired, _)| desired.state == state && desired.means == means);
            let names: Vec<String> = named.map(|(_, name)| name.clone()).collect();
            if names.is_empty() {
                continue;
            }
            let plan = plan(host, names, state, means)?;
            exit = exit.and(super::plan::exit_of(&plan));
            if !plan.changes.is_empty() {
                let report = apply(&host.session(stop, progress), &plan, arguments)?;
                exit = exit.and(report.failure().map_or(Exit::Done, Exit::from));
                done.reports.push(report);
            }
            done.plans.push(plan);
        }
    }
    if let Some(ledger) = ledger.as_mut() {
        news |= note(host, ledger, &present, Means::AtEveryStart)?;
    }
    if let Some(ledger) = ledger.filter(|_| news) {
        ledger.save(&arguments.ledger).map_err(failed)?;
    }
    Ok((done, exit))
}

/// The desired states for disks that are here, with the names that these have now.
fn present(
    host: &Host,
    desired_states: Vec<DesiredState>,
    arguments: &EnforceArguments,
    done: &mut Document,
) -> anyhow::Result<Vec<(DesiredState, String)>> {
    let reader = host.reader()?;
    let mut present = Vec::new();
    for desired in desired_states {
        let found = match &arguments.udev {
            Some(name) => reader.disk(name).filter(|disk| disk.identity == desired.identity),
            None => reader.find(&desired.identity),
        };
        match found {
            Some(disk) => present.push((desired, disk.name)),
            None if arguments.udev.is_none() => done.absent.push(desired.identity),
            None => {}
        }
    }
    done.disks = present.len();
    Ok(present)
}

fn note(
    host: &Host,
    ledger: &mut Ledger,
    present: &[(DesiredState, String)],
    means: Means,
) -> anyhow::Result<bool> {
    let reader = host.reader()?;
    let mut news = false;
    for (desired, _) in present.iter().filter(|(desired, _)| desired.means == means) {
        news |= update(host, &reader, ledger, &desired.identity);
    }
    Ok(news)
}

fn plan(host: &Host, names: Vec<String>, state: State, means: Means) -> anyhow::Result<Plan> {
    let asked = Ask::new(Asked::from(state), Wanted::Named(names), &host.claims, host.now);
    let ask = Ask { save: means == Means::InTheDrive, ..asked };
    plan::make(&*host.gateway, &ask).map_err(|unseen| refusal(unseen.into()))
}

/// Applies, and waits for others that do.
fn apply(session: &Session<'_>, plan: &Plan, arguments: &EnforceArguments) -> anyhow::Result<Report> {
    let begun = Instant::now();
    loop {
        match apply_as(session, plan, &arguments.journal, JOURNAL) {
            Err(PolicyError::Journal(JournalError::Busy { .. }))
                if begun.elapsed() < LOCK_WAIT_MAX && !session.stop.load(Ordering::Relaxed) =>
            {
                std::thread::sleep(Duration::from_millis(100));
            }
            ended => return ended.map_err(refusal),
        }
    }
}

fn page(done: &Document) -> String {
    let style = terminal::style();
    let mut page = String::new();
    for plan in done.plans.iter().filter(|plan| !plan.refused.is_empty()) {
        page += &text::plan::refused(plan, style);
    }
    for report in &done.reports {
        page += &text::report::of(report, style);
    }
    for identity in &done.absent {
        page += &format!("{identity} is not here\n");
    }
    if done.disks == 0 && done.absent.is_empty() {
        page += "No state is recorded: `plumb policy persist DEV` records that a disk is to stay as it is.\n";
    } else if done.reports.is_empty() {
        page += &format!("{} disks with a recorded state are here; none was changed.\n", done.disks);
    }
    page
}

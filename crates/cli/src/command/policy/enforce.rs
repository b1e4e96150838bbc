//! `plumb policy enforce`: every disk is brought to what is wished for it. What the udev rule and the units call.
//!
//! What a drive keeps by itself is witnessed before anything is mended, so that "held" and "proven" mean that the drive
//! kept it; what is set at every start is witnessed afterwards. A disk that has just appeared is only mended: the unit at boot does
//! the witnessing, alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_policy::apply::{Progress, Report, Session, apply_in};
use plumb_policy::error::PolicyError;
use plumb_policy::journal::JournalError;
use plumb_policy::persist::{Ledger, Means, Wish, load_wishes};
use plumb_policy::plan::{self, Ask, Asked, Plan, Wanted};
use plumb_policy::state::State;
use serde::Serialize;

use super::here::{Here, of_kind, refusal};
use super::persist::witness;
use super::progress::Narrator;
use super::{print_json, text};
use crate::arguments::policy::EnforceArguments;
use crate::exit::Exit;
use crate::{stop, terminal};

/// Disks that appear together are mended one after the other; udev waits for three minutes.
const PATIENCE: Duration = Duration::from_secs(120);

/// What was found and done.
#[derive(Serialize, Default)]
pub(super) struct Document {
    schema: &'static str,
    /// Those for which something is wished.
    pub(super) disks: usize,
    /// Identities for which something is wished, and which are not here.
    pub(super) absent: Vec<String>,
    pub(super) plans: Vec<Plan>,
    pub(super) reports: Vec<Report>,
}

pub(super) fn run(arguments: &EnforceArguments) -> anyhow::Result<Exit> {
    let here = Here::new(&arguments.claims)?;
    here.need_root("change the write cache of a disk")?;
    let stop = stop::on_signals()?;
    let narrator = Narrator::on_stderr();
    let enforced = enforce(&here, arguments, &stop, &narrator);
    narrator.end();
    let (done, exit) = enforced?;
    tell(&done, arguments.json)?;
    Ok(exit)
}

/// Brings every disk that is here to what is wished for it.
pub(super) fn enforce(
    here: &Here,
    arguments: &EnforceArguments,
    stop: &AtomicBool,
    progress: &dyn Progress,
) -> anyhow::Result<(Document, Exit)> {
    let failed = |error| refusal(PolicyError::Persist(error));
    let wishes = load_wishes(&arguments.from).map_err(failed)?;
    let mut done = Document { schema: "plumb/policy-enforce/1", ..Document::default() };
    let present = present(here, wishes, arguments, &mut done)?;
    let mut ledger = match arguments.udev {
        None => Some(Ledger::load(&arguments.ledger).map_err(failed)?),
        Some(_) => None,
    };
    let mut news = match ledger.as_mut() {
        Some(ledger) => note(here, ledger, &present, Means::InTheDrive)?,
        None => false,
    };
    let mut exit = Exit::Done;
    for state in [State::Off, State::On, State::Protected] {
        for means in [Means::InTheDrive, Means::AtEveryStart] {
            let named = present.iter().filter(|(wish, _)| wish.state == state && wish.means == means);
            let names: Vec<String> = named.map(|(_, name)| name.clone()).collect();
            if names.is_empty() {
                continue;
            }
            let plan = plan(here, names, state, means)?;
            exit = exit.and(super::plan::exit_of(&plan));
            if !plan.changes.is_empty() {
                let report = apply(&here.session(stop, progress), &plan, arguments)?;
                exit = exit.and(report.error_kind().map_or(Exit::Done, of_kind));
                done.reports.push(report);
            }
            done.plans.push(plan);
        }
    }
    if let Some(ledger) = ledger.as_mut() {
        news |= note(here, ledger, &present, Means::AtEveryStart)?;
    }
    if let Some(ledger) = ledger.filter(|_| news) {
        ledger.save(&arguments.ledger).map_err(failed)?;
    }
    Ok((done, exit))
}

/// The wishes for disks that are here, with the names that these have now.
fn present(
    here: &Here,
    wishes: Vec<Wish>,
    arguments: &EnforceArguments,
    done: &mut Document,
) -> anyhow::Result<Vec<(Wish, String)>> {
    let reader = here.reader()?;
    let mut present = Vec::new();
    for wish in wishes {
        let found = match &arguments.udev {
            Some(name) => reader.disk(name).filter(|disk| disk.identity == wish.identity),
            None => reader.find(&wish.identity),
        };
        match found {
            Some(disk) => present.push((wish, disk.name)),
            None if arguments.udev.is_none() => done.absent.push(wish.identity),
            None => {}
        }
    }
    done.disks = present.len();
    Ok(present)
}

fn note(here: &Here, ledger: &mut Ledger, present: &[(Wish, String)], means: Means) -> anyhow::Result<bool> {
    let reader = here.reader()?;
    let mut news = false;
    for (wish, _) in present.iter().filter(|(wish, _)| wish.means == means) {
        news |= witness(here, &reader, ledger, &wish.identity);
    }
    Ok(news)
}

fn plan(here: &Here, names: Vec<String>, state: State, means: Means) -> anyhow::Result<Plan> {
    let asked = Ask::new(Asked::from(state), Wanted::Named(names), &here.claims, here.now);
    let ask = Ask { save: means == Means::InTheDrive, ..asked };
    plan::make(&*here.gateway, &ask).map_err(|unseen| refusal(unseen.into()))
}

/// Applies, and waits for others that do.
fn apply(session: &Session<'_>, plan: &Plan, arguments: &EnforceArguments) -> anyhow::Result<Report> {
    let begun = Instant::now();
    loop {
        match apply_in(session, plan, &arguments.journal) {
            Err(PolicyError::Journal(JournalError::Busy { .. }))
                if begun.elapsed() < PATIENCE && !session.stop.load(Ordering::Relaxed) =>
            {
                std::thread::sleep(Duration::from_millis(100));
            }
            ended => return ended.map_err(refusal),
        }
    }
}

fn tell(done: &Document, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(done);
    }
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
        page +=
            "Nothing is wished for: `plumb policy persist DEV` records that a disk is to stay as it is.\n";
    } else if done.reports.is_empty() {
        page += &format!("{} disks for which something is wished are here; none was changed.\n", done.disks);
    }
    terminal::print(&page)
}

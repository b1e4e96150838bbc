//! `plumb policy heal`: disks that are sent no flushes although their cache is on.

use plumb_policy::mechanism::needs_healing;
use plumb_policy::plan::{self, Ask, Asked, Plan, Wanted};
use plumb_policy::waves::WAVE_SIZE;

use super::apply::{Job, told};
use super::here::{Here, filter};
use super::plan::{exit_of, wanted};
use super::{print_json, text};
use crate::arguments::policy::HealArguments;
use crate::exit::Exit;
use crate::{stop, terminal};

pub(super) fn run(arguments: &HealArguments) -> anyhow::Result<Exit> {
    let here = Here::new(&arguments.claims)?;
    let plan = make(&here, arguments)?;
    let json = arguments.carrying.json;
    if arguments.dry_run || plan.changes.is_empty() {
        if json {
            print_json(&plan)?;
        } else {
            terminal::print(&text::plan::of(&plan, terminal::style(), false))?;
        }
        let found = if plan.changes.is_empty() { Exit::Done } else { Exit::Finding };
        return Ok(exit_of(&plan).and(found));
    }
    here.need_root("change what the kernel believes of a disk")?;
    if !json {
        terminal::say(text::plan::of(&plan, terminal::style_of_stderr(), false).trim_end());
    }
    let stop = stop::on_signals()?;
    let exit = told(&here, &Job::New(&plan), &arguments.carrying, &stop)?;
    Ok(exit_of(&plan).and(exit))
}

pub(super) fn make(here: &Here, arguments: &HealArguments) -> anyhow::Result<Plan> {
    let mut chosen = wanted(&arguments.chosen)?;
    if chosen == Wanted::All {
        // Of all disks those in which something is wrong: the others need not be refused.
        let sick = here.reader().all().devices.into_iter().filter(needs_healing);
        chosen = Wanted::Named(sick.map(|view| view.name).collect());
    }
    let ask = Ask {
        asked: Asked::Heal,
        save: false,
        wanted: chosen,
        filter: filter(&arguments.chosen)?,
        wave_size: WAVE_SIZE,
        claims: &here.claims,
        now: here.now,
    };
    Ok(plan::make(&*here.gateway, &ask)?)
}

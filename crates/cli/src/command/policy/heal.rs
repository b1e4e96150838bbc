//! `plumb policy heal`: repair of disks whose cache is on but which get no flushes.

use plumb_policy::error::PolicyError;
use plumb_policy::job::Job;
use plumb_policy::machine::Machine;
use plumb_policy::mechanism::needs_healing;
use plumb_policy::plan::{self, Ask, DiskSelection, Plan, PlanRequest};
use plumb_report::document::policy::ShownPlan;
use plumb_report::{Format, Kind, RenderInput, render};

use super::apply::told;
use super::disks::filter;
use super::plan::{exit_of, wanted};
use crate::arguments::policy::HealArguments;
use crate::exit::Exit;
use crate::{stop, terminal};

pub(super) fn run(arguments: &HealArguments) -> anyhow::Result<Exit> {
    let machine = Machine::this(&arguments.carrying.shared.claims)?;
    let plan = make(&machine, arguments)?;
    let format = arguments.carrying.shared.printed.format(Kind::Status)?;
    let nothing = "Nothing to heal: every chosen disk whose cache is on gets its flushes.";
    let is_nothing = plan.changes.is_empty() && plan.refused.is_empty() && plan.unchanged.is_empty();
    let end = if is_nothing { nothing.to_owned() } else { String::new() };
    let shown = ShownPlan { plan: &plan, with_bytes: false, end };
    if arguments.dry_run || plan.changes.is_empty() {
        terminal::show_status(&shown, format)?;
        let found = if plan.changes.is_empty() { Exit::Done } else { Exit::Finding };
        return Ok(exit_of(&plan).and(found));
    }
    machine.need_root("change the kernel's view of a disk's write cache")?;
    if format == Format::Terminal {
        let text = render(RenderInput::Status(&shown), format, terminal::style_of_stderr())?;
        terminal::say(text.trim_end());
    }
    let stop = stop::on_signals()?;
    let exit = told(
        &machine,
        Job::New { plan: &plan, journals: &arguments.carrying.journal },
        &arguments.carrying,
        &stop,
    )?;
    Ok(exit_of(&plan).and(exit))
}

pub(super) fn make(machine: &Machine, arguments: &HealArguments) -> anyhow::Result<Plan> {
    let mut chosen = wanted(&arguments.chosen)?;
    if chosen == DiskSelection::All {
        // With `--all`, select only disks that need healing, so that the others are not refused.
        let trapped = machine.reader()?.all().devices.into_iter().filter(needs_healing);
        chosen = DiskSelection::Named(trapped.map(|view| view.name).collect());
    }
    let asked = Ask::new(PlanRequest::Heal, chosen, &machine.claims, machine.now);
    let ask = Ask { filter: filter(&arguments.chosen).map_err(PolicyError::from)?, ..asked };
    Ok(plan::make(&*machine.gateway, &ask)?)
}

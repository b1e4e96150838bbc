//! `plumb policy heal`: disks that are sent no flushes although their cache is on.

use plumb_policy::mechanism::needs_healing;
use plumb_policy::plan::{self, Ask, DiskSelection, Plan, PlanRequest};
use plumb_report::document::policy::ShownPlan;
use plumb_report::{Format, Kind, RenderInput, render};

use super::apply::{Job, told};
use super::host::{Host, filter, refusal};
use super::plan::{exit_of, wanted};
use crate::arguments::policy::HealArguments;
use crate::exit::Exit;
use crate::{stop, terminal};

pub(super) fn run(arguments: &HealArguments) -> anyhow::Result<Exit> {
    let host = Host::new(&arguments.carrying.shared)?;
    let plan = make(&host, arguments)?;
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
    host.need_root("change the kernel's view of a disk's write cache")?;
    if format == Format::Terminal {
        let text = render(RenderInput::Status(&shown), format, terminal::style_of_stderr())?;
        terminal::say(text.trim_end());
    }
    let stop = stop::on_signals()?;
    let exit = told(&host, &Job::New(&plan), &arguments.carrying, &stop)?;
    Ok(exit_of(&plan).and(exit))
}

pub(super) fn make(host: &Host, arguments: &HealArguments) -> anyhow::Result<Plan> {
    let mut chosen = wanted(&arguments.chosen)?;
    if chosen == DiskSelection::All {
        // Among all disks only those with something wrong are chosen: the others need not be refused.
        let trapped = host.reader()?.all().devices.into_iter().filter(needs_healing);
        chosen = DiskSelection::Named(trapped.map(|view| view.name).collect());
    }
    let asked = Ask::new(PlanRequest::Heal, chosen, &host.claims, host.now);
    let ask = Ask { filter: filter(&arguments.chosen)?, ..asked };
    plan::make(&*host.gateway, &ask).map_err(refusal)
}

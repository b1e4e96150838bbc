//! Outcomes of changes to write caches: of an apply or a rollback, a verification, a claim, persistent
//! policies, and the latency of a light load meanwhile.

use std::path::PathBuf;

use plumb_block::Nanos;
use plumb_policy::apply::{ApplyEnd, DiskResult, Report};
use plumb_policy::enforce::Enforcement;
use plumb_policy::observe::{Observation, ObservedSwitch};
use plumb_policy::persist::{Certainty, KeptPolicy, Persistence};
use plumb_policy::verify::Verification;
use plumb_text::printable;
use plumb_text::shell_word;

use super::Sections;
use super::policy_plan::refused;
use crate::document::policy::{PolicyApply, PolicyClaim, PolicyPersist};
use crate::outline::{Item, Page, Row};
use crate::terminal::{Cell, Ink, Table};

impl Sections for Report {
    const TITLE: &str = "plumb policy rollback";

    /// Adds the outcome of each disk, the path of the journal, and the next step.
    fn add_to(&self, page: &mut Page) {
        let disks = Table::for_rows(&self.disks)
            .left("disk", |disk| Cell::inked(Ink::Bold, printable(&disk.name)))
            .left("result", |disk| result(&disk.result))
            .left("", |disk| {
                printable(&match &disk.result {
                    DiskResult::Verified | DiskResult::Untouched => disk.identity.clone(),
                    DiskResult::Mismatch { found } => found.clone(),
                    DiskResult::Failed { error } => error.clone(),
                    DiskResult::Refused { reason, remedy } => format!("{reason}; {remedy}"),
                    DiskResult::Interrupted => "between two of its steps".to_owned(),
                })
            });
        let ended = match self.ended {
            ApplyEnd::Complete => "All disks were read back and are as they should be.",
            ApplyEnd::Interrupted => {
                "Interrupted between two steps: every step that was begun is in the journal."
            }
            ApplyEnd::Refused => "A disk can no longer be changed: the disks after it were not touched.",
            ApplyEnd::Failed => "A disk is not as it should be: the disks after it were not touched.",
        };
        let mut items = Item::table(disks.if_any());
        items.push(Item::text(ended));
        // Not wrapped, so that it can be copied.
        items.push(Item::Block(format!("journal: {}", printable(&self.journal.to_string_lossy()))));
        items.extend(self.go_on.iter().map(|go_on| Item::Remedy(printable(go_on))));
        page.add("", items);
    }
}

fn result(result: &DiskResult) -> Cell {
    let (ink, word) = match result {
        DiskResult::Verified => (Ink::Green, "verified"),
        DiskResult::Mismatch { .. } => (Ink::Red, "MISMATCH"),
        DiskResult::Failed { .. } => (Ink::Red, "FAILED"),
        DiskResult::Refused { .. } => (Ink::Yellow, "refused"),
        DiskResult::Interrupted => (Ink::Yellow, "interrupted"),
        DiskResult::Untouched => (Ink::Dim, "untouched"),
    };
    Cell::inked(ink, word)
}

impl Sections for PolicyApply {
    const TITLE: &str = "plumb policy apply";

    fn add_to(&self, page: &mut Page) {
        self.report.add_to(page);
        if let Some(observation) = &self.observation {
            page.add("Under a light load (4 KiB and fdatasync, every 10 ms)", vec![felt(observation)]);
        }
    }
}

/// Lists the latency of the light load while disks were switched.
fn felt(observation: &Observation) -> Item {
    let time = |seconds: f64| Nanos::from_secs_f64(seconds);
    let switch = |switch: &ObservedSwitch| {
        let stall = switch.longest_stall.map_or_else(
            || "no operation was in progress, so nothing is known".to_owned(),
            |stall| format!("longest stall {}, {} operations", time(stall), switch.operations),
        );
        let text = format!("switched in {}: {stall}, {} errors", time(switch.duration), switch.errors.len());
        let errors = switch.errors.iter().map(|error| Row::new("", error));
        std::iter::once(Row::new(&switch.disk, &text)).chain(errors).collect::<Vec<_>>()
    };
    let quiet = &observation.undisturbed;
    let known = match (quiet.median, quiet.max) {
        (Some(median), Some(max)) => format!("median {}, longest {}", time(median), time(max)),
        _ => "nothing is known".to_owned(),
    };
    let text = format!("{known}, {} operations, {} errors", quiet.operations, quiet.errors);
    let rows = observation.switches.iter().flat_map(switch);
    Item::Rows(rows.chain([Row::new("undisturbed", &text)]).collect())
}

impl Sections for Verification {
    const TITLE: &str = "plumb policy verify";

    /// Adds the differences between disks and a plan.
    fn add_to(&self, page: &mut Page) {
        let rows = self.disks.iter().flat_map(|disk| {
            let name = disk.name_now.as_deref().unwrap_or(&disk.name);
            let ok = disk.drift.is_empty().then(|| (Ink::Green, "ok", format!("as planned: {}", disk.asked)));
            let drift = disk.drift.iter().map(|line| (Ink::Red, "DRIFT", line.clone()));
            ok.into_iter().chain(drift).map(move |(ink, word, text)| (name, ink, word, text))
        });
        let table = Table::for_rows(rows)
            .left("disk", |(name, ..)| Cell::inked(Ink::Bold, printable(name)))
            .left("result", |(_, ink, word, _)| Cell::inked(*ink, *word))
            .left("", |(.., text)| printable(text));
        let mut items = Item::table(table.if_any());
        if self.disks.is_empty() {
            items.push(Item::text("The plan changes no disk: there is nothing to verify."));
        } else if self.has_drift() {
            let remedy =
                "`plumb policy plan` plans the state again, `plumb policy watch` reports when it drifts";
            items.push(Item::Remedy(remedy.to_owned()));
        }
        page.add("", items);
    }

    fn metrics(&self) -> Option<String> {
        Some(self.metrics())
    }
}

impl Sections for PolicyClaim {
    const TITLE: &str = "plumb policy claim";

    fn add_to(&self, page: &mut Page) {
        let file = self.file.display();
        let name = self.name.as_deref().unwrap_or(&self.identity);
        page.add(
            "",
            match &self.claim {
                Some(claim) => vec![
                    Item::text(&format!(
                        "{name}: {} claims that its cache survives a power cut, until {} ({file})",
                        claim.who, claim.until
                    )),
                    Item::text(&format!(
                        "`plumb policy plan protected {}` shows what that would change.",
                        shell_word(name)
                    )),
                ],
                None => vec![Item::text(&format!("{}: withdrawn ({file})", self.identity))],
            },
        );
    }
}

impl Sections for PolicyPersist {
    const TITLE: &str = "plumb policy persist";

    /// Adds the persistent policies with their evidence, the written or removed files, and the commands to
    /// run.
    fn add_to(&self, page: &mut Page) {
        let mut items: Vec<Item> = self.kept.iter().map(|kept| Item::text(&words(kept))).collect();
        if self.kept.is_empty() && self.files.is_empty() {
            let none = "No policy is kept; `plumb policy persist DEV` keeps the state that a disk is in.";
            items.push(Item::text(none));
        }
        let written = |file: &PathBuf| {
            let verb = if self.removed.contains(file) { "removed" } else { "wrote" };
            format!("{verb} {}", file.display())
        };
        items.push(Item::facts(self.files.iter().map(written)));
        if self.is_here && !self.files.is_empty() {
            let run = self.then_run.join("; ");
            items.push(Item::text(&format!("To apply it before the next boot: {run}")));
        }
        page.add("", items);
    }
}

fn words(kept: &KeptPolicy) -> String {
    let means = match kept.means {
        Persistence::InTheDrive => "kept by the drive",
        Persistence::AtEveryStart => "set again at every boot",
    };
    let standing = match &kept.standing {
        Certainty::Requested => format!("requested at {}, not yet tested by a restart", kept.requested_at),
        Certainty::HeldOverReboot { at, evidence } => format!(
            "HELD OVER A REBOOT, seen at {at}: {evidence}; only a power cycle that the drive counts proves it"
        ),
        Certainty::Proven { at, evidence } => format!("PROVEN at {at}: {evidence}"),
        Certainty::Lost { at, evidence } => format!("LOST, seen at {at}: {evidence}"),
    };
    format!("{}: {}, {means}; {standing}", kept.identity, kept.state)
}

impl Sections for Enforcement {
    const TITLE: &str = "plumb policy enforce";

    fn add_to(&self, page: &mut Page) {
        self.plans.iter().for_each(|plan| page.add("", refused(plan)));
        self.reports.iter().for_each(|report| report.add_to(page));
        let mut items: Vec<Item> =
            self.absent.iter().map(|identity| Item::text(&format!("{identity} is not here"))).collect();
        if self.disks == 0 && self.absent.is_empty() {
            let none =
                "No state is recorded: `plumb policy persist DEV` records that a disk is to stay as it is.";
            items.push(Item::text(none));
        } else if self.reports.is_empty() {
            let disks = self.disks;
            items.push(Item::text(&format!(
                "{disks} disks with a recorded state are here; none was changed."
            )));
        }
        page.add("", items);
    }
}

//! From what is asked for and what was read to a plan.

use std::collections::HashSet;

use jiff::Timestamp;

use super::document::{Goal, Plan, PlannedChange, RefusedDisk, UnchangedDisk};
use super::obstacle::judge;
use super::step::planned;
use crate::claims::Claims;
use crate::device::Reader;
use crate::gateway::Gateway;
use crate::mechanism;
use crate::moment::now_text;
use crate::select::Selection;
use crate::state::{Found, State};
use crate::view::{DeviceView, Protection};
use crate::waves::{self, Place};

/// Which disks are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// These: kernel names, nodes of /dev and links to them, paths. What cannot be changed is refused.
    Named(Vec<String>),
    /// All that have a write cache of their own.
    All,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    /// What the disks are to become.
    pub goal: Goal,
    /// Which disks.
    pub wanted: Wanted,
    /// Of these, only the ones that it chooses.
    pub filter: Option<Selection>,
    /// How many disks a wave holds at most; [`waves::WAVE_SIZE`] unless told otherwise.
    pub wave_size: usize,
    /// The words of administrators.
    pub claims: &'a Claims,
    /// Now, for the claims.
    pub now: Timestamp,
}

/// Plans. Nothing is changed. Where nothing is found that can be changed, the plan has no changes.
pub fn make(gateway: &dyn Gateway, ask: &Ask<'_>) -> Plan {
    let reader = Reader::new(gateway, ask.claims, ask.now);
    let (views, mut refused) = read(&reader, ask);
    let mut unchanged = Vec::new();
    let mut accepted: Vec<(&DeviceView, Option<Protection>)> = Vec::new();
    for view in &views {
        if is_there(view, ask.goal) {
            let (name, identity) = (view.name.clone(), view.identity.clone());
            unchanged.push(UnchangedDisk { name, identity, state: view.state });
            continue;
        }
        match judge(view, ask.goal, ask.claims, ask.now) {
            Ok(protection) => accepted.push((view, protection)),
            Err(refusal) => refused.push(RefusedDisk {
                name: view.name.clone(),
                reason: refusal.reason,
                remedy: refusal.remedy,
            }),
        }
    }
    let disks: Vec<&DeviceView> = accepted.iter().map(|(view, _)| *view).collect();
    let places = waves::arrange(&disks, ask.wave_size);
    let mut changes: Vec<(Place, PlannedChange)> = accepted
        .into_iter()
        .zip(places)
        .map(|((view, protection), place)| (place, change(gateway, view, ask.goal, protection, place)))
        .collect();
    changes.sort_by_key(|(place, _)| place.order);
    document(gateway, ask.goal, changes.into_iter().map(|(_, change)| change).collect(), refused, unchanged)
}

/// The views of all that is meant, each once, and the names that stand for nothing.
fn read(reader: &Reader<'_>, ask: &Ask<'_>) -> (Vec<DeviceView>, Vec<RefusedDisk>) {
    let mut refused = Vec::new();
    let mut views = match &ask.wanted {
        Wanted::All => reader.all().devices.into_iter().filter(|view| view.state != Found::None).collect(),
        Wanted::Named(names) => {
            let mut views: Vec<DeviceView> = Vec::new();
            for name in names {
                match reader.one(name) {
                    Ok(view) => views.push(view),
                    Err(unknown) => refused.push(RefusedDisk {
                        name: name.clone(),
                        reason: unknown.to_string(),
                        remedy: "`plumb policy show --all` lists the disks of this machine".to_owned(),
                    }),
                }
            }
            views
        }
    };
    let mut seen = HashSet::new();
    views.retain(|view| seen.insert(view.name.clone()));
    if let Some(filter) = &ask.filter {
        views.retain(|view| filter.chooses(view));
    }
    views.sort_by(|left, right| waves::name_order(&left.name).cmp(&waves::name_order(&right.name)));
    (views, refused)
}

/// Whether nothing has to be done.
pub(crate) fn is_there(view: &DeviceView, goal: Goal) -> bool {
    match goal.state() {
        Some(State::Off) => view.state == Found::Off,
        Some(State::On) => view.state == Found::On,
        Some(State::Protected) => view.state == Found::Protected,
        None => !mechanism::needs_healing(view),
    }
}

fn change(
    gateway: &dyn Gateway,
    view: &DeviceView,
    goal: Goal,
    protection: Option<Protection>,
    place: Place,
) -> PlannedChange {
    PlannedChange {
        name: view.name.clone(),
        identity: view.identity.clone().unwrap_or_default(),
        model: view.model.clone(),
        from: view.state,
        to: goal,
        wave: place.wave,
        canary: place.canary,
        port: view.port.clone(),
        redundancy_groups: view.redundancy_groups.clone(),
        device: view.device.clone(),
        kernel: view.kernel.clone(),
        holders: view.holders.clone(),
        protection,
        steps: mechanism::steps(gateway, view, goal).iter().map(planned).collect(),
    }
}

fn document(
    gateway: &dyn Gateway,
    asked: Goal,
    changes: Vec<PlannedChange>,
    refused: Vec<RefusedDisk>,
    unchanged: Vec<UnchangedDisk>,
) -> Plan {
    let mut plan = Plan {
        schema: Plan::SCHEMA.to_owned(),
        hash: String::new(),
        made_at: now_text(),
        boot_id: boot_id(gateway),
        kernel: kernel_release(gateway),
        asked,
        changes,
        refused,
        unchanged,
    };
    plan.hash = plan.hash_now().unwrap_or_default();
    plan
}

/// The boot that runs; empty where the kernel does not say.
pub(crate) fn boot_id(gateway: &dyn Gateway) -> String {
    gateway.tree().text("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// The kernel's release.
pub(crate) fn kernel_release(gateway: &dyn Gateway) -> Option<String> {
    gateway.tree().text("/proc/sys/kernel/osrelease").ok()
}

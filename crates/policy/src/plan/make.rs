//! Creation of a plan from a request and the present state.

use std::borrow::Cow;
use std::collections::HashSet;

use jiff::Timestamp;
use plumb_linux::tree;

use super::document::{
    Plan, PlanRequest, PlannedChange, PlannedStep, RefusedDisk, SharedCache, UnchangedDisk,
};
use super::obstacle::judge;
use super::once::Once;
use super::route::route;
use super::siblings;
use super::step::planned;
use crate::claims::Claims;
use crate::device::Reader;
use crate::error::PolicyError;
use crate::gateway::Gateway;
use crate::many;
use crate::mechanism::{Goal, Material};
use crate::select::Selection;
use crate::state::{FoundState, State};
use crate::time_text::now_text;
use crate::view::{DeviceView, Protection, Refusal};
use crate::waves::{self, WaveSlot};

/// Selection of disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskSelection {
    /// Named disks: kernel names, nodes of /dev and links to them, paths. Those that cannot be changed are
    /// refused.
    Named(Vec<String>),
    /// All disks with a write cache of their own.
    All,
}

/// Request for a plan.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    /// Requested result.
    pub asked: PlanRequest,
    /// True to also save the state in drives that support it.
    pub save: bool,
    /// Selected disks.
    pub wanted: DiskSelection,
    /// Filter for the selected disks.
    pub filter: Option<Selection>,
    /// Maximum number of disks in a wave; [`waves::WAVE_SIZE`] by default.
    pub wave_size: usize,
    /// Administrators' claims.
    pub claims: &'a Claims,
    /// Current time, for the expiry of claims.
    pub now: Timestamp,
}

impl<'a> Ask<'a> {
    /// Creates a request for `wanted`, in waves of default size, without saving in the drives.
    pub const fn new(asked: PlanRequest, wanted: DiskSelection, claims: &'a Claims, now: Timestamp) -> Self {
        Self { asked, save: false, wanted, filter: None, wave_size: waves::WAVE_SIZE, claims, now }
    }
}

/// Decision about one disk.
enum Decision {
    Changed(Box<AcceptedChange>),
    Unchanged,
    Refused(Refusal),
}

struct AcceptedChange {
    goal: Goal,
    steps: Vec<PlannedStep>,
    protection: Option<Protection>,
    /// Disks that share the cache, and so change with it.
    siblings: Vec<DeviceView>,
}

/// Makes a plan; changes nothing. If no disk can be changed, the plan has no changes.
///
/// # Errors
/// If a name is unknown, or the uses of the disks cannot be determined.
pub fn make(gateway: &dyn Gateway, ask: &Ask<'_>) -> Result<Plan, PolicyError> {
    let once = Once::new(gateway);
    let mut plan = without_hash(&once, ask)?;
    plan.hash = std::thread::scope(|scope| {
        // For a thousand disks there are so many cached answers that freeing them takes as long as hashing.
        scope.spawn(|| drop(once));
        plan.hash_now()
    });
    Ok(plan)
}

fn without_hash(gateway: &dyn Gateway, ask: &Ask<'_>) -> Result<Plan, PolicyError> {
    let SelectedDisks { reader, views } = select(gateway, ask)?;
    let mut refused = Vec::new();
    let decisions = many::map(&views, |view| decision(&reader, view, ask));
    let mut unchanged = Vec::new();
    let mut accepted: Vec<(DeviceView, AcceptedChange)> = Vec::new();
    let mut with_another: HashSet<String> = HashSet::new();
    for (view, decision) in views.into_iter().zip(decisions) {
        let (name, identity) = (view.name.clone(), view.identity.clone());
        if with_another.contains(&name) {
            continue;
        }
        match decision {
            Decision::Changed(change) => {
                with_another.extend(change.siblings.iter().map(|sibling| sibling.name.clone()));
                accepted.push((view, *change));
            }
            Decision::Unchanged => unchanged.push(UnchangedDisk { name, identity, state: view.state }),
            Decision::Refused(Refusal { reason, remedy }) => {
                refused.push(RefusedDisk { name, reason, remedy })
            }
        }
    }
    let places = places(&accepted, ask.wave_size);
    let mut changes: Vec<(WaveSlot, PlannedChange)> = accepted
        .into_iter()
        .zip(places)
        .map(|((view, accepted), place)| (place, change(view, ask.asked, accepted, place)))
        .collect();
    changes.sort_by_key(|(place, _)| place.order);
    Ok(Plan {
        schema: Plan::SCHEMA.to_owned(),
        hash: String::new(),
        made_at: now_text(),
        boot_id: boot_id(gateway),
        kernel: kernel_release(gateway),
        asked: ask.asked,
        changes: changes.into_iter().map(|(_, change)| change).collect(),
        refused,
        unchanged,
    })
}

/// Disks selected by the request, in their present state.
struct SelectedDisks<'a> {
    reader: Reader<'a>,
    /// Views without duplicates.
    views: Vec<DeviceView>,
}

fn select<'a>(gateway: &'a dyn Gateway, ask: &Ask<'a>) -> Result<SelectedDisks<'a>, PolicyError> {
    let mut views: Vec<DeviceView> = Vec::new();
    let reader = match &ask.wanted {
        DiskSelection::All => {
            let (reader, document) = Reader::with_all(gateway, ask.claims, ask.now)?;
            views.extend(document.devices.into_iter().filter(|view| view.state != FoundState::None));
            reader
        }
        DiskSelection::Named(names) => {
            let reader = Reader::new(gateway, ask.claims, ask.now)?;
            for name in names {
                views.push(reader.one(name)?);
            }
            reader
        }
    };
    let mut seen = HashSet::new();
    views.retain(|view| seen.insert(view.name.clone()));
    if let Some(filter) = &ask.filter {
        views.retain(|view| filter.chooses(view));
    }
    views.sort_by(|left, right| waves::name_order(&left.name).cmp(&waves::name_order(&right.name)));
    Ok(SelectedDisks { reader, views })
}

fn decision(reader: &Reader<'_>, view: &DeviceView, ask: &Ask<'_>) -> Decision {
    if is_there_for_good(view, ask.asked) {
        return Decision::Unchanged;
    }
    let accepted = judge(view, ask.asked, ask.claims, ask.now).and_then(|protection| {
        let material = Material::read(reader, view)?;
        let state = ask.asked.state().unwrap_or(State::On);
        let may_save =
            ask.save && material.saveable && matches!(ask.asked, PlanRequest::Off | PlanRequest::On);
        let goal = Goal { state, saved: may_save.then_some(state == State::On) };
        let siblings = siblings(reader, view, goal, ask)?;
        let steps = route(reader, view, &material, ask.asked, goal)?;
        Ok(AcceptedChange { goal, steps: steps.iter().map(planned).collect(), protection, siblings })
    });
    match accepted {
        Ok(accepted) if accepted.steps.is_empty() => Decision::Unchanged,
        Ok(accepted) => Decision::Changed(Box::new(accepted)),
        Err(refusal) => Decision::Refused(refusal),
    }
}

/// Returns the disks that change with a disk because they share its cache; none if only the kernel's view is
/// changed.
fn siblings(
    reader: &Reader<'_>,
    view: &DeviceView,
    goal: Goal,
    ask: &Ask<'_>,
) -> Result<Vec<DeviceView>, Refusal> {
    if ask.asked == PlanRequest::Heal || !siblings::switches_the_drive(view, goal) {
        return Ok(Vec::new());
    }
    let siblings = reader.siblings(&view.name);
    let left_out =
        siblings.iter().find(|sibling| ask.filter.as_ref().is_some_and(|filter| !filter.chooses(sibling)));
    left_out.map_or(Ok(siblings.clone()), |sibling| Err(siblings::left_out(view, &sibling.name)))
}

/// Returns the order of all changes. Disks that share a cache are as critical as the most critical of them.
fn places(accepted: &[(DeviceView, AcceptedChange)], wave_size: usize) -> Vec<WaveSlot> {
    let disks: Vec<Cow<'_, DeviceView>> =
        accepted.iter().map(|(view, accepted)| whole(view, accepted)).collect();
    waves::arrange(&disks.iter().map(AsRef::as_ref).collect::<Vec<_>>(), wave_size)
}

/// Returns a disk including the holders of disks that share its cache.
fn whole<'a>(view: &'a DeviceView, accepted: &AcceptedChange) -> Cow<'a, DeviceView> {
    let mut whole = Cow::Borrowed(view);
    for sibling in &accepted.siblings {
        let view = whole.to_mut();
        view.holders.extend(sibling.holders.iter().cloned());
        view.redundancy_groups.extend(sibling.redundancy_groups.iter().cloned());
    }
    whole
}

/// Returns true for a disk that cannot be changed, and need not be. A RAID controller's own report does not
/// count.
fn is_there_for_good(view: &DeviceView, asked: PlanRequest) -> bool {
    view.refusal.is_some()
        && view.transport != "raid"
        && matches!(
            (view.state, asked),
            (FoundState::Off, PlanRequest::Off | PlanRequest::Heal) | (FoundState::On, PlanRequest::On)
        )
}

fn change(view: DeviceView, asked: PlanRequest, accepted: AcceptedChange, place: WaveSlot) -> PlannedChange {
    PlannedChange {
        name: view.name,
        identity: view.identity.unwrap_or_default(),
        model: view.model,
        from: view.state,
        to: asked,
        saved: accepted.goal.saved,
        wave: place.wave,
        canary: place.canary,
        port: view.port,
        redundancy_groups: view.redundancy_groups,
        device: view.device,
        kernel: view.kernel,
        holders: view.holders,
        shares_cache_with: accepted.siblings.into_iter().map(shared).collect(),
        protection: accepted.protection,
        steps: accepted.steps,
    }
}

fn shared(view: DeviceView) -> SharedCache {
    SharedCache { name: view.name, identity: view.identity, holders: view.holders }
}

/// Returns the identifier of this boot; empty if the kernel does not report it.
pub(crate) fn boot_id(gateway: &dyn Gateway) -> String {
    tree::boot_id(gateway.tree()).unwrap_or_default()
}

/// Returns the kernel's release.
pub(crate) fn kernel_release(gateway: &dyn Gateway) -> Option<String> {
    gateway.tree().text("/proc/sys/kernel/osrelease").ok()
}

//! Where an acknowledged write and a synced one become durable, and why the survey cannot see further.

use super::Flow;
use super::finding::names;
use crate::facts::{Mark, Node};
use crate::model::{Cache, DurableAt, Flush, LayerKind};

/// The verdict of a path.
pub(super) fn durable_at(flow: &Flow<'_>) -> DurableAt {
    let fsync = synced(flow);
    let synchronous = is_synchronous(flow);
    let sentence = match &fsync {
        Synced::At(name) if synchronous => {
            format!("The mount option sync makes every write durable at {name} before write() returns.")
        }
        Synced::At(name) => format!(
            "A write is in memory when it is acknowledged; once fsync has returned it is durable at {name}.{}",
            direct(flow)
        ),
        Synced::Dropped(layer, holder) => format!(
            "fsync makes nothing durable here: the flush ends at {layer} while {holder} may lose what it holds."
        ),
        Synced::Memory(name) => {
            format!("Nothing is durable here: {name} is memory, and a power cut or a reboot empties it.")
        }
        Synced::Unknown(why) => format!(
            "A write is in memory when it is acknowledged; whether it is durable once fsync has returned cannot be \
             seen from here: {why}."
        ),
    };
    let fsync = match fsync {
        Synced::At(name) => Some(name),
        _ => None,
    };
    let write = if synchronous { fsync.clone() } else { None };
    DurableAt { write, fsync, sentence }
}

/// Why the survey cannot see further down; several reasons are joined, a hypervisor first.
pub(super) fn unknown_below(flow: &Flow<'_>) -> Option<String> {
    let mut reasons: Vec<String> = Vec::new();
    let mut more = 0;
    for (_, node) in flow.nodes() {
        for mark in &node.marks {
            let reason = match mark {
                Mark::Guest { name } => {
                    format!(
                        "hypervisor {name}: what the host does with a write or a flush is not visible to a guest"
                    )
                }
                Mark::RemoteEnd { what } => {
                    format!("{what}: what it does with a write or a flush is its own affair")
                }
                Mark::HidesMembers { why } => {
                    format!("{}: {why}; its members and their caches are hidden", node.name)
                }
                Mark::Unseen { what } => what.clone(),
                _ => continue,
            };
            if matches!(mark, Mark::Guest { .. }) {
                reasons.insert(0, reason);
            } else if reasons.len() < 4 {
                reasons.push(reason);
            } else {
                more += 1;
            }
        }
    }
    if more > 0 {
        reasons.push(format!("and {more} more"));
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// What a returned fsync is worth.
enum Synced {
    At(String),
    Dropped(String, String),
    Memory(String),
    Unknown(String),
}

fn synced(flow: &Flow<'_>) -> Synced {
    if let Some((_, node)) = flow.nodes().find(|(_, node)| node.marks.contains(&Mark::InMemory)) {
        return Synced::Memory(node.name.clone());
    }
    if let Some((index, node)) = flow.nodes().find(|(index, _)| flow.flush(*index) == Flush::Dropped) {
        return Synced::Dropped(node.name.clone(), holder(flow, index));
    }
    if let Some(reason) = unknown_below(flow) {
        return Synced::Unknown(reason);
    }
    let unsure: Vec<&Node> = flow
        .nodes()
        .filter(|(index, _)| flow.flush(*index) == Flush::Unknown)
        .map(|(_, node)| node)
        .collect();
    if !unsure.is_empty() {
        return Synced::Unknown(format!("what becomes of a flush at {} is not known", names(&unsure)));
    }
    match lowest_common(flow) {
        Some(name) => Synced::At(name),
        None => Synced::Unknown("no device was found below".to_owned()),
    }
}

/// The volatile layer that a flush dropped at `index` should have emptied.
fn holder(flow: &Flow<'_>, index: usize) -> String {
    let below = below_all(flow, index);
    let holders: Vec<&Node> = flow
        .nodes()
        .filter(|(place, node)| {
            below[*place] && node.cache == Cache::Volatile && node.kind != LayerKind::Loop
        })
        .map(|(_, node)| node)
        .collect();
    if holders.is_empty() {
        "memory above it".to_owned()
    } else {
        format!("the cache of {}", names(&holders))
    }
}

/// Which nodes are at or below `index`; for an adapter, also the disks directly above it.
fn below_all(flow: &Flow<'_>, index: usize) -> Vec<bool> {
    let count = flow.nodes().count();
    let mut reached = vec![false; count];
    reached[index] = true;
    for place in index..count {
        if reached[place] {
            for (below, _) in flow.below(place) {
                reached[below] = true;
            }
        }
    }
    if flow.node(index).kind == LayerKind::Controller {
        for (place, _) in flow.nodes() {
            reached[place] |= flow.below(place).any(|(below, _)| below == index);
        }
    }
    reached
}

/// The lowest layer that every write goes through: the drive if there is one, the array if there are several.
fn lowest_common(flow: &Flow<'_>) -> Option<String> {
    let mut at = flow.first(|kind| !matches!(kind, LayerKind::Application | LayerKind::PageCache))?;
    loop {
        let below: Vec<(usize, &Node)> =
            flow.below(at).filter(|(_, node)| node.kind != LayerKind::Controller).collect();
        match below.as_slice() {
            [(only, _)] => at = *only,
            _ => return Some(flow.node(at).name.clone()),
        }
    }
}

/// The mount option `sync`, on the first file system.
fn is_synchronous(flow: &Flow<'_>) -> bool {
    let Some(index) = flow.first(|kind| kind == LayerKind::FileSystem) else { return false };
    flow.node(index).evidence.iter().any(|evidence| evidence.value == "sync")
}

/// What O_DIRECT alone is worth.
fn direct(flow: &Flow<'_>) -> String {
    let volatile: Vec<&Node> = flow
        .nodes()
        .filter(|(_, node)| {
            !matches!(node.kind, LayerKind::Application | LayerKind::PageCache)
                && node.cache == Cache::Volatile
        })
        .map(|(_, node)| node)
        .collect();
    if volatile.is_empty() {
        " With O_DIRECT the data of a write that overwrites in place is durable as soon as it is acknowledged.".to_owned()
    } else {
        format!(" O_DIRECT alone leaves it in the volatile cache of {}.", names(&volatile))
    }
}

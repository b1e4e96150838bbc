//! Layers at which acknowledged and synced writes become durable, and the reason why the survey cannot see
//! further.

use super::finding::names;
use super::{Flow, device};
use crate::facts::{Mark, Node};
use crate::model::{Cache, DurableAt, Flush, LayerKind, synchronous_words};

/// Returns the durability on a path.
pub(super) fn durable_at(flow: &Flow<'_>) -> DurableAt {
    if let Some(node) = read_only(flow) {
        let sentence =
            format!("Nothing can be written here: {} is read-only and takes no writes.", node.name);
        return DurableAt { sentence, ..DurableAt::default() };
    }
    let is_cached = flow.first(|kind| kind == LayerKind::PageCache).is_some();
    let words = match is_of_guest(flow) {
        true if is_cached => CACHED_GUEST,
        true => DIRECT_GUEST,
        false if is_cached => KERNEL,
        // The target is a cache itself: the kernel does not serve it, but its devices.
        false if top(flow).is_some_and(|top| flow.node(top).log().is_some()) => NAMED_CACHE,
        false => return device::durable_at(flow),
    };
    let Words { acknowledged, synced: once_synced, sync, .. } = words;
    let synced = synced(flow);
    if let (SyncGuarantee::At(name), true) =
        (&synced, is_of_guest(flow) && flow.node(0).marks.contains(&Mark::FlushesWrites))
    {
        let sentence = format!("A write of the guest is durable at {name} when it is acknowledged.");
        let every = Some(name.clone());
        return DurableAt { write: every.clone(), direct: every.clone(), fsync: every, sentence };
    }
    let synchronous = synchronous(flow);
    let (direct, direct_words) = match &synced {
        // An image may have its own mapping, which is written at a flush.
        SyncGuarantee::At(name) if synchronous.is_none() && !is_of_guest(flow) => direct(flow, name, words),
        _ => (None, String::new()),
    };
    let sentence = match (&synced, synchronous) {
        (SyncGuarantee::At(name), Some(by)) => {
            format!("The {by} makes every write durable at {name} before write() returns.")
        }
        (SyncGuarantee::At(name), None) => format!(
            "A write is {acknowledged} when it is acknowledged; once {once_synced} it is durable at {name}.{direct_words}"
        ),
        (SyncGuarantee::Dropped(cause, holder), _) => {
            format!("{sync} makes nothing durable here: {cause} while {holder} may lose data.")
        }
        (SyncGuarantee::Nothing(why), _) => format!("Nothing is durable here: {why}."),
        (SyncGuarantee::Unknown(why), Some(by)) => format!(
            "The {by} flushes every write before write() returns; whether it is durable then cannot be seen \
             from here: {why}."
        ),
        (SyncGuarantee::Unknown(why), None) => format!(
            "A write is {acknowledged} when it is acknowledged; whether it is durable once {once_synced} cannot be \
             seen from here: {why}."
        ),
    };
    let fsync = match synced {
        SyncGuarantee::At(name) => Some(name),
        _ => None,
    };
    let every_write = if words.is_direct { direct.clone() } else { None };
    let write = fsync.clone().filter(|_| synchronous.is_some()).or(every_write);
    DurableAt { direct: write.clone().or(direct), write, fsync, sentence }
}

/// Wording for the writes and syncs of a path.
#[derive(Clone, Copy)]
struct Words {
    /// Location of an acknowledged write.
    acknowledged: &'static str,
    /// Condition under which a sync is complete.
    synced: &'static str,
    /// Operation that requests a sync.
    sync: &'static str,
    /// True if all writes bypass the page cache.
    is_direct: bool,
}

const KERNEL: Words =
    Words { acknowledged: "in memory", synced: "fsync has returned", sync: "fsync", is_direct: false };

const NAMED_CACHE: Words = Words {
    acknowledged: "on the devices of the cache",
    synced: "a flush was answered",
    sync: "A flush",
    is_direct: true,
};

/// Wording for a disk of a virtual machine whose hypervisor uses this host's page cache.
const CACHED_GUEST: Words = Words {
    acknowledged: "in this host's memory",
    synced: "a flush of the guest was answered",
    sync: "A flush of the guest",
    is_direct: false,
};

/// Wording for a disk of a virtual machine whose hypervisor bypasses this host's page cache.
const DIRECT_GUEST: Words = Words { acknowledged: "past this host's memory", ..CACHED_GUEST };

/// Returns true for the disk of a virtual machine on this host. A guest's own path may also include a process
/// of its host.
fn is_of_guest(flow: &Flow<'_>) -> bool {
    flow.first(|kind| kind == LayerKind::VirtualMachine) == Some(0)
}

/// Returns the reason why the survey cannot see further down; several reasons are joined, a hypervisor first.
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
                Mark::Unseen { what } | Mark::KernelState { what } => what.clone(),
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

/// Guarantee after fsync has returned.
enum SyncGuarantee {
    At(String),
    /// Nothing: this layer ends the flush; the second layer holds the data that it should have made durable.
    Dropped(String, String),
    /// Nothing: the reason, as a clause.
    Nothing(String),
    Unknown(String),
}

/// Returns the offer of a server without flush support; `None` for other layers.
pub(super) fn no_flush_offered(node: &Node) -> Option<&'static str> {
    node.marks.iter().find_map(|mark| match mark {
        Mark::NoFlushOffered { offered } => Some(*offered),
        _ => None,
    })
}

fn synced(flow: &Flow<'_>) -> SyncGuarantee {
    if let Some((_, node)) = flow.nodes().find(|(_, node)| node.marks.contains(&Mark::InMemory)) {
        let name = &node.name;
        let what = match node.kind {
            LayerKind::DmSnapshot => {
                format!("the changes of the snapshot {name} are recorded in memory only")
            }
            _ => format!("{name} is memory"),
        };
        return SyncGuarantee::Nothing(format!("{what}, and a power cut or a reboot empties it"));
    }
    if let Some((_, node)) = flow.nodes().find(|(_, node)| node.marks.contains(&Mark::KeepsNothing)) {
        return SyncGuarantee::Nothing(keeps_nothing(node));
    }
    if let Some((index, node)) = flow.nodes().find(|(index, _)| flow.flush(*index) == Flush::Dropped) {
        if let Some(offered) = no_flush_offered(node) {
            let cause = format!("the server of {} offers {offered}", node.name);
            return SyncGuarantee::Dropped(cause, "it".to_owned());
        }
        return SyncGuarantee::Dropped(cause(node), holder(flow, index));
    }
    if let Some(reason) = unknown_below(flow) {
        return SyncGuarantee::Unknown(reason);
    }
    let unsure: Vec<&Node> = flow
        .nodes()
        .filter(|(index, _)| flow.flush(*index) == Flush::Unknown)
        .map(|(_, node)| node)
        .collect();
    if let Some((index, node)) = flow.nodes().find(|(index, _)| flow.vouched(*index) == Some(Flush::Unknown))
    {
        let log = names(flow.log(index).map(|(_, node)| node).collect());
        return SyncGuarantee::Unknown(format!(
            "the flush ends at {}; it is unknown whether its log on {log} keeps data that was not flushed",
            node.name
        ));
    }
    if !unsure.is_empty() {
        return SyncGuarantee::Unknown(format!("what becomes of a flush at {} is not known", names(unsure)));
    }
    match lowest_common(flow) {
        Some(name) => SyncGuarantee::At(name),
        None => SyncGuarantee::Unknown("no device was found below".to_owned()),
    }
}

/// Returns the reason why nothing is durable on a null device.
pub(super) fn keeps_nothing(node: &Node) -> String {
    format!("{} keeps nothing that is written", node.name)
}

/// Returns the reason why a flush ends at `node`.
fn cause(node: &Node) -> String {
    let option = node.marks.iter().find_map(|mark| match mark {
        Mark::BarriersOff { option, .. } | Mark::SyncsOmitted { option } => Some(option),
        _ => None,
    });
    match option {
        Some(option) => {
            format!("{} is {} {option} and sends no flush,", node.place(), node.option_verb())
        }
        None => format!("the flush ends at {}", node.name),
    }
}

/// Returns the volatile layer that the flush dropped at `index` should have emptied.
pub(super) fn holder(flow: &Flow<'_>, index: usize) -> String {
    let below = below_all(flow, index);
    let holders: Vec<&Node> = flow
        .nodes()
        .filter(|(place, node)| {
            below[*place] && node.cache == Cache::Volatile && node.kind != LayerKind::Loop
        })
        .map(|(_, node)| node)
        .collect();
    if holders.is_empty() {
        return "memory above it".to_owned();
    }
    // Below a virtual machine there is the page cache of its host.
    let (memory, caches): (Vec<&Node>, Vec<&Node>) =
        holders.into_iter().partition(|node| node.kind == LayerKind::PageCache);
    let memory = memory.first().map(|_| "the page cache".to_owned());
    let caches = (!caches.is_empty()).then(|| format!("the cache of {}", names(caches)));
    memory.into_iter().chain(caches).collect::<Vec<_>>().join(" and ")
}

/// Marks the nodes at or below `index` that a flush there should reach; for an adapter, also the disks
/// directly above it.
pub(super) fn below_all(flow: &Flow<'_>, index: usize) -> Vec<bool> {
    let count = flow.nodes().count();
    let mut reached = vec![false; count];
    // Below a write-back cache, only a vouched log is not flushed.
    match flow.vouched(index) {
        Some(_) => flow.log(index).for_each(|(leg, _)| reached[leg] = true),
        None => reached[index] = true,
    }
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

/// Returns the lowest layer common to all writes: the drive if there is one, the array if there are several.
fn lowest_common(flow: &Flow<'_>) -> Option<String> {
    let mut at = top(flow)?;
    loop {
        let below: Vec<(usize, &Node)> =
            flow.below(at).filter(|(_, node)| node.kind != LayerKind::Controller).collect();
        match below.as_slice() {
            [(only, _)] => at = *only,
            _ => return Some(flow.node(at).name.clone()),
        }
    }
}

/// Returns the setting that syncs every write at the top layer, below the page cache; for an overlay, also of
/// the file system of its upper directory. A file system below a loop device does not count, since only the
/// loop device writes to it.
fn synchronous(flow: &Flow<'_>) -> Option<&'static str> {
    let mut at = top(flow);
    while let Some(index) = at {
        let node = flow.node(index);
        if let Some(value) = node.synchronous() {
            return Some(synchronous_words(value));
        }
        at = match node.kind {
            LayerKind::Overlay => flow.below(index).next().map(|(below, _)| below),
            _ => None,
        };
    }
    None
}

/// Returns the top layer if it is read-only. A read-only layer further down means nothing: the origin of a
/// snapshot is read-only, and the kernel still writes to a disk that was made read-only below a file system
/// (block/blk-core.c, bio_check_ro).
pub(super) fn read_only<'a>(flow: &Flow<'a>) -> Option<&'a Node> {
    top(flow).map(|top| flow.node(top)).filter(|node| node.is_read_only())
}

/// Returns the layer directly below the page cache.
fn top(flow: &Flow<'_>) -> Option<usize> {
    flow.first(|kind| {
        !matches!(kind, LayerKind::Application | LayerKind::PageCache | LayerKind::VirtualMachine)
    })
}

/// Returns the guarantee for a direct write without a sync, where a sync makes data durable at `name`: the
/// layer at which such a write is durable, and a sentence; nothing if that is not certain.
fn direct(flow: &Flow<'_>, name: &str, words: Words) -> (Option<String>, String) {
    let nothing = (None, String::new());
    let Some(top) = top(flow).filter(|top| flow.node(*top).writes_in_place()) else { return nothing };
    // Below a hypervisor that flushes each write no volatile data remains.
    let is_left = |node: &&Node| !node.marks.contains(&Mark::FlushesWrites);
    let under: Vec<&Node> =
        flow.nodes().filter(|(index, _)| *index >= top).map(|(_, node)| node).take_while(is_left).collect();
    let holding =
        |cache| -> Vec<&Node> { under.iter().filter(|node| node.cache == cache).copied().collect() };
    let volatile = holding(Cache::Volatile);
    if !volatile.is_empty() {
        let until = if words.is_direct { "Until then it may be" } else { "O_DIRECT alone leaves it" };
        return (None, format!(" {until} in the volatile cache of {}.", names(volatile)));
    }
    let certain = under.iter().all(|node| node.writes_in_place());
    if !holding(Cache::Unknown).is_empty() || !certain {
        return nothing;
    }
    let at_once = match words.is_direct {
        true => " It is durable as soon as it is acknowledged.",
        false => {
            " With O_DIRECT the data of a write that overwrites in place is durable as soon as it is acknowledged."
        }
    };
    (Some(name.to_owned()), at_once.to_owned())
}

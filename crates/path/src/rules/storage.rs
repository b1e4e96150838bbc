//! Findings that are not traps of cache settings: memory, options, arrays, caches, the far side of a hypervisor or a
//! network, and what root would add.

use super::Flow;
use super::finding::{about, verb};
use crate::facts::{KernelView, Mark, Node};
use crate::finding::{Finding, Severity};
use crate::model::{Cache, Flush, LayerKind};

/// How many questions `needs-root` lists.
const QUESTIONS_MAX: usize = 20;

/// All of them that the path shows.
pub(super) fn findings(flow: &Flow<'_>) -> Vec<Finding> {
    [
        memory(flow),
        barriers_off(flow),
        volatile_overlay(flow),
        lax_order(flow),
        external_journal(flow),
        no_flush_command(flow),
        write_hole(flow),
        dirty(flow),
        hidden_members(flow),
        volatile_cache(flow),
        simulated(flow),
        below_hypervisor(flow),
        remote(flow),
        unseen(flow),
        needs_root(flow),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn marked<'a>(flow: &Flow<'a>, wanted: impl Fn(&Mark) -> bool) -> Vec<&'a Node> {
    flow.nodes().map(|(_, node)| node).filter(|node| node.marks.iter().any(&wanted)).collect()
}

/// The words that marks of one sort carry, each once.
fn words<'a>(nodes: &[&'a Node], word: impl Fn(&'a Mark) -> Option<&'a str>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for found in nodes.iter().flat_map(|node| &node.marks).filter_map(word) {
        if !words.iter().any(|known| known == found) {
            words.push(found.to_owned());
        }
    }
    words
}

fn memory(flow: &Flow<'_>) -> Option<Finding> {
    let nodes = marked(flow, |mark| *mark == Mark::InMemory);
    about(
        "memory",
        Severity::Danger,
        &nodes,
        |names| format!("{names} keeps its data in memory: nothing here is durable, synced or not."),
        "Put data that must survive on a file system that is kept on a disk.",
    )
}

fn barriers_off(flow: &Flow<'_>) -> Option<Finding> {
    let nodes = marked(flow, |mark| matches!(mark, Mark::BarriersOff { .. }));
    let options = words(&nodes, |mark| match mark {
        Mark::BarriersOff { option } => Some(option),
        _ => None,
    });
    let fate =
        |wanted| flow.nodes().any(|(index, node)| nodes.contains(&node) && flow.flush(index) == wanted);
    let (severity, consequence) = if fate(Flush::Dropped) {
        (
            Severity::Danger,
            "and a drive below holds volatile data: a power cut can lose synced data and damage the file system",
        )
    } else if fate(Flush::Unknown) {
        (Severity::Warning, "and what is below may hold volatile data")
    } else {
        (Severity::Info, "which does no harm as long as no volatile cache is on below")
    };
    about(
        "barriers-off",
        severity,
        &nodes,
        |names| format!("{names} is used with {}: it issues no flush, {consequence}.", options.join(", ")),
        "Remove the option from /etc/fstab and mount again (ext4, btrfs, f2fs: `mount -o remount,barrier MOUNTPOINT`; for a \
         parameter of ZFS: `echo 0 > /sys/module/zfs/parameters/NAME`), or switch the write caches below off.",
    )
}

fn volatile_overlay(flow: &Flow<'_>) -> Option<Finding> {
    let nodes = marked(flow, |mark| matches!(mark, Mark::SyncsOmitted { .. }));
    about(
        "volatile-overlay",
        Severity::Danger,
        &nodes,
        |names| {
            format!(
                "{names} is mounted with the option volatile: every sync returns at once and nothing is written for it."
            )
        },
        "Mount it without the option (podman, CRI-O: `mountopt` in /etc/containers/storage.conf; containerd: `mount_options` \
         of its overlayfs snapshotter), or put the data on a volume.",
    )
}

fn lax_order(flow: &Flow<'_>) -> Option<Finding> {
    let nodes = marked(flow, |mark| matches!(mark, Mark::LaxOrder { .. }));
    let options = words(&nodes, |mark| match mark {
        Mark::LaxOrder { option } => Some(option),
        _ => None,
    });
    about(
        "lax-order",
        Severity::Info,
        &nodes,
        |names| {
            format!(
                "{names} is mounted with {}: after a crash files that were not synced may hold stale blocks; synced data is safe.",
                options.join(", ")
            )
        },
        "Where applications do not sync, unmount it and mount it with data=ordered (the default) and without \
         journal_async_commit: a remount cannot change them.",
    )
}

/// fs/jbd2: an fsync leaves the flush of the data's disk to the commit (jbd2_trans_will_send_data_barrier), which did
/// not send it in guests with Debian's kernels 6.1 and 6.12.
fn external_journal(flow: &Flow<'_>) -> Option<Finding> {
    let nodes = marked(flow, |mark| matches!(mark, Mark::ExternalJournal { .. }));
    let journal = words(&nodes, |mark| match mark {
        Mark::ExternalJournal { device } => Some(device),
        _ => None,
    });
    about(
        "external-journal",
        Severity::Warning,
        &nodes,
        |names| {
            format!(
                "{names} has its journal on {}: fsync was seen to flush the journal's disk alone, and not the disk with \
                 the data (Linux 6.1 and 6.12).",
                journal.join(", ")
            )
        },
        "Keep the journal on the disk with the data (unmounted: `tune2fs -O ^has_journal DEVICE && tune2fs -j DEVICE`), or \
         switch the write cache of the data's disk off.",
    )
}

fn no_flush_command(flow: &Flow<'_>) -> Option<Finding> {
    let nodes = marked(flow, |mark| *mark == Mark::NoFlushCommand);
    let unsure = nodes.iter().any(|node| node.cache == Cache::Unknown);
    about(
        "virtio-no-flush",
        if unsure { Severity::Warning } else { Severity::Info },
        &nodes,
        |names| {
            let end = if unsure {
                "Firecracker offers none with its default cache_type Unsafe, where the host's page cache holds the data"
            } else {
                "by the specification the host then writes through, which cannot be seen from here"
            };
            format!("{names} offers the guest no flush command: {end}.")
        },
        "On the host: QEMU cache=none or writethrough; Firecracker \"cache_type\": \"Writeback\".",
    )
}

fn write_hole(flow: &Flow<'_>) -> Option<Finding> {
    let nodes = marked(flow, |mark| matches!(mark, Mark::WriteHole { .. }));
    let degraded = nodes
        .iter()
        .any(|node| node.marks.iter().any(|mark| matches!(mark, Mark::WriteHole { degraded: true, .. })));
    let what = words(&nodes, |mark| match mark {
        Mark::WriteHole { what, .. } => Some(what),
        _ => None,
    });
    about(
        "write-hole",
        if degraded { Severity::Warning } else { Severity::Info },
        &nodes,
        |names| {
            let end = if degraded { ", and it is degraded now" } else { "" };
            format!(
                "{names} ({}) has no journal: a power cut during a write, with a member missing, can damage data that \
                 was not being written{end}.",
                what.join("; ")
            )
        },
        "md RAID 5: `mdadm --grow /dev/MD --bitmap=none && mdadm --grow /dev/MD --consistency-policy=ppl`; md RAID 4, 5 and \
         6: a journal device (`mdadm --readonly /dev/MD && mdadm /dev/MD --add-journal /dev/DEVICE`). LVM has neither: \
         keep the array from running degraded.",
    )
}

fn dirty(flow: &Flow<'_>) -> Option<Finding> {
    let nodes = marked(flow, |mark| matches!(mark, Mark::Dirty { .. }));
    let what = words(&nodes, |mark| match mark {
        Mark::Dirty { what } => Some(what),
        _ => None,
    });
    let bcache = nodes.iter().any(|node| node.kind == LayerKind::Bcache);
    about(
        if bcache { "bcache-dirty" } else { "cache-dirty" },
        Severity::Info,
        &nodes,
        |names| {
            format!(
                "{names} holds {} of acknowledged data that is on the caching device only: it is lost with that device.",
                what.join(", ")
            )
        },
        "Nothing is wrong. Before the caching device is taken away, detach it and let it drain (LVM: `lvconvert --uncache \
         VG/LV`; bcache: `echo 1 > /sys/block/BCACHE/bcache/detach`, until bcache/state says `no cache`).",
    )
}

fn hidden_members(flow: &Flow<'_>) -> Option<Finding> {
    let nodes = marked(flow, |mark| matches!(mark, Mark::HidesMembers { .. }));
    let why = words(&nodes, |mark| match mark {
        Mark::HidesMembers { why } => Some(why),
        _ => None,
    });
    about(
        "raid-controller-hides-members",
        Severity::Info,
        &nodes,
        |names| {
            format!(
                "{names}: {}. The caches of the controller and of the disks behind it cannot be seen.",
                why.join("; ")
            )
        },
        "Ask the controller's own program (storcli, ssacli, arcconf) for the cache policy, the battery and the disk cache.",
    )
}

fn volatile_cache(flow: &Flow<'_>) -> Option<Finding> {
    let is_drive = |node: &Node| {
        use LayerKind as K;
        matches!(
            node.kind,
            K::ScsiDisk
                | K::AtaDisk
                | K::UsbDisk
                | K::NvmeNamespace
                | K::VirtioDisk
                | K::MmcDisk
                | K::XenDisk
                | K::Nbd
                | K::SimulatedDrive
        )
    };
    let nodes: Vec<&Node> = flow
        .nodes()
        .map(|(_, node)| node)
        .filter(|node| {
            is_drive(node) && node.cache == Cache::Volatile && node.queue != KernelView::WriteThrough
        })
        .collect();
    about(
        "volatile-cache",
        Severity::Info,
        &nodes,
        |names| {
            let verb = verb(
                &nodes,
                "has a volatile write cache that is on",
                "have volatile write caches that are on",
            );
            format!("{names} {verb}: what was not flushed is lost at a power cut.")
        },
        "Nothing is wrong as long as applications sync. What a flush costs, and whether the cache pays, `plumb check` measures.",
    )
}

fn simulated(flow: &Flow<'_>) -> Option<Finding> {
    let nodes = marked(flow, |mark| *mark == Mark::Simulated);
    about(
        "simulated",
        Severity::Info,
        &nodes,
        |names| {
            format!(
                "{names} is a simulated drive: this is what it reports of itself, which a drive that lies may not keep to."
            )
        },
        "What its model does with a flush, FUA and a power cut, `plumb drive show MODEL` says; `plumb check` measures it.",
    )
}

fn below_hypervisor(flow: &Flow<'_>) -> Option<Finding> {
    let nodes = marked(flow, |mark| matches!(mark, Mark::Guest { .. }));
    about(
        "unknown-below-the-hypervisor",
        Severity::Info,
        &nodes,
        |names| {
            format!(
                "The disks are virtual, made by {names}: what the host does with a flush is not visible here."
            )
        },
        "Ask for the cache mode of the disk on the host (QEMU: not cache=unsafe), or survey the host. Only real power cuts \
         prove it.",
    )
}

fn remote(flow: &Flow<'_>) -> Option<Finding> {
    let nodes = marked(flow, |mark| matches!(mark, Mark::RemoteEnd { .. }));
    let what = words(&nodes, |mark| match mark {
        Mark::RemoteEnd { what } => Some(what),
        _ => None,
    });
    about(
        "remote-storage",
        Severity::Info,
        &nodes,
        |_| format!("The data is kept by {}, whose policy is not visible here.", what.join(", ")),
        "Survey the server (for NFS look also at `exportfs -v` there: an export with `async` acknowledges from memory).",
    )
}

fn unseen(flow: &Flow<'_>) -> Option<Finding> {
    let nodes = marked(flow, |mark| matches!(mark, Mark::Unseen { .. }));
    let what = words(&nodes, |mark| match mark {
        Mark::Unseen { what } => Some(what),
        _ => None,
    });
    about(
        "path-ends-unseen",
        Severity::Info,
        &nodes,
        |_| format!("The path cannot be followed to its end: {}.", what.join("; ")),
        "Survey where the rest can be seen: on the host of a container, as root, or with the volume manager's own program.",
    )
}

fn needs_root(flow: &Flow<'_>) -> Option<Finding> {
    let nodes = marked(flow, |mark| matches!(mark, Mark::NeedsRoot { .. }));
    let questions = words(&nodes, |mark| match mark {
        Mark::NeedsRoot { question } => Some(question),
        _ => None,
    });
    let count = questions.len();
    let mut finding = about(
        "needs-root",
        Severity::Info,
        &nodes,
        |_| {
            format!(
                "{count} questions could not be asked without root, so that some layers are known from one side only."
            )
        },
        "Run `sudo plumb survey` with the same target for the rest.",
    )?;
    finding.evidence = questions.into_iter().take(QUESTIONS_MAX).collect();
    if count > QUESTIONS_MAX {
        finding.evidence.push(format!("and {} more", count - QUESTIONS_MAX));
    }
    Some(finding)
}

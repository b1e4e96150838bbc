//! The traps of write-cache settings: places where the kernel's view and the device part company.

use super::Flow;
use super::finding::{about, names, verb};
use crate::facts::{DriveCache, KernelView, Mark, Node};
use crate::finding::{Finding, Severity};
use crate::model::{Cache, Flush, LayerKind};

/// All traps on the path, and the sentence that sums up what they do.
pub(super) fn findings(flow: &Flow<'_>) -> Vec<Finding> {
    [
        flush_dropped(flow),
        temporary_write_through(flow),
        queue_write_through(flow),
        stale_kernel_view(flow),
        stale_dm_table(flow),
        dm_over_disabled_queue(flow),
        nvme_feature_hidden(flow),
        write_protected(flow),
        driver_swallows_flush(flow),
        driver_may_swallow_flush(flow),
        no_caching_page(flow),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn those<'a>(flow: &Flow<'a>, wanted: impl Fn(usize, &Node) -> bool) -> Vec<&'a Node> {
    flow.nodes().filter(|(index, node)| wanted(*index, node)).map(|(_, node)| node).collect()
}

/// What all of the traps come to. Memory has findings of its own.
fn flush_dropped(flow: &Flow<'_>) -> Option<Finding> {
    let dropping = those(flow, |index, node| {
        let elsewhere = node.marks.iter().any(|mark| matches!(mark, Mark::InMemory | Mark::WriteProtected));
        flow.flush(index) == Flush::Dropped && !elsewhere
    });
    about(
        "flush-dropped",
        Severity::Danger,
        &dropping,
        |names| {
            format!(
                "A flush ends at {names} while something volatile is held at or below: synced data can be lost."
            )
        },
        "Follow the findings that name the cause; then run the survey again.",
    )
}

/// H1, where it can be told from H3: libata reads the drive again after every change, so that a disagreement that lasts
/// is an override. The kernel shows no trace of one (cache_type_show in drivers/scsi/sd.c).
fn temporary_write_through(flow: &Flow<'_>) -> Option<Finding> {
    let overridden = those(flow, |_, node| is_unseen_cache(node) && node.kind == LayerKind::AtaDisk);
    about(
        "h1-temporary-write-through",
        Severity::Danger,
        &overridden,
        |names| {
            let verb = verb(&overridden, "has its", "have their");
            format!(
                "{names} {verb} write cache on, but the kernel was told to believe that it is off (cache_type \"temporary \
                 write through\") and sends no flush."
            )
        },
        HEAL_KERNEL_VIEW,
    )
}

/// Clears an override, if there is one, and makes the kernel read the drive again.
const HEAL_KERNEL_VIEW: &str = "As root: `echo 'write back' > /sys/block/DISK/queue/write_cache` (older kernels refuse it), \
                                `echo x > /sys/block/DISK/device/scsi_disk/H:C:T:L/cache_type` (refused too, but an \
                                override is gone), `echo 1 > /sys/block/DISK/device/rescan`; then survey again.";

/// H2: the user's setting of the queue against a device whose cache is known to be on.
fn queue_write_through(flow: &Flow<'_>) -> Option<Finding> {
    let disabled = those(flow, |_, node| is_disabled_queue(node));
    about(
        "h2-queue-write-through",
        Severity::Danger,
        &disabled,
        |names| {
            let verb = verb(&disabled, "is", "are");
            format!(
                "queue/write_cache of {names} {verb} set to write through while the volatile write cache is on: no flush is sent."
            )
        },
        "`echo 'write back' > /sys/block/DISK/queue/write_cache` as root, and look for what set it (a udev rule, a tuning script).",
    )
}

fn is_disabled_queue(node: &Node) -> bool {
    let known_on = match node.kind {
        // The kernel's own record says that the cache is on, so the queue was set apart from it.
        LayerKind::ScsiDisk | LayerKind::AtaDisk | LayerKind::UsbDisk | LayerKind::VirtioDisk => {
            node.cache_type == KernelView::WriteBack
        }
        LayerKind::NvmeNamespace => node.drive == DriveCache::On,
        _ => false,
    };
    node.queue == KernelView::WriteThrough && known_on
}

/// H3: the drive's cache was switched on behind the kernel's back. An override (H1) looks the same on SCSI.
fn stale_kernel_view(flow: &Flow<'_>) -> Option<Finding> {
    let stale = those(flow, |_, node| is_unseen_cache(node) && node.kind != LayerKind::AtaDisk);
    about(
        "h3-stale-kernel-view",
        Severity::Danger,
        &stale,
        |names| {
            let verb = verb(&stale, "has its", "have their");
            format!(
                "{names} {verb} write cache on, but the kernel believes that it is off and sends no flush: it was switched \
                 on behind the kernel's back, or cache_type was overridden (H1), which looks the same."
            )
        },
        HEAL_KERNEL_VIEW,
    )
}

/// The drive says that its cache is on; what the kernel remembers of the drive says otherwise.
fn is_unseen_cache(node: &Node) -> bool {
    node.drive == DriveCache::On
        && node.queue == KernelView::WriteThrough
        && node.cache_type != KernelView::WriteBack
        && node.kind != LayerKind::NvmeNamespace
        && !node.marks.contains(&Mark::WriteProtected)
}

/// H4: a table that was loaded when no device below had a cache.
fn stale_dm_table(flow: &Flow<'_>) -> Option<Finding> {
    let stale = those(flow, |index, node| {
        is_dm(node.kind)
            && node.queue == KernelView::WriteThrough
            && flow.held(index) == Cache::Volatile
            && flow.below(index).any(|(below, under)| sends(under) && flow.held(below) == Cache::Volatile)
    });
    about(
        "h4-stale-dm-table",
        Severity::Danger,
        &stale,
        |names| {
            let verb = verb(&stale, "was", "were");
            format!(
                "{names} {verb} set up when no device below had a volatile cache, and drops flushes although one has now."
            )
        },
        "Load the table again: `dmsetup table --showkeys NAME | dmsetup load NAME && dmsetup suspend NAME && dmsetup resume \
         NAME`, the lowest device first. Suspend and resume alone do not help.",
    )
}

/// H5: dm passes the flush to a disk whose queue drops it.
fn dm_over_disabled_queue(flow: &Flow<'_>) -> Option<Finding> {
    let over = those(flow, |index, node| {
        is_dm(node.kind) && node.queue == KernelView::WriteBack && drops_below(flow, index)
    });
    about(
        "h5-dm-over-disabled-queue",
        Severity::Danger,
        &over,
        |names| {
            let verb = verb(&over, "says", "say");
            format!(
                "{names} {verb} write back, but the flush is dropped by a disk below whose queue says write through."
            )
        },
        "`echo 'write back' > /sys/block/DISK/queue/write_cache` for the disk below; what the dm device says proves nothing \
         about it.",
    )
}

/// Whether a dropping device is reached over partitions and other dm devices alone.
fn drops_below(flow: &Flow<'_>, index: usize) -> bool {
    flow.below(index).any(|(below, node)| {
        let through = node.kind == LayerKind::Partition || is_dm(node.kind);
        (node.queue == KernelView::WriteThrough && flow.flush(below) == Flush::Dropped && !through)
            || (through && drops_below(flow, below))
    })
}

/// Whether the node hands a flush on by what the kernel says.
fn sends(node: &Node) -> bool {
    matches!(node.queue, KernelView::WriteBack | KernelView::NoQueue)
}

fn is_dm(kind: LayerKind) -> bool {
    use LayerKind as K;
    matches!(
        kind,
        K::DmLinear
            | K::DmStriped
            | K::DmCrypt
            | K::DmThin
            | K::DmThinPool
            | K::DmCache
            | K::DmWritecache
            | K::DmMultipath
            | K::DmMirror
            | K::DmRaid
            | K::DmIntegrity
            | K::DmVerity
            | K::DmSnapshot
            | K::DmOther
    )
}

/// H7.
fn nvme_feature_hidden(flow: &Flow<'_>) -> Option<Finding> {
    let off = those(flow, |_, node| node.marks.contains(&Mark::FeatureOff));
    about(
        "h7-nvme-feature-hidden",
        Severity::Info,
        &off,
        |names| {
            let verb = verb(&off, "has its", "have their");
            format!(
                "{names} {verb} volatile write cache switched off, which the kernel does not know: flushes are sent in vain."
            )
        },
        "Nothing is at risk, and a flush of a cache that is off costs little. The kernel looks only at whether a cache is \
         present (Identify, VWC), so it cannot be told.",
    )
}

/// H8.
fn write_protected(flow: &Flow<'_>) -> Option<Finding> {
    let protected = those(flow, |_, node| {
        node.marks.contains(&Mark::WriteProtected)
            && node.queue == KernelView::WriteThrough
            && node.drive == DriveCache::On
    });
    about(
        "h8-write-protected",
        Severity::Warning,
        &protected,
        |names| {
            let verb = verb(&protected, "is", "are");
            format!(
                "{names} {verb} write-protected: the kernel says write through although the drive's cache is on."
            )
        },
        "Do not write to cache_type: it would switch the drive's cache off. Once the protection is gone, `echo 1 > \
         /sys/block/DISK/device/rescan` and survey again.",
    )
}

/// H9, known.
fn driver_swallows_flush(flow: &Flow<'_>) -> Option<Finding> {
    let swallowing =
        those(flow, |_, node| node.marks.iter().any(|mark| matches!(mark, Mark::SwallowsFlush { .. })));
    let lost = flow.nodes().any(|(index, node)| {
        flow.flush(index) == Flush::Dropped
            && node.marks.iter().any(|mark| matches!(mark, Mark::SwallowsFlush { .. }))
    });
    about(
        "h9-driver-swallows-flush",
        if lost { Severity::Danger } else { Severity::Warning },
        &swallowing,
        |names| format!("{names} answers SYNCHRONIZE CACHE itself: no flush reaches the disks behind it."),
        "Switch the cache of the volume off in the controller, or have its battery or capacitor checked and take its word; \
         for aacraid, the kernel parameter aacraid.cache=0 sends the command on.",
    )
}

/// H9, possible.
fn driver_may_swallow_flush(flow: &Flow<'_>) -> Option<Finding> {
    let possible =
        those(flow, |_, node| node.marks.iter().any(|mark| matches!(mark, Mark::MaySwallowFlush { .. })));
    let why: Vec<String> = possible
        .iter()
        .flat_map(|node| &node.marks)
        .filter_map(|mark| match mark {
            Mark::MaySwallowFlush { why } => Some(why.clone()),
            _ => None,
        })
        .collect();
    let mut finding = about(
        "driver-may-swallow-flush",
        Severity::Warning,
        &possible,
        |names| {
            format!(
                "{names} may answer SYNCHRONIZE CACHE itself, so that no flush reaches the disks behind it."
            )
        },
        "Run the survey as root soon after boot, or look for the line yourself: `journalctl -k | grep 'FW supports sync cache'`.",
    )?;
    finding.evidence.extend(why);
    Some(finding)
}

fn no_caching_page(flow: &Flow<'_>) -> Option<Finding> {
    let without = those(flow, |_, node| {
        node.marks.contains(&Mark::NoCachingPage) && node.queue == KernelView::WriteThrough
    });
    about(
        "no-caching-page",
        Severity::Warning,
        &without,
        |names| {
            let verb = verb(&without, "does", "do");
            format!(
                "{names} {verb} not say whether there is a write cache, and the kernel therefore sends no flush."
            )
        },
        format!(
            "If {} has a volatile cache, `echo 'temporary write back' > \
             /sys/block/DISK/device/scsi_disk/H:C:T:L/cache_type` as root makes the kernel send flushes until the next boot; \
             the queue's own setting cannot.",
            if without.is_empty() { String::new() } else { names(&without) }
        ),
    )
}

//! Traps of write-cache settings: cases where the kernel's view and the device disagree.

use plumb_text::shell_word;

use super::finding::{RuleResult, Those, marked};
use super::{Flow, durable};
use crate::facts::{DriveCache, KernelView, Mark, Node};
use crate::finding::Severity;
use crate::model::{Cache, Flush, LayerKind};

/// Remedy for a hypervisor that does not forward flushes.
const GUEST_REMEDY: &str = "Start the machine with a cache mode that sends flushes on: QEMU and libvirt cache=none or writeback, Firecracker \
                            \"cache_type\": \"Writeback\". Until then sync the host itself (`sync -f IMAGE`) where the guest's data matters.";

/// Combines all traps into one finding, except memory, mounts without barriers and ZFS, which have their own.
pub(super) fn flush_dropped(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = Those::matching(flow, |index, node| {
        let own = |mark: &Mark| {
            use Mark as M;
            matches!(
                mark,
                M::InMemory
                    | M::KeepsNothing
                    | M::WriteProtected
                    | M::BarriersOff { .. }
                    | M::NoFlushOffered { .. }
            )
        };
        let elsewhere = node.is_zfs() || node.marks.iter().any(own);
        flow.flush(index) == Flush::Dropped && !elsewhere && flow.vouched(index) != Some(Flush::Dropped)
    });
    let sentence = format!(
        "A flush ends at {those} while something volatile is held at or below: synced data can be lost."
    );
    let is_of_guest = those.nodes.iter().any(|node| node.kind == LayerKind::VirtualMachine);
    let dropped = those.found(Severity::Danger, sentence).map(|found| RuleResult {
        remedy: is_of_guest.then(|| GUEST_REMEDY.to_owned()).or(found.remedy),
        ..found
    });
    dropped.into_iter().chain(log_not_flushed(flow)).reduce(|mut all, more| {
        all.severity = all.severity.max(more.severity);
        all.sentence = format!("{} {}", all.sentence, more.sentence);
        all.evidence.extend(more.evidence);
        all.remedy = more.remedy;
        all
    })
}

/// Finds a write-back cache that ends flushes because the user vouches for its log, while the log's devices
/// contradict that or report nothing.
fn log_not_flushed(flow: &Flow<'_>) -> Option<RuleResult> {
    let is_doubted = |fate| matches!(fate, Some(Flush::Dropped | Flush::Unknown));
    let (index, node) = flow.nodes().find(|(index, _)| is_doubted(flow.vouched(*index)))?;
    let cache = shell_word(&node.log()?.cache);
    let those = Those { nodes: vec![node], words: Vec::new() };
    let log = Those { nodes: flow.log(index).map(|(_, node)| node).collect(), words: Vec::new() };
    let (severity, but) = match flow.vouched(index) {
        Some(Flush::Dropped) => (
            Severity::Danger,
            format!(
                "{} is volatile: unless the administrator is right, a power cut takes synced data that only \
                 the log has",
                durable::holder(flow, index)
            ),
        ),
        _ if log.nodes.is_empty() => (
            Severity::Warning,
            "its devices cannot be seen from here: a power cut may take synced data that only the log has"
                .to_owned(),
        ),
        _ => (
            Severity::Warning,
            format!("this cannot be told of {log}: a power cut may take synced data that only the log has"),
        ),
    };
    let sentence = format!(
        "Flushes end at {those} on the word of an administrator that its log keeps what it acknowledges, but {but}."
    );
    let mut found = those.found(severity, sentence)?;
    found.evidence.extend(log.lines());
    found.evidence.push(
        "an administrator's word is rung 4 of 5 of what can speak for a cache (1 is best): what the device declares, the health \
         that it reports and a list of models rank higher"
            .to_owned(),
    );
    found.remedy = Some(format!(
        "Have the log flushed: `plumb cache mode {cache} write-back`; or switch the volatile caches below it off (`plumb \
         policy`). Where its devices keep what they acknowledge (capacitors, a battery) and do not say so, a power cut with a \
         witness (`plumb prove witness`) would show it."
    ));
    Some(found)
}

/// Finds trap H1 where it can be distinguished from H3: libata reads the drive again after every change, so a
/// lasting disagreement is an override. The kernel does not show overrides (cache_type_show in
/// drivers/scsi/sd.c).
pub(super) fn temporary_write_through<'a>(flow: &Flow<'a>) -> Those<'a> {
    Those::matching(flow, |_, node| is_unseen_cache(node) && node.kind == LayerKind::AtaDisk)
}

/// Finds trap H2: a queue setting by the user that contradicts a cache known to be enabled.
pub(super) fn queue_write_through<'a>(flow: &Flow<'a>) -> Those<'a> {
    Those::matching(flow, |_, node| is_disabled_queue(node))
}

fn is_disabled_queue(node: &Node) -> bool {
    let known_on = match node.kind {
        // The kernel's own record says that the cache is enabled, so the queue setting was changed
        // separately.
        LayerKind::ScsiDisk | LayerKind::AtaDisk | LayerKind::UsbDisk | LayerKind::VirtioDisk => {
            node.cache_type == KernelView::WriteBack
        }
        LayerKind::NvmeNamespace => node.drive == DriveCache::On,
        _ => false,
    };
    node.queue == KernelView::WriteThrough && known_on
}

/// Finds trap H3: the drive's cache was enabled without the kernel's knowledge. On SCSI an override (H1)
/// looks the same.
pub(super) fn stale_kernel_view<'a>(flow: &Flow<'a>) -> Those<'a> {
    Those::matching(flow, |_, node| is_unseen_cache(node) && node.kind != LayerKind::AtaDisk)
}

/// Returns true if the drive reports an enabled cache, but the kernel's record says otherwise.
fn is_unseen_cache(node: &Node) -> bool {
    node.drive == DriveCache::On
        && node.queue == KernelView::WriteThrough
        && node.cache_type != KernelView::WriteBack
        && node.kind != LayerKind::NvmeNamespace
        && !node.marks.contains(&Mark::WriteProtected)
}

/// Finds trap H4: a dm table loaded when no device below had a cache.
pub(super) fn stale_dm_table<'a>(flow: &Flow<'a>) -> Those<'a> {
    Those::matching(flow, |index, node| {
        is_dm(node.kind)
            && node.queue == KernelView::WriteThrough
            && !node.marks.iter().any(|mark| matches!(mark, Mark::SendsNoFlush { .. }))
            && flow.held(index) == Cache::Volatile
            && flow.below(index).any(|(below, under)| sends(under) && flow.held(below) == Cache::Volatile)
    })
}

/// Finds trap H5: dm passes the flush to a disk whose queue drops it.
pub(super) fn dm_over_disabled_queue<'a>(flow: &Flow<'a>) -> Those<'a> {
    Those::matching(flow, |index, node| {
        is_dm(node.kind) && node.queue == KernelView::WriteBack && drops_below(flow, index)
    })
}

/// Returns true if a device that drops flushes is below, with only partitions and dm devices in between.
fn drops_below(flow: &Flow<'_>, index: usize) -> bool {
    flow.below(index).any(|(below, node)| {
        let through = node.kind == LayerKind::Partition || is_dm(node.kind);
        (node.queue == KernelView::WriteThrough && flow.flush(below) == Flush::Dropped && !through)
            || (through && drops_below(flow, below))
    })
}

/// Returns true if the node passes flushes on according to the kernel.
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

/// Finds trap H7.
pub(super) fn nvme_feature_hidden<'a>(flow: &Flow<'a>) -> Those<'a> {
    Those::matching(flow, |_, node| node.marks.contains(&Mark::FeatureOff))
}

/// Finds trap H8.
pub(super) fn write_protected<'a>(flow: &Flow<'a>) -> Those<'a> {
    Those::matching(flow, |_, node| {
        node.marks.contains(&Mark::WriteProtected)
            && node.queue == KernelView::WriteThrough
            && node.drive == DriveCache::On
    })
}

/// Finds trap H9 where it is certain.
pub(super) fn driver_swallows_flush(flow: &Flow<'_>) -> Option<RuleResult> {
    let swallows = |node: &Node| node.marks.iter().any(|mark| matches!(mark, Mark::SwallowsFlush { .. }));
    let those = Those::matching(flow, |_, node| swallows(node));
    let lost = flow.nodes().any(|(index, node)| flow.flush(index) == Flush::Dropped && swallows(node));
    let severity = if lost { Severity::Danger } else { Severity::Warning };
    those.found(
        severity,
        format!("{those} answers SYNCHRONIZE CACHE itself: no flush reaches the disks behind it."),
    )
}

/// Finds trap H9 where it is possible.
pub(super) fn driver_may_swallow_flush(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::MaySwallowFlush { why } => why);
    let sentence =
        format!("{those} may answer SYNCHRONIZE CACHE itself, so that no flush reaches the disks behind it.");
    let mut found = those.found(Severity::Warning, sentence)?;
    found.evidence.extend(those.words.iter().map(|why| (*why).to_owned()));
    Some(found)
}

pub(super) fn no_caching_page<'a>(flow: &Flow<'a>) -> Those<'a> {
    Those::matching(flow, |_, node| {
        node.marks.contains(&Mark::NoCachingPage) && node.queue == KernelView::WriteThrough
    })
}

//! Findings other than traps of cache settings: memory, options, arrays, caches, hypervisors, networks, and
//! facts that only root can read.

use plumb_text::shell_word;

use super::Flow;
use super::finding::{RuleResult, Those, marked};
use crate::facts::{KernelView, Mark, Node};
use crate::finding::Severity;
use crate::model::{Cache, Flush, LayerKind, ZFS_SYNC_ALWAYS, is_synchronous};

/// Maximum number of queries listed by `needs-root`.
const QUESTIONS_MAX: usize = 20;

/// Judges `barriers-off`. The sentence becomes the headline, so it names the places and, if data can be lost,
/// the command to fix it.
pub(super) fn barriers_off(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::BarriersOff { option, .. } => option);
    let restore = marked!(flow, Mark::BarriersOff { restore, .. } => restore);
    let places: Vec<&str> = those.nodes.iter().map(|node| node.place()).collect();
    let verb = those.nodes.first().map_or("mounted", |node| node.option_verb());
    let mounted = format!("{} {} {verb} {}", places.join(" and "), those.verb("is", "are"), those.said(", "));
    let fates: Vec<Flush> = flow
        .nodes()
        .filter(|(_, node)| those.nodes.contains(node))
        .map(|(index, _)| flow.flush(index))
        .collect();
    let how = if verb == "mounted" { "Remount it" } else { "Set it back" };
    let again = format!("{how}: `{}`", restore.said("`; `"));
    let (severity, sentence) = match () {
        () if fates.contains(&Flush::Dropped) => {
            (Severity::Danger, format!("fsync is not durable: {mounted}. {again}"))
        }
        () if fates.contains(&Flush::Unknown) => (
            Severity::Warning,
            format!("fsync may not be durable: {mounted}, and what is below may hold volatile data. {again}"),
        ),
        () => (
            Severity::Info,
            format!(
                "{mounted}: no flush is sent, which does no harm as long as no volatile cache is on below."
            ),
        ),
    };
    let mut found = those.found(severity, sentence)?;
    if severity == Severity::Danger {
        let ends = "a flush ends at it while something volatile is held at or below: synced data can be lost";
        found.evidence.push(ends.to_owned());
    }
    found.remedy = Some(format!(
        "`{}`, and remove the option where it is set (/etc/fstab, or /etc/modprobe.d for a parameter). If \
         that is not possible, switch off the volatile caches below",
        restore.said("`; `")
    ));
    Some(found)
}

pub(super) fn synchronous(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::Synchronous { option } => option);
    let what = match those.words.iter().any(|word| is_synchronous(word)) {
        true => "every write is flushed before write() returns, and a sync after it flushes once more",
        false => "every change of a directory is flushed before its call returns; writes of files are not",
    };
    let sentence = match those.words.as_slice() {
        [ZFS_SYNC_ALWAYS] => format!("{those} has the property {ZFS_SYNC_ALWAYS}: {what}."),
        _ => format!("{those} is mounted with the option {}: {what}.", those.said(", ")),
    };
    let remedy = match those.words.as_slice() {
        [ZFS_SYNC_ALWAYS] => Some(zfs_standard(&those)),
        // MS_DIRSYNC is not in MS_RMT_MASK (fs/namespace.c), so no option reverts it.
        ["dirsync"] => Some(
            "unmount the file system and mount it without dirsync, which a remount cannot take away"
                .to_owned(),
        ),
        _ => None,
    };
    let found = those.found(Severity::Info, sentence).map(|found| RuleResult {
        remedy: remedy.map(|way| format!("Nothing is at risk. To pay once for each write, {way}{LOST_THEN}")),
        ..found
    });
    found.or_else(|| synchronous_file(flow))
}

/// End of the remedies that stop flushing every write.
const LOST_THEN: &str =
    "; programs that do not sync by themselves then lose what they wrote last at a power cut";

fn data_sets(those: &Those<'_>) -> String {
    let sets: Vec<&str> = those.nodes.iter().filter_map(|node| node.identity.as_deref()).collect();
    sets.join(" ")
}

/// Returns the command that restores the default syncs of ZFS datasets.
fn zfs_standard(those: &Those<'_>) -> String {
    let sets = data_sets(those);
    format!("`zfs set sync=standard {sets}`, or `zfs inherit sync {sets}` if what it is in has another value")
}

fn synchronous_file(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::SynchronousFile { place } => place);
    let place = those.said(" and ");
    let sentence = format!(
        "{place} on {those} has the attribute S (chattr +S): each write to a file with it is flushed before write() \
         returns, and a sync after it flushes once more."
    );
    let mut found = those.found(Severity::Info, sentence)?;
    found.remedy = Some(format!(
        "Nothing is at risk. To pay once for each write, take the attribute away: `chattr -S {}`{LOST_THEN}",
        shell_word(&place)
    ));
    Some(found)
}

pub(super) fn no_flush_command(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::NoFlushCommand => "");
    let (severity, end) = match those.nodes.iter().any(|node| node.cache == Cache::Unknown) {
        true => (
            Severity::Warning,
            "Firecracker offers none with its default cache_type Unsafe, where the host's page cache holds the data",
        ),
        false => (
            Severity::Info,
            "by the specification the host then writes through, which cannot be seen from here",
        ),
    };
    those.found(severity, format!("{those} offers the guest no flush command: {end}."))
}

pub(super) fn write_hole(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::WriteHole { what, .. } => what);
    let is_degraded = |mark: &Mark| matches!(mark, Mark::WriteHole { degraded: true, .. });
    let (severity, end) = match those.nodes.iter().any(|node| node.marks.iter().any(is_degraded)) {
        true => (Severity::Warning, ", and it is degraded now"),
        false => (Severity::Info, ""),
    };
    let sentence = format!(
        "{those} ({}) has no journal: a power cut during a write, with a member missing, can damage data that was not \
         being written{end}.",
        those.said("; ")
    );
    those.found(severity, sentence)
}

/// Returns the layers that omit syncs: of ZFS, or all others.
pub(super) fn syncs_omitted<'a>(flow: &Flow<'a>, by_zfs: bool) -> Those<'a> {
    let mut those = marked!(flow, Mark::SyncsOmitted { option } => option);
    those.nodes.retain(|node| node.is_zfs() == by_zfs);
    those
}

pub(super) fn zfs_sync_disabled(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = syncs_omitted(flow, true);
    let sets = data_sets(&those);
    let sentence = format!(
        "fsync is not durable: {sets} has sync=disabled, so every sync \
         returns at once and nothing is written for it."
    );
    let mut found = those.found(Severity::Danger, sentence)?;
    found.remedy = Some(format!(
        "{}. A log device of fast flash (`zpool add POOL log mirror DEVICE DEVICE`) makes syncs cheap without giving \
         them up",
        zfs_standard(&those)
    ));
    Some(found)
}

/// Judges trap H10, for a pool.
pub(super) fn zfs_remembers(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::NeverFlushed { why } => why);
    let pool = those.nodes.first()?.place();
    let sentence = format!(
        "ZFS flushes no disk that had no write cache when its pool was opened: of {those}, {}.",
        those.said("; ")
    );
    let is_lost =
        flow.nodes().any(|(index, node)| flow.flush(index) == Flush::Dropped && those.nodes.contains(&node));
    let severity = if is_lost { Severity::Danger } else { Severity::Warning };
    let mut found = those.found(severity, sentence)?;
    found.remedy = Some(format!(
        "`zpool reopen {pool}`: a pool looks at the caches of its disks when it opens them. \
         Then write something and survey again"
    ));
    Some(found)
}

pub(super) fn dirty<'a>(flow: &Flow<'a>, in_bcache: bool) -> Those<'a> {
    let mut those = marked!(flow, Mark::Dirty { what } => what);
    those.nodes.retain(|node| (node.kind == LayerKind::Bcache) == in_bcache);
    those
}

pub(super) fn volatile_cache(flow: &Flow<'_>) -> Option<RuleResult> {
    use LayerKind as K;
    let drives = [
        K::ScsiDisk,
        K::AtaDisk,
        K::UsbDisk,
        K::NvmeNamespace,
        K::VirtioDisk,
        K::MmcDisk,
        K::XenDisk,
        K::SimulatedDrive,
        K::WriteBackCache,
    ];
    let is_cached = |node: &Node| node.cache == Cache::Volatile && node.queue != KernelView::WriteThrough;
    let those = Those::matching(flow, |_, node| drives.contains(&node.kind) && is_cached(node));
    let exports = Those::matching(flow, |_, node| node.kind == K::Nbd && is_cached(node));
    if those.nodes.is_empty() {
        let sentence = exports.fill(
            "{those} {takes|take} flushes, and whether a volatile cache is on there is not known: data that was not \
             flushed may be lost at a power cut.",
        );
        return exports.found(Severity::Info, sentence);
    }
    let sentence = those.fill(
        "{those} {has a volatile write cache that is on|have volatile write caches that are on}: data that was not \
         flushed is lost at a power cut.",
    );
    those.found(Severity::Info, sentence)
}

/// Judges `path-ends-unseen`. Below a pseudo file system nothing exists, so the remedy is another target.
pub(super) fn ends_unseen(flow: &Flow<'_>) -> Option<RuleResult> {
    let unseen = marked!(flow, Mark::Unseen { what } => what);
    let those = marked!(flow, Mark::Unseen { what } | Mark::KernelState { what } => what);
    let sentence = format!("The path cannot be followed to its end: {}.", those.said("; "));
    let remedy =
        "Name a file or a directory on a disk: a file system of the kernel keeps no files.".to_owned();
    let remedy = unseen.nodes.is_empty().then_some(remedy);
    those.found(Severity::Info, sentence).map(|found| RuleResult { remedy, ..found })
}

/// Judges `simulated`: a drive in this process reports its own properties, one in another process has a known
/// model.
pub(super) fn simulated(flow: &Flow<'_>) -> Option<RuleResult> {
    let named = marked!(flow, Mark::Simulated => "");
    let reports = format!(
        "{named} is a simulated drive: this is what it reports of itself, which a drive that lies may not keep to."
    );
    let served = marked!(flow, Mark::ServedDrive { model } => model);
    let keeps = format!(
        "{served} is a simulated drive of the model {}, which a process of plumb serves: durable is what a simulated power \
         cut leaves there, and what the process has in memory alone ends with it.",
        served.said(", ")
    );
    named.found(Severity::Info, reports).or_else(|| served.found(Severity::Info, keeps))
}

pub(super) fn needs_root(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::NeedsRoot { question } => question);
    refused(&those, "without root")
}

pub(super) fn refused_to_root(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::RefusedToRoot { question } => question);
    refused(&those, "although this is root (a container, or a security module)")
}

fn refused(those: &Those<'_>, how: &str) -> Option<RuleResult> {
    let count = those.words.len();
    let questions = if count == 1 { "question" } else { "questions" };
    let sentence =
        format!("{count} {questions} could not be asked {how}: some layers are known from one side only.");
    let mut found = those.found(Severity::Info, sentence)?;
    found.evidence = those.words.iter().take(QUESTIONS_MAX).map(|question| (*question).to_owned()).collect();
    if count > QUESTIONS_MAX {
        found.evidence.push(format!("and {} more", count - QUESTIONS_MAX));
    }
    Some(found)
}

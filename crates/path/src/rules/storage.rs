//! Findings that are not traps of cache settings: memory, options, arrays, caches, the far side of a
//! hypervisor or a network, and what root would add.

use super::Flow;
use super::finding::{RuleResult, Those, marked};
use crate::facts::{KernelView, Mark};
use crate::finding::Severity;
use crate::model::{Cache, Flush, LayerKind, SYNC_ATTRIBUTE, is_synchronous};

/// Number of questions that `needs-root` lists.
const QUESTIONS_MAX: usize = 20;

pub(super) fn memory(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::InMemory => "");
    let sentence = format!("{those} keeps its data in memory: nothing here is durable, synced or not.");
    those.found(Severity::Danger, sentence)
}

/// Returns the sentence names the places and, where data can be lost, the command that mends it: it becomes
/// the headline.
pub(super) fn barriers_off(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::BarriersOff { option, .. } => option);
    let restore = marked!(flow, Mark::BarriersOff { restore, .. } => restore);
    let places: Vec<&str> = those.nodes.iter().map(|node| node.place()).collect();
    let mounted =
        format!("{} {} mounted {}", places.join(" and "), those.verb("is", "are"), those.said(", "));
    let fates: Vec<Flush> = flow
        .nodes()
        .filter(|(_, node)| those.nodes.contains(node))
        .map(|(index, _)| flow.flush(index))
        .collect();
    let again = format!("Remount it: {}", restore.said("; "));
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

pub(super) fn volatile_overlay(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::SyncsOmitted { .. } => "");
    let sentence = format!(
        "fsync is not durable: {those} is mounted with the option volatile, so every sync returns at once and nothing is \
         written for it."
    );
    those.found(Severity::Danger, sentence)
}

pub(super) fn syncs_preloaded(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::SyncsPreloaded { library } => library);
    let sentence = format!("fsync is not durable: {} takes the syncs of programs.", those.said(" and "));
    those.found(Severity::Danger, sentence)
}

pub(super) fn synchronous(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::Synchronous { option } => option);
    let what = match those.words.iter().any(|word| is_synchronous(word)) {
        true => "every write is flushed before write() returns, and a sync after it flushes once more",
        false => "every change of a directory is flushed before its call returns; writes of files are not",
    };
    let sentence = match those.words.as_slice() {
        [SYNC_ATTRIBUTE] => format!("What was named on {those} has the attribute S (chattr +S): {what}."),
        _ => format!("{those} is mounted with the option {}: {what}.", those.said(", ")),
    };
    those.found(Severity::Info, sentence)
}

pub(super) fn lax_order(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::LaxOrder { option } => option);
    let sentence = format!(
        "{those} is mounted with {}: after a crash files that were not synced may hold stale blocks; synced data is safe.",
        those.said(", ")
    );
    those.found(Severity::Info, sentence)
}

/// fs/jbd2: an fsync leaves the flush of the data's disk to the commit (jbd2_trans_will_send_data_barrier),
/// which did not send it in guests with Debian's kernels 6.1 and 6.12.
pub(super) fn external_journal(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::ExternalJournal { device } => device);
    let sentence = format!(
        "{those} has its journal on {}: fsync was seen to flush the journal's disk alone, and not the disk with the data \
         (Linux 6.1 and 6.12).",
        those.said(", ")
    );
    those.found(Severity::Warning, sentence)
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

/// drivers/block/nbd.c: without NBD_FLAG_SEND_FLUSH the queue is set to write through, and no request asks
/// for durability.
pub(super) fn no_flush_offered(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::NoFlushOffered => "");
    let sentence = format!(
        "Nothing written to {those} can be made durable: the NBD server offers neither flush nor FUA, so no \
         sync can reach its storage."
    );
    those.found(Severity::Danger, sentence)
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

/// Returns the documentation of btrfs calls these profiles not ready for use (btrfs(5), RAID56).
pub(super) fn btrfs_parity(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::BtrfsParity { what } => what);
    let sentence = format!(
        "{those} stores blocks with parity ({}): a power cut during a write leaves parity that does not \
         match, and a device that fails afterwards takes other data of the stripe with it.",
        those.said("; ")
    );
    those.found(Severity::Warning, sentence)
}

pub(super) fn errors_recorded(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::ErrorsRecorded { what } => what);
    let sentence = format!(
        "{those} {} recorded errors ({}): writes may have been lost, whether or not a program was told.",
        those.verb("has", "have"),
        those.said("; ")
    );
    those.found(Severity::Warning, sentence)
}

pub(super) fn replaces_unsynced(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::ReplacesUnsynced { option } => option);
    let sentence = format!(
        "{those} is mounted with {}: a file that replaces another without an fsync may be empty after a crash; synced data \
         is safe.",
        those.said(", ")
    );
    those.found(Severity::Info, sentence)
}

pub(super) fn shingled(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::Shingled { what } => what);
    let sentence = format!(
        "{those} {} written in zones ({}): writes at random offsets, and the syncs behind them, may take seconds once \
         its buffer is full.",
        those.verb("is", "are"),
        those.said(", ")
    );
    those.found(Severity::Info, sentence)
}

pub(super) fn bcache_dirty(flow: &Flow<'_>) -> Option<RuleResult> {
    dirty(flow, true)
}

pub(super) fn cache_dirty(flow: &Flow<'_>) -> Option<RuleResult> {
    dirty(flow, false)
}

fn dirty(flow: &Flow<'_>, in_bcache: bool) -> Option<RuleResult> {
    let mut those = marked!(flow, Mark::Dirty { what } => what);
    those.nodes.retain(|node| (node.kind == LayerKind::Bcache) == in_bcache);
    let sentence = format!(
        "{those} holds {} of acknowledged data that is on the caching device only: it is lost with that device.",
        those.said(", ")
    );
    those.found(Severity::Info, sentence)
}

pub(super) fn hidden_members(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::HidesMembers { why } => why);
    let sentence = format!(
        "{those}: {}. The caches of the controller and of the disks behind it cannot be seen.",
        those.said("; ")
    );
    those.found(Severity::Info, sentence)
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
        K::Nbd,
        K::SimulatedDrive,
        K::WriteBackCache,
    ];
    let those = Those::matching(flow, |_, node| {
        drives.contains(&node.kind) && node.cache == Cache::Volatile && node.queue != KernelView::WriteThrough
    });
    let verb = those.verb("has a volatile write cache that is on", "have volatile write caches that are on");
    those.found(Severity::Info, format!("{those} {verb}: data that was not flushed is lost at a power cut."))
}

pub(super) fn simulated(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::Simulated => "");
    let sentence = format!(
        "{those} is a simulated drive: this is what it reports of itself, which a drive that lies may not keep to."
    );
    those.found(Severity::Info, sentence)
}

pub(super) fn below_hypervisor(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::Guest { .. } => "");
    let sentence = format!(
        "The disks are virtual, made by {those}: what the host does with a flush is not visible here."
    );
    those.found(Severity::Info, sentence)
}

pub(super) fn remote(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::RemoteEnd { what } => what);
    let sentence = format!("The data is kept by {}, whose policy is not visible here.", those.said(", "));
    those.found(Severity::Info, sentence)
}

pub(super) fn unseen(flow: &Flow<'_>) -> Option<RuleResult> {
    let those = marked!(flow, Mark::Unseen { what } => what);
    those.found(Severity::Info, format!("The path cannot be followed to its end: {}.", those.said("; ")))
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

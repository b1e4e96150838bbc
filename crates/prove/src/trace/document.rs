//! Document of a trace, from the calls of a program.

use std::path::Path;

use plumb_report::document::power::{TraceDocument, TraceFinding};

use super::{Audit, Finding, Lapse, TracedCalls};

/// Builds the document from the calls of a program. A program that ended with an error has not ignored its
/// failed fsync, and has acknowledged nothing that was unsynced then.
pub(crate) fn document_of(traced: &TracedCalls, succeeded: bool) -> TraceDocument {
    let root = &*traced.root;
    let mut audit = Audit::beneath(root, &traced.names);
    traced.calls.iter().for_each(|call| audit.observe(call));
    let failed_syncs = traced.calls.iter().filter(|call| call.is_failed_sync()).count() as u64;
    let has_stopped = !succeeded && failed_syncs > 0;
    let shown = |path: &Path| match path.strip_prefix(root) {
        Ok(beneath) if beneath.as_os_str().is_empty() => ".".to_owned(),
        beneath => beneath.unwrap_or(path).display().to_string(),
    };
    let findings = audit.findings().into_iter();
    let findings =
        findings.filter(|one| !has_stopped || matches!(one.lapse, Lapse::FailedSyncRetried { .. }));
    TraceDocument {
        schema: TraceDocument::SCHEMA.to_owned(),
        beneath: root.display().to_string(),
        succeeded,
        failed_syncs,
        findings: findings
            .map(|Finding { lapse, path, at, .. }| {
                let (kind, sentence) = lapse.kind_and_sentence();
                TraceFinding {
                    kind: kind.to_owned(),
                    path: shown(&path),
                    at: at.since(traced.began).as_secs_f64(),
                    sentence,
                }
            })
            .collect(),
        synced: audit.synced().iter().map(|(path, count)| (shown(path), *count)).collect(),
        not_seen: audit.not_seen().iter().map(|(way, count)| ((*way).to_owned(), *count)).collect(),
        ..TraceDocument::default()
    }
}

impl Lapse {
    /// Returns the kind of the lapse in the document, and the sentence.
    fn kind_and_sentence(&self) -> (&'static str, String) {
        match self {
            Self::DataNotSynced { bytes } => {
                let what = match bytes {
                    0 => "its size was changed".to_owned(),
                    bytes => format!("{bytes} bytes were written"),
                };
                ("data-not-synced", format!("{what} and not synced afterwards"))
            }
            Self::DirectoryNotSynced(change) => {
                let what = match *change {
                    "open" | "mkdir" => "made",
                    "link" => "linked",
                    "rename" => "renamed",
                    _ => "removed",
                };
                ("directory-not-synced", format!("the directory was not synced after it was {what}"))
            }
            Self::RenamedBeforeSync => {
                ("renamed-before-sync", "it was renamed before its data was synced".to_owned())
            }
            Self::FailedSyncIgnored { error } => {
                ("failed-sync-ignored", format!("fsync failed ({error}) and the program went on"))
            }
            Self::FailedSyncRetried { error } => (
                "failed-sync-retried",
                format!(
                    "fsync failed ({error}); a later one succeeded, which says nothing of the data before"
                ),
            ),
        }
    }
}

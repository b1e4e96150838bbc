//! State that only a check has, in addition to that of its run: its survey, and the accounts of requests to
//! the devices.

use plumb_block::{Bytes, StorageSnapshot};
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_measure::StorageWatch;
use plumb_path::{UntornPage, UntornRank, WritePath, survey_path};
use plumb_report::document::{Account, RunDocument, RunKind};
use plumb_targets::{Route, TargetKind};
use plumb_workload::Scenario;

use crate::counters::Beneath;
use crate::targets::{JobTarget, Targets};

/// State that only a check has, in addition to that of its run.
pub(crate) struct CheckState {
    /// Target as typed.
    target: String,
    /// Write path below the file.
    path: WritePath,
    /// Accounts of requests to the devices.
    pub(crate) accounts: Accounts,
    /// Size of the test file, which is created with the targets; 0 if unknown.
    pub(crate) size: Bytes,
    is_made: bool,
    /// Route of direct requests to the kernel, once known.
    route: Option<Route>,
}

/// Requests to the devices below, phase by phase. The accounts have no gaps between them, so their sum is the
/// total change of the counters.
pub(crate) struct Accounts {
    watch: StorageWatch,
    /// Reading at the end of the last account.
    last: Option<StorageSnapshot>,
    booked: Vec<Account>,
}

impl CheckState {
    /// Starts to count.
    pub(crate) fn begin(target: String, path: WritePath, beneath: &Beneath) -> Self {
        let mut accounts = Accounts { watch: beneath.watch.clone(), last: None, booked: Vec::new() };
        accounts.book("begin");
        Self { target, path, accounts, size: Bytes(0), is_made: false, route: None }
    }

    /// Notes that the targets are ready.
    pub(crate) fn opened(&mut self, targets: &Targets, scenario: &Scenario) {
        self.is_made = true;
        let is_direct = |one: &&JobTarget| {
            let job = &scenario.spans[one.span].jobs[one.job];
            !job.opening.caching.is_cached() && job.role.method().is_none()
        };
        self.route = targets.job_targets.iter().find(is_direct).map(|one| one.opened.route.clone());
        // Limits of untorn writes are those of a file, which exists only now.
        let is_file = |one: &&JobTarget| one.opened.kind == TargetKind::RegularFile;
        let file = targets.job_targets.iter().find(is_file).and_then(|one| one.opened.path());
        let file = file.map(|path| path.display().to_string());
        if let Some(Ok(path)) = file.map(|file| survey_path(&LiveTree::new(), &LiveProbe::new(), &file))
            && holds_for_other_files(&path.untorn)
        {
            self.path.untorn = path.untorn;
        }
        if self.accounts.last.is_none()
            && let Some(beneath) = targets.beneath.first()
        {
            self.accounts.watch = beneath.watch.clone();
        }
        self.accounts.book("prepare");
    }

    /// Notes the calibration of flush counts.
    pub(crate) fn calibrated(&mut self, targets: &Targets) {
        let is_of_kernel = |one: &JobTarget| one.opened.kind.device_kind().is_none();
        if let Some(beneath) =
            targets.beneath.first().filter(|_| targets.job_targets.iter().any(is_of_kernel))
        {
            self.accounts.watch = beneath.watch.clone();
            self.accounts.book("calibrate");
        }
    }

    /// Turns the document of a run into that of a check.
    pub(crate) fn describe(&self, document: &mut RunDocument) {
        document.kind = RunKind::Check;
        document.target.clone_from(&self.target);
        document.path = Some(self.path.clone());
        document.accounting.clone_from(&self.accounts.booked);
        let environment = &mut document.environment;
        environment.file_bytes = Some(if self.is_made { self.size.0 } else { 0 });
        environment.root_would_add = root_would_add(&self.path);
        environment.engine = self.route.as_ref().map(|route| route.name().to_owned());
        environment.engine_because = self.route.as_ref().and_then(Route::because).map(str::to_owned);
    }
}

impl Accounts {
    /// Books the requests to the devices since the last booking under `phase`.
    pub(crate) fn book(&mut self, phase: &str) {
        let Ok(now) = self.watch.read() else { return };
        if let Some(last) = self.last.replace(now.clone())
            && let Ok(side) = self.watch.between(Ok(last.clone()), Ok(now.clone()))
        {
            self.booked.push(Account {
                phase: phase.to_owned(),
                seconds: now.at.since(last.at).as_secs_f64(),
                flushes: side.flushes,
                reads: side.reads,
                writes: side.writes,
                read_bytes: side.read_bytes,
                write_bytes: side.write_bytes,
            });
        }
    }
}

/// Returns the findings that only root can get, from the finding that lists them.
fn root_would_add(path: &WritePath) -> Vec<String> {
    let finding = path.findings.iter().filter(|finding| finding.id == "needs-root");
    finding.flat_map(|finding| finding.evidence.iter().cloned()).collect()
}

/// Returns true if the results for a new file apply to a database next to it. They do not where the file
/// system replaces pages: on ZFS each file has its own record size, and on btrfs it may have attribute C.
fn holds_for_other_files(untorn: &[UntornPage]) -> bool {
    untorn.iter().all(|page| page.needs_rwf_atomic || page.rank != Some(UntornRank::ByDesign))
}

#[cfg(test)]
mod tests {
    use plumb_path::{CachedPage, PageAnswer};

    use super::*;

    #[test]
    fn answers_about_a_new_file_hold_only_where_no_file_differs() {
        let page = |answer, rank, needs_rwf_atomic| UntornPage {
            page_bytes: 16 << 10,
            answer,
            layer: Some("xfs /srv".to_owned()),
            because: String::new(),
            rank,
            needs_rwf_atomic,
            proof: None,
            cached: CachedPage { answer: PageAnswer::No, layer: None, because: String::new() },
        };
        let no = page(PageAnswer::No, None, false);
        let declared = page(PageAnswer::Yes, Some(UntornRank::Declared), true);
        let copied = page(PageAnswer::Yes, Some(UntornRank::ByDesign), true);
        let replaced = page(PageAnswer::Yes, Some(UntornRank::ByDesign), false);
        assert!(holds_for_other_files(&[declared, no.clone()]), "a drive");
        assert!(holds_for_other_files(&[copied, no.clone()]), "XFS copies for every file");
        assert!(!holds_for_other_files(&[replaced, no]), "a record of ZFS");
    }
}

//! Sync calls that the program lacks: it runs again, the calls are made on its behalf, and the new recording
//! is explored.
//!
//! A set of calls is a remedy only if no state fails with it, neither with the kernel's own writeback nor
//! with chosen writeback. The most probable call is tried alone, then all together, from which redundant ones
//! are removed. If all together do not help, each call and each pair is tried.
//!
//! A program under strace(1) is slower, and may order its writes differently. The first recording was made
//! under strace as well, so the calls are what removed the failures.

use plumb_block::{Nanos, in_one_line};
use plumb_report::document::proof::{Change, ChangeKind, Writeback};

use super::trial::{LOOK_MAX, trying, verified};
use crate::error::Result;
use crate::explore::{Limits, reduce};
use crate::proof::{Again, Request, plans};
use crate::session::{Trace, record_traced};
use crate::trace::Injection;

/// Maximum number of sync calls tried.
const CANDIDATES_MAX: usize = 8;
/// Maximum number of sets of them tried.
const TRIALS_MAX: usize = 24;

/// Result of a search: a change, or the reason why there is none.
pub(super) type SearchResult = std::result::Result<Change, String>;

/// Searches for the smallest set of sync calls with which no state fails. Remarks are added to `notes`.
pub(super) fn smallest(request: &Request<'_>, how: &Again, notes: &mut Vec<String>) -> Result<SearchResult> {
    let missing = &request.judge.recorded.missing_syncs;
    let candidates = &missing[..missing.len().min(CANDIDATES_MAX)];
    if candidates.is_empty() {
        let what = "no change was tried: each of the traced system calls has a sync call after it";
        return Ok(Err(what.to_owned()));
    }
    let until = request.until(request.budget.max(LOOK_MAX));
    let mut search = Search { request, how, candidates, until, trials: 0, best: None, notes };
    let found = search.smallest()?;
    Ok(found.ok_or_else(|| search.failure_reason()))
}

/// Search among the missing sync calls of a program, by index.
struct Search<'s, 'r> {
    request: &'s Request<'r>,
    how: &'s Again,
    candidates: &'s [Injection],
    until: Nanos,
    trials: usize,
    /// Best set so far: its number of failing states, the number explored, and its description.
    best: Option<(u64, u64, String)>,
    notes: &'s mut Vec<String>,
}

impl Search<'_, '_> {
    fn smallest(&mut self) -> Result<Option<Change>> {
        if let Some(change) = self.remedy(&[0])? {
            return Ok(Some(change));
        }
        // The least probable come first, since the first are removed first.
        let all: Vec<usize> = (0..self.candidates.len()).rev().collect();
        if all.len() > 1 && self.explore_with(&all, self.how.writeback)?.is_some() {
            let (mut needed, mut failed) = (all.clone(), None);
            reduce(all.clone(), &mut |some| {
                let fewer: Vec<usize> = needed.iter().copied().filter(|one| !some.contains(one)).collect();
                let is_enough = match fewer.is_empty() || failed.is_some() {
                    true => Ok(None),
                    false => self.explore_with(&fewer, self.how.writeback),
                };
                match is_enough {
                    Ok(Some(_)) => needed = fewer,
                    Ok(None) => return false,
                    Err(error) => failed = Some(error),
                }
                failed.is_none()
            });
            failed.map_or(Ok(()), Err)?;
            needed.reverse();
            return match self.remedy(&needed)? {
                Some(change) => Ok(Some(change)),
                None => self.remedy(&(0..self.candidates.len()).collect::<Vec<usize>>()),
            };
        }
        let count = self.candidates.len();
        let pairs = (0..count).flat_map(|first| (first + 1..count).map(move |second| vec![first, second]));
        for some in (1..count).map(|one| vec![one]).chain(pairs.filter(|_| count > 2)) {
            if let Some(change) = self.remedy(&some)? {
                return Ok(Some(change));
            }
        }
        Ok(None)
    }

    fn is_over(&self) -> bool {
        self.trials >= TRIALS_MAX || self.request.is_over_at(self.until)
    }

    fn description(&self, some: &[usize]) -> String {
        let words: Vec<String> = some.iter().map(|one| self.candidates[*one].to_string()).collect();
        match words.split_last() {
            Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
            _ => words.concat(),
        }
    }

    /// Returns these calls as a change if no state fails with them, under any writeback.
    fn remedy(&mut self, some: &[usize]) -> Result<Option<Change>> {
        let Some(mut explored) = self.explore_with(some, self.how.writeback)? else { return Ok(None) };
        let file_system = self.request.judge.file_system;
        if file_system.is_mounted() {
            let (plans, each) = plans(file_system, &[], self.request.judge.seed);
            let ways = std::iter::once(None).chain(plans.take(each as usize).map(Some));
            for way in ways.filter(|way| *way != self.how.writeback) {
                let Some(more) = self.explore_with(some, way)? else { return Ok(None) };
                explored += more;
            }
        }
        Ok(Some(verified(ChangeKind::SyncCall, self.description(some), explored)))
    }

    /// Runs the program with these additional calls. Returns the number of explored states if none fails.
    fn explore_with(&mut self, some: &[usize], writeback: Option<Writeback>) -> Result<Option<u64>> {
        if self.is_over() {
            return Ok(None);
        }
        // A set that helps is tried once more for each choice of writeback.
        self.trials += usize::from(writeback == self.how.writeback);
        let (judge, what) = (&self.request.judge, self.description(some));
        let doing = trying(&what);
        self.request.begin(&doing);
        let injections: Vec<Injection> = some.iter().map(|one| self.candidates[*one].clone()).collect();
        let trace = Trace { injections: &injections, writeback, ..Trace::new(&self.how.program) };
        let (recorded, traced) = match record_traced(&**judge.subject, trace, &self.how.options, judge.stop) {
            Ok(again) => again,
            Err(error) => {
                self.notes.push(format!("{what} could not be tried: {}", in_one_line(&error)));
                return Ok(None);
            }
        };
        let is_same = recorded.ended_because.is_none()
            && recorded.unseen.is_empty()
            && recorded.facts.acknowledgements == judge.recorded.facts.acknowledgements;
        if !is_same || traced.injected == 0 {
            return Ok(None);
        }
        let limits = Limits { visits: 0, ..judge.limits };
        let after = self.request.explore(&recorded, self.request.profile(), limits, &doing)?;
        if after.incomplete_because.is_some() || after.counts.distinct == 0 {
            return Ok(None);
        }
        let (failing, explored) = (after.counts.failing, after.counts.distinct);
        if failing == 0 {
            return Ok(Some(explored));
        }
        if self.best.as_ref().is_none_or(|(fewest, ..)| failing < *fewest) {
            let with = writeback.filter(|_| writeback != self.how.writeback);
            let with = with.map_or_else(String::new, |plan| format!(", {plan}"));
            self.best = Some((failing, explored, format!("{what}{with}")));
        }
        Ok(None)
    }

    /// Returns the sentence about unsuccessful attempts.
    fn failure_reason(&self) -> String {
        let end = if self.is_over() { ", and the time for it was used up" } else { "" };
        match &self.best {
            Some((failing, explored, what)) => format!(
                "no sync call removes it alone or together with others{end}: with the best that was tried ({what}) {failing} \
                 of {explored} states still fail"
            ),
            None => format!("no sync call could be tried to its end{end}"),
        }
    }
}

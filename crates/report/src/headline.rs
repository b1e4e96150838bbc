//! The result of a run in one sentence: the worst finding, and its meaning for a write.

use plumb_measure::Latency;
use plumb_path::{Finding, Severity, Survey, WritePath};
use plumb_text::printable;

use crate::document::{RunDocument, RunJob, RunTarget, Sides};
use crate::figures::{FlushCount, SINCE_INTENDED, spread};
use crate::levels;
use crate::quantity::{count, duration, mebibytes, rate};
use crate::{rules, wording};

/// Most important result of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headline {
    /// Severity of the worst finding above info; `None` without one.
    pub severity: Option<Severity>,
    /// Outcome as in docs/OUTCOMES.md: `Danger`, `Warning`, `No finding`, `Not known`, `Not complete` or `Not
    /// measured`.
    pub label: &'static str,
    /// Sentence of the worst finding. Without one: the reason why the run is not complete, or its result,
    /// which is where an fsync ends for a check, and the achieved rate for a load.
    pub verdict: String,
    /// Meaning of the verdict, counts, unknown facts, and the number of further findings.
    pub meaning: String,
    /// Sentence with the quality problems of the figures, or that none was found; part of `meaning`. Empty if
    /// nothing was measured.
    pub quality: String,
    /// Reason why the run is not complete, unless the verdict states it.
    pub incomplete: Option<String>,
}

impl Headline {
    /// Returns the headline in one line, with the rule that decided it.
    pub fn line(&self, document: &RunDocument) -> String {
        let worst = document.verdicts.iter().find(|finding| Some(finding.severity) == self.severity);
        let rule = worst.map_or_else(String::new, |finding| format!(" [{}]", finding.id));
        format!("{}: {}{rule}", self.label.to_uppercase(), printable(&self.verdict))
    }

    /// Returns the headline of `document` according to its verdicts.
    pub fn new(document: &RunDocument) -> Self {
        let serious: Vec<&Finding> =
            document.verdicts.iter().filter(|finding| finding.severity > Severity::Info).collect();
        let worst = serious.iter().map(|finding| finding.severity).max();
        let first = serious.iter().find(|finding| Some(finding.severity) == worst);
        let why = incomplete(document.complete, document.incomplete_because.as_deref());
        let measured = is_measured(document);
        let gist = if document.is_check() { reach(document) } else { summary(document) };
        let lost = document.all_paths().into_iter().find(|path| levels::is_lost(Some(path)));
        let is_contradicted = levels::contradiction(document).is_some();
        let durable = lost.or(document.path.as_ref().filter(|_| document.is_check() && !is_contradicted));
        let (label, verdict, mut meaning) = match (first, &why) {
            (Some(first), _) => {
                let label = if first.severity == Severity::Danger { "Danger" } else { "Warning" };
                let about = durable.map(|path| sentence(&path.durable_at.sentence));
                let gist =
                    Some(gist).filter(|_| !document.is_check() || (about.is_none() && !is_contradicted));
                (label, sentence(&first.sentence), about.into_iter().chain(gist).collect())
            }
            (None, Some(why)) if measured => ("Not complete", why.clone(), vec![gist]),
            (None, Some(why)) => {
                // Nothing was measured, but the meaning of an fsync is known.
                let known = Some(gist).filter(|_| document.is_check());
                (NOT_MEASURED, why.clone(), known.into_iter().collect())
            }
            (None, None) if let Some(unknown) = not_known(document).filter(|_| measured) => {
                (NOT_KNOWN, unknown, Some(gist).filter(|_| !document.is_check()).into_iter().collect())
            }
            (None, None) if measured => ("No finding", gist, Vec::new()),
            (None, None) => (NOT_MEASURED, gist, Vec::new()),
        };
        meaning.extend(counted(document));
        match serious.len() {
            0 if label == "No finding" => {
                meaning.push("No rule found anything that loses synced data.".to_owned());
            }
            0 | 1 => {}
            2 => meaning.push("There is one more finding below.".to_owned()),
            n => meaning.push(format!("There are {} more findings below.", n - 1)),
        }
        let quality = Some(quality(document)).filter(|_| measured);
        meaning.extend(quality.clone());
        let is_open = serious.is_empty() && label != NOT_KNOWN;
        let is_said = |path: &&WritePath| {
            let why = path.unknown_below.as_deref().map(str::trim);
            why.is_some_and(|why| meaning.iter().any(|text| text.contains(why)))
        };
        let unseen = document.path.as_ref().filter(|path| is_open && !is_said(path)).and_then(unknown);
        meaning.extend(unseen);
        meaning.retain(|text| !text.is_empty() && *text != verdict);
        let incomplete = why.filter(|why| *why != verdict);
        let quality = quality.unwrap_or_default();
        Self { severity: worst, label, verdict, meaning: meaning.join(" "), quality, incomplete }
    }

    /// Returns the headline of a status, which is not judged.
    pub(crate) fn of_state(verdict: &str) -> Self {
        Self { label: "Status", verdict: sentence(verdict), ..Self::default() }
    }

    /// Returns the headline of a surveyed path, as for a check of it: the worst finding, or where an fsync
    /// ends.
    pub fn of_path(path: &WritePath) -> Self {
        let serious = path.findings.iter().filter(|finding| finding.severity > Severity::Info);
        // Reversed, since max_by_key returns the last of equal elements.
        let worst = serious.rev().max_by_key(|finding| finding.severity);
        let severity = worst.map(|finding| finding.severity);
        let (label, verdict) = match worst {
            Some(finding) if finding.severity == Severity::Danger => ("Danger", sentence(&finding.sentence)),
            Some(finding) => ("Warning", sentence(&finding.sentence)),
            None if levels::is_unknown(path) => (NOT_KNOWN, levels::not_known(path)),
            None => ("No finding", levels::reach(path)),
        };
        let durable = sentence(&path.durable_at.sentence);
        let meaning = if durable == verdict { String::new() } else { durable };
        Self { severity, label, meaning, ..Self::of_state(&verdict) }
    }

    /// Returns the headline of a survey: that of its worst path, or the number of paths on which an fsync
    /// makes data durable.
    pub fn of_survey(survey: &Survey) -> Self {
        if let [path] = &survey.paths[..] {
            return Self::of_path(path);
        }
        let meaning = format!(
            "By what the devices report, an fsync makes data durable on {} of {}.",
            survey.paths.iter().filter(|path| path.durable_at.fsync.is_some()).count(),
            crate::quantity::counted(survey.paths.len() as u64, "path")
        );
        let each = survey.paths.iter().rev().map(Self::of_path);
        let worst = each.max_by_key(|one| (one.severity, one.is_not_known()));
        match worst.filter(|worst| worst.severity.is_some() || worst.is_not_known()) {
            Some(worst) => Self { meaning, ..worst },
            None => Self { label: "No finding", ..Self::of_state(&meaning) },
        }
    }

    /// Returns the `level` for the document, from this headline and the findings.
    pub fn level(&self, findings: &[Finding]) -> &'static str {
        match findings.iter().map(|finding| finding.severity).max() {
            _ if self.is_not_known() => UNKNOWN,
            None => "none",
            Some(severity) => severity.word(),
        }
    }

    /// Returns the severity as a word; `none` if there was no finding.
    pub fn class(&self) -> &'static str {
        self.severity.map_or("none", Severity::word)
    }

    /// Returns true if the path tells nothing about durability.
    pub fn is_not_known(&self) -> bool {
        self.label == NOT_KNOWN
    }

    /// Returns the sentence for documents, which show no label: an unknown outcome is stated first.
    pub fn in_document(&self) -> String {
        match self.is_not_known() {
            true => format!("{}: {}", NOT_KNOWN.to_uppercase(), self.verdict),
            false => self.verdict.clone(),
        }
    }
}

/// Outcome of a run that measured nothing.
const NOT_MEASURED: &str = "Not measured";
/// Outcome of a path that tells nothing about durability. Its level in documents is [`UNKNOWN`].
pub(crate) const NOT_KNOWN: &str = "Not known";
/// Level of a document whose outcome is unknown.
pub const UNKNOWN: &str = "unknown";

/// Returns why the effect of a sync on the written targets is unknown, with a remedy; `None` if it is known,
/// or nothing was written.
fn not_known(document: &RunDocument) -> Option<String> {
    let counts = |target: &&RunTarget| match document.is_check() {
        // A phase that the place does not support was not run, and has no surveyed path.
        true => target.sides.application.operations > 0,
        false => target.sides.may_have_written(),
    };
    let mut paths = document.targets.iter().filter(counts).map(|target| document.path_of(target));
    match paths.find(|path| path.is_none_or(levels::is_unknown))? {
        Some(path) => Some(levels::not_known(path)),
        None if document.is_check() => Some(SURVEY_ELSEWHERE.to_owned()),
        None => Some(without_path(document)),
    }
}

/// Returns why the path of a load is unknown, with a remedy.
fn without_path(document: &RunDocument) -> String {
    let why = match (&document.imported_from, &document.path_unknown_because) {
        (Some(from), _) => format!("{from}, does not describe the place"),
        (None, Some(why)) => why.trim().trim_end_matches('.').to_owned(),
        (None, None) => "the recording does not describe the place".to_owned(),
    };
    format!(
        "What an fsync is worth where this was measured is not known: {why}. To know it: `plumb survey` the place, on its \
         machine."
    )
}

/// Verdict of a check without a path.
const SURVEY_ELSEWHERE: &str = "What an fsync is worth here cannot be seen from this machine. To know it: survey the place where \
    /proc and /sys can be read.";

fn is_measured(document: &RunDocument) -> bool {
    let transactions = document.transactions.as_ref().is_some_and(|transactions| transactions.count > 0);
    transactions || document.targets.iter().any(|target| target.sides.application.operations > 0)
}

/// Returns the reason why a run is not complete; `None` if it is.
pub(crate) fn incomplete(complete: bool, because: Option<&str>) -> Option<String> {
    let why = because.map(str::trim).filter(|why| !why.is_empty());
    (!complete).then(|| capital(&sentence(why.unwrap_or("it did not run to its end"))))
}

/// Describes how far an fsync reaches on the visible path.
fn reach(document: &RunDocument) -> String {
    document.path.as_ref().map_or_else(|| SURVEY_ELSEWHERE.to_owned(), levels::reach)
}

/// Summarizes the results in one sentence.
fn summary(document: &RunDocument) -> String {
    let side = &document.total.application;
    if document.spans.len() > 1 && side.operations > 0 {
        return format!(
            "{} operations in {} spans, {} measured in all; the table has each.",
            count(side.operations),
            document.spans.len(),
            duration(document.duration)
        );
    }
    let transactions = document.transactions.as_ref().filter(|transactions| transactions.count > 0);
    if let Some((transactions, latency)) = transactions.and_then(|done| Some((done, done.latency?))) {
        return format!("{} transactions per second; {}.", rate(transactions.per_second), spread(&latency));
    }
    if side.operations == 0 {
        return "No operation completed.".to_owned();
    }
    let total = &document.total;
    let what = match total.lacks_durable_latency() {
        true => total.operations_name("synced writes"),
        false => total.operations_name(levels::synced_writes(document, &document.targets)),
    };
    let times = total.operation_latency().map(|latency| times(total, &latency));
    format!(
        "{} {what} per second, {} MiB/s; {}.",
        rate(side.iops),
        mebibytes(side.bytes_per_second),
        times.unwrap_or_else(|| unknown_times(total).to_owned())
    )
}

/// Describes that the time of all operations together is unknown.
fn unknown_times(total: &Sides) -> &'static str {
    match [&total.read, &total.write, &total.trim].iter().any(|side| side.latency.is_some()) {
        true => "the latency of all together is not known, only that of some directions (see the table)",
        false => "latencies were not recorded",
    }
}

/// Describes the times of operations with `latency`, and whether they include the wait for the start and the
/// syncs.
fn times(total: &Sides, latency: &Latency) -> String {
    let since = match total.service_time() {
        Some(_) => format!("{SINCE_INTENDED}, waiting included: "),
        None => String::new(),
    };
    format!("{since}{}", times_of(total, latency))
}

fn times_of(total: &Sides, latency: &Latency) -> String {
    let spread_of = spread(latency);
    if total.is_synced_one_by_one() {
        return format!("with their syncs {spread_of}");
    }
    if !total.has_separate_syncs() {
        return spread_of;
    }
    let alone = total.sync.latency.as_ref().map(|syncs| format!("; the syncs alone: {}", spread(syncs)));
    format!("without their syncs {spread_of}{}", alone.unwrap_or_default())
}

/// Describes the syncs and their flushes: of each method for a check, otherwise of all.
fn counted(document: &RunDocument) -> Option<String> {
    if document.is_check() {
        return counted_by_method(document);
    }
    let total = &document.total;
    let asked = asked(document);
    let flushes = total.storage.as_ref().and_then(FlushCount::from_storage);
    if asked.is_empty() {
        return (total.write.ios > 0).then(|| unsynced(document, flushes));
    }
    Some(seen_as(&asked, flushes))
}

/// Describes the durable writes of each method of a check and their flushes; `None` if no flush was counted.
fn counted_by_method(document: &RunDocument) -> Option<String> {
    let of_method = |target: &RunTarget| {
        let method = wording::method(document.job_of(target)?.method?);
        let writes = Some(target.sides.application.operations).filter(|writes| *writes > 0)?;
        let flushes = FlushCount::from_storage(target.sides.storage.as_ref()?)?;
        let what = levels::synced_writes(document, [target]);
        Some((method, writes, what, flushes))
    };
    let all: Vec<_> = document.targets.iter().filter_map(of_method).collect();
    let counted = all.iter().fold(0_u64, |sum, (.., flushes)| sum.saturating_add(flushes.count));
    let (&(method, writes, what, first), others) = all.split_first().filter(|_| counted > 0)?;
    if let Some((.., of_all)) = all.iter().find(|(.., flushes)| flushes.is_of_all()) {
        let writes = all.iter().fold(0_u64, |sum, (_, writes, ..)| sum.saturating_add(*writes));
        return Some(seen_as(&[(writes, what)], Some(FlushCount { count: counted, ..*of_all })));
    }
    let first = seen_as(&[(writes, &format!("{what} ({method})"))], Some(first));
    let others = others.iter().map(|(method, writes, _, flushes)| {
        format!(", {} ({method}) as {}", count(*writes), count(flushes.count))
    });
    Some(format!("{}{}.", first.trim_end_matches('.'), others.collect::<String>()))
}

/// Returns the requests for durability with their numbers: syncs, writes with O_DSYNC, and writes that a
/// mount option or a file attribute makes synchronous.
fn asked(document: &RunDocument) -> Vec<(u64, &'static str)> {
    let writes = |wanted: &dyn Fn(&RunTarget, &RunJob) -> Option<u64>| {
        let each = document.targets.iter().filter_map(|target| wanted(target, document.job_of(target)?));
        each.fold(0, u64::saturating_add)
    };
    let durable =
        writes(&|target, job| Some(target.sides.write.ios / u64::from(job.durable_write_every?.max(1))));
    // fs/sync.c, generic_write_sync: IS_SYNC makes each write of the page cache and each direct one
    // synchronous.
    let synchronous = |wanted: &'static str| {
        writes(&|target, job| {
            let by = document.path_of(target).and_then(WritePath::synchronous);
            let is_so = job.durable_write_every.is_none() && by.is_some_and(|by| by.starts_with(wanted));
            is_so.then_some(target.sides.write.ios)
        })
    };
    let asked = [
        (document.total.sync.ios, "syncs"),
        (durable, "writes with O_DSYNC or FUA"),
        (synchronous("mount"), "writes on a mount with the option sync"),
        (synchronous("attribute"), "writes to files with the attribute S (chattr +S)"),
    ];
    asked.into_iter().filter(|(number, _)| *number > 0).collect()
}

/// Returns `200 syncs and 300 writes with O_DSYNC or FUA were seen as 500 flushes at the devices.` Flushes of
/// all programs are an upper bound.
fn seen_as(asked: &[(u64, &str)], flushes: Option<FlushCount>) -> String {
    let asked: Vec<String> =
        asked.iter().map(|(number, what)| format!("{} {what}", count(*number))).collect();
    let asked = asked.join(" and ");
    match flushes {
        None => format!("{asked}; flushes at the devices were not counted."),
        Some(flushes) if flushes.is_of_all() => {
            let (words, most) = (flushes.words(), count(flushes.count));
            format!("{asked}; the devices counted {words}: at most {most} of this run.")
        }
        Some(flushes) => format!("{asked} were seen as {}.", flushes.words()),
    }
}

/// Describes the durability of writes for which no flush was requested.
fn unsynced(document: &RunDocument, flushes: Option<FlushCount>) -> String {
    let wrote = document.targets.iter().filter(|target| target.sides.write.ios > 0);
    let at: Option<Vec<&str>> = wrote
        .map(|target| {
            let durable = &document.path_of(target)?.durable_at;
            let is_direct = !document.job_of(target)?.caching.is_cached();
            durable.write.as_deref().or(durable.direct.as_deref().filter(|_| is_direct))
        })
        .collect();
    if let Some(first) = at.as_ref().and_then(|layers| layers.first()) {
        return format!(
            "No flush was asked for or needed: a write here is durable at {first} when it is acknowledged."
        );
    }
    let syncs = document.spans.iter().flat_map(|span| &span.jobs).any(|job| job.flush.is_some());
    match flushes.filter(|flushes| flushes.count > 0 && !flushes.is_of_all()) {
        _ if document.total.sync.is_uncounted => {
            "Syncs were asked for; the result does not say how many were made.".to_owned()
        }
        _ if syncs => "Syncs were asked for, but the result counts none.".to_owned(),
        Some(flushes) => {
            format!("The load asked for no flush; the devices counted {} nevertheless.", flushes.words())
        }
        None => "No flush was asked for: the writes were acknowledged, not made durable.".to_owned(),
    }
}

/// Describes the quality problems of the figures in a few words from each verdict. Cached loads of a check
/// are left out: they only serve for comparison.
fn quality(document: &RunDocument) -> String {
    let spoils = |finding: &Finding| {
        let expected = document.is_check() && finding.id == "page-cache";
        rules::find(&finding.id)?.quality.as_deref().filter(|_| !expected)
    };
    let mut words: Vec<&str> = document.verdicts.iter().filter_map(spoils).collect();
    words.dedup();
    match words.as_slice() {
        [] if !has_latencies(document) => {
            "Quality of the figures: no problem found, but no rule could judge latencies: none were recorded."
                .to_owned()
        }
        [] => "Quality of the figures: no problem found.".to_owned(),
        words => format!("Quality of the figures: {}.", words.join("; ")),
    }
}

/// Rules that detect other activity on the machine or its devices.
const BUSY: [&str; 2] = ["device-shared-with-others", "steal"];

/// Returns the activity of others on the machine while the figures behind `verdicts` were measured; `None` if
/// no rule found any.
pub fn machine_busy(verdicts: &[Finding]) -> Option<String> {
    let found = verdicts.iter().filter(|finding| BUSY.contains(&finding.id.as_str()));
    let mut words: Vec<&str> =
        found.filter_map(|finding| rules::find(&finding.id)?.quality.as_deref()).collect();
    words.sort_unstable();
    words.dedup();
    (!words.is_empty()).then(|| format!("the machine was busy: {}", words.join(", ")))
}

/// Returns true if a latency was measured.
fn has_latencies(document: &RunDocument) -> bool {
    let done = document.transactions.as_ref().and_then(|done| done.latency);
    let targets = document.targets.iter().map(|target| &target.sides);
    done.is_some() || targets.chain([&document.total]).any(|sides| sides.operation_latency().is_some())
}

fn unknown(path: &WritePath) -> Option<String> {
    let why = path.unknown_below.as_deref()?.trim();
    (!why.is_empty()).then(|| capital(&sentence(why)))
}
/// Returns the text with an initial capital, unless it begins with a name such as `write-direct` or `/srv`.
pub(crate) fn capital(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default().trim_end_matches([',', '.']);
    if first.chars().all(char::is_alphabetic)
        && let Some(letter) = first.chars().next()
    {
        return format!("{}{}", letter.to_uppercase(), &text[letter.len_utf8()..]);
    }
    text.to_owned()
}

/// Returns the text with a final full stop.
pub fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', '!', '?', '…']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn finding(severity: Severity, sentence: &str) -> Finding {
        Finding {
            id: "x".into(),
            severity,
            sentence: sentence.into(),
            evidence: vec![],
            remedy: String::new(),
        }
    }

    #[test]
    fn the_time_of_writes_that_are_each_synced_is_with_the_sync() {
        let mut document = fixture::load("many-writers");
        let total = &mut document.total;
        (total.read.ios, total.trim.ios, total.write.ios, total.sync.ios) = (0, 0, 1000, 1000);
        let latency = |scale: f64| Latency {
            count: 1000,
            p50: Some(1e-5 * scale),
            p99: Some(2e-5 * scale),
            ..NO_LATENCY
        };
        total.application.operations = 1000;
        total.application.latency = Some(latency(1.0));
        total.durable_latency = Some(latency(300.0));
        document.spans.truncate(1);
        let said = summary(&document);
        assert!(said.contains("durable writes per second"), "{said}");
        assert!(
            said.ends_with("with their syncs half of them within 3 ms, 99 of 100 within 6 ms."),
            "{said}"
        );
        document.total.durable_latency = None;
        document.total.sync.latency = Some(latency(200.0));
        let said = summary(&document);
        assert!(said.contains("synced writes per second") && !said.contains("durable"), "{said}");
        let apart = "without their syncs half of them within 10 µs, 99 of 100 within 20 µs; the syncs alone: half of \
            them within 2 ms, 99 of 100 within 4 ms.";
        assert!(said.ends_with(apart), "{said}");
        document.total.durable_latency = Some(latency(300.0));
        document.total.sync.ios = 500;
        let said = summary(&document);
        assert!(said.contains("operations per second") && said.contains("within 10 µs"), "{said}");
        document.total.application.latency = None;
        document.total.write.latency = Some(latency(1.0));
        let said = summary(&document);
        assert!(said.contains("only that of some directions") && !said.contains("not recorded"), "{said}");
    }

    #[test]
    fn without_latencies_their_quality_is_not_praised() {
        let mut document = fixture::load("many-writers");
        document.verdicts.clear();
        assert!(quality(&document).ends_with("no problem found."));
        let targets = document.targets.iter_mut().map(|target| &mut target.sides);
        for sides in targets.chain([&mut document.total]) {
            sides.application.latency = None;
            sides.application.latency_from_intended_start = None;
            sides.durable_latency = None;
        }
        let said = quality(&document);
        assert!(said.ends_with("but no rule could judge latencies: none were recorded."), "{said}");
    }

    #[test]
    fn the_flushes_of_every_method_of_a_check_are_said() {
        let said = counted(&fixture::virtual_machine()).unwrap();
        assert_eq!(
            said,
            "52,410 durable writes (overwrite-fdatasync) were seen as 52,410 flushes at the devices, 15,870 \
             (append-fdatasync) as 31,740, 57,030 (direct-dsync) as 57,030."
        );
    }

    const NO_LATENCY: Latency = Latency {
        count: 0,
        mean: 0.0,
        std: 0.0,
        min: 0.0,
        p25: Some(0.0),
        p50: Some(0.0),
        p75: Some(0.0),
        p99: Some(0.0),
        p999: Some(0.0),
        max: 0.0,
    };

    #[test]
    fn a_sentence_begins_with_a_capital_but_for_a_name() {
        for (text, expected) in
            [("off is better.", "Off is better."), ("off.", "Off."), ("off, on", "Off, on")]
        {
            assert_eq!(capital(text), expected);
        }
        for name in ["off.json has more.", "f.dat: it is full", "/srv is", "write-direct took"] {
            assert_eq!(capital(name), name);
        }
    }

    #[test]
    fn the_worst_comes_first_and_the_first_of_equals() {
        let mut document = fixture::virtual_machine();
        document.verdicts = vec![
            finding(Severity::Info, "a"),
            finding(Severity::Warning, "b"),
            finding(Severity::Danger, "c"),
            finding(Severity::Danger, "d"),
        ];
        let headline = Headline::new(&document);
        assert_eq!((headline.severity, headline.verdict.as_str()), (Some(Severity::Danger), "c."));
        assert!(headline.meaning.contains("2 more findings"), "{}", headline.meaning);
    }

    #[test]
    fn without_a_finding_it_says_what_an_fsync_reaches_and_never_that_it_is_safe() {
        for document in fixture::all() {
            assert!(!format!("{:?}", Headline::new(&document)).contains("safe"));
        }
        let headline = Headline::new(&fixture::virtual_machine());
        assert_eq!(headline.class(), "none");
        assert_eq!(
            headline.verdict,
            "An fsync here reaches vda; whether it is durable is not known below vda (hypervisor)."
        );
        assert!(headline.meaning.contains("52,410 flushes"), "{}", headline.meaning);
        let headline = Headline::new(&fixture::document("hard-drive"));
        assert!(headline.verdict.contains("durable in sda"), "{}", headline.verdict);
        let denied = Headline::new(&fixture::document("denied"));
        assert_eq!(denied.label, "Not measured");
        assert!(denied.verdict.contains("permission denied"), "{}", denied.verdict);
    }

    /// Returns a load of one writer on a disk with a path.
    fn load_on(durable_at: plumb_path::DurableAt, options: &[&str]) -> RunDocument {
        let mut document = fixture::load("side-by-side");
        document.targets.remove(0);
        document.spans[0].jobs.remove(0);
        document.targets[0].job = 0;
        let mut path = fixture::document("hard-drive").path.unwrap();
        path.durable_at = durable_at;
        let system = &mut path.layers[2];
        for option in options {
            let (source, means) = ("/proc/self/mountinfo".to_owned(), String::new());
            let value = (*option).to_owned();
            system.evidence.push(plumb_path::Evidence { source, value, means });
        }
        document.path = Some(path);
        document.total = document.targets[0].sides.clone();
        document
    }

    #[test]
    fn a_load_over_a_path_that_drops_flushes_is_in_danger_whatever_was_counted() {
        let mut document = load_on(plumb_path::DurableAt::default(), &[]);
        let cause = finding(Severity::Danger, "fsync is not durable: /srv is mounted nobarrier. Remount it");
        let path = document.path.as_mut().unwrap();
        path.layers[2].flush = plumb_path::Flush::Dropped;
        path.findings = vec![cause];
        crate::verdict::conclude(&mut document, Vec::new());
        let headline = Headline::new(&document);
        assert_eq!((headline.label, document.level.as_str()), ("Danger", "danger"));
        assert!(headline.verdict.starts_with("fsync is not durable: /srv is mounted nobarrier"));
        for verbosity in [crate::Verbosity::Quiet, crate::Verbosity::Normal, crate::Verbosity::Verbose] {
            let text = crate::terminal::run(&document, crate::Style { verbosity, ..crate::Style::PLAIN });
            assert!(text.contains("DANGER") && text.contains("mounted nobarrier"), "{text}");
            assert!(!text.contains("NO FINDING") && !text.contains(" durable  "), "{text}");
        }
    }

    #[test]
    fn writes_to_a_place_that_is_not_described_have_an_unknown_worth_and_reads_say_nothing_of_it() {
        let mut document = load_on(plumb_path::DurableAt::default(), &[]);
        document.path = None;
        let judged = |document: &mut RunDocument| {
            crate::verdict::conclude(document, Vec::new());
            (document.level.clone(), Headline::new(document))
        };
        for (imported_from, path_unknown_because, why) in [
            (Some("f.json, a result of fio 3.33"), None, "f.json, a result of fio 3.33, does not describe"),
            (None, Some("no device is beneath it"), "not known: no device is beneath it. To know it: `plumb"),
            (None, None, "the recording does not describe the place"),
        ] {
            document.imported_from = imported_from.map(str::to_owned);
            document.path_unknown_because = path_unknown_because.map(str::to_owned);
            let (level, headline) = judged(&mut document);
            assert_eq!((level.as_str(), headline.label), (UNKNOWN, NOT_KNOWN));
            assert!(headline.verdict.contains(why), "{}", headline.verdict);
            assert!(headline.meaning.contains("per second"), "{}", headline.meaning);
            assert!(!headline.meaning.contains("No rule found"), "{}", headline.meaning);
        }
        let sides = &mut document.targets[0].sides;
        (sides.write, sides.sync, sides.durable_latency) = Default::default();
        sides.read.ios = sides.application.operations;
        document.total = sides.clone();
        let (level, headline) = judged(&mut document);
        assert!(level != UNKNOWN && headline.label == "No finding", "{level}: {headline:?}");
        // Operations whose direction is unknown.
        document.targets[0].sides.read.ios = 0;
        assert_eq!(judged(&mut document).0, UNKNOWN);
    }

    #[test]
    fn writes_that_sync_file_range_follows_are_not_called_durable() {
        let mut document = load_on(plumb_path::DurableAt::default(), &[]);
        assert_eq!(levels::synced_writes(&document, &document.targets), "durable writes");
        document.spans[0].jobs[0].flush = Some(crate::document::FlushMethod::Range);
        assert_eq!(levels::synced_writes(&document, &document.targets), "synced writes");
    }

    #[test]
    fn what_was_asked_to_be_durable_is_named_in_full() {
        let mut document = load_on(plumb_path::DurableAt::default(), &[]);
        document.spans[0].jobs[0].durable_write_every = Some(2);
        let said = Headline::new(&document).meaning;
        assert!(said.contains("2,700 syncs and 1,350 writes with O_DSYNC or FUA were seen as"), "{said}");
        let mut mounted = load_on(plumb_path::DurableAt::default(), &["sync"]);
        mounted.spans[0].jobs[0].caching = plumb_block::Caching::Cached;
        (mounted.total.sync.ios, mounted.targets[0].sides.sync.ios) = (0, 0);
        let said = Headline::new(&mounted).meaning;
        assert!(said.contains("writes on a mount with the option sync were seen as"), "{said}");
        assert!(!said.contains("not made durable"), "{said}");
    }

    #[test]
    fn a_write_that_needs_no_flush_is_not_called_undurable() {
        let at = plumb_path::DurableAt { direct: Some("sda".to_owned()), ..plumb_path::DurableAt::default() };
        let mut document = load_on(at, &[]);
        document.total.sync.ios = 0;
        document.spans[0].jobs[0].caching = plumb_block::Caching::Direct;
        let said = Headline::new(&document).meaning;
        assert!(said.contains("a write here is durable at sda when it is acknowledged"), "{said}");
        document.spans[0].jobs[0].caching = plumb_block::Caching::Cached;
        document.total.storage.as_mut().unwrap().flushes = Some(0);
        let said = Headline::new(&document).meaning;
        assert!(said.contains("Syncs were asked for, but the result counts none"), "{said}");
        document.spans[0].jobs.iter_mut().for_each(|job| job.flush = None);
        let said = Headline::new(&document).meaning;
        assert!(said.contains("acknowledged, not made durable"), "{said}");
    }

    #[test]
    fn the_headline_never_contradicts_the_verdicts_about_the_figures() {
        for mut document in fixture::all() {
            for id in ["device-shared-with-others", "steal", "not-steady"] {
                document.verdicts = vec![Finding { id: id.to_owned(), ..finding(Severity::Info, "x") }];
                let headline = Headline::new(&document);
                assert!(!headline.meaning.contains("no problem found"), "{id}: {}", headline.meaning);
            }
        }
    }

    #[test]
    fn what_is_not_complete_never_says_that_there_is_no_finding() {
        let mut document = fixture::document("interrupted");
        document.verdicts = crate::verdict::judge(&document);
        let headline = Headline::new(&document);
        assert_eq!((headline.label, headline.incomplete.as_deref()), ("Not complete", None));
        assert_eq!(headline.verdict, "Interrupted by Ctrl-C during append-fdatasync.");
        assert!(!headline.meaning.contains("No rule found"), "{}", headline.meaning);
        document.verdicts = vec![finding(Severity::Warning, "b")];
        assert_eq!(Headline::new(&document).incomplete.as_deref(), Some(headline.verdict.as_str()));
        document.failed = true;
        document.verdicts = crate::verdict::judge(&document);
        let headline = Headline::new(&document);
        assert_eq!((headline.label, headline.incomplete), ("Danger", None), "the reason is said once");
        document.incomplete_because = None;
        document.verdicts.clear();
        assert_eq!(Headline::new(&document).verdict, "It did not run to its end.");
    }
}

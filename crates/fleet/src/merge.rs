//! Combination of the hosts' answers in one document. Distributions are added, so percentiles are those of
//! the operations of all hosts.

use std::borrow::Cow;
use std::collections::HashMap;

use plumb_block::Nanos;
use plumb_load::LoadOutcome;
use plumb_measure::{COUNT_MAX, StorageSide, storage};
use plumb_path::{Finding, LayerKind, Severity, Survey, WritePath};
use plumb_report::document::fleet::{FleetDocument, FleetHost, ScaleStep};
use plumb_report::document::{CpuSeconds, Sides};
use plumb_report::quantity::duration;
use plumb_report::{Headline, RunDocument, UNKNOWN, levels, wording};
use plumb_text::excerpt;
use serde_json::Value;

use crate::controller::{Controller, HostNow};
use crate::machines;
use crate::message::short;

/// Relative difference between the first and last end of a host, above which hosts did not end together.
const APART: f64 = 0.05;
/// Maximum length of a sentence from a host, in characters; plumb's own are shorter.
const SENTENCE_MAX: usize = 4000;

/// Answer of one host.
#[derive(Debug, Default)]
pub struct Answer<'a> {
    /// Report on the host.
    pub host: FleetHost,
    /// Findings of the host.
    pub findings: Vec<Finding>,
    /// Figures of its load.
    pub outcome: Option<Cow<'a, LoadOutcome>>,
    /// True if the clock of the host jumped during the run.
    jumped: bool,
}

/// Returns the answers of all hosts with a task, in order. Moves their figures out of the controller, as they
/// are large for many hosts.
pub fn answers(controller: &mut Controller) -> Vec<Answer<'static>> {
    let measured = controller.take_measured();
    let with_task = controller.hosts().zip(measured).filter(|(host, _)| host.has_task);
    with_task.map(|(host, outcome)| answer(&host, outcome.map(Cow::Owned))).collect()
}

/// Returns the interim answers of all hosts with a task.
pub fn answers_so_far(controller: &Controller) -> Vec<Answer<'_>> {
    let with_task = controller.hosts().filter(|host| host.has_task);
    with_task.map(|host| answer(&host, host.measured().map(Cow::Borrowed))).collect()
}

fn answer<'a>(now: &HostNow<'_>, outcome: Option<Cow<'a, LoadOutcome>>) -> Answer<'a> {
    let result = now.result;
    let exit = result.map(|result| result.exit);
    let told = result.map(|result| HostDocument::read(result.document.as_deref(), now.schema));
    let missing = match &told {
        Some(Err(why)) => Some(why.clone()),
        Some(Ok(HostDocument::Load(_))) if outcome.is_none() => Some("its result has no figures".to_owned()),
        _ => None,
    };
    // A command with findings succeeded; an interrupted one is incomplete, whatever it found.
    let has_ended = matches!(exit, Some(0 | 1)) && result.is_some_and(|result| result.because.is_none());
    let ok = has_ended && missing.is_none();
    let failed = || match exit {
        Some(_) if has_ended => missing.clone(),
        Some(exit) => Some(format!("plumb ended there with exit code {exit}")),
        None => Some("its result did not arrive".to_owned()),
    };
    let because = result.and_then(|result| result.because.clone()).or_else(|| now.because.map(str::to_owned));
    let seconds = |time: Option<Nanos>| time.map(Nanos::as_secs_f64);
    let host = FleetHost {
        name: now.name.to_owned(),
        ok,
        because: if ok { None } else { because.or_else(failed) },
        exit,
        clock_offset: now.clock.map(|offset| offset.ahead_ns as f64 / 1e9),
        clock_error: seconds(now.clock.map(|offset| offset.error)),
        start_late: seconds(now.late),
        done_after: seconds(result.and_then(|result| result.lasted)),
        boot_id: now.boot_id.map(str::to_owned),
        ..FleetHost::default()
    };
    let jumped = now.clock.is_some_and(|offset| offset.jumped);
    let mut answer = Answer { host, outcome, jumped, ..Answer::default() };
    let mut sides = None;
    match told {
        Some(Ok(HostDocument::Load(document))) => sides = Some(answer.of_load(*document)),
        Some(Ok(HostDocument::Command(document))) => answer.of_command(document),
        Some(Err(_)) | None => {}
    }
    answer.host.total = answer.outcome.as_deref().map(|outcome| measured(outcome, sides));
    answer
}

enum HostDocument {
    Load(Box<RunDocument>),
    Command(Value),
}

impl HostDocument {
    /// Parses the document of a result.
    ///
    /// # Errors
    /// The reason, if the text is not a document of `schema`.
    fn read(text: Option<&str>, schema: &str) -> Result<Self, String> {
        let text = text.ok_or("its result has no document")?;
        let told = if schema == RunDocument::SCHEMA {
            let document = RunDocument::from_json(text).ok().filter(|document| !document.is_check());
            document.map(|document| Self::Load(Box::new(document)))
        } else {
            let document = serde_json::from_slice::<Value>(text.as_bytes()).ok();
            document.filter(|document| document["schema"] == schema).map(Self::Command)
        };
        told.ok_or_else(|| format!("its result has no document of the schema {schema}"))
    }
}

/// Returns the figures of a load: from its distributions, which are added to those of other hosts, and, where
/// these lack it, from its document.
fn measured(outcome: &LoadOutcome, told: Option<Sides>) -> Sides {
    let Some(told) = told else {
        return plumb_trial::sides(outcome, Err("its document did not arrive".to_owned()), None);
    };
    let why = told.storage_unknown_because;
    let storage =
        told.storage.ok_or_else(|| why.unwrap_or_else(|| "it is not known".to_owned())).and_then(|side| {
            if is_addable(&side) { Ok(side) } else { Err("its counts cannot be true".to_owned()) }
        });
    let cpu = told.cpu.filter(|cpu| [cpu.user, cpu.system].into_iter().all(is_figure));
    let unknown = || told.cpu_unknown_because.unwrap_or_else(|| "it is not known".to_owned());
    Sides {
        depth: told.depth,
        threads: told.threads,
        dirty_bytes_after: told.dirty_bytes_after,
        cpu,
        cpu_unknown_because: cpu.is_none().then(unknown),
        quality: told.quality,
        ..plumb_trial::sides(outcome, storage, None)
    }
}

impl Answer<'_> {
    /// Stores the document of a load, and returns its figures.
    fn of_load(&mut self, document: RunDocument) -> Sides {
        self.host.local = local(&document.all_paths());
        self.host.level = Some(short(&document.level));
        self.host.headline = Some(excerpt(&document.headline, SENTENCE_MAX));
        self.findings = document.verdicts.into_iter().map(bounded_finding).collect();
        document.total
    }

    /// Stores the document of another command.
    fn of_command(&mut self, document: Value) {
        let nested =
            ["paths", "devices"].iter().flat_map(|name| document[*name].as_array().into_iter().flatten());
        let all = nested.map(|one| &one["findings"]).chain([&document["verdicts"]]);
        let all = all.flat_map(|findings| findings.as_array().into_iter().flatten());
        let (known, unknown): (Vec<_>, Vec<_>) =
            all.map(|one| serde_json::from_value::<Finding>(one.clone())).partition(Result::is_ok);
        self.findings = known.into_iter().flatten().map(bounded_finding).collect();
        if !unknown.is_empty() {
            // An unreadable finding may be the most severe one.
            self.host.ok = false;
            let said = format!("{} of its findings cannot be read by this version of plumb", unknown.len());
            self.host.because.get_or_insert(said);
        }
        let worst = self.findings.iter().map(|finding| finding.severity).max();
        let paths = document["paths"].as_array().into_iter().flatten();
        let paths: Vec<WritePath> =
            paths.filter_map(|path| serde_json::from_value(path.clone()).ok()).collect();
        let unknown = document["level"] == UNKNOWN || paths.iter().any(levels::is_unknown);
        let level = worst.map_or("none", Severity::word);
        let level = if unknown && worst <= Some(Severity::Info) { UNKNOWN } else { level };
        self.host.level = Some(level.to_owned());
        self.host.headline =
            headline(&document, &self.findings).map(|headline| excerpt(&headline, SENTENCE_MAX));
        self.host.document = Some(document);
    }
}

/// Makes a finding printable and limits its length.
fn bounded_finding(mut finding: Finding) -> Finding {
    for text in [&mut finding.sentence, &mut finding.remedy].into_iter().chain(&mut finding.evidence) {
        *text = excerpt(text, SENTENCE_MAX);
    }
    finding
}

/// Returns the result of a host as one sentence.
fn headline(document: &Value, findings: &[Finding]) -> Option<String> {
    if let Some(headline) = document["headline"].as_str() {
        return Some(headline.to_owned());
    }
    if document["schema"] == Survey::SCHEMA {
        let survey: Survey = serde_json::from_value(document.clone()).ok()?;
        return Some(Headline::of_survey(&survey).in_document());
    }
    let worst = findings.iter().filter(|finding| finding.severity > Severity::Info);
    if let Some(worst) = worst.max_by_key(|finding| finding.severity) {
        return Some(worst.sentence.clone());
    }
    let states = document["devices"].as_array()?.iter().map(|device| {
        format!(
            "{} {}",
            device["name"].as_str().unwrap_or("?"),
            device["state"].as_str().unwrap_or("unknown")
        )
    });
    Some(format!("write caches: {}", states.collect::<Vec<_>>().join(", ")))
}

/// Returns true if the value is possible: finite, not negative, below [`COUNT_MAX`].
fn is_figure(value: f64) -> bool {
    (0.0..COUNT_MAX as f64).contains(&value)
}

/// Returns true if the counts and rates can be added to those of other hosts.
fn is_addable(side: &StorageSide) -> bool {
    let counts =
        [side.reads, side.writes, side.read_bytes, side.write_bytes, side.merges, side.flushes.unwrap_or(0)];
    let rates = [side.iops, side.bytes_per_second, side.flush_mean.unwrap_or(0.0)];
    counts.into_iter().all(|count| count < COUNT_MAX) && rates.into_iter().all(is_figure)
}

/// Returns true if all layers of these paths are on local devices, false if one is remote; `None` if unknown
/// or in memory.
fn local(paths: &[&WritePath]) -> Option<bool> {
    let layers = paths.iter().flat_map(|path| path.layers.iter().map(|layer| layer.kind));
    is_local(&layers.collect::<Vec<_>>())
}

/// Returns the result of [`local`] for layers of these kinds.
fn is_local(kinds: &[LayerKind]) -> Option<bool> {
    let kinds = || kinds.iter().copied();
    let is_remote = |kind| {
        matches!(
            kind,
            LayerKind::NetworkFileSystem
                | LayerKind::Nbd
                | LayerKind::Rbd
                | LayerKind::Drbd
                | LayerKind::Remote
        )
    };
    let is_memory = |kind| {
        matches!(kind, LayerKind::Tmpfs | LayerKind::Ram | LayerKind::Zram | LayerKind::SimulatedDrive)
    };
    let is_unseen = |kind| kind == LayerKind::Fuse || is_memory(kind) || wording::is_beyond_sight(kind);
    match () {
        () if kinds().any(is_remote) => Some(false),
        () if kinds().next().is_none() || kinds().any(is_unseen) => None,
        () => Some(true),
    }
}

/// Returns the sum of the figures of all complete hosts, or with `ok` false of all incomplete ones; `None` if
/// there are none.
fn total(answers: &[Answer<'_>], ok: bool) -> Option<Sides> {
    let measured = || answers.iter().filter(|answer| answer.host.ok == ok && answer.outcome.is_some());
    let whole = together(measured().filter_map(|answer| answer.outcome.as_deref()))?;
    let mut side: Option<StorageSide> = None;
    let mut unknown = None;
    for answer in measured() {
        match (answer.host.total.as_ref().and_then(|of| of.storage.as_ref()), side.take()) {
            (Some(of_host), Some(all)) => side = Some(storage::beside(all, of_host)),
            (Some(of_host), None) => side = Some(of_host.clone()),
            (None, all) => {
                side = all;
                unknown.get_or_insert_with(|| format!("it is not known of {}", answer.host.name));
            }
        }
    }
    if let Some(side) = &mut side {
        // Device names are those of one host, and have no meaning for the total.
        side.devices.clear();
        side.above.clear();
        side.attribution = None;
    }
    let hosts: Vec<&FleetHost> = measured().map(|answer| &answer.host).collect();
    let storage = match (side, unknown.or_else(|| machines::shared_device(&hosts))) {
        (Some(side), None) => Ok(side),
        (_, why) => Err(why.unwrap_or_else(|| "nothing was measured".to_owned())),
    };
    let mut total = plumb_trial::sides(&whole, storage, None);
    sum_rates(&mut total, &measured().filter_map(|answer| answer.host.total.as_ref()).collect::<Vec<_>>());
    total.cpu = measured().try_fold(CpuSeconds::default(), |sum, answer| {
        let of = answer.host.total.as_ref()?.cpu?;
        Some(CpuSeconds { user: sum.user + of.user, system: sum.system + of.system })
    });
    total.cpu_unknown_because = total.cpu.is_none().then(|| "it is not known for every host".to_owned());
    total.dirty_bytes_after = machines::dirty_bytes_after(&hosts);
    Some(total)
}

/// Replaces the rates of a total by the sums of the hosts' rates, each over its own run time. Hosts may end
/// at different times, as with a fixed number of operations; the total divided by the longest time would not
/// be the rate at any moment.
fn sum_rates(total: &mut Sides, hosts: &[&Sides]) {
    let sum = |of: fn(&Sides) -> f64| hosts.iter().map(|host| of(host)).sum::<f64>();
    total.application.iops = sum(|of| of.application.iops);
    total.application.bytes_per_second = sum(|of| of.application.bytes_per_second);
    total.application.in_flight_mean =
        hosts.iter().try_fold(0.0, |sum, of| Some(sum + of.application.in_flight_mean?));
    (total.read.iops, total.read.bytes_per_second) =
        (sum(|of| of.read.iops), sum(|of| of.read.bytes_per_second));
    (total.write.iops, total.write.bytes_per_second) =
        (sum(|of| of.write.iops), sum(|of| of.write.bytes_per_second));
    (total.trim.iops, total.trim.bytes_per_second) =
        (sum(|of| of.trim.iops), sum(|of| of.trim.bytes_per_second));
    total.sync.iops = sum(|of| of.sync.iops);
}

/// Explains the total rates if the hosts did not end together.
fn explain_rates(document: &FleetDocument) -> Option<String> {
    let (first, last) = document.first_done.zip(document.last_done)?;
    let is_apart = document.measured().is_some() && last > first * (1.0 + APART);
    is_apart.then(|| {
        format!(
            "Total rates are the sums of the hosts' rates, each over the time that the host ran: the first \
             was done after {}, the last after {}.",
            duration(first),
            duration(last)
        )
    })
}

/// Combines the outcomes of simultaneous loads on several hosts; `None` if there are none.
pub fn together<'a>(outcomes: impl Iterator<Item = &'a LoadOutcome>) -> Option<LoadOutcome> {
    let mut outcomes = outcomes.peekable();
    outcomes.peek()?;
    Some(LoadOutcome::together(outcomes))
}

/// Returns the document of the answers, without command, environment and scale, which the caller adds. Moves
/// the hosts' reports into it except for their names, as their documents are large.
pub fn document(answers: &mut [Answer<'_>]) -> FleetDocument {
    let [total, unfinished] = [true, false].map(|ok| total(answers, ok));
    let take = |answer: &mut Answer<'_>| {
        let name = answer.host.name.clone();
        std::mem::replace(&mut answer.host, FleetHost { name, ..FleetHost::default() })
    };
    let hosts: Vec<FleetHost> = answers.iter_mut().map(take).collect();
    let done = || hosts.iter().filter_map(|host| host.done_after).filter(|seconds| seconds.is_finite());
    let mut document = FleetDocument {
        schema: FleetDocument::SCHEMA.to_owned(),
        partial: hosts.iter().any(|host| !host.ok),
        total,
        unfinished,
        first_done: done().min_by(f64::total_cmp),
        last_done: done().max_by(f64::total_cmp),
        ..FleetDocument::default()
    };
    document.incomplete_because = incomplete(&hosts);
    let jumped = answers.iter().filter(|answer| answer.jumped).map(|answer| {
        format!(
            "{}: its clock jumped during the run; the clock error covers the offsets before and after",
            answer.host.name
        )
    });
    document.notes.extend(jumped);
    let explanation = explain_rates(&document);
    document.notes.extend(explanation);
    document.hosts = hosts;
    document
}

/// Returns the incomplete hosts, grouped by reason; `None` if all are complete.
fn incomplete(hosts: &[FleetHost]) -> Option<String> {
    let mut reasons: Vec<&str> = Vec::new();
    let mut names: HashMap<&str, Vec<&str>> = HashMap::new();
    for host in hosts.iter().filter(|host| !host.ok) {
        let because = host.because.as_deref().unwrap_or("no reason is known");
        let alike = names.entry(because).or_insert_with(|| {
            reasons.push(because);
            Vec::new()
        });
        alike.push(&host.name);
    }
    let told = reasons.iter().map(|because| format!("{}: {because}", names[because].join(", ")));
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Returns the findings of each host, with the host's name.
pub fn findings(answers: &[Answer<'_>]) -> Vec<(String, Finding)> {
    let of = |answer: &Answer<'_>| {
        let name = answer.host.name.clone();
        answer.findings.iter().map(move |finding| (name.clone(), finding.clone())).collect::<Vec<_>>()
    };
    answers.iter().flat_map(of).collect()
}

/// Returns a step of a scaling series; `first` is its first step.
pub fn scale_step(answers: &[Answer<'_>], first: Option<&ScaleStep>) -> ScaleStep {
    let whole = || answers.iter().filter(|answer| answer.host.ok);
    // Data moved by lost hosts belongs to none of the complete hosts' shares.
    let sum = |of: fn(&Sides) -> f64| {
        let totals = whole().filter_map(|answer| answer.host.total.as_ref());
        // The sum of no elements would be -0.0.
        totals.map(of).fold(0.0, |sum, one| sum + one)
    };
    let mut step = ScaleStep {
        hosts: answers.len() as u64,
        measured: whole().count() as u64,
        iops: sum(|total| total.application.iops),
        bytes_per_second: sum(|total| total.application.bytes_per_second),
        efficiency: None,
    };
    let each = |step: &ScaleStep| {
        (step.measured > 0).then(|| step.iops / step.measured as f64).filter(|each| *each > 0.0)
    };
    let base = each(first.unwrap_or(&step));
    step.efficiency = each(&step).zip(base).map(|(each, base)| each / base);
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_whose_findings_cannot_be_read_is_not_whole() {
        let read = |severity: &str| {
            let mut answer =
                Answer { host: FleetHost { ok: true, ..FleetHost::default() }, ..Answer::default() };
            let finding = serde_json::json!({"id": "x", "severity": severity, "sentence": "s", "evidence": [], "remedy": ""});
            answer.of_command(serde_json::json!({"paths": [{"findings": [finding]}]}));
            (answer.host.ok, answer.findings.len(), answer.host.because.is_some())
        };
        assert_eq!((read("danger"), read("critical")), ((true, 1, false), (false, 0, true)));
    }

    #[test]
    fn memory_is_no_device_of_the_host() {
        assert_eq!(is_local(&[LayerKind::FileSystem, LayerKind::ScsiDisk]), Some(true));
        assert_eq!(is_local(&[LayerKind::FileSystem, LayerKind::Nbd]), Some(false));
        for kind in [LayerKind::Tmpfs, LayerKind::Ram, LayerKind::Zram, LayerKind::SimulatedDrive] {
            assert_eq!(is_local(&[LayerKind::PageCache, kind]), None, "{kind:?}");
        }
    }

    #[test]
    fn a_step_in_which_nobody_took_part_has_no_negative_rate() {
        assert!(scale_step(&[], None).iops.is_sign_positive());
    }
}

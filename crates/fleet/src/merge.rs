//! One document of what the hosts answered. Distributions are added, so percentiles of all hosts are those of all operations.

use plumb_block::Nanos;
use plumb_load::LoadOutcome;
use plumb_measure::{StorageSide, storage};
use plumb_path::{Finding, LayerKind, Severity, Survey, WritePath};
use plumb_report::document::fleet::{FleetDocument, FleetHost, ScaleStep};
use plumb_report::document::{CpuSeconds, Sides};
use plumb_report::{RunDocument, wording};
use serde_json::Value;

use crate::controller::{Controller, HostNow};

/// Counts of one host that are larger are not added to those of others.
const MOST: u64 = 1 << 53;

/// What a host answered.
#[derive(Debug, Default)]
pub struct Answer {
    /// What is told of it.
    pub host: FleetHost,
    /// What it found.
    pub findings: Vec<Finding>,
    /// What its load measured.
    pub outcome: Option<LoadOutcome>,
    storage: Option<StorageSide>,
    cpu: Option<CpuSeconds>,
}

/// What each host that had a task answered, in the order of the hosts. What their loads measured is taken out of the controller: with
/// many hosts it is large.
pub fn answers(controller: &mut Controller) -> Vec<Answer> {
    let measured = controller.take_measured();
    let with_task = controller.hosts().zip(measured).filter(|(host, _)| host.has_task);
    with_task.map(|(host, outcome)| answer(&host, outcome)).collect()
}

fn answer(now: &HostNow<'_>, outcome: Option<LoadOutcome>) -> Answer {
    let result = now.result;
    let exit = result.map(|result| result.exit);
    // A finding is an answer as good as any.
    let ok = matches!(exit, Some(0 | 1));
    let failed = || match exit {
        Some(exit) if !ok => Some(format!("plumb ended there with exit code {exit}")),
        Some(_) => None,
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
        ..FleetHost::default()
    };
    let mut answer = Answer { host, outcome, ..Answer::default() };
    match result.and_then(|result| result.document.as_deref()) {
        Some(document) if answer.outcome.is_some() => answer.of_load(document),
        Some(document) => answer.of_command(document),
        None => {}
    }
    if answer.host.total.is_none() {
        let why = "its document did not arrive".to_owned();
        answer.host.total =
            answer.outcome.as_ref().map(|outcome| plumb_trial::sides(outcome, Err(why), None));
    }
    answer
}

impl Answer {
    /// Takes in the document of a load.
    fn of_load(&mut self, document: &str) {
        let Ok(document) = RunDocument::from_json(document) else { return };
        self.host.local = local(&document.all_paths());
        self.host.level = Some(document.level);
        self.host.headline = Some(document.headline);
        self.storage = document.total.storage.clone().filter(is_addable);
        self.cpu = document.total.cpu;
        self.host.total = Some(document.total);
        self.findings = document.verdicts;
    }

    /// Takes in the document of another command.
    fn of_command(&mut self, document: &str) {
        let Ok(document) = serde_json::from_str::<Value>(document) else { return };
        let findings = |of: &Value| -> Vec<Finding> {
            let each = of.as_array().into_iter().flatten();
            each.filter_map(|one| serde_json::from_value(one.clone()).ok()).collect()
        };
        let nested =
            ["paths", "devices"].iter().flat_map(|name| document[*name].as_array().into_iter().flatten());
        self.findings = nested
            .flat_map(|one| findings(&one["findings"]))
            .chain(findings(&document["verdicts"]))
            .collect();
        let worst = self.findings.iter().map(|finding| finding.severity).max();
        self.host.level = Some(worst.map_or("none", wording::severity).to_owned());
        self.host.headline = headline(&document, &self.findings);
        self.host.document = Some(document);
    }
}

/// The result of a host in one sentence.
fn headline(document: &Value, findings: &[Finding]) -> Option<String> {
    if let Some(headline) = document["headline"].as_str() {
        return Some(headline.to_owned());
    }
    let worst = findings.iter().filter(|finding| finding.severity > Severity::Info);
    if let Some(worst) = worst.max_by_key(|finding| finding.severity) {
        return Some(worst.sentence.clone());
    }
    if document["schema"] == Survey::SCHEMA {
        return Some(document["paths"][0]["durable_at"]["sentence"].as_str()?.to_owned());
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

/// Whether counts can be added to those of others.
fn is_addable(side: &StorageSide) -> bool {
    let counts =
        [side.reads, side.writes, side.read_bytes, side.write_bytes, side.merges, side.flushes.unwrap_or(0)];
    counts.into_iter().all(|count| count < MOST)
}

/// Whether all that is beneath these paths is the host's own; `None` where that cannot be seen.
fn local(paths: &[&WritePath]) -> Option<bool> {
    let kinds = || paths.iter().flat_map(|path| path.layers.iter().map(|layer| layer.kind));
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
    let is_unseen = |kind| {
        matches!(kind, LayerKind::Fuse | LayerKind::Hypervisor | LayerKind::Controller | LayerKind::Unknown)
    };
    match () {
        () if kinds().any(is_remote) => Some(false),
        () if kinds().next().is_none() || kinds().any(is_unseen) => None,
        () => Some(true),
    }
}

/// What hosts measured together; `None` if none has measured anything.
pub fn total(answers: &[Answer]) -> Option<Sides> {
    let whole = together(answers.iter().filter_map(|answer| answer.outcome.as_ref()))?;
    let mut side: Option<StorageSide> = None;
    let mut unknown = None;
    for answer in answers.iter().filter(|answer| answer.outcome.is_some()) {
        match (&answer.storage, side.take()) {
            (Some(of_host), Some(all)) => side = Some(storage::beside(all, of_host)),
            (Some(of_host), None) => side = Some(of_host.clone()),
            (None, all) => {
                side = all;
                unknown.get_or_insert_with(|| format!("it is not known of {}", answer.host.name));
            }
        }
    }
    if let Some(side) = &mut side {
        // Names of devices are those of each host, and mean nothing together.
        side.devices.clear();
        side.above.clear();
        side.attribution = None;
    }
    let storage = match (side, unknown) {
        (Some(side), None) => Ok(side),
        (_, why) => Err(why.unwrap_or_else(|| "nothing was measured".to_owned())),
    };
    let mut total = plumb_trial::sides(&whole, storage, None);
    let of_host = |answer: &Answer| answer.cpu.filter(|cpu| cpu.user.is_finite() && cpu.system.is_finite());
    total.cpu = answers.iter().filter(|answer| answer.outcome.is_some()).try_fold(
        CpuSeconds::default(),
        |sum, answer| {
            let of = of_host(answer)?;
            Some(CpuSeconds { user: sum.user + of.user, system: sum.system + of.system })
        },
    );
    total.cpu_unknown_because = total.cpu.is_none().then(|| "it is not known of each host".to_owned());
    Some(total)
}

/// What ran at the same time on several hosts; `None` of none.
pub fn together<'a>(outcomes: impl Iterator<Item = &'a LoadOutcome>) -> Option<LoadOutcome> {
    let mut outcomes = outcomes.peekable();
    outcomes.peek()?;
    Some(LoadOutcome::together(outcomes))
}

/// The document of the answers, without what only the caller knows: command, environment, scale.
pub fn document(answers: &[Answer]) -> FleetDocument {
    let hosts: Vec<FleetHost> = answers.iter().map(|answer| answer.host.clone()).collect();
    let done = || hosts.iter().filter_map(|host| host.done_after).filter(|seconds| seconds.is_finite());
    let mut document = FleetDocument {
        schema: FleetDocument::SCHEMA.to_owned(),
        partial: hosts.iter().any(|host| !host.ok),
        total: total(answers),
        first_done: done().min_by(f64::total_cmp),
        last_done: done().max_by(f64::total_cmp),
        ..FleetDocument::default()
    };
    let first = hosts.iter().find(|host| !host.ok);
    document.incomplete_because = first
        .map(|host| format!("{}: {}", host.name, host.because.as_deref().unwrap_or("no reason is known")));
    document.hosts = hosts;
    document
}

/// What each host found, with its name.
pub fn findings(answers: &[Answer]) -> Vec<(String, Finding)> {
    let of = |answer: &Answer| {
        let name = answer.host.name.clone();
        answer.findings.iter().map(move |finding| (name.clone(), finding.clone())).collect::<Vec<_>>()
    };
    answers.iter().flat_map(of).collect()
}

/// A step of a row of loads on more and more hosts; `first` is the first step.
pub fn scale_step(answers: &[Answer], first: Option<&ScaleStep>) -> ScaleStep {
    let application = total(answers).map(|total| total.application).unwrap_or_default();
    let measured = answers.iter().filter(|answer| answer.host.ok).count() as u64;
    let mut step = ScaleStep {
        hosts: answers.len() as u64,
        measured,
        iops: application.iops,
        bytes_per_second: application.bytes_per_second,
        efficiency: None,
    };
    let each = |step: &ScaleStep| {
        (step.measured > 0).then(|| step.iops / step.measured as f64).filter(|each| *each > 0.0)
    };
    let base = each(first.unwrap_or(&step));
    step.efficiency = each(&step).zip(base).map(|(each, base)| each / base);
    step
}

//! Runs, fleets and observations as Prometheus metrics. All histograms have the bounds of [`Buckets`].

use plumb_measure::{Buckets, Latency};
use plumb_path::Survey;
use plumb_path::exposure::ObservedExposure;
use plumb_path::metrics::Metrics;

use crate::document::fleet::{FleetDisk, FleetHost};
use crate::document::live::LiveObservation;
use crate::document::{
    DirectionResult, FleetDocument, ObservationDocument, Part, RunDocument, RunRecording, Sides,
    TargetRecording, Transactions,
};
use crate::exposure;
use crate::levels::{self, FsyncState};
use crate::sentences;

/// Label for the method of durable writes.
const METHOD: &str = "method";

/// Returns the metrics of a recording. The caller writes them to a temporary file and renames it.
pub fn prometheus(recording: &RunRecording) -> String {
    let document = &recording.document;
    let mut out = Metrics::default();
    head(&mut out, document);
    let (methods, loads): (Vec<MeasuredSeries<'_>>, Vec<MeasuredSeries<'_>>) = measured(document);
    durable_writes(&mut out, recording, &methods);
    figures(&mut out, "plumb_load", &loads);
    histograms(&mut out, "plumb_load", &recording.targets, &loads);
    document.transactions.iter().for_each(|done| transactions(&mut out, done));
    out.into_text()
}

/// Returns the findings of a survey, and for each path whether synced data is durable.
pub(crate) fn survey(survey: &Survey) -> String {
    let mut out = Metrics::default();
    let durable = survey.paths.iter().filter_map(|path| match levels::synced(path) {
        FsyncState::Durable(_) => Some(([("target", &*path.target)], 1.0)),
        FsyncState::Lost => Some(([("target", &*path.target)], 0.0)),
        FsyncState::NoWrites | FsyncState::Unknown => None,
    });
    let help = "Whether synced data is durable: 1 yes, 0 no. What is not known has no sample.";
    out.family("plumb_survey_durable", help, durable);
    let exposed: Vec<_> = survey
        .paths
        .iter()
        .filter_map(|path| Some((path.target.as_str(), path.exposure.as_ref()?)))
        .collect();
    exposure::metrics(&mut out, &exposed);
    let findings: Vec<_> = survey.paths.iter().flat_map(|path| path.findings.iter().cloned()).collect();
    out.findings("plumb_survey", &[], &findings);
    out.into_text()
}

/// Returns the loss that a power cut would cause, from the last readings of an observation; `None` without
/// readings.
pub(crate) fn observation(document: &ObservationDocument) -> Option<String> {
    let mut out = Metrics::default();
    exposures(&mut out, &document.exposures);
    (!document.exposures.is_empty()).then(|| out.into_text())
}

fn exposures(out: &mut Metrics, watched: &[ObservedExposure]) {
    let exposed: Vec<_> = watched.iter().map(|of| (of.target.as_str(), &of.now)).collect();
    exposure::metrics(out, &exposed);
    let peaks = watched.iter().map(|of| ([("target", &*of.target)], of.bytes_max_peak as f64));
    let help = "The most that was counted at once while it was observed.";
    out.known("plumb_exposure_bytes_max_peak", help, peaks);
}

/// Returns the metrics of a running observation: `plumb_observe_...`, and `plumb_exposure_...` if that is
/// monitored.
pub fn live_observation(seen: &LiveObservation) -> String {
    let mut out = Metrics::default();
    for respect in &seen.times {
        let name = format!("plumb_observe_{}_duration_seconds", respect.name);
        let named = respect.names.iter().flat_map(|named| {
            let used = named.times.iter().filter(|(_, buckets)| buckets.count() > 0);
            used.map(move |(time, buckets)| (&named.labels, time, buckets))
        });
        let help = format!("Time of syncs, and in queues and at devices, {}.", respect.help);
        out.each(&name, "histogram", &help, named, |out, (labels, time, buckets)| {
            let mut all: Vec<(&str, &str)> =
                labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
            all.push(("time", time));
            put_buckets(out, &name, &all, buckets);
        });
    }
    // Written even without samples, so that an alert on events that have not happened is not an error.
    let failed = seen.lost_writes.iter().map(|of| (of.labels(), of.failures as f64));
    let help = "Writes that failed after the page cache had taken them.";
    out.family("plumb_observe_writeback_failures_total", help, failed);
    let unreported = seen.lost_writes.iter().map(|of| (of.labels(), of.files_unreported as f64));
    let help = "Files with such a failure that no program was told of since.";
    out.family("plumb_observe_writeback_files_unreported", help, unreported);
    let mut own = |name, help, value| out.family(name, help, [([], value)]);
    own("plumb_observe_events_total", "Events of the kernel that were read.", seen.events as f64);
    let help = "Events that were lost since they came too fast.";
    own("plumb_observe_events_lost_total", help, seen.events_lost as f64);
    own("plumb_observe_cpu_seconds_total", "Processor time that observing took.", seen.cpu_seconds);
    exposures(&mut out, &seen.exposures);
    out.into_text()
}

/// Returns the metrics of many hosts: `plumb_load_...` for each host, and `plumb_fleet_...` for all together,
/// so that a sum over hosts counts nothing twice. `kept` are the distributions of the hosts.
pub(crate) fn fleet(document: &FleetDocument, kept: &[TargetRecording]) -> String {
    let mut out = Metrics::default();
    let info = [("command", document.command.as_str()), ("version", &document.environment.plumb)];
    out.family("plumb_fleet_info", "Command given to the hosts, and version of plumb.", [(info, 1.0)]);
    let help = "1 if every host answered with a complete result, 0 otherwise.";
    out.family("plumb_fleet_complete", help, [([], f64::from(!document.partial))]);
    let of_hosts = |value: fn(&FleetHost) -> Option<f64>| {
        document.hosts.iter().filter_map(move |host| Some(([("host", &*host.name)], value(host)?)))
    };
    let help = "Whether a host did all that it was asked for.";
    out.family("plumb_fleet_host_ok", help, of_hosts(|host| Some(f64::from(host.ok))));
    let help = "How late the load of a host started.";
    out.known("plumb_fleet_start_late_seconds", help, of_hosts(|host| host.start_late));
    let help = "The most that the offset of a clock may be wrong.";
    out.known("plumb_fleet_clock_error_seconds", help, of_hosts(|host| host.clock_error));
    out.findings("plumb_fleet", &[], &document.verdicts);
    states(&mut out, document);
    let total = document.measured().map(|sides| MeasuredSeries::alone(0, sides, Vec::new()));
    let total: Vec<_> = total.into_iter().collect();
    let hosts = document.hosts.iter().enumerate().filter_map(|(index, host)| {
        Some(MeasuredSeries::alone(index, host.total.as_ref()?, vec![("host", host.name.clone())]))
    });
    let hosts: Vec<_> = hosts.collect();
    let counted = document.hosts.iter().zip(kept).filter(|(host, _)| document.counts(host));
    let together = TargetRecording::together(counted.map(|(_, kept)| kept));
    let kept_together = std::slice::from_ref(&together);
    for (family, measured, kept) in [("plumb_fleet", total, kept_together), ("plumb_load", hosts, kept)] {
        figures(&mut out, family, &measured);
        latencies(&mut out, family, &measured);
        histograms(&mut out, family, kept, &measured);
    }
    out.into_text()
}

/// Writes the write caches of the hosts, named as by `plumb policy show --prometheus`.
fn states(out: &mut Metrics, document: &FleetDocument) {
    let known = document.hosts.iter().flat_map(|host| host.disks().map(move |disk| (host, disk)));
    let states = known.flat_map(|(host, disk)| {
        FleetDisk::STATES.into_iter().map(move |state| {
            let labels =
                [("host", &*host.name), ("disk", disk.name), ("identity", disk.identity), ("state", state)];
            (labels, f64::from(state == disk.state))
        })
    });
    let help = "The state of the write cache: 1 for the one that it is in.";
    out.known("plumb_policy_state", help, states);
}

/// Measured results, with their index in the document and the labels of their metrics.
struct MeasuredSeries<'a> {
    index: usize,
    sides: &'a Sides,
    labels: Vec<(&'static str, String)>,
    /// Labels of the storage side, which several targets may share; `None` if another series has it.
    storage_labels: Option<Vec<(&'static str, String)>>,
}

impl<'m> MeasuredSeries<'m> {
    /// Creates a series with a storage side of its own.
    fn alone(index: usize, sides: &'m Sides, labels: Vec<(&'static str, String)>) -> Self {
        Self { index, sides, storage_labels: Some(labels.clone()), labels }
    }

    /// Returns the labels of one side.
    fn side_labels<'a>(&'a self, side: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
        let own = if side == "storage" { self.storage_labels.as_ref()? } else { &self.labels };
        let own = own.iter().map(|(name, value)| (*name, value.as_str()));
        Some(own.chain([("side", side)]).collect())
    }

    fn labels<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let own = self.labels.iter().map(|(name, value)| (*name, value.as_str()));
        own.chain(more.iter().copied()).collect()
    }
}

/// Returns the targets that measure the cost of a durable write, and the others. All phases of a check have
/// one target, so their names become labels.
fn measured(document: &RunDocument) -> (Vec<MeasuredSeries<'_>>, Vec<MeasuredSeries<'_>>) {
    let names = document.labels();
    let all = names.iter().zip(&document.targets).enumerate();
    let ran = all.filter(|(_, (_, target))| target.failed_because.is_none());
    ran.map(|(index, (label, target))| {
        let what = if sentences::is_method(document, target) { METHOD } else { "load" };
        let labels = |label: String| match document.is_check() {
            true => vec![("target", target.name.clone()), (what, label)],
            false => vec![("target", label)],
        };
        let storage_labels = document.storage_label(index, &names).map(labels);
        MeasuredSeries { index, sides: &target.sides, labels: labels(label.clone()), storage_labels }
    })
    .partition(|measured| measured.labels.iter().any(|(name, _)| *name == METHOD))
}

fn head(out: &mut Metrics, document: &RunDocument) {
    let environment = &document.environment;
    let names = document.names().join(", ");
    let (family, of_run, engine) = match document.is_check() {
        true => ("plumb_check", vec![("target", names.as_str())], environment.engine.as_deref()),
        false => ("plumb_load", Vec::new(), None),
    };
    let kernel = environment.kernel.as_deref().unwrap_or("");
    let mut info = of_run.clone();
    info.extend([("version", environment.plumb.as_str()), ("kernel", kernel)]);
    info.extend(engine.map(|engine| ("engine", engine)));
    let mut one = |name: &str, help, labels: &[(&str, &str)], value| {
        out.family(&format!("{family}_{name}"), help, [(labels, value)]);
    };
    one("info", "Command that measured, and version of plumb.", &info, 1.0);
    one("complete", "Whether the run came to its end.", &of_run, f64::from(document.complete));
    one("window_seconds", "How long was measured.", &of_run, document.duration);
    out.findings(family, &of_run, &document.verdicts);
}

fn durable_writes(out: &mut Metrics, recording: &RunRecording, methods: &[MeasuredSeries<'_>]) {
    let of_methods = |of: fn(&Sides) -> Option<u64>| {
        methods.iter().filter_map(move |method| Some((method.labels(&[]), of(method.sides)? as f64)))
    };
    let operations = of_methods(|sides| Some(sides.application.operations));
    let help = "Durable writes in the window of the method.";
    out.known("plumb_durable_write_operations", help, operations);
    let flushes = of_methods(|sides| sides.storage.as_ref()?.flushes);
    let help = "Flushes at the devices in the window of the method.";
    out.known("plumb_durable_write_device_flushes", help, flushes);
    let name = "plumb_durable_write_duration_seconds";
    let kept =
        methods.iter().filter_map(|method| Some((method, recording.histogram(method.index, Part::Durable)?)));
    let help = "Time until a write was durable: write and sync together.";
    out.each(name, "histogram", help, kept, |out, (method, histogram)| {
        put_buckets(out, name, &method.labels(&[]), &histogram.into());
    });
}

/// Figure of each target, for one side or both.
struct Figure {
    /// Suffix of the family's name.
    name: &'static str,
    help: &'static str,
    /// Function that returns the sides with their values. Unknown values are left out.
    of: fn(&Sides) -> Vec<(&'static str, f64)>,
}

/// Returns a value of the application side, if that side was observed.
fn seen(sides: &Sides, value: f64) -> Option<(&'static str, f64)> {
    sides.is_application_seen().then_some(("application", value))
}

const FIGURES: [Figure; 6] = [
    Figure {
        name: "operations_per_second",
        help: "Operations per second of a target, seen from each side.",
        of: |sides| {
            let storage = sides.storage.iter().map(|storage| ("storage", storage.iops));
            storage.chain(seen(sides, sides.application.iops)).collect()
        },
    },
    Figure {
        name: "bytes_per_second",
        help: "Bytes per second of a target, seen from each side.",
        of: |sides| {
            let storage = sides.storage.iter().map(|storage| ("storage", storage.bytes_per_second));
            storage.chain(seen(sides, sides.application.bytes_per_second)).collect()
        },
    },
    Figure {
        name: "flushes",
        help: "Flushes in the window: asked for by the load, and handed to the devices.",
        of: |sides| {
            let storage = sides.storage.iter().filter_map(|storage| storage.flushes);
            storage
                .map(|flushes| ("storage", flushes as f64))
                .chain(seen(sides, sides.sync.ios as f64).filter(|_| !sides.sync.is_uncounted))
                .collect()
        },
    },
    Figure {
        name: "discards",
        help: "Discards in the window: asked for by the load, and completed by the devices.",
        of: |sides| {
            let storage = sides.discards().map(|discards| ("storage", discards.count as f64));
            let trims = Some(&sides.trim).filter(|trim| trim.is_used());
            storage.into_iter().chain(trims.map(|trim| ("application", trim.ios as f64))).collect()
        },
    },
    Figure {
        name: "in_flight",
        help: "Mean requests in flight.",
        of: |sides| sides.application.in_flight_mean.and_then(|mean| seen(sides, mean)).into_iter().collect(),
    },
    Figure {
        name: "wrong_blocks",
        help: "Blocks that do not hold what was written, where that was verified.",
        of: |sides| sides.verified.iter().map(|verified| ("application", verified.wrong() as f64)).collect(),
    },
];

impl Figure {
    fn put(&self, out: &mut Metrics, family: &str, loads: &[MeasuredSeries<'_>]) {
        let sides = loads.iter().flat_map(|load| {
            let sides = (self.of)(load.sides).into_iter();
            sides.filter_map(move |(side, value)| Some((load.side_labels(side)?, value)))
        });
        let known = sides.filter(|(_, value)| value.is_finite());
        out.known(&format!("{family}_{}", self.name), self.help, known);
    }
}

/// Writes the figures of `loads`, and their errors.
fn figures(out: &mut Metrics, family: &str, loads: &[MeasuredSeries<'_>]) {
    for figure in FIGURES {
        figure.put(out, family, loads);
    }
    let errors = used(loads)
        .map(|(load, (direction, result))| (load.labels(&[("direction", direction)]), result.errors as f64));
    out.known(&format!("{family}_errors"), "Operations that failed.", errors);
}

/// Returns the results of each direction of `loads` with operations.
fn used<'a>(
    loads: &'a [MeasuredSeries<'a>],
) -> impl Iterator<Item = (&'a MeasuredSeries<'a>, (&'static str, &'a DirectionResult))> {
    loads.iter().flat_map(|load| load.sides.used().into_iter().map(move |used| (load, used)))
}

/// Writes the transactions of an application and their calls.
fn transactions(out: &mut Metrics, done: &Transactions) {
    let mut one = |name, help, value: f64| out.family(name, help, [([], value)]);
    one("plumb_load_transactions", "Transactions in the window.", done.count as f64);
    one("plumb_load_transactions_per_second", "Transactions per second.", done.per_second);
    done.syncs_each.iter().for_each(|syncs| {
        one("plumb_load_syncs_per_transaction", "Syncs for each transaction.", *syncs);
    });
    let calls = done.calls.iter().map(|call| (call.name.as_str(), call.latency));
    let timed = done.latency.map(|latency| ("transaction", latency)).into_iter().chain(calls);
    let name = "plumb_load_transaction_latency_seconds";
    let help = "Time of the transactions and of the calls that they are made of.";
    out.each(name, "summary", help, timed, |out, (operation, latency)| {
        put_summary(out, name, &[("operation", operation)], &latency);
    });
}

/// Help text for the times of operations.
const TIMES: &str = "Latency of operations, with a schedule since the intended start; labels that end in -service-time have the time without \
                     that wait.";
/// Suffix of the label for service times, written in addition to times since the intended start.
const SERVICE_TIME: &str = "-service-time";

/// Writes percentiles if there are no distributions.
fn latencies(out: &mut Metrics, family: &str, loads: &[MeasuredSeries<'_>]) {
    let name = format!("{family}_latency_seconds");
    let known = used(loads).flat_map(|(load, (operation, result))| {
        let service = result.service_time().map(|time| (load, format!("{operation}{SERVICE_TIME}"), time));
        let latency = result.operation_latency();
        latency.map(|latency| (load, operation.to_owned(), latency)).into_iter().chain(service)
    });
    out.each(&name, "summary", TIMES, known, |out, (load, operation, latency)| {
        put_summary(out, &name, &load.labels(&[("operation", &operation)]), &latency);
    });
}

/// Writes one summary: the known percentiles, the sum and the count.
fn put_summary(out: &mut Metrics, name: &str, labels: &[(&str, &str)], latency: &Latency) {
    for (quantile, value) in [("0.5", latency.p50), ("0.99", latency.p99), ("0.999", latency.p999)] {
        if let Some(value) = value {
            out.sample(name, &[labels, &[("quantile", quantile)]].concat(), value);
        }
    }
    let count = latency.count as f64;
    out.sample(&format!("{name}_sum"), labels, latency.mean * count);
    out.sample(&format!("{name}_count"), labels, count);
}

fn histograms(out: &mut Metrics, family: &str, kept: &[TargetRecording], loads: &[MeasuredSeries<'_>]) {
    let name = format!("{family}_duration_seconds");
    let kept = loads.iter().flat_map(|load| {
        let kept = kept.get(load.index);
        let of_part = move |part: Part| {
            let service = kept.and_then(|kept| kept.service_times(part));
            let service = service.map(|times| (load, format!("{}{SERVICE_TIME}", part.name()), times));
            let latencies = kept.and_then(|kept| kept.latencies(part));
            latencies.map(|times| (load, part.name().to_owned(), times)).into_iter().chain(service)
        };
        Part::OPERATIONS.into_iter().flat_map(of_part)
    });
    out.each(&name, "histogram", TIMES, kept, |out, (load, operation, histogram)| {
        put_buckets(out, &name, &load.labels(&[("operation", &operation)]), &histogram.into());
    });
}

fn put_buckets(out: &mut Metrics, name: &str, labels: &[(&str, &str)], buckets: &Buckets) {
    put_histogram(out, name, labels, buckets.cumulative(), buckets.count() as f64, buckets.sum());
}

/// Writes one histogram: its bounds in seconds with the cumulative counts, the total count and the sum.
pub(crate) fn put_histogram(
    out: &mut Metrics,
    name: &str,
    labels: &[(&str, &str)],
    edges: impl Iterator<Item = (f64, u64)>,
    count: f64,
    sum: f64,
) {
    let bucket = |out: &mut Metrics, edge: &str, count: f64| {
        out.sample(&format!("{name}_bucket"), &[labels, &[("le", edge)]].concat(), count);
    };
    edges.for_each(|(edge, seen)| bucket(out, &edge.to_string(), seen as f64));
    bucket(out, "+Inf", count);
    out.sample(&format!("{name}_sum"), labels, sum);
    out.sample(&format!("{name}_count"), labels, count);
}

#[cfg(test)]
mod tests {
    use plumb_block::Nanos;

    use super::*;

    #[test]
    fn buckets_are_cumulative_and_the_last_is_the_count() {
        let mut buckets = Buckets::default();
        for value in [500, 1_500_000, 9_000_000_000] {
            buckets.record(Nanos(value));
        }
        let mut out = Metrics::default();
        put_buckets(&mut out, "x_seconds", &[("target", "a\"b")], &buckets);
        let text = out.into_text();
        for expected in [
            r#"x_seconds_bucket{target="a\"b",le="0.001"} 1"#,
            r#"le="0.002"} 2"#,
            r#"le="8.192"} 2"#,
            r#"le="+Inf"} 3"#,
            r#"x_seconds_count{target="a\"b"} 3"#,
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
    }
}

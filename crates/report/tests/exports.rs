//! Exports, read by the programs for which they are made. Each test is skipped with a message if its program
//! is missing.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::common;
use plumb_block::{Bytes, Nanos};
use plumb_measure::{ApplicationSide, Histogram};
use plumb_report::document::{Part, ScheduleResult, Transactions};
use plumb_report::{Format, Style, Verbosity, render};

fn export(name: &str, format: Format) -> String {
    render(&common::recording(name), format, Style::default()).expect("an export")
}

/// Returns the samples of checks as `format`, and those of loads.
fn exports(format: Format) -> Vec<(String, String)> {
    let checks = common::NAMES.map(|name| (name.to_owned(), export(name, format)));
    let loads = common::LOADS.map(|name| {
        (
            format!("load {name}"),
            render(&common::load_recording(name), format, Style::default()).expect("an export"),
        )
    });
    checks.into_iter().chain(loads).collect()
}

#[test]
fn promtool_accepts_the_metrics() {
    for (name, metrics) in exports(Format::Prometheus) {
        let promtool = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut promtool) = promtool else {
            plumb_testkit::skip("no promtool on this machine (Debian package prometheus)");
            return;
        };
        promtool.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
        let output = promtool.wait_with_output().unwrap();
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && said.trim().is_empty(), "{name}: {said}\n{metrics}");
    }
}

#[test]
fn the_metrics_hold_together() {
    for (name, metrics) in exports(Format::Prometheus) {
        let mut families = std::collections::HashSet::new();
        for line in metrics.lines() {
            if let Some(family) = line.strip_prefix("# TYPE ") {
                assert!(families.insert(family.to_owned()), "{name}: {family} twice");
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(series.ends_with('}') == series.contains('{'), "{name}: {line}");
                assert!(value.parse::<f64>().unwrap().is_finite(), "{name}: {line}");
            }
        }
    }
}

#[test]
fn fio_s_own_script_reads_the_bins() {
    let directory = tempfile::tempdir().unwrap();
    let names = ["virtual-machine", "tmpfs", "denied", "load side-by-side", "load many-writers"];
    for (name, text) in exports(Format::Fio).into_iter().filter(|(name, _)| names.contains(&name.as_str())) {
        let source = directory.path().join("fio.json");
        std::fs::write(&source, text).unwrap();
        let target = directory.path().join(format!("{name}.csv"));
        for validate in [false, true] {
            let mut script = Command::new("fio_jsonplus_clat2csv");
            script.arg(&source).arg(&target).args(validate.then_some("--validate"));
            let Ok(output) = script.output() else {
                plumb_testkit::skip("no fio_jsonplus_clat2csv on this machine (Debian package fio)");
                return;
            };
            let said = format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            assert!(output.status.success() && !said.contains("mismatch"), "{name}: {said}");
        }
    }
}

#[test]
fn json_is_the_document() {
    for name in common::NAMES {
        let recording = common::recording(name);
        let text = export(name, Format::Json);
        assert_eq!(plumb_report::RunDocument::from_json(&text).unwrap(), recording.document, "{name}");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["schema"], "plumb/check/1");
        assert_eq!(value["headline"], recording.document.headline);
    }
}

#[test]
fn csv_names_every_figure_with_its_unit() {
    let text = export("virtual-machine", Format::Csv);
    assert!(text.starts_with("section,name,at_seconds,metric,value,unit\n"));
    for row in [
        "sync,overwrite-fdatasync,,durable_latency_p50,0.0000524,seconds",
        "sync,overwrite-fdatasync,,storage_flushes,52410,flushes",
        "io,read-cached,,storage_iops,0,operations/second",
        "io,write-cached,,dirty_after,996147200,bytes",
    ] {
        assert!(text.contains(row), "{row} is not in\n{text}");
    }
}

#[test]
fn the_csv_of_a_load_holds_its_figures_and_its_time_series() {
    let text = render(&common::load_recording("side-by-side"), Format::Csv, Style::default()).unwrap();
    assert!(text.starts_with("section,name,at_seconds,metric,value,unit\n"));
    for row in [
        "target,/mnt/plain/io.dat,,sync_operations,2700,operations",
        "target,/mnt/plain/io.dat,,storage_flushes,2700,flushes",
        "load,,,cpu_user,1.1,seconds",
        "series,/mnt/tiered/io.dat,0.1,latency_max,0.0003,seconds",
    ] {
        assert!(text.contains(row), "{row} is not in\n{}", &text[..4000]);
    }
    for line in text.lines().filter(|line| !line.contains('"')) {
        assert_eq!(line.split(',').count(), 6, "{line}");
    }
}

#[test]
fn fio_s_readers_find_a_load_s_directions() {
    let text = render(&common::load_recording("many-writers"), Format::Fio, Style::default()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let job = &value["jobs"][0];
    assert_eq!(job["write"]["total_ios"], 40_000);
    assert_eq!(job["job options"]["rw"], "randwrite");
    assert_eq!(job["job options"]["iodepth"], "16");
    assert_eq!(job["sync"]["total_ios"], 40_000);
    assert_eq!(job["read"]["total_ios"], 0);
    assert_eq!(value["jobs"][1]["trim"]["total_ios"], 500);
}

/// A latency with a schedule counts from the intended start in every format. The service time has its own
/// name.
#[test]
fn an_overloaded_schedule_has_one_latency_everywhere() {
    let mut recording = common::load_recording("many-writers");
    let document = &mut recording.document;
    let times = |half: f64| {
        let mut latency = document.total.application.latency.unwrap();
        (latency.p50, latency.p99, latency.max) = (Some(half), Some(2.0 * half), 3.0 * half);
        Some(latency)
    };
    let (service, intended) = (times(341e-6), times(341e-3));
    let sides =
        std::iter::once(&mut document.total).chain(document.targets.iter_mut().map(|of| &mut of.sides));
    for sides in sides {
        (sides.read, sides.trim, sides.sync, sides.durable_latency) = Default::default();
        sides.schedule = Some(ScheduleResult { late_starts: 0, backlog_max: 0.0, unstarted: 0 });
        (sides.application.latency, sides.application.latency_from_intended_start) = (service, intended);
        (sides.write.latency, sides.write.latency_from_intended_start) = (service, intended);
    }
    document.spans.truncate(1);
    plumb_report::verdict::conclude(document, Vec::new());
    let said =
        "since the intended start, waiting included: half of them within 341 ms, 99 of 100 within 682 ms";
    let mut waited = Histogram::new();
    waited.record(Nanos::millis(341));
    recording.targets[0].histograms.insert(Part::WriteIntended, waited);
    let of = |format| render(&recording, format, Style { width: 300, ..Style::default() }).unwrap();
    let (text, csv, metrics) = (of(Format::Terminal), of(Format::Csv), of(Format::Prometheus));
    for text in [&text, &of(Format::Html), &of(Format::Markdown)] {
        assert!(text.contains(said), "{text}");
        assert!(text.contains("service time"), "{text}");
    }
    assert!(of(Format::Markdown).contains("the service alone: 99 of 100 within 682 µs"));
    let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{text}"));
    assert!(row(" application ").contains("341 ms") && row(" service time ").contains("341 µs"), "{text}");
    for row in [
        "load,,,application_latency_p50,0.341,seconds",
        "load,,,application_service_time_p50,0.000341,seconds",
        "load,,,write_latency_p50,0.341,seconds",
        "load,,,write_service_time_p50,0.000341,seconds",
    ] {
        assert!(csv.contains(row), "{row} is not in\n{csv}");
    }
    let sum = |operation: &str| {
        let end = format!("operation=\"{operation}\"}} ");
        let of = |line: &&str| line.starts_with("plumb_load_duration_seconds_sum{") && line.contains(&end);
        metrics.lines().find(of).unwrap_or_else(|| panic!("{operation}: {metrics}"))
    };
    assert!(sum("write").ends_with(" 0.341") && !sum("write-service-time").ends_with(" 0.341"), "{metrics}");
}

/// Discards and transactions are in every export, with the figures of the document.
#[test]
fn discards_are_counted_and_what_a_program_does_unseen_is_not() {
    let mut recording = common::load_recording("side-by-side");
    let document = &mut recording.document;
    let seconds = document.duration;
    let sides =
        std::iter::once(&mut document.total).chain(document.targets.iter_mut().map(|of| &mut of.sides));
    for sides in sides {
        sides.application = ApplicationSide { seconds, ..ApplicationSide::default() };
        (sides.read, sides.write, sides.trim, sides.sync) = Default::default();
        let storage = sides.storage.as_mut().unwrap();
        storage.devices.truncate(1);
        (storage.devices[0].discards, storage.devices[0].discard_bytes) = (600, Bytes::mib(600));
    }
    document.transactions = Some(Transactions {
        count: 647,
        per_second: 322.5,
        syncs_each: None,
        latency: document.total.durable_latency,
        calls: Vec::new(),
    });
    let of = |format| render(&recording, format, Style::default()).unwrap();
    let (csv, metrics) = (of(Format::Csv), of(Format::Prometheus));
    for row in [
        "load,,,transactions,647,transactions",
        "load,,,transactions_per_second,322.5,transactions/second",
        "load,,,storage_discards,600,discards",
        "load,,,storage_discarded,629145600,bytes",
    ] {
        assert!(csv.contains(row), "{row} is not in\n{csv}");
    }
    assert!(!csv.contains("application_operations") && !csv.contains("application_iops"), "{csv}");
    for sample in [
        "plumb_load_transactions 647\n",
        "plumb_load_transactions_per_second 322.5\n",
        "side=\"storage\"} 600\n",
    ] {
        assert!(metrics.contains(sample), "{sample} is not in\n{metrics}");
    }
    assert!(!metrics.contains("side=\"application\"}"), "{metrics}");
    assert!(
        metrics.contains("plumb_load_transaction_latency_seconds_count{operation=\"transaction\"}"),
        "{metrics}"
    );
    // 600 discards of 1 MiB in 60 s.
    assert_eq!(seconds, 60.0);
    let brief = Style { verbosity: Verbosity::Normal, ..Style::default() };
    let brief = render(&recording, Format::Terminal, brief).unwrap();
    for text in [brief, of(Format::Markdown), of(Format::Html)] {
        assert!(text.contains("10 discards/s of 10 MiB/s"), "{text}");
    }
    let table = of(Format::Terminal);
    assert!(table.lines().any(|line| line.contains(" discards ") && line.contains(" 1 MiB")), "{table}");
}

#[test]
fn an_observation_without_exposure_has_no_metrics_and_says_why() {
    let observation = plumb_report::ObservationDocument::default();
    let refused = render(&observation, Format::Prometheus, Style::PLAIN).unwrap_err();
    assert_eq!(refused.failure(), plumb_block::FailureKind::Usage);
    assert!(refused.to_string().contains("was recorded without --exposure"), "{refused}");
}

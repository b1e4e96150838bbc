//! Page in a real browser: it draws without errors, requests nothing, and no name becomes markup.
//!
//! Skipped with a message without Chromium.

use crate::common;
use plumb_block::Nanos;
use plumb_measure::run::TimeseriesRow;
use plumb_report::document::Part;
use plumb_report::{Format, RenderInput, RunRecording, Style, render};
use plumb_testkit::browser::{self, BrowserOutput};

fn page<'a>(of: impl Into<RenderInput<'a>>) -> String {
    render(of, Format::Html, Style::default()).expect("a page")
}

/// Opens `html` in Chromium; prints a skip and returns `None` without it.
fn open(html: &str, name: &str) -> Option<BrowserOutput> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    browser::open(html, name, directory.path())
}

fn title(dom: &str) -> &str {
    let start = dom.find("<title>").map_or(0, |at| at + "<title>".len());
    let end = dom[start..].find("</title>").map_or(start, |at| start + at);
    &dom[start..end]
}

/// Returns the number of charts of a page: one of distributions; for each target with operations rates,
/// throughput and latency, and the latency of its syncs if that was recorded.
fn charts(recording: &RunRecording) -> usize {
    let document = &recording.document;
    let is_method =
        |index: usize| document.job_of(&document.targets[index]).is_some_and(|job| job.method.is_some());
    let methods = (0..recording.targets.len()).any(is_method);
    let kept = |index: usize, part| recording.histogram(index, part).is_some();
    let drawn = |index| match methods {
        true => is_method(index) && kept(index, Part::Durable),
        false => [Part::Read, Part::Write, Part::Trim, Part::Sync, Part::Durable]
            .iter()
            .any(|part| kept(index, *part)),
    };
    let busy =
        recording.targets.iter().filter(|target| target.series.iter().any(|point| point.operations > 0));
    let syncs = (0..recording.targets.len()).filter(|index| !recording.track(*index, Part::Sync).is_empty());
    usize::from((0..recording.targets.len()).any(drawn)) + 3 * busy.count() + syncs.count()
}

#[test]
fn the_page_of_a_proof_asks_for_nothing_and_takes_no_markup_from_names() {
    let mut document = common::proof("large");
    let evil = "</script><img src=x onerror=document.title=1>\u{202e}\"'&";
    document.subject = evil.to_owned();
    document.notes = vec![evil.to_owned()];
    document.environment.argv = vec![evil.to_owned()];
    document.failures[0].words = evil.to_owned();
    document.failures[0].replay = evil.to_owned();
    document.failures[0].minimal.dropped[0].file = Some(evil.to_owned());
    document.failures[0].minimal.timeline.iter_mut().for_each(|item| item.label = evil.to_owned());
    document.profiles[0].name = evil.to_owned();
    let html = page(&document);
    assert!(!html.contains("<img") && !html.contains('\u{202e}'));
    let Some(seen) = open(&html, "proof") else { return };
    assert!(!seen.said.contains("CONSOLE"), "{}", seen.said);
    assert!(seen.dom.contains("data-drawn=\"\""), "the script of the page ran: {}", title(&seen.dom));
}

#[test]
fn lines_of_the_storage_and_of_syncs_are_drawn_and_named() {
    let mut recording = common::load_recording("side-by-side");
    let row = |at: u64, operations| TimeseriesRow {
        at: Nanos::millis(100) * at,
        operations,
        bytes: operations * 4096,
        latency_p50: Some(0.004),
        latency_p99: Some(0.021),
        ..TimeseriesRow::default()
    };
    let rows = |operations: u64| (0..20).map(|at| row(at, operations)).collect::<Vec<_>>();
    for (track, operations) in [(Part::Read, 70), (Part::Write, 30), (Part::Storage, 140), (Part::Sync, 9)] {
        recording.targets[0].tracks.insert(track, rows(operations));
    }
    let html = page(&recording);
    for words in [
        "operations per second: read 700 to 700, write 300 to 300, storage 1,400 to 1,400",
        "latency of a sync: p50 4 ms to 4 ms, p99 21 ms to 21 ms",
        "time of the run",
    ] {
        assert!(html.contains(words), "{words}");
    }
    let Some(seen) = open(&html, "lines") else { return };
    assert!(seen.dom.contains("data-drawn=\"\"") && !seen.said.contains("CONSOLE"), "{}", seen.said);
    assert_eq!(seen.dom.matches("<canvas").count(), charts(&recording));
}

#[test]
fn a_direction_is_not_drawn_beyond_the_window() {
    let mut recording = common::load_recording("side-by-side");
    recording.document.targets[0].sides.application.seconds = 0.92;
    let row = |at: u64| TimeseriesRow {
        at: Nanos::millis(100) * at,
        operations: if at == 9 { 1 } else { 50 },
        ..TimeseriesRow::default()
    };
    recording.targets[0].tracks.insert(Part::Write, (0..10).map(row).collect());
    assert!(page(&recording).contains("operations per second: write 500 to 500"));
}

#[test]
fn a_run_without_operations_has_no_empty_charts_and_transactions_have_their_own() {
    let mut recording = common::load_recording("side-by-side");
    for kept in &mut recording.targets {
        kept.histograms.clear();
        let idle = |row: &mut TimeseriesRow| *row = TimeseriesRow { at: row.at, ..TimeseriesRow::default() };
        kept.series.iter_mut().for_each(idle);
    }
    let html = page(&recording);
    assert!(!html.contains("id=\"series\"") && html.contains("No distribution was kept"), "an empty chart");
    let row = |at| TimeseriesRow { at: Nanos::millis(100) * at, operations: 7, ..TimeseriesRow::default() };
    recording.targets[0].tracks.insert(Part::Transaction, (0..9).map(row).collect());
    assert!(page(&recording).contains("operations per second: transactions 70 to 70"));
}

#[test]
fn a_sync_that_makes_nothing_durable_is_not_called_so() {
    for name in ["tmpfs", "virtual-machine"] {
        let recording = common::recording(name);
        let html = page(&recording);
        let says = |words: &str| html.contains(words);
        assert_eq!(says("The cost of a write and its sync"), name == "tmpfs", "{name}");
        assert_eq!(says("The cost of a durable write"), name != "tmpfs", "{name}");
    }
    let path = common::document("tmpfs").path;
    let mut load = common::load_recording("many-writers");
    for (name, path) in [("durable", None), ("write and sync", path)] {
        load.document.path = path;
        let target = &mut load.document.targets[0];
        target.sides.durable_latency = target.sides.application.latency;
        let html = page(&load);
        assert!(html.contains(&format!(">{name}</th>")), "{name} is the name of the row");
        assert_eq!(html.contains("Until a write is durable"), name == "durable");
        assert_eq!(html.contains(">durable</th>"), name == "durable");
    }
}

#[test]
fn every_rule_is_explained_on_the_page_or_says_how_to_ask() {
    let mut recording = common::recording("tmpfs");
    let mut foreign = recording.document.verdicts[0].clone();
    foreign.id = "a-rule-of-tomorrow".to_owned();
    recording.document.verdicts.push(foreign);
    let html = page(&recording);
    for finding in &recording.document.verdicts {
        let linked = html.contains(&format!("href=\"#rule-{0}\"", finding.id));
        assert_eq!(linked, html.contains(&format!("id=\"rule-{}\"", finding.id)), "{}", finding.id);
        assert!(linked || html.contains(&format!("plumb explain {}", finding.id)), "{}", finding.id);
    }
    assert!(html.contains("plumb explain a-rule-of-tomorrow"));
}

#[test]
fn the_page_says_where_it_was_and_what_was_typed() {
    let mut recording = common::recording("virtual-machine");
    let document = &mut recording.document;
    document.target = "io.dat".to_owned();
    document.environment.directory = Some("/srv/db".to_owned());
    document.environment.argv = ["plumb", "check", "io.dat"].map(str::to_owned).to_vec();
    let html = page(&recording);
    for words in ["<dd>/srv/db/io.dat</dd>", "<dt>Mount</dt>", "plumb check io.dat"] {
        assert!(html.contains(words), "{words}");
    }
    document_named(&mut recording, "sim:ssd");
    assert!(page(&recording).contains("<dd>sim:ssd</dd>"));
}

fn document_named(recording: &mut RunRecording, name: &str) {
    name.clone_into(&mut recording.document.target);
}

/// Opens a page with all sections unfolded, since folded charts are drawn when they are shown.
fn open_unfolded(html: &str, name: &str) -> Option<BrowserOutput> {
    open(&html.replace("<details", "<details open"), name)
}

/// Checks that all charts of a recording are drawn, and that script and names cause no errors.
fn assert_drawn(recording: &RunRecording, seen: &BrowserOutput, name: &str) {
    assert!(seen.dom.contains("data-drawn=\"\""), "{name}: the script did not end: {}", seen.said);
    assert!(!seen.said.contains("CONSOLE") && !seen.dom.contains("<img"), "{name}: {}", seen.said);
    assert_eq!(seen.dom.matches("<canvas").count(), charts(recording), "{name}: a chart is missing");
}

#[test]
fn every_sample_draws_without_an_error() {
    for name in common::NAMES {
        let recording = common::recording(name);
        let Some(seen) = open_unfolded(&page(&recording), name) else { return };
        assert_drawn(&recording, &seen, name);
    }
}

#[test]
fn every_load_draws_without_an_error_and_stays_small() {
    for name in common::LOADS {
        let recording = common::load_recording(name);
        let html = page(&recording);
        assert!(html.len() < 260 * 1024, "{name}: {} bytes", html.len());
        let Some(seen) = open_unfolded(&html, name) else { return };
        assert_drawn(&recording, &seen, name);
    }
}

#[test]
fn a_hostile_name_stays_text() {
    let recording = common::recording("interrupted");
    assert!(recording.document.target.contains("</script><img"), "the sample lost its teeth");
    let html = page(&recording);
    assert!(!html.contains("<img"), "a name became an element");
    let Some(seen) = open(&html, "interrupted") else { return };
    assert!(!seen.dom.contains("<img"), "a name became an element");
    assert!(seen.dom.contains("&lt;/script&gt;&lt;img"), "the name is not shown");
    assert!(seen.dom.contains("data-drawn=\"\"") && !seen.said.contains("CONSOLE"), "{}", seen.said);
}

#[test]
fn a_hostile_name_anywhere_stays_text() {
    let evil = "\"><script>alert(1)</script>'--><!--";
    let mut recording = common::recording("virtual-machine");
    let document = &mut recording.document;
    let path = document.path.as_mut().unwrap();
    for layer in &mut path.layers {
        for evidence in &mut layer.evidence {
            evidence.value = evil.to_owned();
        }
        layer.identity = Some(evil.to_owned());
    }
    path.layers[3].name = evil.to_owned();
    document.verdicts[0].sentence = evil.to_owned();
    document.spans[3].jobs[0].name = evil.to_owned();
    document.environment.host = Some(evil.to_owned());
    let html = page(&recording);
    assert!(!html.contains("<script>alert"), "a name became a script");
    let Some(seen) = open(&html, "evil") else { return };
    assert!(seen.dom.contains("data-drawn=\"\"") && !seen.said.contains("CONSOLE"), "{}", seen.said);
}

#[test]
fn the_page_is_small_and_asks_for_nothing() {
    for name in common::NAMES {
        let html = page(&common::recording(name));
        assert!(html.len() < 260 * 1024, "{name}: {} bytes", html.len());
        assert!(html.contains("default-src 'none'"));
        for attribute in ["src=\"http", "href=\"http", "@import", "url(http", "fetch(", "XMLHttpRequest"] {
            assert!(!html.contains(attribute), "{name}: {attribute}");
        }
    }
}

#[test]
fn a_day_long_run_of_many_phases_stays_small() {
    let mut recording = common::recording("raid-eight-disks");
    let points = recording.targets[0].series.clone();
    let long: Vec<_> = points.iter().cycle().take(864_000).cloned().collect();
    for target in &mut recording.targets {
        target.series.clone_from(&long);
    }
    assert!(page(&recording).len() < 260 * 1024);
}

#[test]
fn the_page_says_what_the_document_says() {
    let recording = common::recording("raid-eight-disks");
    let html = page(&recording);
    for words in [
        "sde drops flushes",
        "21.139",
        "p99.9",
        "flushes by device",
        "plumb check --size 1GiB /data",
        "7 × sda",
    ] {
        assert!(html.contains(words), "{words}");
    }
}

#[test]
fn a_load_of_many_targets_stays_small() {
    let mut recording = common::load_recording("cache-or-disk");
    let mut kept = recording.targets[2].clone();
    kept.series = kept.series.iter().cycle().take(16_384).cloned().collect();
    recording.document.targets = vec![recording.document.targets[2].clone(); 40];
    recording.targets = vec![kept; 40];
    let html = page(&recording);
    assert!(html.len() < 400 * 1024, "{} bytes", html.len());
    assert!(html.contains("The first 8 targets are shown"));
}

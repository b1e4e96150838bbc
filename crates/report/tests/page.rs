//! The page in a real browser: it draws without an error, asks for nothing, and nothing in a name becomes markup.
//!
//! Skipped, aloud, where there is no Chromium.

use std::path::Path;
use std::process::Command;

use crate::common;
use plumb_report::{Format, RunRecording, Style, render};

fn page(recording: &RunRecording) -> String {
    render(recording, Format::Html, Style::default()).expect("a page")
}

/// What the browser made of a page: its document, and what it said.
struct Seen {
    dom: String,
    said: String,
}

/// Opens `html` in Chromium; `None`, with a line about it, where there is none.
fn open(html: &str, name: &str) -> Option<Seen> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join(format!("{name}.html"));
    std::fs::write(&file, html).expect("a page on the disk");
    let Some(browser) =
        ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| is_here(name))
    else {
        plumb_testkit::skip(&format!("{name}: no Chromium on this machine"));
        return None;
    };
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-sync",
        ])
        .args([
            "--no-first-run",
            "--enable-logging=stderr",
            "--v=0",
            "--virtual-time-budget=5000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", directory.path().join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("Chromium starts");
    Some(Seen {
        dom: String::from_utf8_lossy(&output.stdout).into_owned(),
        said: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

fn is_here(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| Path::new(&directory).join(program).is_file())
}

fn title(dom: &str) -> &str {
    let start = dom.find("<title>").map_or(0, |at| at + "<title>".len());
    let end = dom[start..].find("</title>").map_or(start, |at| start + at);
    &dom[start..end]
}

#[test]
fn every_sample_draws_without_an_error() {
    for name in common::NAMES {
        let recording = common::recording(name);
        let Some(seen) = open(&page(&recording), name) else { return };
        assert!(title(&seen.dom).ends_with("ready"), "{name}: the script did not end: {}", seen.said);
        assert!(!seen.said.contains("CONSOLE"), "{name}: {}", seen.said);
        let charts = seen.dom.matches("<canvas").count();
        let methods = recording.document.spans.iter().filter(|span| span.jobs[0].method.is_some());
        let cdf = usize::from(methods.count() > 0);
        let series = recording.targets.iter().filter(|target| !target.series.is_empty()).count();
        assert_eq!(charts, cdf + 2 * series, "{name}: a chart is missing");
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
    assert!(title(&seen.dom).ends_with("ready") && !seen.said.contains("CONSOLE"), "{}", seen.said);
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
    assert!(title(&seen.dom).ends_with("ready") && !seen.said.contains("CONSOLE"), "{}", seen.said);
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
    let long: Vec<_> = points.iter().cycle().take(864_000).copied().collect();
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
        "Flushes by device",
        "plumb check --size 1GiB /data",
        "7 × sda",
    ] {
        assert!(html.contains(words), "{words}");
    }
}

#[test]
fn every_load_draws_without_an_error_and_stays_small() {
    for name in common::LOADS {
        let recording = common::load_recording(name);
        let html = page(&recording);
        assert!(html.len() < 260 * 1024, "{name}: {} bytes", html.len());
        assert!(!html.contains("<img"), "{name}: a name became an element");
        let Some(seen) = open(&html, name) else { return };
        assert!(title(&seen.dom).ends_with("ready"), "{name}: the script did not end: {}", seen.said);
        assert!(!seen.said.contains("CONSOLE") && !seen.dom.contains("<img"), "{name}: {}", seen.said);
        let charts = 3 * recording.targets.iter().filter(|target| !target.series.is_empty()).count()
            + usize::from(recording.targets.iter().any(|target| !target.histograms.is_empty()));
        assert_eq!(seen.dom.matches("<canvas").count(), charts, "{name}: a chart is missing");
    }
}

#[test]
fn a_load_of_many_targets_stays_small() {
    let mut recording = common::load_recording("cache-or-disk");
    let mut kept = recording.targets[2].clone();
    kept.series = kept.series.iter().cycle().take(16_384).copied().collect();
    recording.document.targets = vec![recording.document.targets[2].clone(); 40];
    recording.targets = vec![kept; 40];
    let html = page(&recording);
    assert!(html.len() < 400 * 1024, "{} bytes", html.len());
    assert!(html.contains("The first 8 targets are shown"));
}

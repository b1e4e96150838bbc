//! Results as text in DiskSpd's layout, with the headings and columns that existing parsers expect.
//!
//! A section that DiskSpd does not have follows: the counters of the devices below beside those of the
//! application.

mod cpu;
mod distributions;
mod input;
mod page;
mod percentiles;
mod storage;
mod tables;
mod waits;

use plumb_load::SpanResult;

use self::page::{Page, STARS};
use super::affinity::GROUP;
use super::measured::{asked, is_interrupted, parts, start_time, timed_with_flushes};
use super::profile::{Profile, TimeSpan};
use crate::machine::Machine;

/// Formats the profile.
pub(super) fn profile(profile: &Profile, machine: &Machine) -> String {
    let mut page = Page::default();
    input::profile(profile, machine, &mut page);
    page.written
}

/// Formats the results of the time spans of `profile`, in order. Spans that did not run are left out.
pub fn text(profile: &Profile, results: &[SpanResult], machine: &Machine) -> String {
    let results = timed_with_flushes(&results[..results.len().min(profile.time_spans.len())]);
    let mut page = Page::default();
    if profile.verbose {
        results.iter().zip(&profile.time_spans).for_each(|(result, span)| starts(span, result, &mut page));
    }
    input::profile(profile, machine, &mut page);
    system(machine, &mut page);
    for (number, (span, result)) in profile.time_spans.iter().zip(&results).enumerate() {
        page.line(&format!("\nResults for timespan {}:", number + 1));
        page.line(STARS);
        if is_interrupted(result) {
            page.line("The test was interrupted before the measurements began. No results are displayed.");
            continue;
        }
        time_span(profile, span, result, &mut page);
    }
    if results.len() > 1 {
        tables::totals(&results, &mut page);
    }
    if !results.iter().all(is_interrupted) {
        storage::section(&results, &mut page);
    }
    page.written
}

fn system(machine: &Machine, page: &mut Page) {
    page.line("System information:\n");
    page.line(&format!("\tcomputer name: {}", machine.host));
    page.line(&format!("\tstart time: {}\n", start_time(&machine.started_at)));
    page.line(&format!("\tcpu count:\t\t{}", machine.processors.len()));
    page.line(&format!("\tcore count:\t\t{}", machine.count_of(|place| (place.socket, place.core))));
    page.line(&format!("\tgroup count:\t\t{}", machine.count_of(|place| place.number / GROUP)));
    page.line(&format!("\tnode count:\t\t{}", machine.count_of(|place| place.node)));
    page.line(&format!("\tsocket count:\t\t{}\n", machine.count_of(|place| place.socket)));
    let scheme = machine.governor.as_deref().unwrap_or("none");
    page.line(&format!("\tactive power scheme:\t{scheme} (cpufreq governor)\n"));
    page.line(&format!("\tpage size:\t\t{}", machine.page_bytes));
    page.line(&format!("\tmemory:\t\t\t{}", super::size::shown(machine.memory_bytes)));
    page.line(&format!("\tkernel:\t\t\t{}", machine.kernel));
    page.line(&format!("\tplumb:\t\t\t{}", machine.version));
}

/// Writes the targets and load of each thread (`-v`).
fn starts(span: &TimeSpan, result: &SpanResult, page: &mut Page) {
    let mut before = vec![0; result.targets.len()];
    for (thread, part) in parts(result) {
        let (Some(target), Some(relative)) = (asked(span, result, part.target), before.get_mut(part.target))
        else {
            continue;
        };
        let pattern = match (target.random_percent, target.interlocked) {
            (0, true) => "interlocked sequential file offset".to_owned(),
            (0, false) => "sequential file offset".to_owned(),
            (percent, _) => format!("{percent}% random pattern"),
        };
        let path = &target.path;
        page.line(&format!("thread {thread} starting: file '{path}' relative thread {relative}, {pattern}"));
        *relative += 1;
    }
}

fn time_span(profile: &Profile, span: &TimeSpan, result: &SpanResult, page: &mut Page) {
    page.line(&format!("\nactual test time:\t{:.2}s", result.window.as_secs_f64()));
    page.line(&format!("thread count:\t\t{}", result.threads.len()));
    if span.requests_are_shared() {
        page.line(&format!("request count:\t\t{}", span.request_count));
    }
    cpu::table(result, page);
    distributions::section(span, result, page);
    tables::sections(span, result, page);
    if span.measure_latency {
        percentiles::charts(result, page);
    }
    if profile.verbose_stats {
        waits::table(result, page);
    }
}

//! Outline of a measurement on many hosts, for all formats. All text in it is printable.

use plumb_measure::{ApplicationSide, Latency};
use plumb_path::Severity;
use plumb_text::printable;

use crate::document::{FleetDocument, Sides};
use crate::facts::{Fact, Figure, LONGEST, syncs_alone};
use crate::figures::{P99_FROM, SINCE_INTENDED};
use crate::headline::{Headline, NOT_KNOWN, UNKNOWN, incomplete};
use crate::outline::{Item, Outline, Section};
use crate::quantity::{NONE, count, counted, duration, or_dash, percent, rate, throughput, throughput_parts};
use crate::terminal::{Cell, Ink, Table};

/// Returns the report of `document`.
pub(crate) fn outline(document: &FleetDocument) -> Outline<'_> {
    Outline {
        command: "fleet",
        of: &document.command,
        headline: headline(document),
        figures: figures(document),
        sections: sections(document),
        facts_title: "How it was done",
        facts: facts(document),
        environment: &document.environment,
        run_directory: document.run_directory.as_deref(),
    }
}

fn headline(document: &FleetDocument) -> Headline {
    let severity = document
        .verdicts
        .iter()
        .map(|finding| finding.severity)
        .max()
        .filter(|worst| *worst > Severity::Info);
    let label = match severity {
        Some(Severity::Danger) if document.partial => "Danger, partial result",
        Some(Severity::Danger) => "Danger",
        Some(_) if document.partial => "Warning, partial result",
        Some(_) => "Warning",
        None if document.partial => "Partial",
        None if document.level == UNKNOWN => NOT_KNOWN,
        None => "No finding",
    };
    // The reason of each host is in a section of its own.
    let missing = document.missing().count() as u64;
    let missing = (missing > 0)
        .then(|| format!("{} of {} hosts missing or incomplete", count(missing), document.hosts.len()));
    let because = missing.as_deref().or(document.incomplete_because.as_deref());
    Headline {
        severity,
        label,
        verdict: document.headline.clone(),
        incomplete: incomplete(!document.partial, because),
        ..Headline::default()
    }
}

fn figures(document: &FleetDocument) -> Vec<Figure> {
    let done = document.hosts.iter().filter(|host| host.ok).count();
    let hosts = Figure::new("Hosts", count(done as u64), "", format!("of {}", document.hosts.len()));
    let Some(total) = document.measured() else { return vec![hosts] };
    let each = document.each_bytes_per_second();
    let (in_all, unit) = throughput_parts(total.application.bytes_per_second);
    let mut figures = vec![
        Figure::new("In all", in_all, unit, format!("{} each", throughput(each))),
        Figure::new(
            "Operations",
            rate(total.application.iops),
            "/s",
            format!("of {} hosts", document.counted().count()),
        ),
    ];
    let p99 = total
        .operation_latency()
        .and_then(|latency| latency.p99.filter(|_| latency.count >= P99_FROM))
        .map(duration);
    let of = if total.is_synced_one_by_one() {
        "writes of these hosts, with their syncs"
    } else {
        "operations of these hosts"
    };
    let since = total.service_time().map_or_else(String::new, |_| format!(", {SINCE_INTENDED}"));
    let syncs = match total.has_separate_syncs() {
        true => format!(", without their syncs{}", syncs_alone(total)),
        false => String::new(),
    };
    figures.extend(p99.map(|p99| Figure::new(LONGEST, p99, "", format!("of all {of}{since}{syncs}"))));
    figures.push(hosts);
    figures
}

fn sections(document: &FleetDocument) -> Vec<Section> {
    let missing =
        document.missing().map(|host| format!("{}: {}", host.name, host.because.as_deref().unwrap_or(NONE)));
    vec![
        Section::new("Missing or not whole", Item::lines(&missing.collect::<Vec<_>>())),
        Section::new("The hosts", Item::table(Some(hosts(document)))),
        Section::new("More and more hosts", Item::table(scale(document))),
        Section::new("Where the data is", Item::lines(&locality(document))),
        Section::new("What was found", document.verdicts.iter().map(Item::conclusion).collect()),
        Section::new("Notes", Item::lines(&document.notes)),
    ]
}

fn hosts(document: &FleetDocument) -> Table {
    if document.measured().is_some() { loads(document) } else { answers(document) }
}

/// Returns the table of loads: each host, and all together.
fn loads(document: &FleetDocument) -> Table {
    let hosts = document.hosts.iter().map(|host| {
        let times = [host.start_late, host.clock_error, host.done_after];
        let ink = if host.ok { Ink::Plain } else { Ink::Yellow };
        (host.name.as_str(), host.total.as_ref(), ink, times.map(|time| or_dash(time, duration)))
    });
    let sums = [
        ("in all", &document.total, Ink::Bold, document.last_done),
        ("the others, until they ended", &document.unfinished, Ink::Yellow, None),
    ];
    let sums = sums.into_iter().filter(|(_, sides, ..)| sides.is_some()).map(|(name, sides, ink, done)| {
        (name, sides.as_ref(), ink, [String::new(), String::new(), or_dash(done, duration)])
    });
    let of = |sides: Option<&Sides>, show: fn(&ApplicationSide) -> String| {
        or_dash(sides, |sides| show(&sides.application))
    };
    let latency = |sides: Option<&Sides>, of: fn(&Latency) -> Option<f64>| {
        or_dash(sides.and_then(Sides::operation_latency), |latency| duration(of(&latency)))
    };
    let syncs = |sides: Option<&Sides>| {
        or_dash(sides.map(|sides| &sides.sync).filter(|sync| sync.is_used()), |sync| rate(sync.iops))
    };
    Table::for_rows(hosts.chain(sums))
        .left("", |(name, _, ink, _)| Cell::inked(*ink, printable(name)))
        .right("IOPS", |(_, sides, ink, _)| Cell::inked(*ink, of(*sides, |of| rate(of.iops))))
        .right("throughput", |(_, sides, ink, _)| {
            Cell::inked(*ink, of(*sides, |of| throughput(of.bytes_per_second)))
        })
        .right("median", |(_, sides, ..)| latency(*sides, |latency| latency.p50))
        .right("p99", |(_, sides, ..)| latency(*sides, |latency| latency.p99))
        .right("syncs/s", |(_, sides, ..)| syncs(*sides))
        .right("start late", |(.., [late, _, _])| late.clone())
        .right("clock within", |(.., [_, error, _])| error.clone())
        .right("done after", |(.., [_, _, done])| done.clone())
        .table()
}

/// Returns the table of another command: each host.
fn answers(document: &FleetDocument) -> Table {
    let level = |level: &str| match level {
        "danger" => Cell::inked(Ink::Red, level),
        "warning" => Cell::inked(Ink::Yellow, level),
        _ => Cell::plain(level),
    };
    Table::for_rows(&document.hosts)
        .left("", |host| printable(&host.name))
        .left("found", |host| level(host.level.as_deref().unwrap_or(NONE)))
        .left("in one sentence", |host| or_dash(host.headline.as_ref(), |said| printable(said)))
        .table()
}

fn scale(document: &FleetDocument) -> Option<Table> {
    Table::for_rows(&document.scale)
        .left("hosts", |step| count(step.hosts))
        .right("measured", |step| count(step.measured))
        .right("IOPS", |step| rate(step.iops))
        .right("throughput", |step| throughput(step.bytes_per_second))
        .right("efficiency", |step| Cell::inked(Ink::Bold, or_dash(step.efficiency, percent)))
        .if_any()
}

/// Returns the part of the data that stayed on devices of the hosts themselves; empty if no host reports it.
fn locality(document: &FleetDocument) -> Vec<String> {
    let is_known = document.hosts.iter().any(|host| host.local.is_some());
    let of = |local: Option<bool>, words: &str| {
        let hosts: Vec<_> = document.counted().filter(|(host, _)| host.local == local).collect();
        let moved = |of: fn(&Sides) -> f64| hosts.iter().map(|(_, total)| of(total)).sum::<f64>();
        let (read, write) = (moved(|of| of.read.bytes_per_second), moved(|of| of.write.bytes_per_second));
        (is_known && !hosts.is_empty()).then(|| {
            format!(
                "{words}: {}, reads {}, writes {}.",
                counted(hosts.len() as u64, "host"),
                throughput(read),
                throughput(write)
            )
        })
    };
    let parts = [
        (Some(true), "On devices of the host itself"),
        (Some(false), "Over a network"),
        (None, "In memory or simulated, or not known"),
    ];
    parts.into_iter().filter_map(|(local, words)| of(local, words)).collect()
}

fn facts(document: &FleetDocument) -> Vec<Fact> {
    let environment = &document.environment;
    let facts = [
        ("Hosts", document.hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", ")),
        ("Controller", environment.host.clone().unwrap_or_else(|| NONE.to_owned())),
        ("First host done after", or_dash(document.first_done, duration)),
        ("Last host done after", or_dash(document.last_done, duration)),
        ("Started", environment.started_at.clone()),
        ("plumb", environment.plumb.clone()),
        ("Recording", document.run_directory.clone().unwrap_or_else(|| "not kept".to_owned())),
    ];
    facts.into_iter().map(|(name, value)| Fact { name, value: printable(&value) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::DirectionResult;
    use crate::document::fleet::FleetHost;
    use crate::fixture;

    #[test]
    fn the_time_of_writes_that_are_each_synced_is_with_the_sync() {
        let some = fixture::load("side-by-side").total.application.latency.unwrap();
        let latency = |p99: f64| Latency { count: 100, p50: Some(p99 / 2.0), p99: Some(p99), ..some };
        let used = DirectionResult { ios: 100, iops: 50.0, ..DirectionResult::default() };
        let mut total = Sides { write: used.clone(), sync: used, ..Sides::default() };
        (total.application.operations, total.application.iops) = (100, 50.0);
        total.application.latency = Some(latency(1e-3));
        total.durable_latency = Some(latency(8e-3));
        let host =
            FleetHost { name: "a".to_owned(), ok: true, total: Some(total.clone()), ..FleetHost::default() };
        let mut document =
            FleetDocument { hosts: vec![host], total: Some(total), ..FleetDocument::default() };
        let said = |document: &FleetDocument| {
            let all = figures(document);
            let longest = all.iter().find(|figure| figure.label == LONGEST).unwrap();
            let (value, unit, note) = (&longest.value, &longest.unit, &longest.note);
            let table = loads(document).show(crate::Style::PLAIN);
            (format!("{value}{unit} {note}"), table)
        };
        let (figure, table) = said(&document);
        assert_eq!(figure, "8 ms of all writes of these hosts, with their syncs");
        assert!(table.contains("4 ms  8 ms") && !table.contains("1 ms"), "{table}");
        document.total.as_mut().unwrap().sync.ios = 50;
        assert_eq!(said(&document).0, "1 ms of all operations of these hosts, without their syncs");
        document.total.as_mut().unwrap().application.latency_from_intended_start = Some(latency(1.0));
        assert_eq!(
            said(&document).0,
            "1 s of all operations of these hosts, since the intended start, without their syncs"
        );
    }
}

//! Two observations side by side. Each is a single value of every figure, so differences are shown but not
//! tested for significance.

use std::collections::BTreeMap;

use plumb_measure::Latency;
use plumb_text::printable;
use serde::{Deserialize, Serialize};

use crate::document::ObservationDocument;
use crate::document::observation::{ObservedDevice, ObservedSync};
use crate::outline::{Item, Page};
use crate::quantity::{bytes, duration, or_dash, percent, rate, ratio, three_digits};
use crate::status::Sections;
use crate::terminal::Table;

/// Note in every pair.
const NOT_INTERLEAVED: &str = "Not interleaved: what else changed between the two is in every difference, and one value of each tells no \
    chance from change. `plumb compare A1 A2 --against B1 B2` gives intervals.";

/// Two observations, figure by figure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservationPair {
    /// Name and version of the document: [`ObservationPair::SCHEMA`].
    pub schema: String,
    /// Always false: the observations followed one another.
    pub interleaved: bool,
    /// Note on the interpretation.
    pub note: String,
    /// Figures of devices, and of syncs by process.
    pub rows: Vec<PairRow>,
}

/// Figure of both observations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PairRow {
    /// Name of the device, or of the process and its call.
    pub of: String,
    /// Name of the figure.
    pub figure: String,
    /// Unit of the values.
    pub unit: PairUnit,
    /// Value before; null if there is none.
    pub before: Option<f64>,
    /// Value after; null if there is none.
    pub after: Option<f64>,
    /// Ratio of after to before; null unless both are above 0.
    pub ratio: Option<f64>,
}

/// Unit of a figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairUnit {
    /// Rate per second.
    #[default]
    PerSecond,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Share between 0 and 1.
    Share,
    /// Count.
    Count,
}

/// Figures by their object and name.
type Figures = Vec<(String, &'static str, PairUnit, Option<f64>)>;

impl ObservationPair {
    /// Name and version of the document.
    pub const SCHEMA: &str = "plumb/observation-pair/1";

    /// Creates the pair of two observations.
    pub fn new(before: &ObservationDocument, after: &ObservationDocument) -> Self {
        let (before, after) = (figures(before), figures(after));
        let same =
            |one: &Figures, of: &str, figure: &str| one.iter().position(|row| row.0 == of && row.1 == figure);
        let only_after = after.iter().filter(|row| same(&before, &row.0, row.1).is_none());
        let all = before.iter().chain(only_after);
        let rows = all.filter_map(|(of, figure, unit, _)| {
            let value = |side: &Figures| side[same(side, of, figure)?].3;
            let (before, after) = (value(&before), value(&after));
            before.or(after)?;
            let ratio = before.zip(after).filter(|(one, other)| *one > 0.0 && *other > 0.0);
            let ratio = ratio.map(|(before, after)| after / before);
            Some(PairRow { of: of.clone(), figure: (*figure).to_owned(), unit: *unit, before, after, ratio })
        });
        let rows = rows.collect();
        Self { schema: Self::SCHEMA.to_owned(), interleaved: false, note: NOT_INTERLEAVED.to_owned(), rows }
    }
}

impl Sections for ObservationPair {
    const TITLE: &str = "plumb observe compare";

    fn add_to(&self, page: &mut Page) {
        let rows = self.rows.chunk_by(|one, next| one.of == next.of);
        let rows = rows.flat_map(|rows| rows.iter().enumerate());
        let value = |row: &PairRow, value: Option<f64>| or_dash(value, |value| row.unit.show(value));
        let table = Table::for_rows(rows)
            .left("", |(number, row)| if *number == 0 { printable(&row.of) } else { String::new() })
            .left("", |(_, row)| &row.figure)
            .right("before", |(_, row)| value(row, row.before))
            .right("after", |(_, row)| value(row, row.after))
            .right("after / before", |(_, row)| or_dash(row.ratio, ratio))
            .table();
        page.add("", vec![Item::Table(table)]);
        page.add("", vec![Item::text(&self.note)]);
    }
}

impl PairUnit {
    fn show(self, value: f64) -> String {
        match self {
            Self::PerSecond => format!("{}/s", rate(value)),
            Self::Bytes => bytes(value),
            Self::Seconds => duration(value),
            Self::Share => percent(value),
            Self::Count => three_digits(value),
        }
    }
}

/// Returns all figures of an observation.
fn figures(document: &ObservationDocument) -> Figures {
    let mut all = Figures::new();
    let mut syncs: BTreeMap<(&str, &str), Vec<&ObservedSync>> = BTreeMap::new();
    for sync in document.syncs.iter().flatten() {
        syncs.entry((&sync.name, &sync.call)).or_default().push(sync);
    }
    all.extend(times("all syncs", document.sync_latency));
    for ((name, call), of) in syncs {
        let name = format!("{name}: {call}");
        let per_second = of.iter().map(|sync| sync.per_second).sum();
        // Among several processes of one name, the one with the most calls supplies the times: summarized
        // distributions cannot be combined.
        let most = of.iter().max_by_key(|sync| sync.count).and_then(|sync| sync.latency);
        all.push((name.clone(), "calls", PairUnit::PerSecond, Some(per_second)));
        all.extend(times(&name, most));
    }
    document.devices.iter().for_each(|device| all.extend(of_device(device, document.seconds)));
    all
}

fn times(of: &str, latency: Option<Latency>) -> Figures {
    let time = |figure, value: fn(&Latency) -> Option<f64>| {
        (of.to_owned(), figure, PairUnit::Seconds, latency.as_ref().and_then(value))
    };
    vec![time("half within", |of| of.p50), time("99 of 100 within", |of| of.p99)]
}

fn of_device(device: &ObservedDevice, seconds: f64) -> Figures {
    let (ios, depth) = (device.ios() as f64, device.queue_depth);
    let bursts = device.arrivals.and_then(|arrivals| arrivals.bursts);
    let share = |of: u64| (ios > 0.0).then(|| of as f64 / ios);
    let flush = |value: fn(&Latency) -> Option<f64>| device.flush_latency.as_ref().and_then(value);
    let each = |of: Option<u64>| of.filter(|_| seconds > 0.0).map(|of| of as f64 / seconds);
    [
        ("requests", PairUnit::PerSecond, each(Some(device.ios()))),
        ("of them writes", PairUnit::Share, share(device.write.ios)),
        ("size of a read", PairUnit::Bytes, device.read.io_bytes_mean),
        ("size of a write", PairUnit::Bytes, device.write.io_bytes_mean),
        ("merged", PairUnit::Share, share(device.merges)),
        ("flushes", PairUnit::PerSecond, device.flushes_per_second),
        ("half of the flushes within", PairUnit::Seconds, flush(|of| of.p50)),
        ("99 of 100 flushes within", PairUnit::Seconds, flush(|of| of.p99)),
        ("FUA writes", PairUnit::PerSecond, each(device.fua_writes)),
        ("99 of 100 reads within", PairUnit::Seconds, device.read.latency.and_then(|of| of.p99)),
        ("99 of 100 writes within", PairUnit::Seconds, device.write.latency.and_then(|of| of.p99)),
        ("at once while busy", PairUnit::Count, depth.map(|of| of.busy_mean)),
        ("busy", PairUnit::Share, depth.map(|of| of.busy)),
        ("requests of a burst", PairUnit::Count, bursts.map(|of| of.ios_mean)),
        ("pause between bursts", PairUnit::Seconds, bursts.map(|of| of.pause_mean)),
    ]
    .map(|(figure, unit, value)| (device.name.clone(), figure, unit, value))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::StatusDocument;
    use crate::terminal::{self, Style};

    fn seen(name: &str, calls: f64, flushes: f64) -> ObservationDocument {
        let sync = ObservedSync { call: "fsync".to_owned(), per_second: calls, ..ObservedSync::default() };
        let sync = ObservedSync { name: name.to_owned(), ..sync };
        let device = ObservedDevice { flushes_per_second: Some(flushes), ..ObservedDevice::default() };
        ObservationDocument {
            seconds: 1.0,
            syncs: Some(vec![sync]),
            devices: vec![ObservedDevice { name: "sda".to_owned(), ..device }],
            ..ObservationDocument::default()
        }
    }

    #[test]
    fn what_only_one_has_is_shown_and_has_no_ratio() {
        let pair = ObservationPair::new(&seen("old", 4.0, 10.0), &seen("new", 2.0, 5.0));
        let row = |of: &str, figure: &str| {
            let row = pair.rows.iter().find(|row| row.of == of && row.figure == figure).unwrap();
            (row.before, row.after, row.ratio)
        };
        assert_eq!(row("sda", "flushes"), (Some(10.0), Some(5.0), Some(0.5)));
        assert_eq!(row("old: fsync", "calls"), (Some(4.0), None, None));
        assert_eq!(row("new: fsync", "calls"), (None, Some(2.0), None));
        let text = terminal::page(&pair.page(), Style::PLAIN);
        assert!(text.contains("Not interleaved") && text.contains("0.500"), "{text}");
        assert!(!pair.rows.iter().any(|row| row.figure == "size of a read"), "neither has it");
    }
}

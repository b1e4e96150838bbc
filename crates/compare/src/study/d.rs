//! Field report D: fdatasync of Ceph OSDs on hard disks, with the drive's write cache enabled and disabled.

use plumb_block::{Bytes, DeviceCounters, Nanos, VolatileCache};
use plumb_measure::Latency;
use plumb_report::document::comparison::Counts;
use plumb_report::document::study::{Expected, StudyRow, StudyUnit};
use plumb_report::quantity::duration;

use super::bench::{Bench, NOT_SWITCHED, OFF, ON, StudyError};
use super::object_store::{ObjectStore, Served, StoreLoad, Until};
use super::row::{LATENCY_FIGURES, LatencyFigure, row, within};
use super::{Chapter, Found};
use crate::explanation::{explain, main_cause};

/// Where the figures are from.
const SOURCE: &str = "A journey through the write caches (Ceph BlueStore OSDs on HDDs)";
/// fdatasync in seconds: mean, std, min, p25, p50, p75, max; with the cache enabled and disabled.
const REPORTED: [(&str, [f64; 7]); 2] = [
    ("enabled", [0.021_139, 0.023_446, 0.000_152, 0.008_029, 0.009_806, 0.025_923, 0.126_596]),
    ("disabled", [0.000_395, 0.001_101, 0.000_003, 0.000_134, 0.000_203, 0.000_280, 0.010_060]),
];
/// The latency of the OSDs in seconds, enabled and disabled.
const OSD_LATENCY: [f64; 2] = [0.030, 0.010];
/// Why those of the model are not, enabled and disabled.
const CLIENT_WRITE: [&str; 2] = [
    "From the arrival of a small write at the OSD until its log is synced: it waits for the commit that goes on, and then for two syncs of its own, of the data and of the log. \
     The report's takes little more than one sync, so its disks had less to do than is chosen here",
    "From the arrival of a small write at the OSD until its log is synced; the report's includes the network and the other copies",
];
/// The mean and the quartiles are expected within this factor.
const FACTOR: f64 = 1.5;
const EXPECTED: [&str; 4] = ["mean", "p25", "p50", "p75"];
/// The drive.
const DRIVE: &str = "sim:he8-media-cache";
const SIMULATED: Until = Until { syncs: 20_000, time: Nanos::secs(3600) };
/// On a real target it takes this long.
const REAL: Until = Until { syncs: u64::MAX, time: Nanos::secs(30) };
/// The size of a file that is made for it.
const FILE: Bytes = Bytes::gib(1);

const FIGURES: &str = "fdatasync of the OSD";
const QUESTION: &str = "What makes the difference";

/// One state of the cache, measured.
struct State {
    name: &'static str,
    served: Served,
    drive: Option<DeviceCounters>,
}

impl State {
    /// What was counted, of the time in syncs alone.
    fn counts(&self) -> Counts {
        let seconds = self.served.syncs.sum_ns() as f64 / 1e9;
        let syncs = self.served.syncs.count();
        let drive = self.drive.as_ref();
        Counts {
            seconds,
            operations: syncs,
            slot_seconds: seconds,
            thread_seconds: Some(seconds),
            syncs,
            sync_seconds: seconds,
            flushes: self.flushes(),
            flush_seconds: drive.map(|drive| drive.flush_time.as_secs_f64()),
            ..Counts::default()
        }
    }

    fn flushes(&self) -> Option<u64> {
        self.drive.as_ref()?.flushes
    }

    fn flush_mean(&self) -> Option<f64> {
        let drive = self.drive.as_ref()?;
        drive
            .flushes
            .filter(|flushes| *flushes > 0)
            .map(|flushes| drive.flush_time.as_secs_f64() / flushes as f64)
    }
}

pub(super) static CHAPTER: Chapter = Chapter {
    name: "D",
    title: "fdatasync with the drive's cache on and off",
    source: SOURCE,
    finding: "with the volatile cache disabled an fdatasync takes 0.4 ms instead of 21 ms, and the OSD 10 ms instead of 30",
    simulated,
    real,
    notes,
};

fn simulated(bench: &mut Bench<'_>) -> Result<Found, StudyError> {
    let state = |wce: &str| measured(bench, &format!("{DRIVE}?seed={}&wce={wce}", bench.seed()), SIMULATED);
    Ok(found(&["on", "off"].into_iter().map(state).collect::<Result<Vec<_>, _>>()?))
}

fn real(bench: &mut Bench<'_>, target: &str) -> Result<Found, StudyError> {
    let mut states = Vec::new();
    for state in [ON, OFF] {
        if let Err(because) = bench.put(state) {
            bench.say(&format!("study D: {because}"));
            continue;
        }
        states.push(measured(bench, target, REAL)?);
    }
    if states.is_empty() {
        states.push(measured(bench, target, REAL)?);
    }
    Ok(found(&states))
}

/// What the states come to that were measured.
fn found(states: &[State]) -> Found {
    let mut rows = Vec::new();
    for (number, (name, reported)) in REPORTED.iter().enumerate() {
        let state = states.iter().find(|state| state.name == *name);
        rows.extend(latency_rows(name, reported, state));
        let writes = state.and_then(|state| state.served.writes.summary()).map(|of| of.mean);
        rows.push(
            row(FIGURES, format!("write of a client, cache {name}"), StudyUnit::Seconds)
                .reported(OSD_LATENCY[number])
                .ours_or(writes, NOT_SWITCHED)
                .why(CLIENT_WRITE[number]),
        );
    }
    rows.extend(causes(states));
    (rows, Vec::new(), answer(states))
}

/// The figures of a state beside those that were reported.
fn latency_rows(name: &str, reported: &[f64; 7], state: Option<&State>) -> Vec<StudyRow> {
    let latency: Option<Latency> = state.and_then(|state| state.served.syncs.summary());
    let is_simulated = state.is_none_or(|state| state.drive.is_some());
    let why = |figure: &str| match figure {
        "std" | "max" => {
            "The longest syncs are those that have to write a batch of 64 deferred overwrites first. How many of these the host wrote the report does not tell: expected is \
             nothing"
        }
        "min" if name == "enabled" => {
            "The fastest flushes find nothing to write: what the command costs the drive, which is estimated, and without what the call costs the host"
        }
        "min" => "The fastest syncs find nothing to do: what such a system call costs the host",
        _ if name == "enabled" => {
            "Each sync flushes: the drive writes what it holds, between reads and other writes"
        }
        _ => "No flush is sent; the write is answered from memory that the spindle's energy saves into flash",
    };
    let of = |((figure, read), reported): (&LatencyFigure, &f64)| {
        let made = row(FIGURES, format!("fdatasync {figure}, cache {name}"), StudyUnit::Seconds)
            .reported(*reported)
            .ours_or(latency.as_ref().map(read), NOT_SWITCHED)
            .why(why(figure));
        match EXPECTED.contains(figure) && is_simulated {
            true => made.expecting(within(FACTOR, *reported)),
            false => made,
        }
    };
    LATENCY_FIGURES.iter().zip(reported).map(of).collect()
}

/// What was counted, and what follows from that.
fn causes(states: &[State]) -> Vec<StudyRow> {
    let mut rows = Vec::new();
    for state in states {
        let count = state.served.syncs.count().max(1) as f64;
        let per = state.flushes().map(|flushes| flushes as f64 / count);
        rows.push(
            row(QUESTION, format!("flushes for each fdatasync, cache {}", state.name), StudyUnit::Times)
                .ours_or(per, "the target is not ours alone, and counts the flushes of all programs")
                .why("Counted at the drive"),
        );
        rows.push(
            row(QUESTION, format!("time of a flush, cache {}", state.name), StudyUnit::Seconds)
                .ours_or(state.flush_mean(), "no flush reached the drive, or they were not counted")
                .why("Counted at the drive"),
        );
    }
    if let [on, off] = states
        && let (Some(on), Some(off)) = (on.served.syncs.mean(), off.served.syncs.mean())
    {
        let reported = REPORTED[0].1[0] / REPORTED[1].1[0];
        let cause = main_cause(&explain(&states[0].counts(), &states[1].counts()));
        rows.push(
            row(QUESTION, "fdatasync, enabled over disabled", StudyUnit::Times)
                .reported(reported)
                .ours(on / off)
                .expecting(Expected::between(reported / FACTOR / FACTOR, reported * FACTOR * FACTOR))
                .why(cause.unwrap_or_else(|| "The counts do not explain it".to_owned())),
        );
    }
    rows
}

fn answer(states: &[State]) -> String {
    let said = |state: &State| {
        let mean = state.served.syncs.summary().map(|of| duration(of.mean)).unwrap_or_default();
        let flushes = match (state.flushes(), state.flush_mean()) {
            (Some(flushes), Some(each)) => {
                format!("{flushes} flushes of {} reached the drive", duration(each))
            }
            (Some(_), None) => "no flush was sent".to_owned(),
            _ => "flushes were not counted".to_owned(),
        };
        format!(
            "cache {}: {} fdatasyncs of {mean} on average, {flushes}",
            state.name,
            state.served.syncs.count()
        )
    };
    let each: Vec<String> = states.iter().map(said).collect();
    each.join("; ")
}

fn notes(bench: &Bench<'_>) -> Vec<String> {
    let mut notes = vec![
        "The load of the OSD is chosen, for the report tells none: 40 small and 12 large writes and 30 reads a second, deferred writes in batches of 64".to_owned(),
    ];
    notes.push(match bench.on() {
        None => format!("The drive is the model he8-media-cache ({DRIVE}); how many runs its media cache stages was fitted to the mean with the cache off"),
        Some(_) => "A real target is flushed as its kernel sees it: with the write cache off no flush is sent to the drive, but the call is made".to_owned(),
    });
    notes
}

/// The state that the cache of `target` is in.
fn measured(bench: &mut Bench<'_>, target: &str, until: Until) -> Result<State, StudyError> {
    bench.say(&format!("study D: an object store on {target}"));
    bench.check()?;
    let (opened, time) = bench.open(target, FILE)?;
    let is_on = opened.device.info().volatile_cache != VolatileCache::None;
    let store = ObjectStore::new(opened.device.clone(), &time, StoreLoad::MODERATE, bench.seed())?;
    let served = store.serve(until, bench.stop())?;
    bench.check()?;
    let drive = match &opened.counters {
        Some(counters) => counters.read()?.devices.into_iter().next(),
        None => None,
    };
    opened.mark_as_left();
    opened.remove_if_ours()?;
    Ok(State { name: if is_on { "enabled" } else { "disabled" }, served, drive })
}

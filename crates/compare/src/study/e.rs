//! Field report E: which applications wait for flushes, in the three states of a drive's write cache.

use plumb_application::Limits;
use plumb_report::document::comparison::Counts;
use plumb_report::document::study::{Expected, StudyRow, StudyUnit};
use plumb_report::quantity::{rate, ratio};
use plumb_sim::files::Host;

use super::bench::{Bench, NOT_SWITCHED, OFF, ON, PROTECTED, Profiled, StudyError};
use super::row::row;
use super::{Chapter, Found};
use crate::explanation::{explain, main_cause};

const SOURCE: &str = "Microsoft KB 332023: slow disk performance when write caching is enabled";
/// The drive: the kind on which this was seen.
const DRIVE: &str = "sim:ata-40gb";

/// The states, and how the simulated drive is put into each.
const STATES: [(&str, &str); 3] =
    [("off", "wce=off"), ("on", "wce=on"), ("protected", "wce=on&behaviour.driver_drops_flush=true")];
/// Small writes that are flushed one by one: so many times slower or more, almost 100 in one program.
const SLOWER: f64 = 10.0;
const SLOW: Expected = Expected::between(SLOWER, 100.0);
/// No difference.
const SAME: Expected = Expected::between(0.9, 1.1);

/// An application, and what was reported of it.
struct Application {
    profile: &'static str,
    name: &'static str,
    /// So many transactions, of files scaled so.
    count: u64,
    scale: f64,
    reported: Reported,
    expected: Option<Expected>,
    why: &'static str,
}

/// How many times slower an application was reported to be with flushes.
enum Reported {
    Times(f64),
    AtLeast(f64),
    /// It is named as one that flushes.
    Critical,
    Nothing,
}

const fn of(
    profile: &'static str,
    name: &'static str,
    (count, scale): (u64, f64),
    why: &'static str,
) -> Application {
    Application { profile, name, count, scale, reported: Reported::Nothing, expected: None, why }
}

impl Application {
    const fn reported(self, reported: Reported, expected: Option<Expected>) -> Self {
        Self { reported, expected, ..self }
    }

    fn row(&self) -> StudyRow {
        let made = row(REPORT, self.name, StudyUnit::Times);
        match self.reported {
            Reported::Times(times) => made.reported(times),
            Reported::AtLeast(times) => made.reported_at_least(times),
            Reported::Critical => made.unreported("the report calls it critical, and has no figure"),
            Reported::Nothing => made.unreported("the report does not name it"),
        }
    }
}

const APPLICATIONS: [Application; 9] = [
    of("dbf-update:fsync", "DBF update, each record flushed", (200, 1.0), "Record, index node and header are written in place, and both files synced. What the program of the report did for a record is not known; a cached write \
        takes this drive a twentieth of one that is flushed alone, so 100 times takes flushes that wait for several places")
        .reported(Reported::Times(100.0), Some(SLOW)),
    of("registry-kv:durable", "registry writes", (200, 1.0), "4 KiB, and two syncs for it").reported(Reported::AtLeast(SLOWER), Some(SLOW)),
    of("pg-wal:single", "database, a sync for each commit", (400, 1.0), "8 to 24 KiB of log and one fdatasync").reported(Reported::AtLeast(SLOWER), Some(SLOW)),
    of("defrag:flush", "defragmentation", (60, 0.25), "Two flushes for each extent of 64 KiB to 1 MiB: the longer the extent, the less they weigh")
        .reported(Reported::Critical, None),
    of("save:rename", "saving a document of 2 MB, synced", (40, 1.0), "One sync for 2 MB: tens of milliseconds, which a person does not notice and a loop does")
        .reported(Reported::Critical, None),
    of("save:no-sync", "saving a document of 2 MB, as Word", (40, 1.0), "Nothing is flushed").reported(Reported::Times(1.0), Some(SAME)),
    of(COPY, "copying 600 files", (600, 0.3), "Nothing is flushed; it reads, and is written back later").reported(Reported::Times(1.0), Some(SAME)),
    of("unpack:none", "unpacking 3000 files", (3000, 0.3), "Nothing is flushed").reported(Reported::Times(1.0), Some(SAME)),
    of("unpack:fsync-each", "unpacking 300 files, each synced", (300, 0.03), "The same, by a program that syncs each file: the program decides, not the work"),
];
/// What it reads comes from the drive.
const COPY: &str = "copy:no-sync";

const REPORT: &str = "Times as slow with flushes (cache on) as without (protected)";
const BY_STATE: &str = "Which applications suffer: transactions a second by state of the cache";
const SYMPTOM: &str = "The symptom";

pub(super) static CHAPTER: Chapter = Chapter {
    name: "E",
    title: "Flushes, and the applications that wait for them",
    source: SOURCE,
    finding: "with the cache on and flushes sent, many small flushed writes are 10 times slower or more, an accounting program \
                  on DBF files almost 100 times; Word, copying and unpacking are not",
    simulated,
    real,
    notes,
};

fn notes(bench: &Bench<'_>) -> Vec<String> {
    match bench.on() {
        None => vec![
            format!("Applications are profiles of `plumb load --profile`, on a simulated file system (journal, page cache of a desktop of 2002) over {DRIVE}"),
            "\"Protected\" drops flushes on a drive whose cache a power cut empties: it is fast because it loses data, as the drivers did that the report names".to_owned(),
            "Few transactions each: longer runs fill the drive's cache, and then the protected state is as slow as its medium".to_owned(),
        ],
        Some(place) => vec![format!(
            "{place} stays in the state that it is in unless --switch is typed"
        )],
    }
}

fn simulated(bench: &mut Bench<'_>) -> Result<Found, StudyError> {
    let (mut times, mut by_state, mut slowest) = (Vec::new(), Vec::new(), 0.0_f64);
    let writes = flushed_writes(bench)?;
    times.extend(writes.rows);
    for application in &APPLICATIONS {
        bench.say(&format!("study E: {} on {DRIVE}, three states", application.profile));
        let mut ran = Vec::new();
        for (_, options) in STATES {
            ran.push(run(bench, application, options)?);
        }
        let per_second: Vec<f64> =
            ran.iter().map(|ran| ran.measured.transactions_per_second().unwrap_or(f64::NAN)).collect();
        let syncs = ran[1].measured.syncs_per_transaction().unwrap_or(0.0);
        let slower = per_second[2] / per_second[1];
        slowest = slowest.max(slower);
        let why = format!("{}; {} syncs each", application.why, ratio(syncs));
        let made = application.row().ours_or(Some(slower), "nothing completed").why(why);
        times.push(application.expected.map_or(made.clone(), |expected| made.expecting(expected)));
        for (number, (state, _)) in STATES.iter().enumerate() {
            let flushes = ran[number].drive.flushes.unwrap_or(0);
            by_state.push(
                row(BY_STATE, format!("{}, cache {state}", application.name), StudyUnit::PerSecond)
                    .ours_or(Some(per_second[number]), "nothing completed")
                    .why(format!("{flushes} flushes reached the drive, preparation included")),
            );
        }
    }
    times.extend(by_state);
    times.push(writes.symptom);
    let answer = format!(
        "what syncs each small step is up to {} times as slow with flushes as without; what syncs nothing is not slower at all. The price is \
         the number of flushes times what each costs, a seek and a turn of the disk",
        rate(slowest)
    );
    Ok((times, Vec::new(), answer))
}

/// 4 KiB appended to a log, each flushed, without a file system.
struct FlushedWrites {
    rows: Vec<StudyRow>,
    symptom: StudyRow,
}

fn flushed_writes(bench: &mut Bench<'_>) -> Result<FlushedWrites, StudyError> {
    let words = "--sequential --write 100 --block-size 4k --sync-every 1 --count 500";
    bench.say(&format!("study E: small flushed writes on {DRIVE}, three states"));
    let (mut iops, mut counts) = (Vec::new(), Vec::new());
    let mut symptom = row(SYMPTOM, "of all the time, flushes are waited for (cache on)", StudyUnit::Times)
        .unreported("the report tells of an idle processor and a disk that works in a regular rhythm")
        .expecting(Expected::at_least(0.8));
    for (state, options) in STATES {
        let loaded = bench.load(&[&format!("{DRIVE}?{options}&seed={}", bench.seed())], words)?;
        iops.push(loaded.iops());
        counts.push(Counts::of(loaded.total()));
        if state == "on" {
            let waited = loaded.total().sync.latency.map(|of| of.mean * of.count as f64);
            symptom = symptom
                .ours_or(waited.map(|waited| waited / loaded.total().application.seconds), "nothing was synced")
                .why("One writer waits for one flush after the other: the processor has nothing to do meanwhile");
        }
    }
    let cause = main_cause(&explain(&counts[1], &counts[2]));
    let rows = vec![
        row(REPORT, "small writes, each flushed", StudyUnit::Times)
            .reported_at_least(SLOWER)
            .ours(iops[2] / iops[1])
            .expecting(SLOW)
            .why(format!(
                "{} writes a second without flushes, {} with, {} with the cache off; {}",
                rate(iops[2]),
                rate(iops[1]),
                rate(iops[0]),
                cause.unwrap_or_else(|| "the counts do not explain it".to_owned())
            )),
    ];
    Ok(FlushedWrites { rows, symptom })
}

fn run(bench: &mut Bench<'_>, application: &Application, options: &str) -> Result<Profiled, StudyError> {
    let drive = format!("{DRIVE}?{options}&seed={}", bench.seed());
    let host = Host { cold_after_syncfs: application.profile == COPY, ..Host::DESKTOP_2002 };
    let limits = Limits {
        duration: None,
        count: Some(application.count),
        threads: Some(1),
        scale: Some(application.scale),
        seed: bench.seed(),
    };
    bench.profile(&drive, host, application.profile, &limits)
}

/// The same profiles in a directory of this machine, in the states that its drive can be put into.
fn real(bench: &mut Bench<'_>, place: &str) -> Result<Found, StudyError> {
    let states: &[(&str, Option<usize>)] = match bench.switches_policy() {
        true => &[("off", Some(OFF)), ("on", Some(ON)), ("protected", Some(PROTECTED))],
        false => &[("as it is", None)],
    };
    let (mut rows, mut by_state) = (Vec::new(), Vec::new());
    let is_directory = std::fs::metadata(place).is_ok_and(|found| found.is_dir());
    for application in &APPLICATIONS {
        let mut had = Vec::new();
        for (state, level) in states {
            let figure = format!("{}, the cache {state}", application.name);
            let figure = row(BY_STATE, figure, StudyUnit::PerSecond);
            let put = if is_directory {
                Ok(())
            } else {
                Err("applications work on files: name a directory".to_owned())
            };
            let put = put.and_then(|()| level.map_or(Ok(()), |level| bench.put(level)));
            if let Err(because) = put {
                by_state.push(figure.ours_or(None, &because));
                continue;
            }
            let limits = Limits {
                duration: Some(plumb_block::Nanos::secs(5)),
                count: Some(application.count),
                threads: Some(1),
                scale: Some(application.scale.min(0.1)),
                seed: bench.seed(),
            };
            let loaded = bench.profile_in(place, application.profile, limits)?;
            let transactions = loaded.document.transactions.as_ref();
            let syncs = transactions.and_then(|of| of.syncs_each).unwrap_or(0.0);
            let per_second = transactions.map(|of| of.per_second);
            had.push((*state, per_second));
            by_state.push(
                figure.ours_or(per_second, "nothing completed").why(format!("{} syncs each", ratio(syncs))),
            );
        }
        let of = |state: &str| had.iter().find(|(had, _)| *had == state)?.1;
        let slower = of("protected").zip(of("on")).map(|(protected, on)| protected / on);
        rows.push(application.row().ours_or(slower, NOT_SWITCHED).why(application.why));
    }
    rows.extend(by_state);
    let answer = format!(
        "measured in {place}; set beside one another, the rates say which applications wait for syncs"
    );
    Ok((rows, Vec::new(), answer))
}

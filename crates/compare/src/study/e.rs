//! Field report E: which applications wait for flushes, in the three states of a drive's write cache.

use plumb_application::Limits;
use plumb_report::document::study::{Expected, StudyRow, StudyUnit};
use plumb_report::quantity::{rate, ratio};
use plumb_sim::files::Host;

use super::bench::{Bench, Profiled, StudyError};
use super::row::{Learn, row};
use super::{Chapter, Found};

const SOURCE: &str = "Microsoft KB 332023: slow disk performance when write caching is enabled";
/// The drive: the kind on which this was seen.
const DRIVE: &str = "sim:ata-40gb";

/// The states, and how the simulated drive is put into each.
const STATES: [(&str, &str); 3] =
    [("off", "wce=off"), ("on", "wce=on"), ("protected", "wce=on&behaviour.driver_drops_flush=true")];
/// Small writes that are flushed one by one: 10 times slower or more, almost 100 in one program.
const SLOW: Expected = Expected::between(10.0, 100.0);
/// No difference.
const SAME: Expected = Expected::between(0.9, 1.1);

/// An application, and what was reported of it.
struct Application {
    profile: &'static str,
    name: &'static str,
    /// So many transactions, of files scaled so.
    count: u64,
    scale: f64,
    /// How many times slower with flushes; `None` if it is not named.
    reported: Option<f64>,
    expected: Option<Expected>,
    /// Whether what it reads comes from the drive.
    is_cold: bool,
    why: &'static str,
}

const APPLICATIONS: [Application; 8] = [
    Application {
        profile: "dbf-update:fsync",
        name: "DBF update, each record flushed",
        count: 200,
        scale: 1.0,
        reported: Some(100.0),
        expected: Some(SLOW),
        is_cold: false,
        why: "Record, index node and header are written in place, and both files synced; what the program of the report does for a record is not known",
    },
    Application {
        profile: "registry-kv:durable",
        name: "registry writes",
        count: 200,
        scale: 1.0,
        reported: Some(10.0),
        expected: Some(SLOW),
        is_cold: false,
        why: "4 KiB, and two syncs for it",
    },
    Application {
        profile: "pg-wal:single",
        name: "database, a sync for each commit",
        count: 400,
        scale: 1.0,
        reported: Some(10.0),
        expected: Some(SLOW),
        is_cold: false,
        why: "8 to 24 KiB of log and one fdatasync",
    },
    Application {
        profile: "defrag:flush",
        name: "defragmentation",
        count: 60,
        scale: 0.25,
        reported: None,
        expected: None,
        is_cold: false,
        why: "Two flushes for each extent of 64 KiB to 1 MiB: the longer the extent, the less they weigh",
    },
    Application {
        profile: "save:rename",
        name: "saving a document of 2 MB",
        count: 40,
        scale: 1.0,
        reported: Some(1.0),
        expected: None,
        is_cold: false,
        why: "One sync for 2 MB: tens of milliseconds, which a person does not notice and a loop does",
    },
    Application {
        profile: "copy:no-sync",
        name: "copying 600 files",
        count: 600,
        scale: 0.3,
        reported: Some(1.0),
        expected: Some(SAME),
        is_cold: true,
        why: "Nothing is flushed; it reads, and is written back later",
    },
    Application {
        profile: "unpack:none",
        name: "unpacking 3000 files",
        count: 3000,
        scale: 0.3,
        reported: Some(1.0),
        expected: Some(SAME),
        is_cold: false,
        why: "Nothing is flushed",
    },
    Application {
        profile: "unpack:fsync-each",
        name: "unpacking 300 files, each synced",
        count: 300,
        scale: 0.03,
        reported: None,
        expected: None,
        is_cold: false,
        why: "The same, by a program that syncs each file: the program decides, not the work",
    },
];

const REPORT: &str = "Times as slow with flushes (cache on) as without (protected)";
const BY_STATE: &str = "Which applications suffer: transactions a second by state of the cache";
const SYMPTOM: &str = "The symptom";

pub(super) const CHAPTER: Chapter = Chapter {
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
            "{place} stays in the state that it is in; `plumb policy` switches drives, and `plumb compare` compares recorded runs"
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
        let mut made = row(REPORT, application.name, StudyUnit::Times)
            .unreported("the report does not name it")
            .ours_or(Some(slower), "nothing completed")
            .why(format!("{}; {} syncs each", application.why, ratio(syncs)));
        made = application.reported.map_or(made.clone(), |reported| made.reported(reported));
        made = application.expected.map_or(made.clone(), |expected| made.expecting(expected));
        times.push(made);
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
    let mut iops = Vec::new();
    let mut symptom = row(SYMPTOM, "of all the time, flushes are waited for (cache on)", StudyUnit::Times)
        .unreported("the report tells of an idle processor and a disk that works in a regular rhythm")
        .expecting(Expected::at_least(0.8));
    for (state, options) in STATES {
        let loaded = bench.load(&[&format!("{DRIVE}?{options}&seed={}", bench.seed())], words)?;
        iops.push(loaded.iops());
        if state == "on" {
            let waited = loaded.total().sync.latency.map(|of| of.mean * of.count as f64);
            symptom = symptom
                .ours_or(waited.map(|waited| waited / loaded.total().application.seconds), "nothing was synced")
                .why("One writer waits for one flush after the other: the processor has nothing to do meanwhile");
        }
    }
    let rows = vec![
        row(REPORT, "small writes, each flushed", StudyUnit::Times)
            .reported(10.0)
            .ours(iops[2] / iops[1])
            .expecting(SLOW)
            .why(format!(
                "{} writes a second without flushes, {} with, {} with the cache off",
                rate(iops[2]),
                rate(iops[1]),
                rate(iops[0])
            )),
    ];
    Ok(FlushedWrites { rows, symptom })
}

fn run(bench: &mut Bench<'_>, application: &Application, options: &str) -> Result<Profiled, StudyError> {
    let drive = format!("{DRIVE}?{options}&seed={}", bench.seed());
    let host = Host { cold_after_syncfs: application.is_cold, ..Host::DESKTOP_2002 };
    let limits = Limits {
        duration: None,
        count: Some(application.count),
        threads: Some(1),
        scale: Some(application.scale),
        seed: bench.seed(),
    };
    bench.profile(&drive, host, application.profile, &limits)
}

/// The same profiles in a directory of this machine, in the state that its drive is in.
fn real(bench: &mut Bench<'_>, place: &str) -> Result<Found, StudyError> {
    const OTHER_STATES: &str = "the drive stays in its state: the other states cannot be had here";
    let mut rows: Vec<StudyRow> = Vec::new();
    let mut by_state = Vec::new();
    let is_directory = std::fs::metadata(place).is_ok_and(|found| found.is_dir());
    for application in &APPLICATIONS {
        let mut made = row(REPORT, application.name, StudyUnit::Times)
            .unreported("the report does not name it")
            .ours_or(None, OTHER_STATES)
            .why(application.why);
        made = application.reported.map_or(made.clone(), |reported| made.reported(reported));
        rows.push(made);
        let figure = format!("{}, the cache as it is", application.name);
        let figure = row(BY_STATE, figure, StudyUnit::PerSecond);
        if !is_directory {
            by_state.push(figure.ours_or(None, "applications work on files: name a directory"));
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
        by_state.push(
            figure
                .ours_or(transactions.map(|of| of.per_second), "nothing completed")
                .why(format!("{} syncs each", ratio(syncs))),
        );
    }
    rows.extend(by_state);
    Ok((
        rows,
        Vec::new(),
        format!(
            "measured in {place} as it is; set beside one another, the rates say which applications wait for syncs"
        ),
    ))
}

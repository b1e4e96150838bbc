//! SQLIO's command line, parameter file and output.

use std::io;
use std::num::NonZeroU32;

use plumb_block::{Bytes, Nanos};
use plumb_dialect::sqlio::{self, Invocation};
use plumb_dialect::{Error, Machine, Meaning};
use plumb_load::{LoadOutcome, Part, SpanResult, TargetResult, ThreadResult};
use plumb_measure::SeriesEvent;
use plumb_workload::{Access, Affinity, Caching, EngineChoice, Job, Sequential, Walk};
use proptest::prelude::*;

fn machine() -> Machine {
    Machine { uptime_ms: 1, argv: Vec::new(), ..crate::machine() }
}

fn read(path: &str) -> io::Result<String> {
    match path {
        "param.txt" => Ok("/data/a 2 0x0 100\n/data/b 4 0x3 200 # second\n".to_owned()),
        "letters.txt" => Ok("c:\\testfile.dat 2 0x0 100\n".to_owned()),
        "far.txt" => Ok("/data/a 2 0xF0 100\n".to_owned()),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
    }
}

fn invocation(typed: &str) -> Result<Invocation, Error> {
    let arguments: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
    sqlio::parse(&arguments, &machine(), &read)
}

fn meaning(typed: &str) -> Result<Meaning, Error> {
    invocation(typed)?.meaning()
}

type Holds = fn(&[Job]) -> bool;

fn durable(job: &Job) -> bool {
    job.workload.durability.fua_every == Some(NonZeroU32::MIN)
}

fn sequential(stride: Option<u64>) -> Access {
    Access::Sequential(Sequential { stride: stride.map(Bytes), walk: Walk::Each })
}

const POSITIVE: &[(&str, Holds)] = &[
    ("t", |jobs| jobs[0].workload.blocks.only() == Some(Bytes::kib(2)) && jobs[0].threads == 1),
    ("t", |jobs| {
        jobs[0].workload.stop.duration == Some(Nanos::secs(30)) && jobs[0].workload.write_percent == 0
    }),
    ("t", |jobs| jobs[0].workload.access == sequential(Some(64 * 2048))),
    ("t", |jobs| jobs[0].workload.depth == 1 && jobs[0].opening.engine == EngineChoice::Synchronous),
    ("t", |jobs| jobs[0].opening.caching == Caching::Direct && !durable(&jobs[0])),
    ("-kW -s30 -frandom -o8 -b64 -BH -LS t", |jobs| {
        let workload = &jobs[0].workload;
        workload.access == Access::RANDOM && workload.depth == 8 && workload.write_percent == 100
    }),
    ("-kW t", |jobs| jobs[0].opening.caching == Caching::Direct && durable(&jobs[0])),
    ("-kW -BN t", |jobs| jobs[0].opening.caching == Caching::Direct && durable(&jobs[0])),
    ("-kW -BH t", |jobs| jobs[0].opening.caching == Caching::Direct && !durable(&jobs[0])),
    ("-kW -BS t", |jobs| jobs[0].opening.caching == Caching::Cached && durable(&jobs[0])),
    ("-kW -BY t", |jobs| jobs[0].opening.caching == Caching::Cached && !durable(&jobs[0])),
    ("-kR -BY #1", |jobs| jobs[0].opening.caching == Caching::Direct),
    ("-t4 t", |jobs| jobs[0].threads == 4),
    ("-s120 t", |jobs| jobs[0].workload.stop.duration == Some(Nanos::secs(120))),
    ("-b8 t", |jobs| jobs[0].workload.blocks.only() == Some(Bytes::kib(8))),
    ("-fsequential t", |jobs| jobs[0].workload.access == sequential(None)),
    ("-f16 -b8 t", |jobs| jobs[0].workload.access == sequential(Some(16 << 13))),
    ("-fstripe t", |jobs| jobs[0].workload.access == sequential(Some(64 << 11))),
    ("-o0 t", |jobs| jobs[0].workload.depth == 1),
    ("-o64 t", |jobs| jobs[0].workload.depth == 64 && jobs[0].opening.engine == EngineChoice::Auto),
    ("-S10 -b4 t", |jobs| jobs[0].workload.range.offset == Bytes(40_960)),
    ("-p2 t", |jobs| jobs[0].affinity == Affinity::Each(vec![2])),
    ("-a0x5 t", |jobs| jobs[0].affinity == Affinity::Shared(vec![0, 2])),
    ("-aR0x5 t", |jobs| jobs[0].affinity == Affinity::Each(vec![0, 2])),
    ("-a0 t", |jobs| jobs[0].affinity == Affinity::Any),
    ("-R0,3", |jobs| jobs.len() == 2 && jobs[1].targets[0].name == "#3"),
    ("-i32 -frandom t", |jobs| jobs[0].workload.access == Access::RANDOM),
    ("t u", |jobs| jobs.len() == 2 && jobs[0].workload.seed != jobs[1].workload.seed),
    ("t -kW", |jobs| jobs[0].workload.write_percent == 100),
    ("-Fparam.txt", |jobs| jobs[0].threads == 2 && jobs[0].size == Some(Bytes::mib(100))),
    ("-Fparam.txt -t9", |jobs| jobs[1].threads == 4 && jobs[1].affinity == Affinity::Shared(vec![0, 1])),
];

const NEGATIVE: &[(&str, &[&str])] = &[
    ("", &["targets"]),
    ("-kX t", &["-kX", "'X'"]),
    ("-k t", &["-k"]),
    ("-s0 t", &["-s0", "'0'"]),
    ("-sx t", &["-sx"]),
    ("-t0 t", &["-t0"]),
    ("-o-1 t", &["-o-1"]),
    ("-o40000 t", &["40000"]),
    ("-b0 t", &["-b0"]),
    ("-b8k t", &["8k"]),
    ("-b1048577 t", &["1048577"]),
    ("-ffoo t", &["foo"]),
    ("-f0 t", &["'0'"]),
    ("-Bx t", &["-Bx", "'x'"]),
    ("-L t", &["-L"]),
    ("-Sx t", &["-Sx"]),
    ("-p9 t", &["processor 9"]),
    ("-a0xF0 t", &["processor 4"]),
    ("-azz t", &["'zz'"]),
    ("-dEF t", &["-dEF", "drive letters"]),
    ("-RE t", &["'E'"]),
    ("-i32 t", &["-i32", "'32'"]),
    ("-i0 -frandom t", &["-i0"]),
    ("-mC4 t", &["-mC4"]),
    ("-F t", &["-F"]),
    ("-Fnone.txt", &["-Fnone.txt", "none.txt"]),
    ("-Fparam.txt t", &["t", "param.txt"]),
    ("-Fparam.txt -Fparam.txt", &["param.txt"]),
    ("-Fletters.txt", &["letters.txt:1", "drive letter"]),
    ("-Ffar.txt", &["processor 4"]),
    ("-z t", &["-z"]),
    (r"E:\test.dat", &["drive letter"]),
];

#[test]
fn command_lines_mean_what_they_should() {
    for (typed, holds) in POSITIVE {
        let meaning = meaning(typed).unwrap_or_else(|error| panic!("{typed}: {error}"));
        let jobs = &meaning.scenario.spans[0].jobs;
        assert!(holds(jobs), "{typed} means {jobs:#?}");
        assert!(meaning.notes[0].contains("recalled"), "{:?}", meaning.notes);
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    for (typed, named) in NEGATIVE {
        let error = meaning(typed).expect_err(typed).to_string();
        for name in *named {
            assert!(error.contains(name), "{typed}: '{error}' does not name {name}");
        }
    }
}

/// Returns a result of four reads of 8 KiB in 2 s: 0.5, 3, 3.9 and 30 ms.
fn result() -> SpanResult {
    let mut outcome = LoadOutcome::empty();
    for latency in [500, 3000, 3900, 30_000].map(Nanos::micros) {
        outcome.read.latency.record(latency);
        outcome.read.bytes += Bytes::kib(8);
        outcome.read.series.record(SeriesEvent { at: Nanos::ZERO, bytes: 8192, latency });
    }
    let target = TargetResult {
        job: 0,
        name: "t.dat".to_owned(),
        opened: "/t.dat".to_owned(),
        size: Bytes::mib(100),
        engine: "io_uring".to_owned(),
        storage: Err("not a block device".to_owned()),
    };
    SpanResult {
        warmup: Nanos::ZERO,
        window: Nanos::secs(2),
        threads: vec![ThreadResult { job: 0, cpu: None, parts: vec![Part { target: 0, outcome }] }],
        targets: vec![target],
        processors: Vec::new(),
    }
}

#[test]
fn the_layout_is_that_of_sqlio() {
    let printed = |typed| sqlio::text(&invocation(typed).unwrap(), &result(), &machine());
    let text = printed("-kR -t1 -s2 -o8 -frandom -b8 -BH -LS t.dat");
    let expected = [
        "sqlio v1.5.SG (plumb 0.1.0)",
        "1 thread reading for 2 secs from file t.dat",
        "\tusing 8KB random IOs",
        "\tenabling multiple I/Os per thread with 8 outstanding",
        "\tbuffering set to use hardware disk cache (but not file cache)",
        "using current size: 100 MB for file: t.dat",
        "initialization done",
        "CUMULATIVE DATA:",
        "throughput metrics:",
        "IOs/sec:     2.00",
        "MBs/sec:     0.02",
        "latency metrics:",
        "Min_Latency(ms): 0",
        "Avg_Latency(ms): 9",
        "Max_Latency(ms): 30",
        "histogram:",
        "ms:  0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24+",
        "%:  25  0  0 50  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0 25",
        "Storage: what the devices beneath were handed",
        "t.dat: not known: not a block device",
    ];
    let mut lines = text.lines();
    for line in expected {
        assert!(lines.any(|printed| printed == line), "no '{line}' where it should be in\n{text}");
    }
    assert!(!printed("t.dat").contains("Latency(ms)"), "latencies were not asked for");
}

proptest! {
    #[test]
    fn any_command_line_has_an_answer(arguments in proptest::collection::vec("-?[a-zA-Z#]{0,2}\\PC{0,8}", 0..5)) {
        match sqlio::parse(&arguments, &machine(), &read) {
            Ok(invocation) => prop_assert!(invocation.meaning().is_ok_and(|meaning| !meaning.notes.is_empty())),
            Err(error) => prop_assert!(!error.problem.is_empty()),
        }
    }

    #[test]
    fn any_parameter_file_has_an_answer(text in "[/a-z0-9x# \n\t]{0,80}") {
        let read = |_: &str| Ok(text.clone());
        if let Err(error) = sqlio::parse(&["-Fp".to_owned()], &machine(), &read) {
            // The place is the file, a line of it, or a file that it names: `/data/a: processor 4 does not
            // exist`.
            prop_assert!(error.place.starts_with('p') || text.contains(&error.place), "{error}");
        }
    }
}

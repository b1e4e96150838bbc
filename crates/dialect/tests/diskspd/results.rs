//! Results of known operations, from which every figure of an output can be recomputed.

use plumb_block::{Bytes, Nanos};
use plumb_load::{
    CpuUse, Direction, LoadOutcome, Part, ProcessorUse, SpanResult, TargetResult, ThreadResult,
};
use plumb_measure::{SeriesEvent, StorageSide};

/// Operations of one direction: `count` of them with `bytes` each. The n-th starts after n intervals and
/// takes n microseconds.
#[derive(Clone, Copy)]
pub(crate) struct Operations {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) interval: Nanos,
}

fn record(direction: &mut Direction, done: Operations) {
    for number in 1..=done.count {
        let latency = Nanos::micros(number);
        direction.latency.record(latency);
        direction.bytes += Bytes(done.bytes);
        let at = Nanos(done.interval.0 * (number - 1));
        direction.series.record(SeriesEvent { at, bytes: done.bytes, latency });
    }
}

pub(crate) fn outcome(reads: Operations, writes: Operations) -> LoadOutcome {
    let mut outcome = LoadOutcome::empty();
    record(&mut outcome.read, reads);
    record(&mut outcome.write, writes);
    outcome.in_flight_max = 2;
    outcome
}

fn storage() -> StorageSide {
    StorageSide {
        iops: 50.0,
        bytes_per_second: 204_800.0,
        io_bytes_mean: Some(4096.0),
        flushes: Some(7),
        flush_mean: None,
        reads: 100,
        writes: 0,
        read_bytes: 409_600,
        write_bytes: 0,
        ..StorageSide::default()
    }
}

/// Returns a span of two seconds with `threads` threads on each of `names`, each with the operations
/// `per_part`.
pub(crate) fn span(names: &[&str], threads: usize, per_part: (Operations, Operations)) -> SpanResult {
    let targets = names.iter().enumerate().map(|(job, name)| TargetResult {
        job,
        name: (*name).to_owned(),
        opened: format!("/{name}"),
        size: Bytes::mib(10),
        engine: "io_uring".to_owned(),
        storage: if job == 0 { Ok(storage()) } else { Err("a <test> & no device".to_owned()) },
    });
    let cpu = CpuUse { user: Nanos::millis(10), system: Nanos::millis(20) };
    let of_job = |job: usize| ThreadResult {
        job,
        cpu: Some(cpu),
        parts: vec![Part { target: job, outcome: outcome(per_part.0, per_part.1) }],
    };
    let processor = |number: u32| ProcessorUse {
        number,
        user: Nanos::millis(500),
        kernel: Nanos::millis(250 * u64::from(number)),
        idle: Nanos::millis(1500 - 250 * u64::from(number)),
    };
    SpanResult {
        warmup: Nanos::ZERO,
        window: Nanos::secs(2),
        threads: (0..names.len()).flat_map(|job| (0..threads).map(move |_| job)).map(of_job).collect(),
        targets: targets.collect(),
        processors: vec![processor(0), processor(1)],
    }
}

/// A thousand reads of 4 KiB in one second, and one write.
pub(crate) const MIXED: (Operations, Operations) = (
    Operations { count: 1000, bytes: 4096, interval: Nanos::millis(1) },
    Operations { count: 1, bytes: 4096, interval: Nanos::millis(1) },
);

/// Reads only.
pub(crate) const READS: (Operations, Operations) = (MIXED.0, Operations { count: 0, ..MIXED.1 });

//! What an operation costs before anything is done with it, for each way through a range.
//!
//! `cargo run --release -p plumb-workload --example cost [MILLIONS]`

use std::hint::black_box;
use std::time::Instant;

use plumb_block::Bytes;
use plumb_workload::{
    Access, Amount, Arrival, BlockSizes, BlockSplit, ByteRange, Cursor, Distribution, Generator, Invalid,
    Operation, Random, Rate, Runs, Schedule, Sequential, Share, Walk, Workload, Zone, ZoneLength,
};

fn main() -> Result<(), Invalid> {
    let millions = std::env::args().nth(1).and_then(|typed| typed.parse().ok()).unwrap_or(5);
    for (name, workload) in workloads() {
        let mut generator = Generator::new(&workload, Share::WHOLE, &Cursor::default())?;
        let mut schedule = Schedule::new(&workload, Share::WHOLE);
        // The best of several: whatever else runs on the machine only ever adds.
        let best = (0..10).map(|_| time(&mut generator, &mut schedule, millions)).fold(f64::MAX, f64::min);
        println!("{name:<28} {best:6.2} ns");
    }
    Ok(())
}

/// Nanoseconds for each of so many million operations.
fn time(generator: &mut Generator, schedule: &mut Option<Schedule>, millions: u32) -> f64 {
    let start = Instant::now();
    for _ in 0..millions * 1_000_000 {
        let operation = black_box(generator.next());
        if let (Some(schedule), Some(Operation::Read { length, .. } | Operation::Write { length, .. })) =
            (schedule.as_mut(), operation)
        {
            black_box(schedule.intended());
            schedule.advance(length);
        }
    }
    start.elapsed().as_secs_f64() * 1e3 / f64::from(millions)
}

fn workloads() -> Vec<(&'static str, Workload)> {
    let range = ByteRange { offset: Bytes(0), length: Bytes::gib(1000) };
    let base = Workload { write_percent: 30, ..Workload::over(range, Bytes::kib(4)) };
    let drawn = |distribution, runs| Workload {
        access: Access::Random(Random { align: None, distribution, runs }),
        ..base.clone()
    };
    let walked = |walk| Workload {
        access: Access::Sequential(Sequential { stride: None, walk }),
        division: plumb_workload::Division::Overlap,
        ..base.clone()
    };
    let split = BlockSplit(vec![(Bytes::kib(4), 60), (Bytes::kib(16), 30), (Bytes::kib(64), 10)]);
    let paced =
        |arrival| Workload { rate: Rate::Scheduled { amount: Amount::Iops(3e5), arrival }, ..base.clone() };
    let zones = vec![
        Zone { io_percent: 90.0, length: ZoneLength::Percent(10.0) },
        Zone { io_percent: 0.0, length: ZoneLength::Percent(10.0) },
    ];
    vec![
        ("uniform, reads alone", Workload { write_percent: 0, ..base.clone() }),
        ("uniform", base.clone()),
        ("sequential", walked(Walk::Each)),
        ("sequential, interlocked", walked(Walk::Interlocked)),
        ("sequential, parallel", walked(Walk::Parallel)),
        ("uniform, three lengths", {
            let blocks = BlockSizes { read: split.clone(), write: split.clone(), trim: split };
            Workload { blocks, ..base.clone() }
        }),
        ("uniform, runs", drawn(Distribution::Uniform, Runs::Geometric { random_percent: 50 })),
        ("each once", drawn(Distribution::EachOnce, Runs::Single)),
        ("zipf 0.99", drawn(Distribution::Zipf { theta: 0.99 }, Runs::Single)),
        ("zipf 1.2", drawn(Distribution::Zipf { theta: 1.2 }, Runs::Single)),
        ("pareto 0.2", drawn(Distribution::Pareto { power: 0.2 }, Runs::Single)),
        ("normal 10 %", drawn(Distribution::Normal { deviation_percent: 10.0 }, Runs::Single)),
        ("zones", drawn(Distribution::Zoned(zones), Runs::Single)),
        ("uniform, fixed rate", paced(Arrival::Fixed)),
        ("uniform, poisson rate", paced(Arrival::Poisson)),
    ]
}

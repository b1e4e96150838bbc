//! jetstress-like: a mail store's database and log, with the limits of its vendor.

use plumb_block::{Bytes, Nanos};
use plumb_workload::{Amount, Arrival, Job, Rate, Scenario, Span, Workload};

use super::block_setting::{BlockSetting, DATA_RANGE, EXTENT, LOG_RANGE, log_writes};
use crate::criteria::{Criterion, Quantity, Statistic};
use crate::profile::{BlockWork, Profile, Provenance, Variant, Work};

pub(super) static PROFILE: Profile = Profile {
    name: "jetstress-like",
    summary: "Exchange's store: 32 KiB random, 3 reads to 2 writes, a durable log; limits 20, 10 and 50 ms",
    pattern: "Two jobs at once, past the page cache. database: random 32 KiB, 60 % reads, 16 in flight. log: one after \
              the other in the first 32 MiB, 6 to 8 KiB, each durable when it completes, 50 a second at random times.",
    provenance: Provenance::Published,
    source: "Microsoft's guidance on Exchange storage and the limits of Jetstress: reads of the database below 20 ms \
             on average, log writes below 10 ms, spikes below 50 ms. Estimated: depth, the rate of the log, how often \
             each size comes; a spike is the mean of the worst second; a file that is made is 4 GiB long.",
    leaves_out: "The ESE engine itself, its cache and its background maintenance. It is not Jetstress, and passing it \
                 is no result of Jetstress.",
    criteria: &[
        Criterion {
            id: "exchange-read-mean",
            of: Quantity::Reads { job: DATABASE },
            statistic: Statistic::Mean,
            below: Nanos::millis(20),
            why: "users wait for reads of the database",
        },
        Criterion {
            id: "exchange-log-mean",
            of: Quantity::Writes { job: LOG },
            statistic: Statistic::Mean,
            below: Nanos::millis(10),
            why: "every change waits for the log",
        },
        Criterion {
            id: "exchange-read-spike",
            of: Quantity::Reads { job: DATABASE },
            statistic: Statistic::WorstSecond,
            below: Nanos::millis(50),
            why: "spikes are felt even where the mean is good",
        },
        Criterion {
            id: "exchange-log-spike",
            of: Quantity::Writes { job: LOG },
            statistic: Statistic::WorstSecond,
            below: Nanos::millis(50),
            why: "spikes are felt even where the mean is good",
        },
    ],
    variants: &[Variant { name: "mixed", summary: "database and log at once" }],
    extent: EXTENT,
    work: Work::Blocks(BlockWork(scenario)),
};

/// The places of the jobs in the scenario.
const DATABASE: usize = 0;
const LOG: usize = 1;

/// Lengths of log writes in bytes, and of 100 how many.
const LOG_LENGTHS: [(u64, u8); 5] = [(6144, 20), (6656, 20), (7168, 20), (7680, 20), (8192, 20)];
const LOG_PER_SECOND: f64 = 50.0;
/// Where a count ends the run and not time: about what a disk does between two of them.
const OPERATIONS_BETWEEN_LOG_WRITES: u64 = 20;

fn scenario(setting: &BlockSetting<'_>) -> Scenario {
    let size = setting.size(Bytes::gib(4));
    let database = Workload { write_percent: 40, depth: 16, ..Workload::over(DATA_RANGE, Bytes::kib(32)) };
    let lengths = LOG_LENGTHS.iter().map(|(bytes, percent)| (Bytes(*bytes), *percent)).collect();
    let rate = Rate::Scheduled { amount: Amount::Iops(LOG_PER_SECOND), arrival: Arrival::Poisson };
    let database = setting.job("database", size, database);
    let mut log = setting.job("log", size, Workload { rate, ..log_writes(LOG_RANGE, lengths) });
    log.workload.stop = setting.stop_of_slower(OPERATIONS_BETWEEN_LOG_WRITES);
    let database = Job { threads: setting.threads.unwrap_or(1), ..database };
    Scenario { spans: vec![Span::of(vec![database, log])] }
}

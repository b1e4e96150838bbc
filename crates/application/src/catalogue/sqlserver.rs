//! sqlserver: SQL Server's log and its data pages.

use plumb_block::Bytes;
use plumb_workload::{
    Access, BlockSizes, BlockSplit, Distribution, Job, Random, Runs, Scenario, Span, Workload,
};

use super::block_setting::{BlockSetting, DATA_RANGE, EXTENT, LOG_RANGE, log_writes};
use crate::profile::{BlockWork, Profile, Provenance, Variant, Work};

pub(super) static PROFILE: Profile = Profile {
    name: "sqlserver",
    summary: "SQL Server: a durable log of 512 B to 60 KiB, and data pages gathered to 256 KiB",
    pattern: "Two jobs at once, past the page cache. log: one after the other in the first 32 MiB, 512 B to 60 KiB, \
              each durable when it completes. data: random in the rest, 8 to 256 KiB (8 KiB pages gathered), 8 in \
              flight.",
    provenance: Provenance::Published,
    source: "Microsoft's SQL Server I/O basics: log blocks of 512 B to 60 KiB written through, data pages of 8 KiB \
             gathered to 256 KiB at checkpoints. Estimated: how often each size comes, the depth, that both run as \
             fast as they can; a file that is made is 4 GiB long.",
    leaves_out: "Reads and read-ahead; checkpoints that keep their latency below a target; tempdb; log and data on \
                 disks of their own, as is recommended.",
    criteria: &[],
    variants: &[
        Variant { name: "sectors-512", summary: "log blocks are multiples of 512 B" },
        Variant {
            name: "sectors-4k",
            summary: "log blocks are multiples of 4 KiB, for disks with such sectors",
        },
    ],
    extent: EXTENT,
    work: Work::Blocks(BlockWork(scenario)),
};

/// Lengths of log blocks in bytes, and of 100 how many.
const LOG_512: [(u64, u8); 7] =
    [(512, 10), (1024, 10), (4096, 30), (8192, 20), (16_384, 10), (32_768, 10), (61_440, 10)];
const LOG_4K: [(u64, u8); 5] = [(4096, 50), (8192, 20), (16_384, 10), (32_768, 10), (61_440, 10)];
/// Lengths of data writes in KiB, and of 100 how many.
const DATA: [(u64, u8); 6] = [(8, 20), (16, 10), (32, 10), (64, 20), (128, 20), (256, 20)];

fn scenario(setting: &BlockSetting<'_>) -> Scenario {
    let size = setting.size(Bytes::gib(4));
    let log: &[(u64, u8)] = if setting.variant == "sectors-4k" { &LOG_4K } else { &LOG_512 };
    let lengths = log.iter().map(|(bytes, percent)| (Bytes(*bytes), *percent)).collect();
    let split = BlockSplit(DATA.iter().map(|(kib, percent)| (Bytes::kib(*kib), *percent)).collect());
    let pages =
        Random { align: Some(Bytes::kib(8)), distribution: Distribution::Uniform, runs: Runs::Single };
    let data = Workload {
        blocks: BlockSizes { read: split.clone(), write: split.clone(), trim: split },
        access: Access::Random(pages),
        write_percent: 100,
        depth: 8,
        ..Workload::over(DATA_RANGE, Bytes::kib(8))
    };
    let data = setting.job("data", size, data);
    let jobs = vec![
        setting.job("log", size, log_writes(LOG_RANGE, lengths)),
        Job { threads: setting.threads.unwrap_or(1), ..data },
    ];
    Scenario { spans: vec![Span::of(jobs)] }
}

//! vm-64k: a virtual machine's disk under load.

use plumb_block::Bytes;
use plumb_workload::{ByteRange, Job, Rate, Scenario, Span, Workload};

use super::block_setting::{BlockSetting, EXTENT, FLUSH_EACH, random_writes};
use crate::profile::{BlockWork, Profile, Provenance, Variant, Work};

pub(super) static PROFILE: Profile = Profile {
    name: "vm-64k",
    summary: "a virtual machine's disk: 64 KiB random writes at depth 32, with a flush now and then or none",
    pattern: "Random writes of 64 KiB past the page cache, 32 in flight. flush-5s: every 5 s a second job writes 4 KiB \
              and flushes, as a guest's journal does.",
    provenance: Provenance::Modelled,
    source: "The interval is that of ext4's journal (commit=5). Estimated: size, depth, and that every place is as \
             likely; a file that is made is 4 GiB long.",
    leaves_out: "Reads; the image format of the virtual machine; bursts. What was not flushed may be lost at a power \
                 cut, and without a flush that is all of it.",
    criteria: &[],
    variants: &[
        Variant { name: "no-flush", summary: "nothing is ever made durable" },
        Variant { name: "flush-5s", summary: "a flush every 5 s" },
    ],
    extent: EXTENT,
    work: Work::Blocks(BlockWork(scenario)),
};

/// Where a count ends the run and not time: about what a disk does in 5 s.
const OPERATIONS_BETWEEN_FLUSHES: u64 = 10_000;
/// One in 5 s.
const FLUSHES_PER_SECOND: f64 = 0.2;

fn scenario(setting: &BlockSetting<'_>) -> Scenario {
    let size = setting.size(Bytes::gib(4));
    let disk = setting.job("disk", size, random_writes(ByteRange::ALL, Bytes::kib(64), 32));
    let mut jobs = vec![Job { threads: setting.threads.unwrap_or(1), ..disk }];
    if setting.variant == "flush-5s" {
        let journal = Workload {
            durability: FLUSH_EACH,
            rate: Rate::iops(FLUSHES_PER_SECOND),
            ..random_writes(ByteRange::ALL, Bytes::kib(4), 1)
        };
        let mut journal = setting.job("journal", size, journal);
        journal.workload.stop = setting.stop_of_slower(OPERATIONS_BETWEEN_FLUSHES);
        jobs.push(journal);
    }
    Scenario { spans: vec![Span::of(jobs)] }
}

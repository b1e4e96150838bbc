//! ceph-osd: the test by which Ceph's documentation judges a disk.

use plumb_block::Bytes;
use plumb_workload::{ByteRange, FlushCall, Job, Opening, Scenario, Span, Workload};

use super::block_setting::{BlockSetting, EXTENT, FLUSH_EACH, random_writes};
use crate::profile::{BlockWork, Profile, Provenance, Variant, Work};

pub(super) static PROFILE: Profile = Profile {
    name: "ceph-osd",
    summary: "Ceph's test of a disk: 4 KiB random writes, direct, an fsync after each",
    pattern: "Random writes of 4 KiB past the page cache, one at a time, fsync after each, over the whole target.",
    provenance: Provenance::Published,
    source: "Ceph's documentation on hardware and its fio job for judging the write cache of a disk (--rw=randwrite \
             --bs=4k --iodepth=1 --fsync=1 --direct=1). Estimated: nothing; a file that is made is 4 GiB long.",
    leaves_out: "Everything above the disk: see ceph-osd-hdd for the way of small writes through BlueStore.",
    criteria: &[],
    variants: &[Variant { name: "fsync", summary: "as documented" }],
    extent: EXTENT,
    work: Work::Blocks(BlockWork(scenario)),
};

fn scenario(setting: &BlockSetting<'_>) -> Scenario {
    let workload = Workload { durability: FLUSH_EACH, ..random_writes(ByteRange::ALL, Bytes::kib(4), 1) };
    let job = setting.job("osd", setting.size(Bytes::gib(4)), workload);
    let opening = Opening { flush: FlushCall::Fsync, ..job.opening };
    Scenario { spans: vec![Span::of(vec![Job { opening, threads: setting.threads.unwrap_or(1), ..job }])] }
}

//! Tests of the scenarios of block profiles.

use plumb_block::{Bytes, Nanos};
use plumb_workload::{Caching, Durability, FlushCall, Rate, Scenario};

use crate::limits::Limits;
use crate::profile::Work;

fn scenario(typed: &str, limits: Limits) -> Scenario {
    let (profile, variant) = crate::find(typed).unwrap();
    crate::scenario(profile, variant, "disk.img", &limits).unwrap()
}

#[test]
fn every_block_profile_is_a_valid_scenario_that_fits_its_own_file() {
    let mut seen = 0;
    let blocks = crate::profiles().iter().filter(|profile| matches!(profile.work, Work::Blocks(_)));
    for (profile, variant) in
        blocks.flat_map(|profile| profile.variants.iter().map(move |variant| (profile, variant)))
    {
        seen += 1;
        let limits = [
            Limits::default(),
            Limits { count: Some(100), threads: Some(4), ..Limits::default() },
            Limits { duration: Some(Nanos::secs(1)), scale: Some(0.001), seed: 9, ..Limits::default() },
        ];
        for limits in limits {
            let scenario = crate::scenario(profile, variant, "disk.img", &limits).unwrap();
            scenario
                .validate()
                .unwrap_or_else(|invalid| panic!("{} {}: {invalid}", profile.name, variant.name));
            for job in &scenario.spans[0].jobs {
                job.workload.within(job.size.unwrap()).unwrap();
                assert_eq!(job.workload.seed, limits.seed);
                assert_eq!(job.opening.caching, Caching::Direct);
                assert_eq!(job.targets[0].name, "disk.img");
                let stop = job.workload.stop;
                assert!(stop.duration.is_some() || stop.operations.is_some(), "{} ends", profile.name);
            }
        }
    }
    assert_eq!(seen, 6, "scenarios");
}

#[test]
fn ceph_osd_is_4_kib_random_with_an_fsync_after_each() {
    let scenario = scenario("ceph-osd", Limits::default());
    let job = &scenario.spans[0].jobs[0];
    assert_eq!(job.workload.blocks.only(), Some(Bytes::kib(4)));
    assert!(job.workload.access.is_random());
    assert_eq!((job.workload.write_percent, job.workload.depth), (100, 1));
    assert_eq!(job.workload.durability.flush_every.map(std::num::NonZeroU32::get), Some(1));
    assert_eq!(job.opening.flush, FlushCall::Fsync);
}

#[test]
fn vm_64k_flushes_never_or_every_5_s() {
    let never = scenario("vm-64k", Limits::default());
    assert_eq!(never.spans[0].jobs.len(), 1);
    assert!(!never.spans[0].jobs[0].workload.durability.is_any());
    assert_eq!(never.spans[0].jobs[0].workload.depth, 32);
    let flushed = scenario("vm-64k:flush-5s", Limits::default());
    let [disk, journal] = &flushed.spans[0].jobs[..] else { panic!("two jobs") };
    assert_eq!(disk, &never.spans[0].jobs[0]);
    assert_eq!(journal.workload.rate, Rate::iops(0.2));
    assert!(journal.workload.durability.flush_every.is_some());
    let counted = scenario("vm-64k:flush-5s", Limits { count: Some(15_000), ..Limits::default() });
    let counts = counted.spans[0].jobs.iter().map(|job| job.workload.stop.operations);
    assert_eq!(
        counts.collect::<Vec<_>>(),
        [Some(15_000), Some(2)],
        "the journal does not outlast the disk by hours"
    );
}

#[test]
fn logs_are_durable_and_apart_from_the_data() {
    for (typed, shortest, longest) in
        [("sqlserver", 512, 61_440), ("sqlserver:sectors-4k", 4096, 61_440), ("jetstress-like", 6144, 8192)]
    {
        let scenario = scenario(typed, Limits::default());
        let jobs = &scenario.spans[0].jobs;
        let log = jobs.iter().find(|job| job.name == "log").unwrap();
        let data = jobs.iter().find(|job| job.name != "log").unwrap();
        assert_eq!(log.workload.durability, Durability::EACH_WRITE, "{typed}");
        assert!(!log.workload.access.is_random(), "{typed}");
        assert_eq!((log.workload.block_min(), log.workload.block_max()), (Bytes(shortest), Bytes(longest)));
        assert_eq!(log.workload.range.length, data.workload.range.offset, "{typed}");
        assert!(data.workload.access.is_random() && data.workload.range.is_open_ended(), "{typed}");
    }
    let mail = scenario("jetstress-like", Limits::default());
    assert_eq!(mail.spans[0].jobs[0].workload.write_percent, 40, "3 reads to 2 writes");
}

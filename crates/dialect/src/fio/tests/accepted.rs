//! Effect of each accepted option on the scenario.

use std::num::NonZeroU32;

use super::*;
use plumb_block::{Bytes, Nanos};
use plumb_workload::*;

fn random(access: &Access) -> &Random {
    match access {
        Access::Random(random) => random,
        Access::Sequential(_) => panic!("sequential"),
    }
}

#[test]
fn nothing_but_a_size_is_what_it_is_to_fio() {
    let job = only_job(&file("[x]\nsize=1g\n").unwrap()).clone();
    let workload = &job.workload;
    assert_eq!(job.targets, [TargetUse { name: "x.0.0".into(), weight: 1 }]);
    assert_eq!((job.threads, job.threads_shared, job.depth_shared), (1, true, true));
    assert_eq!(job.opening.caching, Caching::Cached);
    assert_eq!(job.opening.engine, EngineChoice::Synchronous, "fio's engine is psync");
    assert_eq!(job.size, Some(Bytes::gib(1)));
    assert_eq!(workload.access, Access::SEQUENTIAL);
    assert_eq!(workload.blocks, BlockSizes::one(Bytes::kib(4)));
    assert_eq!((workload.write_percent, workload.trim_percent, workload.depth), (0, 0, 1));
    assert_eq!(workload.stop, Stop { duration: None, operations: None, bytes: Some(1 << 30) });
    assert_eq!(workload.division, Division::Overlap);
    assert_eq!(workload.content, Content::Pattern);
}

#[test]
fn rw() {
    for (rw, writes, trims, is_random) in [
        ("read", 0, 0, false),
        ("write", 100, 0, false),
        ("rw", 50, 0, false),
        ("readwrite", 50, 0, false),
        ("trim", 0, 100, false),
        ("randread", 0, 0, true),
        ("randwrite", 100, 0, true),
        ("randrw", 50, 0, true),
        ("randtrim", 0, 100, true),
    ] {
        let workload = workload(&format!("rw={rw}"));
        assert_eq!((workload.write_percent, workload.trim_percent), (writes, trims), "{rw}");
        assert_eq!(workload.access.is_random(), is_random, "{rw}");
    }
    assert_eq!(workload("rw=randrw|rwmixread=70").write_percent, 30);
    assert_eq!(workload("readwrite=randrw|rwmixwrite=70").write_percent, 70);
    assert_eq!(workload("rw=randrw|rwmixwrite=70|rwmixread=60").write_percent, 40, "the later one holds");
    assert_eq!(random(&workload("rw=randread:8").access).runs, Runs::Fixed(8));
    let stride = Access::Sequential(Sequential { stride: Some(Bytes::kib(8)), walk: Walk::Each });
    assert_eq!(workload("rw=read:4k").access, stride);
    assert_eq!(
        workload("rw=read:4k").stop.bytes,
        Some(64 << 20),
        "from the start again at the end of the file"
    );
    assert_eq!(
        workload("rw=read:4k|filename=/dev/vdb").stop.bytes,
        Some(32 << 20),
        "a walk that skips does not leave its part of what is larger"
    );
    assert_eq!(workload("rw=read:4k|io_size=1g").stop.bytes, Some(1 << 30));
    assert!(notes("rw=read|numjobs=2").contains("offset_increment"));
    assert!(notes("rw=randread|rwmixread=10").contains("rwmixread has no effect"));
}

#[test]
fn block_sizes() {
    let blocks = |lines: &str| workload(lines).blocks;
    assert_eq!(blocks("bs=8k"), BlockSizes::one(Bytes::kib(8)));
    let three = blocks("bs=4k,8k,16k");
    assert_eq!(
        [three.read.only(), three.write.only(), three.trim.only()],
        [4, 8, 16].map(|k| Some(Bytes::kib(k)))
    );
    let two = blocks("bs=,8k");
    assert_eq!([two.read.only(), two.write.only(), two.trim.only()], [4, 8, 8].map(|k| Some(Bytes::kib(k))));
    let split = blocks("bssplit=4k/60:64k/40,8k/100");
    assert_eq!(split.read.0, [(Bytes::kib(4), 60), (Bytes::kib(64), 40)]);
    assert_eq!(split.write.only(), Some(Bytes::kib(8)));
    assert_eq!(blocks("bsrange=4k-8k").read.0, [(Bytes::kib(4), 50), (Bytes::kib(8), 50)]);
    assert_eq!(random(&workload("ba=512").access).align, Some(Bytes(512)));
    assert!(notes("rw=read|blockalign=512").contains("blockalign has no effect"));
}

#[test]
fn distributions() {
    let of = |lines: &str| random(&workload(lines).access).distribution.clone();
    assert_eq!(of("bs=4k"), Distribution::EachOnce, "fio's random map");
    assert_eq!(of("norandommap"), Distribution::Uniform);
    assert_eq!(of("norandommap=1"), Distribution::Uniform);
    assert_eq!(of("random_distribution=zipf"), Distribution::Zipf { theta: 1.1 });
    assert_eq!(of("random_distribution=zipf:0.8"), Distribution::Zipf { theta: 0.8 });
    assert_eq!(of("random_distribution=pareto:0.3"), Distribution::Pareto { power: 0.3 });
    assert_eq!(of("random_distribution=normal:20"), Distribution::Normal { deviation_percent: 20.0 });
    let zone = |io_percent, length| Zone { io_percent, length };
    let percents = vec![zone(60.0, ZoneLength::Percent(10.0)), zone(40.0, ZoneLength::Percent(90.0))];
    assert_eq!(of("random_distribution=zoned:60/10:40/90"), Distribution::Zoned(percents));
    let bytes =
        vec![zone(60.0, ZoneLength::Bytes(Bytes::mib(4))), zone(40.0, ZoneLength::Bytes(Bytes::mib(60)))];
    assert_eq!(of("random_distribution=zoned_abs:60/4m:40/60m"), Distribution::Zoned(bytes));
    let percent = random(&workload("percentage_random=30").access).clone();
    assert_eq!(percent.runs, Runs::Geometric { random_percent: 30 });
    assert_eq!(workload("percentage_random=0").access, Access::SEQUENTIAL);
    for unused in ["norandommap", "random_distribution=zipf:1.2"] {
        assert!(notes(&format!("percentage_random=0|{unused}")).contains("has no effect"), "{unused}");
    }
    assert!(notes("random_generator=lfsr").contains("xoshiro"));
}

#[test]
fn seeds() {
    assert_eq!(workload("randseed=42").seed, 42);
    assert_eq!(workload("bs=4k").seed, workload("bs=8k").seed, "a run repeats unless told otherwise");
    assert_ne!(workload("bs=4k").seed, workload("randrepeat=0").seed);
    let two = file("[global]\nsize=1m\nrandseed=7\n[a]\nrw=randread\n[b]\nrw=randread\n").unwrap();
    let seeds: Vec<u64> = two.meaning.scenario.spans[0].jobs.iter().map(|job| job.workload.seed).collect();
    assert_eq!(seeds, [7, 8], "jobs have streams of their own");
}

#[test]
fn opening_and_depth() {
    let opening = |lines: &str| job(lines).opening;
    assert_eq!(opening("direct=1").caching, Caching::Direct);
    assert_eq!(opening("buffered=0").caching, Caching::Direct);
    assert_eq!(opening("direct=1|buffered=1").caching, Caching::Cached, "the later one holds");
    assert_eq!(opening("ioengine=mmap").caching, Caching::Mapped);
    assert_eq!(opening("ioengine=io_uring|uncached=1").caching, Caching::DropBehind);
    assert!(opening("direct=1|atomic=1|rw=write").untorn);
    assert_eq!(opening("ioengine=io_uring").engine, EngineChoice::IoUring);
    assert_eq!(opening("ioengine=libaio|direct=1").engine, EngineChoice::Auto);
    for engine in ["sync", "psync", "pvsync", "pvsync2"] {
        assert_eq!(opening(&format!("ioengine={engine}")).engine, EngineChoice::Synchronous);
    }
    assert_eq!(workload("ioengine=libaio|iodepth=32|direct=1").depth, 32);
    assert_eq!(workload("ioengine=psync|iodepth=32").depth, 1);
    assert!(notes("ioengine=psync|iodepth=32").contains("so the depth is 1"));
    assert!(notes("ioengine=posixaio").contains("io_uring"));
}

#[test]
fn a_mapping_is_flushed_by_msync_however_it_is_asked_for() {
    for flush in
        ["fsync=16", "fdatasync=16", "sync_file_range=wait_before,write,wait_after:16", "end_fsync=1"]
    {
        let lines = format!("rw=write|ioengine=mmap|{flush}");
        assert_eq!(job(&lines).opening.flush, FlushCall::Fdatasync, "{flush}");
        assert!(workload(&lines).durability.is_any(), "{flush}");
    }
}

#[test]
fn sizes_and_places() {
    let range = |lines: &str| workload(lines).range;
    assert_eq!(range("offset=1m").offset, Bytes::mib(1));
    assert_eq!(job("offset=1m").size, Some(Bytes::mib(65)), "the range lies behind the offset");
    assert_eq!(range("filename=/dev/vdb|size=50%").length, Bytes::mib(512));
    assert_eq!(range("filename=/dev/vdb|size=100%").length, Bytes::gib(1));
    assert_eq!(range("filename=/dev/vdb|size=25%|offset=50%").offset, Bytes::mib(512));
    assert_eq!(range("filename=/dev/vdb|size=1m|offset=10%|offset_align=1m").offset, Bytes::mib(103));
    assert_eq!(workload("bs=2300").stop.bytes, Some((64 << 20) / 2300 * 2300), "whole blocks");
    assert_eq!(workload("bs=2300|loops=2").stop.bytes, Some((64 << 20) / 2300 * 2300 * 2));
    assert_eq!(workload("bs=2300|io_size=10000").stop.bytes, Some(10_000), "the last reaches it");
    assert_eq!(workload("io_size=128m").stop.bytes, Some(128 << 20));
    assert_eq!(workload("io_size=50%").stop.bytes, Some(32 << 20));
    assert_eq!(workload("loops=3").stop.bytes, Some(192 << 20));
    assert_eq!(job("filesize=16m").workload.range.length, Bytes::mib(16));
    assert_eq!(workload("number_ios=100").stop.operations, Some(100));
    let two = job("filename=/a:/b\\:c");
    assert_eq!(two.targets.iter().map(|target| target.name.as_str()).collect::<Vec<_>>(), ["/a", "/b:c"]);
    assert_eq!((two.workload.range.length, two.workload.stop.bytes), (Bytes::mib(32), Some(32 << 20)));
    assert_eq!(job("filename=f|directory=/d/").targets[0].name, "/d/f");
    let notes =
        |name: &str| file(&format!("[x]\nfilename={name}\nsize=1m\nrw=read\n")).unwrap().meaning.notes;
    assert!(notes("sim:null").concat().contains("`sim\\:null`"), "{:?}", notes("sim:null"));
    assert!(
        notes("/a:sim:null").concat().contains("`sim` and `null` are two files"),
        "{:?}",
        notes("/a:sim:null")
    );
    for (typed, name) in [
        ("nbd+unix:///x?socket=/tmp/s", r"`nbd+unix\:///x?socket=/tmp/s`"),
        ("nbd:unix:/x", r"`nbd\:unix\:/x`"),
        ("nbd://host:10809/x", r"`nbd\://host\:10809/x`"),
    ] {
        let notes = notes(typed).concat();
        assert!(notes.contains(name), "{typed}: {notes}");
        let escaped = name.trim_matches('`');
        let one = file(&format!("[x]\nfilename={escaped}\nsize=1m\nrw=read\n")).unwrap();
        assert_eq!(only_job(&one).targets[0].name, typed);
    }
    let several = notes("nbd://host:1/x:sim:null").concat();
    assert!(several.contains("`nbd`, `//host` and `1/x` are 3 files"), "{several}");
    assert!(several.contains("`sim` and `null` are two files"), "{several}");
    for plain in ["sim\\:null", "a:null", "/a:sim", "sim:null\ndirectory=/d"] {
        assert!(!notes(plain).concat().contains("splits filename"), "{plain}: {:?}", notes(plain));
    }
}

#[test]
fn without_a_size_the_target_ends_it() {
    let invocation = file("[x]\nfilename=${DISK}\nrw=read\n").unwrap();
    let workload = &only_job(&invocation).workload;
    assert!(workload.range.is_open_ended());
    assert_eq!(workload.stop.bytes, Some(1 << 30));
    let error = file("[x]\nfilename=/f\nrw=read\n").unwrap_err();
    assert!(error.to_string().contains("give size"), "{error}");
    let invocation = file("[x]\nfilename=/f\nrw=read\nruntime=5\n").unwrap();
    assert_eq!(only_job(&invocation).workload.stop, Stop::after(Nanos::secs(5)));
}

/// Numbers of operations of 4 KiB, as measured with fio 3.33.
#[test]
fn as_many_operations_as_of_fio() {
    let rows = [
        // A walk that skips ends when it leaves its part of the file, or restarts.
        ("rw=write:4k|size=32k|offset=16k", 4),
        ("rw=read:12k|size=64k|offset=16k", 4),
        ("rw=read:4k|size=64k|filesize=96k|offset=16k", 10),
        ("rw=write:8k|size=70000", 18),
        ("rw=write:8k|size=70000|io_size=90000", 22),
        ("rw=write:16k|size=8k", 2),
        // io_size is reached by whole passes if there are several.
        ("rw=read|size=16k|io_size=40k", 10),
        ("rw=read|size=16k|io_size=40k|loops=2", 12),
        ("rw=read|size=16k|io_size=40k|loops=4", 16),
        ("rw=read|size=16k|io_size=34k", 8),
        ("rw=read|size=64k|io_size=30k|loops=2", 15),
        ("rw=write|size=16k|io_size=28k|verify=md5", 4),
        ("rw=write|size=16k|io_size=40k|verify=md5", 8),
        ("rw=randread|size=16k|io_size=40k|loops=2", 12),
        ("rw=randread|size=16k|io_size=40k|loops=2|norandommap", 20),
        // The last block is truncated only at the end of the range.
        ("rw=write|size=70000", 17),
        ("rw=randwrite|size=70000", 17),
        ("rw=write|size=70000|filesize=1m", 18),
        ("rw=randwrite|size=70000|filesize=1m|loops=2", 35),
        ("rw=rw|size=70000", 18),
        ("rw=randwrite|size=1000000|norandommap", 245),
    ];
    for (lines, operations) in rows {
        let bytes = workload(lines).stop.bytes.unwrap();
        assert_eq!(bytes.div_ceil(4096), operations, "{lines}");
    }
    assert_eq!(workload("size=32k|filesize=1m").range.length, Bytes::mib(1), "any place of the file");
}

#[test]
fn a_kb_base_leaves_global_values_alone() {
    let own = file("[global]\nfilesize=100k\n[a]\nkb_base=1000\nrw=write\nsize=100k\n").unwrap();
    assert_eq!(
        (only_job(&own).size, only_job(&own).workload.stop.bytes),
        (Some(Bytes(102_400)), Some(100_000))
    );
    let global = file("[global]\nfilesize=100k\nkb_base=1000\n[a]\nrw=write\n").unwrap();
    assert_eq!(only_job(&global).size, Some(Bytes(100_000)));
}

#[test]
fn clones() {
    let shared = job("numjobs=4");
    assert_eq!((shared.threads, shared.threads_shared), (4, true));
    assert_eq!(shared.workload.stop.bytes, Some(256 << 20), "each clone does it all");
    assert_eq!(shared.workload.division, Division::Overlap);
    let own = file("[x]\nsize=1m\nrw=write\nnumjobs=3\nnrfiles=2\ndirectory=/d\n").unwrap();
    let jobs = &own.meaning.scenario.spans[0].jobs;
    let names: Vec<Vec<&str>> =
        jobs.iter().map(|job| job.targets.iter().map(|target| target.name.as_str()).collect()).collect();
    assert_eq!(names, [["/d/x.0.0", "/d/x.0.1"], ["/d/x.1.0", "/d/x.1.1"], ["/d/x.2.0", "/d/x.2.1"]]);
    assert_eq!(own.reported[0].jobs, 0..3);
    let apart = section("numjobs=3|offset_increment=64m").unwrap();
    let offsets: Vec<Bytes> =
        apart.meaning.scenario.spans[0].jobs.iter().map(|job| job.workload.range.offset).collect();
    assert_eq!(offsets, [0, 64, 128].map(Bytes::mib));
    let verified = section("rw=write|verify=md5|numjobs=2|offset_increment=64m").unwrap();
    assert!(
        verified.meaning.scenario.spans[0].jobs.iter().all(|job| job.workload.verify),
        "none is in another's way"
    );
    let named = file("[global]\nname=all\nsize=1m\n[x]\n[y]\nname=own\n").unwrap();
    assert_eq!(named.reported.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["x", "own"]);
    assert_eq!(named.meaning.scenario.spans[0].jobs[1].targets[0].name, "y.0.0");
    let formatted = file("[x]\nsize=1m\nfilename_format=$jobname-$jobnum-$filenum\n").unwrap();
    assert_eq!(only_job(&formatted).targets[0].name, "x-0-0");
}

#[test]
fn times() {
    assert_eq!(workload("runtime=10|time_based").stop, Stop::after(Nanos::secs(10)));
    assert_eq!(workload("timeout=500ms|time_based=1").stop, Stop::after(Nanos::millis(500)));
    let both = Stop { duration: Some(Nanos::secs(60)), operations: None, bytes: Some(64 << 20) };
    assert_eq!(workload("runtime=1m").stop, both, "whichever comes first");
    assert_eq!(job("startdelay=5").start_delay, Nanos::secs(5));
}

#[test]
fn rates() {
    let rate = |lines: &str| workload(lines).rate;
    let scheduled = |amount, arrival| Rate::Scheduled { amount, arrival };
    assert_eq!(rate("rate_iops=100"), Rate::iops(100.0));
    assert_eq!(rate("rate=1m"), scheduled(Amount::BytesPerSecond(1048576.0), Arrival::Fixed));
    assert_eq!(rate("rate_iops=10k"), Rate::iops(10_240.0), "as fio has it");
    assert!(notes("rate_iops=10k").contains("is 10240"));
    assert_eq!(rate("rate_iops=100|numjobs=4"), Rate::iops(400.0), "a rate is that of a clone");
    assert_eq!(rate("rate_iops=100|filename=/a:/b"), Rate::iops(50.0));
    let poisson = scheduled(Amount::Iops(100.0), Arrival::Poisson);
    assert_eq!(rate("rate_iops=100|rate_process=poisson"), poisson, "and not twice as many");
    assert_eq!(rate("rate_iops=100,300"), Rate::iops(100.0), "reads only");
    let mixed = workload("rw=randrw|rate_iops=100,300");
    assert_eq!((mixed.rate, mixed.write_percent), (Rate::iops(400.0), 75));
    assert!(notes("rw=randrw|rate_iops=100,300").contains("75 %"));
    let bytes = workload("rw=randrw|bs=4k,8k|rate=1m,2m");
    assert_eq!(bytes.write_percent, 50, "the rates are bytes");
    let burst = Burst { operations: 8, pause: Nanos::millis(2) };
    assert_eq!(workload("thinktime=2ms|thinktime_blocks=8").burst, Some(burst));
    assert_eq!(workload("thinktime=500").burst.unwrap().pause, Nanos::micros(500));
}

#[test]
fn durability() {
    let of = |lines: &str| {
        let job = job(&format!("rw=randwrite|{lines}"));
        (job.workload.durability, job.opening.flush, job.opening.durable_write)
    };
    let every = |count| Durability {
        flush_before_next: true,
        ..Durability::flush_every(NonZeroU32::new(count).unwrap())
    };
    assert_eq!(of("fsync=1").0, every(1));
    assert_eq!(of("fsync=1").1, FlushCall::Fsync);
    assert_eq!(of("fdatasync=32"), (every(32), FlushCall::Fdatasync, DurableWrite::Dsync));
    assert_eq!(of("sync_file_range=write,wait_before,wait_after:8").1, FlushCall::Range);
    assert_eq!(of("sync_file_range=wait_before,write,wait_after:8").0, every(8));
    assert_eq!(of("sync=dsync"), (Durability::EACH_WRITE, FlushCall::Fdatasync, DurableWrite::Dsync));
    assert_eq!(of("sync=1").2, DurableWrite::Sync);
    assert_eq!(of("sync=0").0, Durability::default());
    assert!(of("end_fsync=1").0.flush_at_end && of("fsync_on_close=1").0.flush_at_end);
    assert_eq!(of("end_fsync=1").1, FlushCall::Fsync);
    assert!(notes("fsync=1").contains("never writes"));
    for mix in ["rw=randrw|rwmixread=100|end_fsync=1", "rw=rw|rwmixwrite=0|fsync=1"] {
        assert!(notes(mix).contains("never writes"), "{mix}");
        assert_eq!(workload(mix).durability, Durability::default(), "{mix}");
    }
    assert!(notes("rw=write|ioengine=mmap|sync=1").contains("sync has no effect"));
    let mapped = job("rw=write|ioengine=mmap|sync=1");
    assert_eq!(mapped.workload.durability, Durability::default());
    assert_eq!(mapped.opening.durable_write, DurableWrite::Dsync, "a mapping has no other");
    let last = |lines: &str| !workload(lines).durability.flush_before_next;
    assert!(last("rw=write|fsync=1|size=70k|bs=16k"), "the walk ends before the size");
    assert!(
        !last("rw=write|fsync=1|size=64k|bs=16k") && !last("rw=write|fsync=1|size=70k|bs=16k|number_ios=3")
    );
    assert_eq!(workload("fsync=1").durability, Durability::default());
}

#[test]
fn content() {
    let of = |lines: &str| workload(&format!("rw=write|{lines}")).content;
    assert_eq!(of("zero_buffers"), Content::Zeroes);
    assert_eq!(of("refill_buffers"), Content::Pattern);
    assert_eq!(of("scramble_buffers=0"), Content::Repeated);
    assert_eq!(of("scramble_buffers=0|refill_buffers=1"), Content::Pattern);
    let reducible = Content::Reducible { compress_percent: 40, dedup_percent: 10 };
    assert_eq!(of("buffer_compress_percentage=40|dedupe_percentage=10"), reducible);
    assert_eq!(of("dedupe_percentage=100"), Content::Repeated);
    assert_eq!(of("buffer_pattern=0x00"), Content::Zeroes);
    assert!(workload("rw=write|verify=crc32c").verify);
    assert!(notes("rw=write|verify=crc32c").contains("plumb's own stamp"));
    assert!(!workload("rw=write|verify=crc32c|do_verify=0").verify);
    assert!(!workload("rw=write|verify=null").verify);
    assert!(workload("rw=write|verify_pattern=0xff").verify, "a pattern alone is verified");
    assert!(!workload("rw=write|verify_pattern=0xff|verify=0").verify);
}

#[test]
fn placement_and_failures() {
    assert_eq!(job("cpus_allowed=0-1,3").affinity, Affinity::Shared(vec![0, 1, 3]));
    assert_eq!(job("cpus_allowed=0-1|cpus_allowed_policy=split").affinity, Affinity::Each(vec![0, 1]));
    assert_eq!(job("cpumask=5").affinity, Affinity::Shared(vec![0, 2]));
    assert_eq!(job("prioclass=3").priority, Priority::Idle);
    assert_eq!(job("prio=7").priority, Priority::Low);
    assert!(job("continue_on_error=all").continue_on_error);
    assert!(job("continue_on_error=read").continue_on_error);
    assert!(!job("continue_on_error=none").continue_on_error);
}

#[test]
fn missing_files_are_made_as_fio_makes_them() {
    // fio 3.33, filesetup.c: files of jobs that read or overwrite are written in full; others are only
    // allocated.
    let layouts = [
        ("rw=write", Layout::Reserved),
        ("rw=randwrite|fallocate=posix", Layout::Reserved),
        ("rw=write|fallocate=keep", Layout::Reserved),
        ("rw=write|fallocate=none", Layout::Holes),
        ("rw=write|fallocate=truncate", Layout::Holes),
        ("rw=write|overwrite=1", Layout::Written),
        ("rw=randrw|fallocate=none", Layout::Written),
        ("rw=read", Layout::Written),
    ];
    for (options, layout) in layouts {
        assert_eq!(job(options).layout, layout, "{options}");
    }
    let null = file("[x]\nioengine=null\nsize=1m\nrw=write\nfilename=f\n").unwrap();
    assert_eq!(only_job(&null).targets[0].name, "sim:null?size=1048576");
    let small = file("[x]\nioengine=null\nsize=64k\nrw=write\n").unwrap();
    assert_eq!(only_job(&small).targets[0].name, "sim:null?size=1048576", "as large as the device must be");
    assert_eq!(only_job(&small).workload.range.length, Bytes::kib(64));
    assert!(file("[x]\nioengine=null\nrw=write\n").unwrap_err().to_string().contains("give size"));
}

/// Offsets and amounts written by fio 3.33, measured with strace(1): a file of 3 MiB, `--size=2m
/// --file_append=1`, and one more option.
#[test]
fn appended_data_begins_behind_the_end_of_the_file() {
    let mib = |mib: u64| Bytes::mib(mib);
    for (name, more, offset, moved) in [
        ("/there", "", 3, mib(2)),
        ("/new", "", 0, mib(2)),
        ("/there", "offset=64k", 3, mib(2)),
        ("/there", "loops=3", 3, mib(2)),
        ("/there", "io_size=4m", 3, mib(2)),
        ("/there", "io_size=1m", 3, mib(1)),
        ("/there", "time_based|runtime=9", 3, mib(2)),
    ] {
        let lines = more.replace('|', "\n");
        let text = format!("[x]\nfilename={name}\nsize=2m\nrw=write\nfile_append=1\n{lines}\n");
        let invocation = file(&text).unwrap();
        let job = only_job(&invocation);
        assert_eq!(job.workload.range, ByteRange { offset: mib(offset), length: mib(2) }, "{more}");
        assert_eq!((job.workload.stop.bytes, job.size), (Some(moved.0), Some(mib(offset + 2))), "{more}");
    }
    let two = file("[x]\nfilename=/there\nsize=2m\nrw=write\nfile_append=1\nnumjobs=2\n").unwrap();
    let offsets: Vec<Bytes> =
        two.meaning.scenario.spans[0].jobs.iter().map(|job| job.workload.range.offset).collect();
    assert_eq!(offsets, [mib(3), mib(5)]);
    let own = file("[x]\nsize=2m\nrw=write\nfile_append=1\nnumjobs=3\n").unwrap();
    let jobs = &own.meaning.scenario.spans[0].jobs;
    assert!(jobs.iter().all(|job| (job.workload.range.offset, job.size) == (Bytes(0), Some(mib(2)))));
    let cut = file("[x]\nfilename=/new\nbs=12k\nsize=100k\nrw=write\nfile_append=1\n").unwrap();
    assert_eq!(only_job(&cut).workload.stop.bytes, Some(8 * 12 * 1024));
    let limited =
        file("[x]\nfilename=/there\nsize=2m\nfilesize=4m\nrw=write\nfile_append=1\noffset_align=4k\n");
    let limited = only_job(&limited.unwrap()).clone();
    assert_eq!((limited.workload.stop.bytes, limited.size), (Some(1 << 20), Some(mib(4))));
    let refused = file("[x]\nfilename=/there\nrw=write\nfile_append=1\n").unwrap_err().to_string();
    assert!(refused.contains("give size in bytes"), "{refused}");
    // fio: "This option is ignored on non-regular files."
    let disk = file("[x]\nfilename=/dev/vdb\nsize=2m\nrw=write\nfile_append=1\n").unwrap();
    assert_eq!(only_job(&disk).workload.range.offset, Bytes(0));
}

#[test]
fn each_section_begins_outside_the_page_cache_unless_it_says_otherwise() {
    let typed = file(
        "[global]\nfilename=/f\nsize=1m\n[a]\nrw=write\n[b]\nstonewall\nrw=read\n[c]\nrw=read\ninvalidate=0\n",
    )
    .unwrap();
    let spans = typed.meaning.scenario.spans.iter();
    let caches: Vec<Vec<PageCache>> =
        spans.map(|span| span.jobs.iter().map(|job| job.page_cache).collect()).collect();
    assert_eq!(caches, [vec![PageCache::Evicted], vec![PageCache::Evicted, PageCache::AsIs]]);
    assert_eq!(typed.meaning.notes, [""; 0]);
}

#[test]
fn what_has_no_meaning_is_said() {
    for option in [
        "thread",
        "gtod_reduce=1",
        "clocksource=cpu",
        "mem=mmaphuge:/x",
        "file_service_type=zipf:1.2",
        "iodepth_batch=8",
    ] {
        let name = option.split('=').next().unwrap();
        let said = notes(option);
        assert!(said.contains(&format!("{name} has no effect: ")), "{option}: {said}");
    }
    let twice = file("[global]\nthread\nsize=1m\n[a]\n[b]\n").unwrap().meaning.notes;
    assert_eq!(twice.iter().filter(|note| note.contains("thread has no effect")).count(), 1, "once");
}

#[test]
fn arithmetic_is_taken_wherever_a_number_is() {
    let taken = workload("bs=(4*1k)|iodepth=(4+4)|ioengine=io_uring|runtime=(2*60)|time_based");
    assert_eq!((taken.blocks, taken.depth), (BlockSizes::one(Bytes::kib(4)), 8));
    assert_eq!(taken.stop.duration, Some(Nanos::secs(120)));
    assert_eq!(workload("size=((1g-4k)/2)|bs=2k").stop.bytes, Some(((1 << 30) - 4096) / 2));
    // fio evaluates arithmetic with its own variables even without parentheses.
    assert_eq!(workload("bs=$pagesize*2").blocks, BlockSizes::one(Bytes::kib(8)));
    let job = file("[x]\nsize=1g\nfilename=/tmp/a-$pagesize/b\n").unwrap();
    assert_eq!(only_job(&job).targets[0].name, "/tmp/a-4096/b", "not every dash is arithmetic");
}

#[test]
fn an_export_of_nbd_is_the_target_of_all_clones() {
    let uri = "nbd+unix:///?socket=/run/nbd.sock";
    let taken = file(&format!("[x]\nioengine=nbd\nuri={uri}\nsize=64m\niodepth=64\nnumjobs=2\n")).unwrap();
    let job = only_job(&taken);
    assert_eq!(job.targets, [TargetUse { name: uri.into(), weight: 1 }]);
    assert_eq!((job.opening.engine, job.workload.depth, job.threads), (EngineChoice::Auto, 64, 2));
}

#[test]
fn what_would_end_a_slow_job_or_poll_is_said_and_changes_nothing() {
    let plain = file("[x]\nsize=1g\n").unwrap();
    for (line, word) in
        [("rate_min=1m", "not stopped"), ("rate_iops_min=100", "not stopped"), ("hipri=1", "not polled")]
    {
        let taken = file(&format!("[x]\nsize=1g\n{line}\n")).unwrap();
        assert_eq!(taken.meaning.scenario, plain.meaning.scenario, "{line}");
        let notes = &taken.meaning.notes;
        assert!(notes.len() == 1 && notes[0].contains(word), "{line}: {notes:?}");
    }
}

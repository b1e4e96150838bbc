//! Arbitrary valid scenarios, with every kind of value in every field.

use std::num::NonZeroU32;

use plumb_block::{Bytes, Nanos};
use plumb_workload::{
    Access, Affinity, Amount, Arrival, BlockSizes, BlockSplit, Burst, ByteRange, Caching, Content,
    Distribution, Division, Durability, DurableWrite, EngineChoice, FlushCall, Job, LatencyTarget, Layout,
    Opening, PageCache, Priority, Random, Rate, Role, Runs, Scenario, Sequential, Skip, Span, Steady, Stop,
    TargetUse, TraceSpeed, TraceUse, Walk, Warmup, Workload, Zone, ZoneLength,
};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

/// Returns a valid scenario.
pub(crate) fn scenario() -> BoxedStrategy<Scenario> {
    vec(span(), 1..4)
        .prop_map(|spans| Scenario { spans })
        .prop_filter("valid", |scenario| scenario.validate().is_ok())
        .boxed()
}

fn span() -> BoxedStrategy<Span> {
    let warmup = prop_oneof![Just(Warmup::Auto), nanos().prop_map(Warmup::For)];
    let target =
        (nanos(), 1e-3..100.0).prop_map(|(latency, percentile)| LatencyTarget { latency, percentile });
    let steady = (5_u32..).prop_map(|rounds_max| Steady { rounds_max });
    let goal = prop_oneof![
        4 => Just((None, None)),
        1 => steady.prop_map(|steady| (Some(steady), None)),
        1 => target.prop_map(|target| (None, Some(target))),
    ];
    let jobs = prop_oneof![
        vec(prop_oneof![4 => job(), 1 => replaying()], 1..4),
        job().prop_map(|job| vec![job.clone(), job])
    ];
    (prop_oneof![Just(Warmup::For(Nanos::ZERO)), warmup], nanos(), any::<bool>(), goal, jobs)
        .prop_map(|(warmup, cooldown, precondition, (steady, latency_target), mut jobs)| {
            for job in &mut jobs {
                resolve_job_conflicts(job, steady.is_some() || latency_target.is_some());
            }
            let replays = jobs.iter().any(|job| job.trace.is_some());
            let (steady, latency_target) = if replays { (None, None) } else { (steady, latency_target) };
            if jobs.len() > 1 {
                jobs.iter_mut().for_each(|job| job.workload.verify = false);
            }
            Span { warmup, cooldown, precondition, steady, latency_target, jobs }
        })
        .boxed()
}

/// Adjusts fields of a job that were chosen independently and are in conflict.
fn resolve_job_conflicts(job: &mut Job, searches: bool) {
    if searches {
        job.workload.stop.duration.get_or_insert(Nanos::secs(7));
        job.start_delay = Nanos::ZERO;
        job.opening = Opening { caching: Caching::Cached, engine: EngineChoice::Auto, ..job.opening };
    }
    if job.workload.stop.duration.is_some_and(|duration| job.start_delay >= duration) {
        job.start_delay = Nanos::ZERO;
    }
    if job.opening.caching == Caching::Mapped && job.opening.engine == EngineChoice::IoUring {
        job.opening.engine = EngineChoice::Synchronous;
    }
    if job.opening.caching == Caching::Mapped || job.opening.engine == EngineChoice::Synchronous {
        job.workload.depth = 1;
    }
    job.depth_shared &= job.threads_shared;
    if matches!(job.workload.access, Access::Sequential(Sequential { walk: Walk::Parallel, .. })) {
        job.depth_shared = false;
    }
    if !job.depth_shared {
        job.targets.iter_mut().for_each(|target| target.weight = 1);
    }
    if job.workload.verify {
        job.targets.truncate(1);
        job.workload.division = Division::Parts;
    }
    if job.workload.validate().is_ok() && job.size.is_some_and(|size| size < Bytes::mib(64)) {
        job.size = None;
    }
}

/// Returns a job that replays a trace, with few other fields.
fn replaying() -> BoxedStrategy<Job> {
    let percent = prop_oneof![Just(100), 1_u32..].prop_map(TraceSpeed::Percent);
    let speed = prop_oneof![Just(TraceSpeed::Unpaced), percent];
    let skip =
        any::<[bool; 4]>().prop_map(|[reads, writes, trims, flushes]| Skip { reads, writes, trims, flushes });
    let align = prop_oneof![Just(1), Just(4096), 1_u64..].prop_map(Bytes);
    let how = (name(), speed, prop_oneof![Just(1), 1_u64..], align, skip)
        .prop_map(|(path, speed, scale, align, skip)| TraceUse { path, speed, scale, align, skip });
    let depth = prop_oneof![Just(1), Just(64), 1_u32..=32_768];
    let named = (any::<bool>(), any::<bool>(), of(nanos()));
    (job(), how, depth, named)
        .prop_map(|(job, how, depth, (has_targets, is_named, duration))| {
            let blank = Workload::over(ByteRange::ALL, Bytes::kib(4));
            let Workload { seed, content, .. } = job.workload;
            let stop = Stop { duration, ..Stop::default() };
            let targets = if has_targets { job.targets } else { Vec::new() };
            let first = targets.first().map_or(&how.path, |first| &first.name).clone();
            Job {
                name: if is_named { job.name } else { first },
                targets,
                threads: 1,
                depth_shared: false,
                workload: Workload { depth, stop, seed, content, ..blank },
                trace: Some(how),
                ..job
            }
        })
        .boxed()
}

fn job() -> BoxedStrategy<Job> {
    let target = (name(), 1_u32..9).prop_map(|(name, weight)| TargetUse { name, weight });
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let place = (affinity(), select(vec![Priority::Idle, Priority::Low, Priority::Normal]));
    let opening = (opening(), select(vec![PageCache::AsIs, PageCache::Evicted, PageCache::Loaded]));
    let targets = (vec(target, 1..4), of(name()));
    (targets, 1_u32..=4096, flags, of(large()), opening, place, nanos(), workload())
        .prop_map(
            |(
                (targets, name),
                threads,
                flags,
                size,
                (opening, page_cache),
                (affinity, priority),
                start_delay,
                workload,
            )| {
                let (threads_shared, depth_shared, continue_on_error, is_delayed) = flags;
                Job {
                    name: name.unwrap_or_else(|| targets[0].name.clone()),
                    role: Role::Load,
                    targets,
                    threads,
                    threads_shared,
                    same_threads: false,
                    depth_shared,
                    size,
                    opening,
                    layout: Layout::Reserved,
                    append: false,
                    page_cache,
                    affinity,
                    priority,
                    continue_on_error,
                    start_delay: if is_delayed { start_delay } else { Nanos::ZERO },
                    trace: None,
                    program: None,
                    workload,
                }
            },
        )
        .boxed()
}

fn opening() -> BoxedStrategy<Opening> {
    let caching = select(vec![Caching::Cached, Caching::Direct, Caching::DropBehind, Caching::Mapped]);
    let engine = select(vec![EngineChoice::Auto, EngineChoice::IoUring, EngineChoice::Synchronous]);
    let flush = select(vec![FlushCall::Fdatasync, FlushCall::Fsync, FlushCall::Range]);
    let durable_write = select(vec![DurableWrite::Dsync, DurableWrite::Sync]);
    (caching, engine, flush, durable_write, any::<bool>(), any::<bool>())
        .prop_map(|(caching, engine, flush, durable_write, raw_flush, untorn)| Opening {
            caching,
            engine,
            flush,
            durable_write,
            raw_flush,
            untorn: untorn && caching == Caching::Direct,
        })
        .boxed()
}

fn affinity() -> BoxedStrategy<Affinity> {
    let processors = || prop_oneof![vec(any::<u32>(), 1..9), vec(0_u32..9, 1..9), Just((0..70).collect())];
    prop_oneof![
        Just(Affinity::Any),
        processors().prop_map(Affinity::Each),
        processors().prop_map(Affinity::Shared),
    ]
    .boxed()
}

fn workload() -> BoxedStrategy<Workload> {
    let mix = prop_oneof![
        Just((0, 0)),
        Just((100, 0)),
        (0_u8..=100).prop_flat_map(|write| (Just(write), 0..=100 - write)),
    ];
    let depth = prop_oneof![Just(1), 1_u32..=32_768];
    let shape = (blocks(), access(), division(), range());
    let pace = (depth, stop(), rate(), of((1_u32.., nanos())));
    (shape, mix, pace, durability(), content(), any::<bool>(), any::<u64>())
        .prop_map(|(shape, (write_percent, trim_percent), pace, durability, content, verify, seed)| {
            let ((blocks, access, division, range), (depth, stop, rate, burst)) = (shape, pace);
            let writes = write_percent > 0;
            let stamped = matches!(content, Content::Pattern | Content::Reducible { dedup_percent: 0, .. });
            let mut workload = Workload {
                blocks,
                write_percent,
                trim_percent,
                depth,
                stop,
                durability: if writes { durability } else { Durability::default() },
                rate,
                burst: burst.map(|(operations, pause)| Burst { operations, pause }),
                seed,
                range,
                division,
                content,
                verify: verify && writes && stamped,
                access,
            };
            resolve_division_conflicts(&mut workload);
            workload
        })
        .boxed()
}

/// Adjusts access and division, which were chosen independently and may be in conflict.
fn resolve_division_conflicts(workload: &mut Workload) {
    let is_random = workload.access.is_random();
    if is_random && matches!(workload.division, Division::Offset(_)) {
        workload.division = Division::Overlap;
    }
    if let Access::Sequential(sequential) = &mut workload.access {
        match sequential.walk {
            Walk::Interlocked => workload.division = Division::Overlap,
            Walk::Parallel => sequential.stride = sequential.stride.or(Some(Bytes::mib(1))),
            Walk::Each => {}
        }
    }
    if workload.verify {
        workload.division = Division::Parts;
        if let Access::Sequential(sequential) = &mut workload.access {
            sequential.walk = Walk::Each;
        }
    }
}

fn blocks() -> BoxedStrategy<BlockSizes> {
    let size = || {
        prop_oneof![
            Just(Bytes(4096)),
            (1_u64..=2048).prop_map(|sectors| Bytes(sectors * 512)),
            (1_u64..1 << 20).prop_map(Bytes),
        ]
    };
    let one = move || size().prop_map(BlockSplit::one);
    let two = (size(), size(), 1_u8..100);
    let two = two.prop_map(|(one, other, percent)| BlockSplit(vec![(one, percent), (other, 100 - percent)]));
    prop_oneof![
        3 => size().prop_map(BlockSizes::one),
        1 => (one(), prop_oneof![one().boxed(), two.boxed()], one())
            .prop_map(|(read, write, trim)| BlockSizes { read, write, trim }),
    ]
    .boxed()
}

fn access() -> BoxedStrategy<Access> {
    let steps = || (1_u64..=2048).prop_map(|sectors| Bytes(sectors * 512));
    let walk = select(vec![Walk::Each, Walk::Interlocked, Walk::Parallel]);
    let sequential = (of(prop_oneof![Just(Bytes(0)), steps()]), walk)
        .prop_map(|(stride, walk)| Access::Sequential(Sequential { stride, walk }));
    let runs = prop_oneof![
        2 => Just(Runs::Single),
        1 => (1_u8..=99).prop_map(|random_percent| Runs::Geometric { random_percent }),
        1 => (2_u32..).prop_map(Runs::Fixed),
    ];
    let random = (of(steps()), distribution(), runs).prop_map(|(align, distribution, runs)| {
        let runs = if distribution == Distribution::EachOnce { Runs::Single } else { runs };
        Access::Random(Random { align, distribution, runs })
    });
    prop_oneof![Just(Access::RANDOM), random, sequential].boxed()
}

fn distribution() -> BoxedStrategy<Distribution> {
    let length = prop_oneof![
        (1e-9..20.0).prop_map(ZoneLength::Percent),
        (1_u64 << 24..1 << 26).prop_map(|bytes| ZoneLength::Bytes(Bytes(bytes))),
    ];
    let zone = (0.0..20.0, length).prop_map(|(io_percent, length)| Zone { io_percent, length });
    prop_oneof![
        Just(Distribution::Uniform),
        Just(Distribution::EachOnce),
        (1.000_001..100.0).prop_map(|theta| Distribution::Zipf { theta }),
        (f64::MIN_POSITIVE..1.0).prop_map(|power| Distribution::Pareto { power }),
        (f64::MIN_POSITIVE..100.0).prop_map(|deviation_percent| Distribution::Normal { deviation_percent }),
        vec(zone, 1..5).prop_map(Distribution::Zoned),
    ]
    .boxed()
}

fn division() -> BoxedStrategy<Division> {
    let offset = (0_u64..=2048).prop_map(|sectors| Division::Offset(Bytes(sectors * 512)));
    prop_oneof![Just(Division::Parts), Just(Division::Overlap), offset].boxed()
}

fn range() -> BoxedStrategy<ByteRange> {
    let offset = prop_oneof![Just(0), any::<u32>().prop_map(u64::from), 0..u64::MAX / 2];
    let length = prop_oneof![Just(u64::MAX), 1_u64 << 32..1 << 40, Just(1 << 33)];
    (offset, length)
        .prop_map(|(offset, length)| ByteRange { offset: Bytes(offset), length: Bytes(length) })
        .boxed()
}

fn stop() -> BoxedStrategy<Stop> {
    let duration = prop_oneof![Just(Nanos::secs(30)), nanos()];
    prop_oneof![
        Just(Stop::after(Nanos::secs(30))),
        (of(duration), of(1_u64..), of(1_u64..))
            .prop_map(|(duration, operations, bytes)| Stop { duration, operations, bytes })
            .prop_filter("ends", |stop| *stop != Stop::default()),
    ]
    .boxed()
}

fn durability() -> BoxedStrategy<Durability> {
    let every = || of(prop_oneof![Just(1), 1_u32..].prop_map(|every| NonZeroU32::new(every).unwrap()));
    (every(), any::<bool>(), every())
        .prop_map(|(flush_every, flush_at_end, fua_every)| Durability {
            flush_before_next: false,
            flush_every,
            flush_at_end,
            fua_every,
        })
        .boxed()
}

fn rate() -> BoxedStrategy<Rate> {
    let amount = prop_oneof![
        (1_u32..1 << 29).prop_map(|iops| Amount::Iops(f64::from(iops))),
        (f64::from_bits(1)..1e9).prop_map(Amount::Iops),
        (f64::from_bits(1)..1e13).prop_map(Amount::BytesPerSecond),
        (1_u32..9_000).prop_map(|mib| Amount::BytesPerSecond(f64::from(mib) * 1_048_576.0)),
    ];
    let arrival = select(vec![Arrival::Fixed, Arrival::Poisson]);
    prop_oneof![
        Just(Rate::Unlimited),
        (amount, arrival).prop_map(|(amount, arrival)| Rate::Scheduled { amount, arrival }),
    ]
    .boxed()
}

fn content() -> BoxedStrategy<Content> {
    let buffer = || (1_u64 << 20..1 << 30).prop_map(Bytes);
    prop_oneof![
        3 => Just(Content::Pattern),
        1 => Just(Content::Repeated),
        1 => Just(Content::Zeroes),
        1 => Just(Content::Counting),
        1 => (0_u8..100, 0_u8..100).prop_map(|(compress_percent, dedup_percent)| {
            Content::Reducible { compress_percent, dedup_percent }
        }),
        1 => buffer().prop_map(Content::Buffer),
        1 => (buffer(), name()).prop_map(|(size, path)| Content::File { size, path }),
    ]
    .boxed()
}

/// Returns a time above zero, in round or odd units.
fn nanos() -> BoxedStrategy<Nanos> {
    prop_oneof![
        (1_u64..10_000).prop_map(Nanos::secs),
        (1_u64..10_000).prop_map(Nanos::millis),
        (1_u64..).prop_map(Nanos),
    ]
    .boxed()
}

fn large() -> BoxedStrategy<Bytes> {
    prop_oneof![(1_u64..9000).prop_map(Bytes::gib), (1_u64 << 30..).prop_map(Bytes)].boxed()
}

/// Returns a name with any characters that a path can contain.
fn name() -> BoxedStrategy<String> {
    prop_oneof![
        select(vec!["/dev/null", "job.toml", "#1", "a b", "'", "\"\"\"\n'''", " x\t", "3", "true"])
            .prop_map(str::to_owned),
        "(?s).{1,12}",
    ]
    .boxed()
}

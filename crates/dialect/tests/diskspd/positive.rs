//! Accepted command lines, with the relevant part of their translation.

use std::num::NonZeroU32;

use plumb_block::{Bytes, Nanos};
use plumb_dialect::diskspd::{self, Command};
use plumb_workload::{
    Access, Affinity, Amount, Arrival, Burst, Caching, Content, Distribution, Division, Durability,
    EngineChoice, Job, Priority, Random, Rate, Runs, Sequential, Span, Walk, Warmup, ZoneLength,
};

type Holds = fn(&Span) -> bool;

fn job(span: &Span) -> &Job {
    &span.jobs[0]
}

fn block(span: &Span) -> u64 {
    job(span).workload.blocks.only().unwrap().0
}

fn seconds(span: &Span) -> u64 {
    job(span).workload.stop.duration.unwrap().0 / 1_000_000_000
}

fn range(span: &Span) -> (u64, u64) {
    let range = job(span).workload.range;
    (range.offset.0, range.length.0)
}

fn random(span: &Span) -> &Random {
    match &job(span).workload.access {
        Access::Random(random) => random,
        Access::Sequential(_) => panic!("sequential"),
    }
}

fn sequential(span: &Span) -> Sequential {
    match job(span).workload.access {
        Access::Sequential(sequential) => sequential,
        Access::Random(_) => panic!("random"),
    }
}

fn zones(span: &Span) -> Vec<(f64, ZoneLength)> {
    match &random(span).distribution {
        Distribution::Zoned(zones) => zones.iter().map(|zone| (zone.io_percent, zone.length)).collect(),
        other => panic!("{other:?}"),
    }
}

fn rate(span: &Span) -> Amount {
    match job(span).workload.rate {
        Rate::Scheduled { amount, arrival: Arrival::Fixed } => amount,
        other => panic!("{other:?}"),
    }
}

fn caching(span: &Span) -> Caching {
    job(span).opening.caching
}

fn durability(span: &Span) -> Durability {
    job(span).workload.durability
}

fn processors(span: &Span, place: usize) -> Vec<u32> {
    match &span.jobs[place].affinity {
        Affinity::Each(processors) => processors.clone(),
        other => panic!("{other:?}"),
    }
}

const EACH_FLUSHED: Durability = Durability::flush_every(NonZeroU32::MIN);

const POSITIVE: &[(&str, Holds)] = &[
    // Defaults.
    ("t", |s| block(s) == 64 << 10 && job(s).workload.depth == 2 && job(s).threads == 1),
    ("t", |s| seconds(s) == 10 && s.warmup == Warmup::For(Nanos::secs(5)) && s.cooldown == Nanos::ZERO),
    ("t", |s| sequential(s) == Sequential { stride: None, walk: Walk::Each }),
    ("t", |s| job(s).workload.write_percent == 0 && job(s).workload.seed == 0),
    ("t", |s| caching(s) == Caching::Cached && durability(s) == Durability::default()),
    ("t", |s| range(s) == (0, u64::MAX) && job(s).size.is_none()),
    ("t", |s| job(s).workload.content == Content::Counting && job(s).workload.rate == Rate::Unlimited),
    ("t", |s| job(s).priority == Priority::Normal && processors(s, 0) == [0, 1, 2, 3]),
    ("t", |s| job(s).workload.division == Division::Overlap && job(s).workload.burst.is_none()),
    ("t", |s| job(s).opening.engine == EngineChoice::Auto && !job(s).threads_shared && !job(s).depth_shared),
    // Blocks and sizes.
    ("-b4096 t", |s| block(s) == 4096),
    ("-b4k t", |s| block(s) == 4096),
    ("-b4K t", |s| block(s) == 4096),
    ("-b1M t", |s| block(s) == 1 << 20),
    ("-b1g t", |s| block(s) == 1 << 30),
    ("-b512 t", |s| block(s) == 512),
    ("-b4k -b8k t", |s| block(s) == 8192),
    // The block is read first.
    ("-B2b -b4k t", |s| range(s).0 == 8192),
    ("-b4k -B2b t", |s| range(s).0 == 8192),
    ("-c10b -b4k t", |s| job(s).size == Some(Bytes(40_960))),
    ("-f10b -b8k t", |s| range(s) == (0, 81_920)),
    ("-r2b -b4k t", |s| random(s).align == Some(Bytes(8192))),
    ("-s2b -b4k t", |s| sequential(s).stride == Some(Bytes(8192))),
    ("-t2 -T2b -b4k t", |s| job(s).workload.division == Division::Offset(Bytes(8192))),
    ("-w100 -Z2b -b4k t", |s| job(s).workload.content == Content::Buffer(Bytes(8192))),
    ("-r -b4k t", |s| random(s).align.is_none() && block(s) == 4096),
    // Range.
    ("-B0 t", |s| range(s).0 == 0),
    ("-B1M t", |s| range(s) == (1 << 20, u64::MAX)),
    ("-B1M:2M t", |s| range(s) == (1 << 20, 2 << 20)),
    ("-B1T:1G t", |s| range(s) == (1 << 40, 1 << 30)),
    ("-B64k:1b t", |s| range(s) == (65_536, 65_536)),
    ("-f1G t", |s| range(s) == (0, 1 << 30)),
    ("-f1T t", |s| range(s) == (0, 1 << 40)),
    ("-f3M -B1M t", |s| range(s) == (1 << 20, 2 << 20)),
    ("-B1M -f3M t", |s| range(s) == (1 << 20, 2 << 20)),
    ("-f1M -fr t", |s| range(s) == (0, 1 << 20)),
    ("-c1G t", |s| job(s).size == Some(Bytes(1 << 30))),
    ("-c1G -f1G t", |s| job(s).size == Some(Bytes(1 << 30)) && range(s) == (0, 1 << 30)),
    ("-c8192K -d1 t", |s| job(s).size == Some(Bytes(8 << 20)) && seconds(s) == 1),
    // Time.
    ("-d60 t", |s| seconds(s) == 60),
    ("-W0 t", |s| s.warmup == Warmup::For(Nanos::ZERO)),
    ("-W30 t", |s| s.warmup == Warmup::For(Nanos::secs(30))),
    ("-C7 t", |s| s.cooldown == Nanos::secs(7)),
    ("-d1 -W2 -C3 t", |s| seconds(s) == 1 && s.cooldown == Nanos::secs(3)),
    // Threads and depth.
    ("-t4 t", |s| job(s).threads == 4 && !job(s).threads_shared),
    ("-o32 t", |s| job(s).workload.depth == 32 && job(s).opening.engine == EngineChoice::Auto),
    ("-o1 t", |s| job(s).workload.depth == 1 && job(s).opening.engine == EngineChoice::Synchronous),
    ("-o1 -F2 t", |s| job(s).workload.depth == 1 && job(s).opening.engine == EngineChoice::Auto),
    ("-o1 -F1 t", |s| job(s).opening.engine == EngineChoice::Synchronous),
    ("-F4 t", |s| job(s).threads == 4 && job(s).threads_shared && !job(s).depth_shared),
    ("-F4 -t1 t", |s| job(s).threads == 4),
    ("-F4 t u", |s| s.jobs.len() == 1 && job(s).targets.len() == 2 && job(s).targets[1].name == "u"),
    ("-F4 -O8 t u", |s| job(s).depth_shared && job(s).workload.depth == 8 && job(s).targets[0].weight == 1),
    ("-F2 -O1 t u", |s| job(s).opening.engine == EngineChoice::Synchronous),
    ("-O8 -F4 t", |s| job(s).workload.depth == 8 && job(s).threads == 4),
    ("t u", |s| s.jobs.len() == 2 && s.jobs[1].targets[0].name == "u"),
    ("t u", |s| s.jobs[0].workload.seed != s.jobs[1].workload.seed),
    // Affinity.
    ("-a t", |s| processors(s, 0) == [0, 1, 2, 3]),
    ("-ag t", |s| processors(s, 0) == [0, 1, 2, 3]),
    ("-a1 t", |s| processors(s, 0) == [1]),
    ("-a0,2 t", |s| processors(s, 0) == [0, 2]),
    ("-ag0,0,2 t", |s| processors(s, 0) == [0, 2]),
    ("-a0 -a3 t", |s| processors(s, 0) == [0, 3]),
    ("-a1,1,2 t", |s| processors(s, 0) == [1, 1, 2]),
    ("-n t", |s| job(s).affinity == Affinity::Any),
    ("-n -a t", |s| job(s).affinity == Affinity::Any),
    ("-t3 t u", |s| processors(s, 0) == [0, 1, 2, 3] && processors(s, 1) == [3, 0, 1, 2]),
    ("-a0,1 -t3 t u", |s| processors(s, 1) == [1, 0]),
    // Random.
    ("-r t", |s| random(s).runs == Runs::Single && random(s).distribution == Distribution::Uniform),
    ("-r64k t", |s| random(s).align.is_none()),
    ("-r4k t", |s| random(s).align == Some(Bytes(4096))),
    ("-r1b t", |s| random(s).align.is_none()),
    ("-rs1 t", |s| random(s).runs == Runs::Geometric { random_percent: 1 }),
    ("-rs99 t", |s| random(s).runs == Runs::Geometric { random_percent: 99 }),
    ("-rs100 t", |s| random(s).runs == Runs::Single),
    ("-rs50 -r4k t", |s| random(s).align == Some(Bytes(4096))),
    ("-r4k -rs50 t", |s| random(s).runs == Runs::Geometric { random_percent: 50 }),
    ("-r -rdpct90/10 t", |s| {
        zones(s) == [(90.0, ZoneLength::Percent(10.0)), (10.0, ZoneLength::Percent(90.0))]
    }),
    ("-rdpct90/10:0/10:5/20 -r t", |s| {
        let percent = ZoneLength::Percent;
        zones(s) == [(90.0, percent(10.0)), (0.0, percent(10.0)), (5.0, percent(20.0)), (5.0, percent(60.0))]
    }),
    ("-r -rdpct100/100 t", |s| zones(s) == [(100.0, ZoneLength::Percent(100.0))]),
    ("-r -rdabs90/10G:0/10G:5/20G t", |s| {
        let bytes = |gib| ZoneLength::Bytes(Bytes::gib(gib));
        zones(s) == [(90.0, bytes(10)), (0.0, bytes(10)), (5.0, bytes(20))]
    }),
    ("-rs30 -rdabs100/2b t", |s| zones(s) == [(100.0, ZoneLength::Bytes(Bytes(131_072)))]),
    ("-b4k -r -rdabs10/1b t", |s| zones(s) == [(10.0, ZoneLength::Bytes(Bytes(4096)))]),
    // Sequential.
    ("-s t", |s| sequential(s).stride.is_none()),
    ("-s64k t", |s| sequential(s).stride.is_none()),
    ("-s128k t", |s| sequential(s).stride == Some(Bytes(131_072))),
    ("-s0 t", |s| sequential(s).stride.is_none()),
    ("-f0 t", |s| range(s) == (0, u64::MAX)),
    ("-c1M -f2M t", |s| job(s).size == Some(Bytes(1 << 20)) && range(s) == (0, u64::MAX)),
    ("-O4 t", |s| job(s).workload.depth == 2 && !job(s).depth_shared),
    ("-g100 -i4 -j5 t", |s| job(s).workload.burst.is_none()),
    ("-d0 t", |s| job(s).workload.stop.duration == Some(Nanos(1))),
    ("-D0 -P0 t", |s| job(s).workload.depth == 2),
    ("-si -t2 t", |s| {
        sequential(s).walk == Walk::Interlocked && job(s).workload.division == Division::Overlap
    }),
    ("-si8k -t2 t", |s| sequential(s) == Sequential { stride: Some(Bytes(8192)), walk: Walk::Interlocked }),
    ("-p t", |s| sequential(s).walk == Walk::Parallel),
    ("-p -s128k t", |s| sequential(s) == Sequential { stride: Some(Bytes(131_072)), walk: Walk::Parallel }),
    ("-T1M -t2 t", |s| job(s).workload.division == Division::Offset(Bytes::mib(1))),
    ("-T1M -F2 t", |s| job(s).workload.division == Division::Offset(Bytes::mib(1))),
    // Writes and their content.
    ("-w0 t", |s| job(s).workload.write_percent == 0),
    ("-w30 t", |s| job(s).workload.write_percent == 30),
    ("-w100 t", |s| job(s).workload.write_percent == 100),
    ("-w100 -Z t", |s| job(s).workload.content == Content::Zeroes),
    ("-w100 -Zr t", |s| job(s).workload.content == Content::Pattern),
    ("-w100 -Z1M t", |s| job(s).workload.content == Content::Buffer(Bytes::mib(1))),
    ("-w100 -Z1M,a,b t", |s| {
        job(s).workload.content == Content::File { size: Bytes::mib(1), path: "a,b".to_owned() }
    }),
    ("-w100 -Z64k t", |s| job(s).workload.content == Content::Buffer(Bytes::kib(64))),
    ("-z t", |s| job(s).workload.seed == 123_456),
    ("-z0 t", |s| job(s).workload.seed == 0),
    ("-z4294967295 t", |s| job(s).workload.seed == 4_294_967_295),
    // Caches.
    ("-S t", |s| caching(s) == Caching::Direct),
    ("-Su t", |s| caching(s) == Caching::Direct && durability(s) == Durability::default()),
    ("-Sb t", |s| caching(s) == Caching::Cached),
    ("-Sr t", |s| caching(s) == Caching::Direct),
    ("-Sw -w1 t", |s| caching(s) == Caching::Cached && durability(s) == Durability::EACH_WRITE),
    ("-Sh -w1 t", |s| caching(s) == Caching::Direct && durability(s) == Durability::EACH_WRITE),
    ("-h -w1 t", |s| caching(s) == Caching::Direct && durability(s) == Durability::EACH_WRITE),
    ("-Suw -w1 t", |s| caching(s) == Caching::Direct && durability(s) == Durability::EACH_WRITE),
    ("-Swu -w1 t", |s| caching(s) == Caching::Direct && durability(s) == Durability::EACH_WRITE),
    ("-Su -Sw -w1 t", |s| caching(s) == Caching::Direct && durability(s) == Durability::EACH_WRITE),
    ("-Sw -S -w1 t", |s| caching(s) == Caching::Direct && durability(s) == Durability::EACH_WRITE),
    ("-Sbw -w1 t", |s| caching(s) == Caching::Cached && durability(s) == Durability::EACH_WRITE),
    ("-Srw -w1 t", |s| caching(s) == Caching::Direct && durability(s) == Durability::EACH_WRITE),
    ("-Sh t", |s| caching(s) == Caching::Direct && durability(s) == Durability::default()),
    ("-Sm t", |s| caching(s) == Caching::Mapped && durability(s) == Durability::default()),
    ("-Sm -w1 t", |s| caching(s) == Caching::Mapped && durability(s) == Durability::default()),
    ("-Smw -w1 t", |s| caching(s) == Caching::Mapped && durability(s) == EACH_FLUSHED),
    ("-Sm -Nv -w1 t", |s| durability(s) == EACH_FLUSHED),
    ("-Sm -Nn -w1 t", |s| durability(s) == EACH_FLUSHED),
    ("-Ni -Sm -w1 t", |s| durability(s) == EACH_FLUSHED),
    ("-Sm -NV -w1 t", |s| durability(s) == EACH_FLUSHED),
    ("-Sm -o1 t", |s| caching(s) == Caching::Mapped && job(s).opening.engine == EngineChoice::Auto),
    ("-Smb t", |s| caching(s) == Caching::Mapped),
    ("#0 #12", |s| caching(s) == Caching::Direct && s.jobs[1].targets[0].name == "#12"),
    ("-Sb #1", |s| caching(s) == Caching::Direct),
    // Pace.
    ("-g1000 t", |s| rate(s) == Amount::BytesPerSecond(1_000_000.0)),
    ("-g1000 -t4 t", |s| rate(s) == Amount::BytesPerSecond(4_000_000.0)),
    ("-g100i t", |s| rate(s) == Amount::Iops(100.0)),
    ("-g100i -t4 t u", |s| rate(s) == Amount::Iops(400.0)),
    ("-g100i -F3 t u", |s| rate(s) == Amount::Iops(300.0)),
    ("-i10 -j5 t", |s| job(s).workload.burst == Some(Burst { operations: 10, pause: Nanos::millis(5) })),
    ("-i10 -j5 -t4 t", |s| job(s).workload.burst.unwrap().operations == 2),
    ("-i2 -j5 -t4 t", |s| job(s).workload.burst.unwrap().operations == 1),
    ("-I1 t", |s| job(s).priority == Priority::Idle),
    ("-I2 t", |s| job(s).priority == Priority::Low),
    ("-I3 t", |s| job(s).priority == Priority::Normal),
    // Without an effect on the scenario, but noted or printed.
    ("-x t", |s| job(s).workload.depth == 2),
    ("-l t", |s| job(s).workload.depth == 2),
    ("-frst t", |s| range(s) == (0, u64::MAX)),
    ("-eDISK_IO -eq -ep t", |s| s.jobs.len() == 1),
    ("-:1 t", |s| s.jobs.len() == 1),
    ("-L -D -D100 -P -P1000 -v -vs t", |s| s.jobs.len() == 1),
    ("-Rtext t", |s| s.jobs.len() == 1),
    ("-Rxml t", |s| s.jobs.len() == 1),
    // Typical command lines.
    ("-b8k -d30 -W5 -o64 -t4 -r -w100 -Sh -L -Zr t", |s| {
        block(s) == 8192
            && job(s).threads == 4
            && durability(s) == Durability::EACH_WRITE
            && job(s).workload.content == Content::Pattern
    }),
    ("-b4K -t2 -r -o32 -d10 -Sh testfile.dat", |s| {
        job(s).name == "testfile.dat" && job(s).workload.depth == 32
    }),
    ("-c1G -b4K -t2 -d10 -a0,1 testfile1.dat testfile2.dat", |s| {
        s.jobs.len() == 2 && s.jobs.iter().all(|job| job.size == Some(Bytes::gib(1)) && job.threads == 2)
    }),
    ("sim:hdd ./#odd /dev/sda nbd://localhost/x a:b", |s| s.jobs.len() == 5),
];

#[test]
fn command_lines_mean_what_they_should() {
    for (typed, holds) in POSITIVE {
        let meaning = super::meaning(typed).unwrap_or_else(|error| panic!("{typed}: {error}"));
        assert_eq!(meaning.scenario.spans.len(), 1, "{typed}");
        let span = &meaning.scenario.spans[0];
        assert!(holds(span), "{typed} means {span:#?}");
        for job in &span.jobs {
            assert_eq!(job.workload.validate(), Ok(()), "{typed}");
        }
    }
}

#[test]
fn the_order_of_switches_does_not_matter() {
    let switches =
        ["-b4k", "-B2b", "-r1b", "-rs40", "-c100b", "-Su", "-Sw", "-w50", "-t2", "-o4", "-i4", "-j2"];
    let expected = super::meaning(&format!("{} t", switches.join(" "))).unwrap();
    for turn in 0..switches.len() {
        let mut turned = switches;
        turned.rotate_left(turn);
        let typed = format!("{} t", turned.join(" "));
        assert_eq!(super::meaning(&typed).unwrap(), expected, "{typed}");
        turned.reverse();
        let typed = format!("{} t", turned.join(" "));
        assert_eq!(super::meaning(&typed).unwrap(), expected, "{typed}");
    }
}

#[test]
fn help_is_given_whatever_else_is_typed() {
    for typed in ["-?", "-b4k -? t", "-? -nonsense"] {
        let command = diskspd::parse(&super::arguments(typed), &super::machine(), &super::no_file);
        assert_eq!(command, Ok(Command::Usage), "{typed}");
    }
    for (switch, ..) in super::changes::CHANGES.iter().filter(|(switch, ..)| switch.starts_with('-')) {
        assert!(diskspd::USAGE.contains(&switch[..2]), "{switch} is not in the usage");
    }
}

#[test]
fn there_are_many() {
    assert!(POSITIVE.len() > 120, "{}", POSITIVE.len());
}

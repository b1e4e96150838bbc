//! Profiles: reading, writing, templates, and errors with their line.

use plumb_block::Bytes;
use plumb_dialect::diskspd::distribution::{Distribution, Share, Unit};
use plumb_dialect::diskspd::profile::{
    CacheMode, Hints, IoPriority, MappedFlush, Precreate, Processor, Profile, ResultFormat, Target,
    ThreadTarget, Throughput, TimeSpan, WriteContent,
};
use plumb_dialect::diskspd::{self, Command, Invocation, read_profile, write_profile};
use plumb_dialect::{Error, Machine};
use plumb_workload::{ByteRange, Caching, Content};
use proptest::prelude::*;

use super::{arguments, machine};

/// Profile in the style of DiskSpd's documentation: two time spans, older elements, templates.
const TWO_SPANS: &str = r#"<?xml version="1.0"?>
<!-- two spans -->
<Profile>
  <Progress>0</Progress>
  <ResultFormat>xml</ResultFormat>
  <Verbose>false</Verbose>
  <PrecreateFiles>UseMaxSize</PrecreateFiles>
  <TimeSpans>
    <TimeSpan>
      <Duration>20</Duration>
      <Warmup>1</Warmup>
      <GroupAffinity>true</GroupAffinity>
      <Affinity><AffinityAssignment>1</AffinityAssignment><AffinityAssignment>0</AffinityAssignment></Affinity>
      <Targets>
        <Target>
          <Path>*1</Path>
          <BlockSize>8192</BlockSize>
          <DisableAllCache>true</DisableAllCache>
          <FileSize>1048576</FileSize>
          <Random>4096</Random>
          <WriteRatio>100</WriteRatio>
          <Throughput unit="IOPS">500</Throughput>
        </Target>
        <Target><Path>R&amp;D &#x2f; data</Path></Target>
      </Targets>
    </TimeSpan>
    <TimeSpan>
      <RandomWriteData>true</RandomWriteData>
      <Targets>
        <Target>
          <Path>*1</Path>
          <FileSize>2097152</FileSize>
          <Random>65536</Random>
          <Distribution><Percent><Range IO="90">10</Range><Range IO="10">90</Range></Percent></Distribution>
        </Target>
      </Targets>
    </TimeSpan>
  </TimeSpans>
</Profile>
"#;

fn run_with(text: &str, typed: &str, machine: &Machine) -> Result<Invocation, Error> {
    let read = |path: &str| match path {
        "p.xml" => Ok(text.to_owned()),
        _ => super::no_file(path),
    };
    match diskspd::parse(&arguments(typed), machine, &read)? {
        Command::Run(invocation) => Ok(invocation),
        Command::Usage => Err(Error::new("-?", "usage")),
    }
}

#[test]
fn a_profile_means_its_spans() {
    let invocation = run_with(TWO_SPANS, "-Xp.xml data.bin", &machine()).unwrap();
    assert_eq!(invocation.profile.result_format, ResultFormat::Xml);
    let scenario = invocation.meaning(&machine(), &|_| None).unwrap().scenario;
    assert_eq!(scenario.spans.len(), 2);
    let [first, second] = &scenario.spans[0].jobs[..] else { panic!("two targets") };
    assert_eq!(first.targets[0].name, "data.bin");
    assert_eq!(second.targets[0].name, "R&D / data");
    assert_eq!(first.opening.caching, Caching::Direct);
    assert_eq!(first.size.unwrap().0, 2 << 20, "UseMaxSize");
    assert!(first.workload.durability.fua_every.is_some());
    assert_eq!(scenario.spans[1].jobs[0].workload.content, Content::Pattern);
}

#[test]
fn what_stands_beside_a_profile_changes_it() {
    let invocation = run_with(TWO_SPANS, "-d3 -W0 -C2 -z9 -v -vs -:1 -Rtext -Xp.xml a", &machine()).unwrap();
    let profile = invocation.profile;
    assert_eq!((profile.result_format, profile.verbose), (ResultFormat::Text, true));
    assert_eq!((profile.verbose_stats, profile.experiment_flags), (true, 1));
    for span in &profile.time_spans {
        assert_eq!((span.duration, span.warmup, span.cooldown, span.seed), (3, 0, 2, 9));
    }
    let unchanged = run_with(TWO_SPANS, "-Xp.xml a", &machine()).unwrap().profile;
    assert_eq!((unchanged.time_spans[0].duration, unchanged.time_spans[1].duration), (20, 10));
}

#[test]
fn templates_are_all_filled_in_or_all_left() {
    let error = |typed| run_with(TWO_SPANS, typed, &machine()).unwrap_err().to_string();
    assert!(error("-Xp.xml").contains("*1"), "{}", error("-Xp.xml"));
    assert!(error("-Xp.xml a b").starts_with("b: "), "a name without a template");
    let printed = run_with(TWO_SPANS, "-Rp -Xp.xml", &machine()).unwrap();
    assert!(printed.profile_only && printed.profile_output(&machine()).contains("<Path>*1</Path>"));
    let missing = TWO_SPANS.replace("<Path>*1<", "<Path>*2<");
    let error = run_with(&missing, "-Xp.xml a", &machine()).unwrap_err().to_string();
    assert!(error.contains("*2") && error.contains("p.xml"), "{error}");
}

#[test]
fn a_command_line_printed_as_a_profile_is_the_same_profile() {
    for (_, _, without, with) in super::changes::CHANGES {
        for typed in [without, with] {
            let typed = format!("-Rpxml {typed}");
            let invocation = super::invocation(&typed).unwrap_or_else(|error| panic!("{typed}: {error}"));
            let text = invocation.profile_output(&machine());
            assert_eq!(read_profile(&text, "p").unwrap(), invocation.profile, "{typed}\n{text}");
        }
    }
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (old, new, line, named) in [
        ("<Progress>0", "<Progress>x", 4, "'x'"),
        ("<Progress>0", "<Progress>4294967296", 4, "4294967296"),
        ("<Progress>0", "<Progress>", 4, "''"),
        ("<Progress>0", "<Progress>-1", 4, "-1"),
        ("<Verbose>false", "<Verbose>no", 6, "'no'"),
        ("<ResultFormat>xml", "<ResultFormat>json", 5, "json"),
        (">UseMaxSize<", ">Some<", 7, "Some"),
        ("<Warmup>1</Warmup>", "<Warmup>1</Warmup>\n<Warmup>2</Warmup>", 12, "Warmup"),
        ("<Warmup>1</Warmup>", "<Speed>1</Speed>", 11, "Speed"),
        ("<Warmup>1</Warmup>", "<Warmup><b>1</b></Warmup>", 11, "<b>"),
        ("<Warmup>1</Warmup>", "warm", 9, "warm"),
        ("<BlockSize>8192", "<BlockSize>0", 17, "BlockSize"),
        ("<BlockSize>8192", "<BlockSize>8k", 17, "8k"),
        ("<BlockSize>8192", "<Block>8192</Block><BlockSize>8192", 17, "Block"),
        ("<WriteRatio>100", "<WriteRatio>101", 21, "101"),
        ("<WriteRatio>100", "<WriteRatio>300", 21, "300"),
        ("<Random>4096", "<Random>0", 20, "'0'"),
        ("<Random>4096</Random>", "<Random>4096</Random><StrideSize>1</StrideSize>", 20, "StrideSize"),
        ("<Random>4096</Random>", "<RandomRatio>100</RandomRatio>", 20, "100"),
        ("<Random>4096</Random>", "<FlushType>All</FlushType>", 20, "All"),
        ("<Random>4096</Random>", "<IOPriority>4</IOPriority>", 20, "'4'"),
        ("unit=\"IOPS\"", "unit=\"MBPS\"", 22, "MBPS"),
        ("IO=\"90\"", "IO=\"101\"", 34, "101"),
        ("IO=\"90\"", "X=\"90\"", 34, "IO"),
        ("IO=\"90\"", "IO=\"95\"", 34, "IO% 10"),
        (">1</AffinityAssignment>", ">256</AffinityAssignment>", 13, "256"),
        ("<Path>R&amp;D &#x2f; data</Path>", "<Path>C:\\x</Path>", 24, "drive letter"),
        ("<Path>R&amp;D &#x2f; data</Path>", "<Path></Path>", 24, "name"),
        ("<Path>R&amp;D &#x2f; data</Path>", "<BlockSize>1</BlockSize>", 24, "Path"),
        ("R&amp;D", "R&nbsp;D", 24, "entity"),
        ("R&amp;D", "R&#x110000;D", 24, "character"),
        ("<Target><Path>R", "<!DOCTYPE x><Target><Path>R", 24, "not well-formed"),
        ("</Profile>", "</Profile><Profile/>", 39, "not well-formed"),
        ("</Profile>", "</Profil>", 39, "Profil"),
        ("<Profile>", "<Perfil>", 39, "Perfil"),
    ] {
        let text = TWO_SPANS.replacen(old, new, 1);
        assert_ne!(text, TWO_SPANS, "'{old}' is not there");
        let error = read_profile(&text, "p.xml").expect_err(new);
        assert!(error.to_string().contains(named), "{new}: {error}");
        assert!(error.place.starts_with("p.xml:"), "{new}: {error}");
        assert_eq!(error.place, format!("p.xml:{line}"), "{new}: {error}");
    }
}

#[test]
fn what_does_not_go_together_is_named_with_its_target() {
    let text =
        TWO_SPANS.replacen("<Random>4096</Random>", "<Random>4096</Random><ThreadStride>1</ThreadStride>", 1);
    let error = run_with(&text, "-Xp.xml a", &machine()).unwrap_err().to_string();
    for named in ["p.xml", "time span 1", "'a'", "ThreadStride", "-T"] {
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn threads_choose_their_targets() {
    let mut profile = super::invocation("-F4 -O8 a b c").unwrap().profile;
    let targets = &mut profile.time_spans[0].targets;
    targets[0].thread_targets =
        vec![ThreadTarget { thread: 0, weight: 3 }, ThreadTarget { thread: 2, weight: 0 }];
    targets[1].weight = 5;
    targets[2].thread_targets = vec![ThreadTarget { thread: 2, weight: 0 }];
    assert_eq!(profile.validate(None, true), Ok(()));
    let scenario = profile.meaning(&machine(), &|_| None).unwrap().scenario;
    let jobs = scenario.spans[0].jobs.iter().map(|job| {
        let targets = job.targets.iter().map(|target| format!("{} {}", target.name, target.weight));
        (job.threads, targets.collect::<Vec<_>>().join(", "))
    });
    let expected = [(1, "a 3, b 5"), (2, "b 5"), (1, "a 1, b 5, c 1")];
    assert_eq!(jobs.collect::<Vec<_>>(), expected.map(|(threads, targets)| (threads, targets.to_owned())));
    assert!(scenario.spans[0].jobs.iter().all(|job| job.depth_shared && job.workload.depth == 8));
}

#[test]
fn threads_in_all_have_one_priority() {
    let mut profile = super::invocation("-F4 a b").unwrap().profile;
    profile.time_spans[0].targets[1].write_percent = 10;
    let jobs = profile.meaning(&machine(), &|_| None).unwrap().scenario.spans.remove(0).jobs;
    assert_eq!(jobs.iter().map(|job| job.same_threads).collect::<Vec<_>>(), [false, true]);
    profile.time_spans[0].targets[1].priority = IoPriority::Low;
    let error = profile.meaning(&machine(), &|_| None).unwrap_err().to_string();
    assert!(error.contains("-F") && error.contains("'b'") && error.contains("'a'"), "{error}");
}

#[test]
fn a_range_beyond_the_file_is_said_and_the_file_counts() {
    for (typed, size) in [("-f100M f", Some(4 << 20)), ("-c4M -f100M f", None)] {
        let profile = super::invocation(typed).unwrap().profile;
        let meaning = profile.meaning(&machine(), &|_| size.map(Bytes)).unwrap();
        let said = "-f (MaxFileSize): 'f' has 4MiB and no 100MiB: all of it is used";
        assert!(meaning.notes.iter().any(|note| note == said), "{typed}: {:?}", meaning.notes);
        let job = &meaning.scenario.spans[0].jobs[0];
        let range = job.workload.within(Bytes(4 << 20)).unwrap().range;
        assert_eq!(range, ByteRange { offset: Bytes(0), length: Bytes(4 << 20) }, "{typed}");
    }
    let within = super::invocation("-c4M -f1M f").unwrap().profile.meaning(&machine(), &|_| None).unwrap();
    assert!(!within.notes.iter().any(|note| note.contains("-f (")), "{:?}", within.notes);
    assert_eq!(within.scenario.spans[0].jobs[0].workload.range.length, Bytes(1 << 20));
}

#[test]
fn hostile_xml_is_refused_quickly() {
    let deep = format!("<Profile>{}", "<a>".repeat(100_000));
    let bomb =
        "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;\">]><Profile>&b;</Profile>".to_owned();
    let long = format!("<Profile>{}</Profile>", " ".repeat(8 << 20));
    let outside = "text<Profile/>".to_owned();
    for (text, named) in [
        (deep, "not well-formed"),
        (bomb, "DTD"),
        (long, "at most"),
        (outside, "not well-formed"),
        (String::new(), "not well-formed"),
    ] {
        let error = read_profile(&text, "p").unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}

fn distribution() -> impl Strategy<Value = Option<Distribution>> {
    let percent = (0_u8..=99, 1_u64..=99).prop_map(|(io, part)| Distribution {
        unit: Unit::Percent,
        parts: vec![
            Share { io_percent: io, length: part },
            Share { io_percent: 100 - io, length: 100 - part },
        ],
    });
    let absolute = (0_u8..=99, 1_u64 << 32..1 << 40).prop_map(|(io, length)| Distribution {
        unit: Unit::Absolute,
        parts: vec![Share { io_percent: io, length }, Share { io_percent: 100 - io, length: 0 }],
    });
    prop_oneof![Just(None), percent.prop_map(Some), absolute.prop_map(Some)]
}

/// Returns targets with random or sequential access and its options.
fn access(target: Target) -> impl Strategy<Value = Target> {
    let random = (1_u8..=100, 1_u64..1 << 40, distribution());
    let sequential = (any::<u64>(), 0_u8..3, any::<u64>());
    prop_oneof![
        random.prop_map(|(random_percent, alignment, distribution)| (
            random_percent,
            alignment,
            distribution,
            3,
            0
        )),
        sequential.prop_map(|(stride, walk, between)| (0, stride, None, walk, between)),
    ]
    .prop_map(move |(random_percent, alignment, distribution, walk, between)| Target {
        random_percent,
        alignment,
        distribution,
        parallel: walk == 0,
        interlocked: walk == 1,
        thread_stride: if walk == 2 { between } else { 0 },
        threads: 4,
        ..target.clone()
    })
}

fn content() -> impl Strategy<Value = WriteContent> {
    let file = proptest::option::of("[a-z&<>\"'é/.]{1,12}");
    prop_oneof![
        Just(WriteContent::Counting),
        Just(WriteContent::Zero),
        Just(WriteContent::Random),
        (u64::from(u32::MAX)..1 << 40, file).prop_map(|(size, file)| WriteContent::Buffer { size, file }),
    ]
}

fn caches() -> impl Strategy<Value = (CacheMode, bool, Option<MappedFlush>)> {
    let flushes = prop_oneof![
        Just(None),
        Just(Some(MappedFlush::ViewOfFile)),
        Just(Some(MappedFlush::NonVolatileMemory)),
        Just(Some(MappedFlush::NonVolatileMemoryNoDrain)),
    ];
    let modes = prop_oneof![Just(CacheMode::Cached), Just(CacheMode::LocalOff), Just(CacheMode::Off)];
    (modes, any::<bool>(), flushes).prop_map(|(mode, mapped, flush)| {
        let mapped = mapped && mode != CacheMode::Off;
        (mode, mapped, flush.filter(|_| mapped))
    })
}

fn throughput() -> impl Strategy<Value = Option<Throughput>> {
    prop_oneof![
        Just(None),
        (1_u32..).prop_map(|iops| Some(Throughput::Iops(iops))),
        (1_u32..).prop_map(|bytes| Some(Throughput::BytesPerMillisecond(bytes))),
    ]
}

fn target() -> impl Strategy<Value = Target> {
    let path = "[a-zé/._&<>\"' ]{0,10}[a-z<&]";
    let names =
        prop_oneof![path.prop_map(|name| format!("/{name}")), Just("#7".to_owned()), Just("*2".to_owned())];
    let numbers = (1_u32..1 << 30, 0_u64..1 << 50, any::<u32>(), 1_u32..1000, 0_u8..=100, any::<u32>());
    let flags = (any::<[bool; 5]>(), caches(), content(), throughput());
    let pairs = (proptest::option::of((1_u32.., 1_u32..)), proptest::option::of(1_u64..1 << 60), 0_u8..3);
    (names, numbers, flags, pairs).prop_flat_map(|(name, numbers, flags, pairs)| {
        let (block, base, length, requests, write_percent, weight) = numbers;
        let ([random, sequential, temporary, large_pages, write_through], caches, content, throughput) =
            flags;
        let (bursts, file_size, priority) = pairs;
        let (burst, think_ms) = bursts.unwrap_or((0, 0));
        let drive = name.starts_with('#');
        let (cache, mapped, flush) = if drive { (caches.0, false, None) } else { caches };
        let max_size = if length % 2 == 0 { 0 } else { base + u64::from(block) + u64::from(length) };
        let file_size =
            file_size.filter(|_| !drive).map(|size| size.max(max_size).max(base + u64::from(block)));
        access(Target {
            path: name,
            block,
            base,
            max_size,
            hints: Hints { random, sequential, temporary },
            large_pages,
            cache,
            write_through,
            mapped,
            flush,
            content,
            burst,
            think_ms,
            file_size,
            requests,
            write_percent,
            throughput,
            priority: [IoPriority::VeryLow, IoPriority::Low, IoPriority::Normal][usize::from(priority)],
            weight,
            ..Target::at("")
        })
    })
}

fn time_span() -> impl Strategy<Value = TimeSpan> {
    let targets = proptest::collection::vec(target(), 1..4);
    let processors = proptest::collection::vec((0_u32..4, 0_u32..64), 0..4);
    let shared = proptest::option::of((2_u32..64, 1_u32..64, any::<bool>()));
    (targets, any::<[bool; 4]>(), any::<[u32; 5]>(), processors, shared).prop_map(
        |(mut targets, flags, numbers, processors, shared)| {
            let [measure_latency, iops_deviation, random_write_data, affinity_disabled] = flags;
            let [duration, warmup, cooldown, seed, bucket] = numbers;
            let (mut thread_count, mut request_count) = (0, 0);
            if let Some((threads, requests, some)) = shared {
                (thread_count, request_count) = (threads, requests);
                for target in &mut targets {
                    target.threads = 1;
                    target.weight = target.weight.max(1);
                    (target.throughput, target.burst, target.think_ms, target.parallel) = (None, 0, 0, false);
                    if some {
                        target.thread_targets = vec![ThreadTarget { thread: threads - 1, weight: requests }];
                    }
                }
            }
            let affinity = processors.into_iter().map(|(group, number)| Processor { group, number });
            TimeSpan {
                measure_latency,
                iops_deviation,
                random_write_data,
                affinity_disabled,
                duration: duration.max(1),
                warmup,
                cooldown,
                seed,
                bucket_ms: bucket.max(1),
                thread_count,
                request_count,
                affinity: if affinity_disabled { Vec::new() } else { affinity.collect() },
                ..TimeSpan::new(targets)
            }
        },
    )
}

fn profile() -> impl Strategy<Value = Profile> {
    let spans = proptest::collection::vec(time_span(), 1..3);
    let etw = proptest::option::of(any::<[bool; 12]>());
    (spans, any::<[u32; 2]>(), any::<[bool; 2]>(), 0_usize..4, 0_usize..2, etw).prop_map(
        |(time_spans, [progress, experiment_flags], [verbose, verbose_stats], precreate, format, etw)| {
            Profile {
                progress,
                experiment_flags,
                result_format: [ResultFormat::Text, ResultFormat::Xml][format],
                verbose,
                verbose_stats,
                precreate: [
                    Precreate::None,
                    Precreate::UseMaxSize,
                    Precreate::ConstantSizes,
                    Precreate::ConstantOrZeroSizes,
                ][precreate],
                etw,
                time_spans,
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_reads_back_the_same(profile in profile()) {
        prop_assert_eq!(profile.validate(None, false), Ok(()), "the test makes invalid profiles");
        let text = write_profile(&profile);
        let read = read_profile(&text, "p").map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(&read, &profile);
        prop_assert_eq!(write_profile(&read), text);
    }

    #[test]
    fn a_valid_profile_has_a_meaning_or_a_reason(profile in profile()) {
        match profile.meaning(&machine(), &|_| None) {
            Ok(meaning) => prop_assert_eq!(meaning.scenario.spans.len(), profile.time_spans.len()),
            Err(error) => prop_assert!(!error.problem.is_empty()),
        }
    }
}

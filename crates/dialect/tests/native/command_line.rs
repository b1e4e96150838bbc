//! Words on the command line: their values, defaults and contradictions.

use clap::{Args, Command, FromArgMatches};
use plumb_block::{Bytes, Nanos};
use plumb_dialect::native::{Words, read, read_under, translate};
use plumb_workload::{Caching, DurableWrite, FlushCall, Job, Scenario, Stop, Warmup, Workload};

fn words(typed: &str) -> Result<Words, clap::Error> {
    let command = Words::augment_args(Command::new("load").no_binary_name(true));
    Words::from_arg_matches(&command.try_get_matches_from(typed.split_whitespace())?)
}

fn meaning(typed: &str) -> Result<Scenario, String> {
    let meaning = words(typed).unwrap().meaning(7);
    meaning.map(|meaning| meaning.scenario).map_err(|error| error.to_string())
}

fn job(typed: &str) -> Job {
    meaning(typed).unwrap().spans.remove(0).jobs.remove(0)
}

#[test]
fn the_flags_are_the_keys_of_a_file() {
    let command = Words::augment_args(Command::new("load"));
    command.clone().debug_assert();
    for word in command.get_arguments() {
        let key = word.get_long().unwrap_or("targets");
        let error = read(&format!("{key} = 1979-05-27"), "keys.toml", 7).unwrap_err().to_string();
        assert!(error.starts_with(&format!("keys.toml:1: {key}: found 1979-05-27, expected ")), "{error}");
    }
    for word in command.get_arguments() {
        assert!(
            word.get_help().is_some_and(|help| !help.to_string().contains('\n')),
            "{word:?} has no line of help"
        );
    }
}

#[test]
fn nothing_said_is_random_reads_past_the_page_cache() {
    let job = job("/dev/null");
    let expected = Workload {
        seed: 7,
        stop: Stop::after(Nanos::secs(30)),
        ..Workload::over(plumb_workload::ByteRange::ALL, Bytes::kib(4))
    };
    assert_eq!(job, Job::on("/dev/null", expected));
}

#[test]
fn words_mean_what_they_say() {
    let job_of = |typed: &str| job(&format!("/dev/null {typed}"));
    let durable = job_of("--write 100 --sync-every 4 --sync-kind dsync").workload.durability;
    assert_eq!((durable.fua_every.unwrap().get(), durable.flush_every), (4, None));
    let flushed =
        job_of("--write 100 --sync-every 4 --sync-kind fsync --dsync --durable-write sync --cached");
    assert_eq!(flushed.workload.durability.flush_every.unwrap().get(), 4);
    assert_eq!(flushed.workload.durability.fua_every.unwrap().get(), 1);
    assert_eq!(flushed.opening.flush, FlushCall::Fsync);
    assert_eq!(flushed.opening.durable_write, DurableWrite::Sync);
    assert_eq!(flushed.opening.caching, Caching::Cached);
    assert_eq!(job_of("--count 5").workload.stop, Stop::operations(5));
    assert!(!job_of("--stride 1M").workload.access.is_random());
    assert_eq!(job_of("--block-size 8k").workload.blocks.only(), Some(Bytes::kib(8)));
    let span =
        meaning("a b --weights 3,1 --threads-shared --depth-shared --warmup 5").unwrap().spans.remove(0);
    assert_eq!(span.warmup, Warmup::For(Nanos::secs(5)));
    assert_eq!(span.jobs[0].targets.iter().map(|target| target.weight).collect::<Vec<_>>(), [3, 1]);
}

#[test]
fn contradictions_name_the_words() {
    for (typed, told) in [
        ("--random --sequential", "--random: contradicts --sequential"),
        ("--distribution zipf:1.1 --stride 1M", "--distribution: contradicts --stride"),
        ("--direct --cached", "--direct: contradicts --cached"),
        ("--write 1 --sync-every 1 --sync-kind dsync --dsync", "--dsync: contradicts --sync-kind"),
        ("--write 1 --sync-kind fsync", "--sync-kind: means nothing without --sync-every or --sync-at-end"),
        ("--write 1 --sync-kind dsync --sync-at-end", "--sync-kind: means nothing without --sync-every"),
        ("--arrival poisson", "--arrival: means nothing without --rate"),
        ("--burst 3", "--burst: means nothing without --pause"),
        ("--depth 0", "--depth: found 0, expected 1 to 32768"),
        ("--sync-every 1", "--sync-every: found 1, expected none, for a workload that never writes"),
        ("--write 60 --trim 50", "--trim: found 50, expected 0 to 40"),
        ("--engine synchronous --depth 2", "--depth: found 2, expected 1 with synchronous calls"),
        (
            "--weights 1,2 --depth-shared --threads-shared",
            "--weights: found 2 weights, expected one for each of 1",
        ),
        ("--walk interlocked --division parts", "--walk: found interlocked"),
        (
            "--mapped --write 50 --sync-every 4 --sync-kind fsync",
            "--sync-kind: found fsync, expected fdatasync",
        ),
        ("--steady 3", "--steady: found 3, expected at least 5"),
    ] {
        let error = meaning(&format!("/dev/null {typed}")).unwrap_err();
        assert!(error.starts_with(told), "{typed}: {error}");
    }
    assert!(meaning("--depth 3").unwrap_err().starts_with("TARGET: found none"));
}

#[test]
fn a_value_of_the_wrong_kind_is_told_with_what_was_expected() {
    for (typed, told) in [
        ("--block-size 4x", "expected a size"),
        ("--duration 5parsecs", "ns, us, ms, s, m, h, d"),
        ("--write 101", "0 to 100"),
        ("--rate 5000", "5000iops or 100MiB"),
        ("--walk backwards", "[possible values: each, interlocked, parallel]"),
    ] {
        let error = words(typed).unwrap_err().to_string();
        assert!(error.contains(told), "{typed}: {error}");
    }
}

#[test]
fn a_toml_target_is_a_file_of_words_and_the_rest_goes_over_it() {
    for typed in ["", "disk", "sim:x.toml"] {
        assert_eq!(words(typed).unwrap().file().unwrap(), None, "{typed}");
    }
    assert!(words("a.toml b.toml").unwrap().file().is_err());
    let under = |text: &str, typed: &str| {
        let (file, typed) = words(&format!("job.toml {typed}")).unwrap().file().unwrap().unwrap();
        read_under(text, &file, &typed, 7).map_err(|error| error.to_string())
    };
    let text =
        "targets = 'a'\nsequential = true\nwrite = 100\nwarmup = 1\n[[job]]\ndepth = 2\n[[job]]\ndepth = 3";
    let scenario = under(text, "other --depth 8 --random --warmup 2s").unwrap();
    let span = &scenario.spans[0];
    assert_eq!(span.warmup, Warmup::For(Nanos::secs(2)));
    for job in &span.jobs {
        assert_eq!(
            (&*job.targets[0].name, job.workload.depth, job.workload.write_percent),
            ("other", 8, 100)
        );
        assert_eq!(
            job.workload.access,
            self::job("x").workload.access,
            "what was typed contradicts the file"
        );
    }
    assert_eq!(under(text, ""), read(text, "job.toml", 7).map_err(|error| error.to_string()));
    for (typed, told) in [
        ("--depth 0", "--depth: found 0"),
        ("--arrival poisson", "--arrival: means nothing without --rate"),
        ("--random --sequential", "--random: contradicts --sequential"),
    ] {
        let error = under(text, typed).unwrap_err();
        assert!(error.starts_with(told), "{typed}: {error}");
    }
    let error = under("targets = 'a'\ndepth = 0", "--write 100").unwrap_err();
    assert!(error.starts_with("job.toml:2: depth: found 0"), "{error}");
}

#[test]
fn words_of_other_programs_are_told_in_plumbs_words() {
    let line = |typed: &str| {
        let typed: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
        let (found, line) = translate(&typed);
        assert_eq!(found.is_empty(), typed == line, "{typed:?}");
        line.join(" ")
    };
    for (typed, native) in [
        ("--bs 8k", "--block-size 8k"),
        ("--bs=8k f", "--block-size 8k f"),
        ("--bs", "--block-size SIZES"),
        ("--bssplit=4k/60:64k/40", "--block-size 4k/60,64k/40"),
        ("--rw=randwrite", "--random --write 100"),
        ("--rw randwrite f", "--random --write 100 f"),
        ("--rw=randrw --rwmixread=70", "--random --write 30"),
        ("--rwmixwrite=20 --rw=rw", "--write 20 --sequential"),
        ("--rw=randrw", "--random --write 50"),
        ("--read 70", "--write 30"),
        ("--runtime=10 --time_based", "--duration 10"),
        ("--time 1m", "--duration 1m"),
        ("--numjobs=4 --iodepth 32", "--threads 4 --depth 32"),
        ("--filename=/tmp/x --size 1G", "/tmp/x --size 1G"),
        ("--ioengine=libaio --direct=1", "--direct"),
        ("--direct=0", "--cached"),
        ("-bs=4k", "--block-size 4k"),
        (
            "-b8K -t 4 -d30 -o32 -w100 -r f",
            "--block-size 8K --threads 4 --duration 30 --depth 32 --write 100 --random f",
        ),
        ("-r4k -rs50 -Sh", "--random --align 4k --random-percent 50 --direct --dsync"),
        ("--depth 8 --write 30 --seconds 3 f", "--depth 8 --write 30 --seconds 3 f"),
    ] {
        assert_eq!(line(typed), native, "{typed}");
    }
}

#[test]
fn what_is_said_for_words_of_other_programs_can_be_typed() {
    let table = include_str!("../../src/native/foreign.txt");
    for row in table.lines().filter(|line| !line.starts_with('#')) {
        let Some((_, native)) = row.split_once(" | ") else { continue };
        assert!(!["--trim", "--overwrite", "--destroy"].iter().any(|word| native.contains(word)), "{row}");
        if native.starts_with('(') || native.contains(" or ") {
            continue;
        }
        let values = ["8", "fixed", "uniform", "4k/60,64k/40", "1ms"];
        let fits = |value: &&str| {
            let text = native.replace("{rest}", value).replace("{sizes}", value).replace("{}", value);
            words(&text.replace("--json", "")).is_ok()
        };
        assert!(values.iter().any(fits), "{row}");
    }
}

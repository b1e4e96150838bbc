//! What can be typed, what it means where nothing is said, and what contradicts itself.

use clap::{Args, Command, FromArgMatches};
use plumb_block::{Bytes, Nanos};
use plumb_dialect::native::{Words, read};
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
fn a_lone_toml_target_is_a_description() {
    assert_eq!(words("job.toml").unwrap().file().as_deref(), Some("job.toml"));
    for typed in ["", "disk", "job.toml disk", "job.toml --depth 3"] {
        assert_eq!(words(typed).unwrap().file(), None, "{typed}");
    }
}

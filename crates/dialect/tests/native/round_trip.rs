//! Scenarios written as TOML and read back are equal, to the last bit.

use clap::{Args, Command, FromArgMatches};
use plumb_dialect::native::{Words, read, write};
use proptest::prelude::*;
use proptest::sample::subsequence;

use crate::native::arbitrary::scenario;

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, max_global_rejects: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn a_scenario_that_is_written_reads_the_same(scenario in scenario()) {
        let text = write(&scenario);
        let again = read(&text, "written.toml", 99).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(again, scenario, "\n{}", text);
    }

    #[test]
    fn a_command_line_means_what_its_file_means(flags in subsequence(FLAGS.to_vec(), 1..7)) {
        let typed = flags.iter().flat_map(|flag| flag.split(' '));
        let command = Words::augment_args(Command::new("load").no_binary_name(true));
        let matches = command.try_get_matches_from(typed.chain(["/dev/null", "b"]));
        // Many choices contradict each other or repeat a word.
        prop_assume!(matches.is_ok());
        let meaning = Words::from_arg_matches(&matches.unwrap()).unwrap().meaning(7);
        prop_assume!(meaning.is_ok());
        let scenario = meaning.unwrap().scenario;
        let text = write(&scenario);
        let again = read(&text, "written.toml", 99);
        prop_assert_eq!(again, Ok(scenario), "\n{}", text);
    }
}

/// Words, each with its prerequisites.
const FLAGS: [&str; 58] = [
    "--depth-shared --threads-shared --weights 3,1",
    "--offset 1M",
    "--length 1G",
    "--size 2G",
    "--division overlap",
    "--division offset:1M",
    "--name first",
    "--block-size 8k",
    "--block-size 4k/60,64k/40",
    "--write-block-size 64k",
    "--trim-block-size 1M",
    "--write 30",
    "--trim 10",
    "--random",
    "--sequential",
    "--stride 1M",
    "--walk interlocked",
    "--walk parallel",
    "--align 512",
    "--distribution zipf:1.1",
    "--distribution zoned:60/10,30/20",
    "--random-percent 10",
    "--run-length 8",
    "--content zeroes",
    "--content reducible:50/20",
    "--verify --write 50",
    "--seed 18446744073709551615",
    "--direct",
    "--atomic --write 100",
    "--cached",
    "--drop-behind",
    "--mapped",
    "--write 100 --sync-every 4",
    "--sync-every 0",
    "--write 100 --sync-every 2 --sync-kind fsync",
    "--write 100 --sync-every 3 --sync-kind dsync",
    "--write 10 --sync-at-end",
    "--write 20 --dsync",
    "--write 30 --dsync-every 3",
    "--write 40 --dsync --durable-write sync",
    "--depth 32",
    "--threads 4",
    "--threads-shared",
    "--rate 5000iops",
    "--rate 100MiB --arrival poisson",
    "--burst 100 --pause 10ms",
    "--latency-target 10ms@99 --duration 5",
    "--duration 1m30s",
    "--count 1000",
    "--bytes 10G",
    "--warmup auto --cooldown 5",
    "--start-delay 1s",
    "--precondition",
    "--engine io-uring",
    "--affinity each:0,1 --priority idle",
    "--continue-on-error",
    "--trace t.log --trace-speed 50 --trace-skip trim,sync",
    "--trace t --trace-speed unpaced --trace-scale 10 --trace-align 4k --depth 3",
];

//! Structure of TOML files, and errors about invalid ones.

use plumb_block::Nanos;
use plumb_dialect::native::{read, write};
use plumb_workload::{Caching, Scenario, Stop};

fn scenario(text: &str) -> Scenario {
    read(text, "job.toml", 7).unwrap()
}

fn refusal(text: &str) -> String {
    read(text, "job.toml", 7).unwrap_err().to_string()
}

#[test]
fn a_file_of_words_is_one_job() {
    let text = r#"
        targets = "/dev/null"
        block-size = "8k"
        write = 30
        duration = 1.5
        rate = "100MiB"
    "#;
    let scenario = scenario(text);
    let [span] = &scenario.spans[..] else { panic!("{scenario:?}") };
    let workload = &span.jobs[0].workload;
    assert_eq!(workload.stop, Stop::after(Nanos::millis(1500)));
    assert_eq!((workload.write_percent, workload.seed), (30, 7));
    let written = "targets = [\"/dev/null\"]\nblock-size = \"8KiB\"\nwrite = 30\nseed = 7\nrate = \"100MiB\"\n\
                   duration = \"1500ms\"\n";
    assert_eq!(write(&scenario), written);
}

#[test]
fn words_outside_are_defaults_and_give_way() {
    let text = r#"
        targets = ["a"]
        distribution = "zipf:1.1"
        cached = true
        cooldown = "1s"

        [[span]]
        depth = 4

        [[span]]
        cooldown = 0
        [[span.job]]
        sequential = true
        [[span.job]]
        direct = true
        depth = 2
    "#;
    let scenario = scenario(text);
    let [first, second] = &scenario.spans[..] else { panic!("{scenario:?}") };
    assert_eq!((first.cooldown, second.cooldown), (Nanos::secs(1), Nanos::ZERO));
    assert_eq!((first.jobs.len(), first.jobs[0].workload.depth), (1, 4));
    let [sequential, direct] = &second.jobs[..] else { panic!("{scenario:?}") };
    assert!(!sequential.workload.access.is_random() && sequential.opening.caching == Caching::Cached);
    assert!(direct.workload.access.is_random() && direct.opening.caching == Caching::Direct);
    assert_eq!((sequential.workload.depth, direct.workload.depth), (1, 2));
}

#[test]
fn what_jobs_have_in_common_is_written_first() {
    let text = "targets = [\"a\"]\nseed = 7\n\n[[job]]\nwrite = 100\n\n[[job]]\ndepth = 8\n";
    assert_eq!(write(&scenario(text)), text);
    let text = "targets = [\"a\"]\nseed = 7\n\n[[span]]\ndepth = 2\n\n[[span]]\nwarmup = \"5s\"\n\n\
                [[span.job]]\nwrite = 100\n\n[[span.job]]\ndepth = 8\n";
    assert_eq!(write(&scenario(text)), text);
}

#[test]
fn refusals_name_the_line_the_word_the_value_and_what_was_expected() {
    for (text, told) in [
        ("targets = 'a'\nblocksize = '4k'", "job.toml:2: blocksize: no such word; did you mean block-size?"),
        (
            "targets = 'a'\nblock_size = '4k'",
            "job.toml:2: block_size: no such word; did you mean block-size?",
        ),
        ("targets = 'a'\nbs = '4k'", "job.toml:2: bs: no such word; did you mean block-size?"),
        ("targets = 'a'\niodepth = 4", "job.toml:2: iodepth: no such word; did you mean depth?"),
        ("targets = 'a'\ntrin = 4", "job.toml:2: trin: no such word; `plumb load --help`"),
        ("targets = 'a'\nxyzzy = 1", "job.toml:2: xyzzy: no such word; `plumb load --help`"),
        ("\n\nblock-size = '4x'", "job.toml:3: block-size: found '4x', expected a size"),
        ("depth = true", "job.toml:1: depth: found true, expected a whole number"),
        ("depth = -1", "job.toml:1: depth: found -1, expected a whole number"),
        ("depth = 1.5", "job.toml:1: depth: found 1.5, expected a whole number"),
        ("depth = {a = 1}", "job.toml:1: depth: found {a = 1}, expected a whole number"),
        ("depth = 1979-05-27", "job.toml:1: depth: found 1979-05-27, expected a whole number"),
        ("duration = nan", "job.toml:1: duration: found nan, expected a time"),
        ("verify = 'yes'", "job.toml:1: verify: found 'yes', expected"),
        ("targets = 3", "job.toml:1: targets: found 3, expected a target or an array"),
        ("walk = 'back'", "job.toml:1: walk: found 'back', expected each, interlocked or parallel"),
        ("targets = 'a'\ndepth = 0", "job.toml:2: depth: found 0, expected 1 to 32768"),
        (
            "depth = 1",
            "job.toml:1: targets: found none, expected at least one target: a file, a disk, sim:MODEL or an NBD URI",
        ),
        ("targets = 'a'\nrandom = true\nsequential = true", "job.toml:2: random: contradicts sequential"),
        ("targets = 'a'\nrandom = false", "job.toml:2: random: found false"),
        ("targets = 'a'\ndirect = false", "job.toml:2: direct: found false"),
        ("targets = 'a'\narrival = 'fixed'", "job.toml:2: arrival: means nothing without rate"),
        (
            "targets = 'a'\n[[job]]\nwarmup = 1",
            "job.toml:3: warmup: is about a span, not about one of its jobs",
        ),
        (
            "targets = 'a'\n[[job]]\n[[span]]",
            "job.toml:2: job: the file has [[span]] tables, and this job is in none of them",
        ),
        ("targets = 'a'\n[span]\ndepth = 1", "job.toml:2: span: found"),
        ("targets = 'a'\njob = []", "job.toml:2: job: found [], expected [[job]] tables"),
        ("targets = 'a'\njob = [1]", "job.toml:2: job: found [1], expected [[job]] tables"),
        ("targets = 'a'\n[[span]]\n[[span.job]]\n[[span.job]]\n\ndepth = 0", "job.toml:6: depth: found 0"),
        ("targets = 'a'\n[[spam]]", "job.toml:2: spam: no such word; did you mean span?"),
        ("depth = 1\ndepth = 2", "job.toml:2: duplicate key"),
        ("depth = ", "job.toml:1: "),
        ("", "job.toml:1: targets: found none"),
    ] {
        let error = refusal(text);
        assert!(error.starts_with(told), "{text}\n{error}");
    }
}

#[test]
fn a_default_that_fails_in_a_job_is_told_where_it_stands() {
    let error = refusal("targets = 'a'\nsync-every = 1\n[[job]]\nwrite = 1\n[[job]]\ndepth = 2");
    assert!(error.starts_with("job.toml:2: sync-every: found 1, expected none"), "{error}");
}

//! Refused options: the error names the option and its position.

use super::*;
use crate::fio::option_table;

/// Lines, the option that the error must name, and a word of the message.
const REFUSED: [(&str, &str, &str); 75] = [
    ("rw=trimwrite", "rw", "trims that precede"),
    ("rw=sideways", "rw", "expected read"),
    ("rw=randread:0", "rw", "from 1"),
    ("rw=read:4k|bssplit=4k/50:8k/50", "rw", "one block size"),
    ("rw_sequencer=identical", "rw_sequencer", "same place"),
    ("bs=1.5k", "bs", "not a size"),
    ("bs=0", ": bs is 0 B", "1 byte"),
    ("ba=3|rw=randread", ": blockalign is 3 bytes", "as the blocks are"),
    ("bs=1m|size=64k", ": size is 64 KiB", "one block"),
    ("bssplit=4k/60:8k/60", "bssplit", "120"),
    ("bsrange=512-1m", "bsrange", "2048 lengths"),
    ("bs_unaligned", "bs_unaligned", "sector"),
    ("ba=512,4k|rw=randrw", "ba", "differently"),
    ("ioengine=nowhere", "ioengine", "expected psync"),
    ("ioengine=null|size=10%", "ioengine", "give size"),
    ("clocksource=cpuu", "clocksource", "expected gettimeofday, clock_gettime, cpu"),
    ("mem=heap:/x", "mem", "expected malloc, "),
    ("thread=yes", "thread", "neither 0 nor 1"),
    ("ioengine=sg", "ioengine", "block layer"),
    ("ioengine=mmap|direct=1", "direct", "page cache"),
    ("direct=1|uncached=1|ioengine=io_uring", "uncached", "direct"),
    ("iodepth=0", "iodepth", "1 to"),
    ("atomic=1", "atomic", "direct=1"),
    ("numjobs=0", "numjobs", "1 to"),
    ("runtime=7min", "runtime", "not a time"),
    ("time_based", "time_based", "no runtime"),
    ("rate=1m|rate_iops=5", "rate_iops", "rate is given"),
    ("rw=randrw|rate=1m,", "rate", "one direction"),
    ("rate_process=random", "rate_process", "linear"),
    ("directory=/no/disk", "directory", "/no/disk is not a directory"),
    ("thinktime=1|filename=/a:/b", "thinktime", "several files"),
    ("thinktime_iotime=1", "thinktime_iotime", "operations"),
    ("fsync=1|fdatasync=1|rw=write", "fdatasync", "fsync is given"),
    ("sync_file_range=wait_before,write,wait_after:8|end_fsync=1|rw=write", "sync_file_range", "end"),
    ("sync_file_range=write:2|rw=write", ": sync_file_range", "lacks wait_before"),
    ("rw=write|rwmixread=101", ": rwmixread", "0 to 100"),
    ("rw=write|percentage_random=101", ": percentage_random", "0 to 100"),
    ("rw=write|random_distribution=nope", ": random_distribution", "expected random"),
    ("iodepth_batch=abc", ": iodepth_batch", "whole number"),
    ("invalidate=7", ": invalidate", "neither 0 nor 1"),
    ("size=64k|filename=/a:/b|bs=64k", ": size", "each of 2 files"),
    ("sync=maybe", "sync", "dsync"),
    ("random_distribution=zipf:1.0", ": random_distribution is 1", "not 1"),
    ("random_distribution=zipf:1.2:0.5", "random_distribution", "centre"),
    ("random_distribution=zoned:60/10:30/20", "random_distribution", "90 %"),
    ("random_distribution=normal", "random_distribution", "deviation"),
    ("percentage_random=101", "percentage_random", "0 to 100"),
    ("verify=crc32c", "verify", "never writes"),
    ("verify=crc32c|rw=write|numjobs=2", "verify", "several clones"),
    ("verify=crc32c|rw=write|zero_buffers", ": verify", "alike"),
    ("verify_pattern=zz|rw=write", ": verify_pattern", "in quotes"),
    ("verify_pattern=0xff", ": verify_pattern", "never writes"),
    ("verify=rot13|rw=write", "verify", "rot13"),
    ("verify_only|rw=write", "verify_only", "headers"),
    ("buffer_pattern=0xdead|rw=write", "buffer_pattern", "zeroes"),
    ("dedupe_mode=working_set", "dedupe_mode", "repeat"),
    ("cpus_allowed=0,9", "cpus_allowed", "processor 9"),
    ("prioclass=1", "prioclass", "starve"),
    ("prio=2", "prio", "prio=4"),
    ("rw=read:-8k", "rw", "backwards"),
    ("write_iolog=x", "write_iolog", "seed"),
    ("steadystate=iops:1%", "steadystate", "ss_dur"),
    ("exec_prerun=rm", "exec_prerun", "not run"),
    ("zonemode=zbd", "zonemode", "zones"),
    ("zonesize=1m", "zonesize", "in turn"),
    ("percentage_random=10,20|rw=randrw", "percentage_random", "a job of reads"),
    ("bs=4*1024", "bs", "(4*1024)"),
    ("bs=(10/4)", "bs", "not a whole number"),
    ("iodepth=(1-2)", "iodepth", "is -1"),
    ("runtime=(1m+1)", "runtime", "no units"),
    ("ioengine=nbd", "ioengine", "uri=nbd"),
    ("ioengine=nbd|uri=http://x", "uri", "NBD export"),
    ("kb_base=512", "kb_base", "1024"),
    ("size=30%", "size", "not known"),
    ("http_host=x", "http_host", "known to fio"),
];

#[test]
fn each_is_refused_by_name() {
    for (lines, name, word) in REFUSED {
        let Err(error) = section(lines) else { panic!("{lines} was taken") };
        let text = error.to_string();
        assert!(error.place.starts_with("job.fio:"), "{lines}: {error:?}");
        assert!(text.contains(name) && text.contains(word), "{lines}: {text}");
    }
}

#[test]
fn the_place_is_the_line_of_the_option() {
    let error = file("[global]\nbs=4k\n# a comment\n[x]\nsize=1m\niodpeth=4\n").unwrap_err();
    assert_eq!(error.place, "job.fio:6");
    assert!(error.to_string().contains("did you mean `iodepth`?"), "{error}");
    let error = file("[global]\nruntime=10x\n[x]\nsize=1m\n").unwrap_err();
    assert_eq!(error.place, "job.fio:2", "of an inherited one too");
    let error = file("[x]\nsize=1m\nbs=0\nrw=read\n").unwrap_err();
    assert_eq!(error.place, "job.fio:3", "of one that makes no sense with the others too");
    let error = parse_in(&["--name=x", "--bs=4x", "--size=1m"], &[]).unwrap_err();
    assert_eq!(error.place, "--bs=4x");
}

#[test]
fn job_files_that_are_none() {
    for (text, line, word) in [
        ("bs=4k\n", "job.fio:1", "before the first section"),
        ("[x\nsize=1m\n", "job.fio:1", "expected [name]"),
        ("[x]\ndirect\n", "job.fio:2", "needs a value"),
        ("[x]\nfilename=${NOWHERE}\n", "job.fio:2", "NOWHERE is not set"),
        ("[x]\nfilename=${NOWHERE\n", "job.fio:2", "without a }"),
        ("[x]\ninclude job.fio\n", "job.fio:2", "each other"),
        ("include gone.fio\n", "job.fio:1", "cannot be read"),
        ("", "the command line", "no job is defined"),
        ("[global]\nbs=4k\n", "the command line", "no job is defined"),
    ] {
        let error = file(text).unwrap_err();
        assert!(error.place == line && error.to_string().contains(word), "{text}: {error}");
    }
    assert_eq!(parse_in(&["gone.fio"], &[]).unwrap_err().place, "gone.fio");
}

#[test]
fn every_option_of_fio_is_answered() {
    for name in option_table::all() {
        // Most options do not accept these values; none may panic or be silently ignored.
        for value in ["1", "x", "50%", "write:4"] {
            let plain = file("[named]\nfilename=/f\nsize=64m\nrw=randwrite\n").unwrap();
            match file(&format!("[named]\nfilename=/f\nsize=64m\nrw=randwrite\n{name}={value}\n")) {
                Err(error) => assert!(!error.problem.is_empty()),
                Ok(taken) => {
                    let (mut with, mut without) = (taken.clone(), plain.clone());
                    for each in [&mut with, &mut without] {
                        each.reported[0].options.clear();
                        each.reported[0].command.clear();
                    }
                    let anyway = value == "1" && WITHOUT_EFFECT.contains(&name);
                    assert!(with != without || anyway, "{name}={value} vanished");
                }
            }
        }
    }
}

/// Options for which the value 1 is the default, or has no effect for at least one job.
const WITHOUT_EFFECT: [&str; 20] = [
    "buffered",
    "clat_percentiles",
    "do_verify",
    "exitall",
    "fallocate",
    "file_append",
    "invalidate",
    "iodepth",
    "loops",
    "new_group",
    "nrfiles",
    "num_range",
    "numjobs",
    "offset_increment",
    "per_job_logs",
    "randrepeat",
    "refill_buffers",
    "scramble_buffers",
    "stats",
    "stonewall",
];

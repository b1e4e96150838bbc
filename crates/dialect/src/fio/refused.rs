//! Options that would change the result and cannot: each with the values that change nothing, why, and what to do.

use super::section::Setting;
use crate::Error;

/// One option.
struct Refused {
    name: &'static str,
    /// Values that are as good as leaving it out.
    harmless: &'static [&'static str],
    why: &'static str,
    remedy: &'static str,
}

const fn refused(
    name: &'static str,
    harmless: &'static [&'static str],
    why: &'static str,
    remedy: &'static str,
) -> Refused {
    Refused { name, harmless, why, remedy }
}

const LEAVE: &str = "leave it out";
const ZERO: &[&str] = &["0"];
const NEVER: &[&str] = &[];

/// All of them.
const REFUSED: [Refused; 73] = [
    refused(
        "atomic",
        ZERO,
        "untorn writes (RWF_ATOMIC) are not asked of the kernel",
        "use sync=dsync for durable writes, or verify to find torn ones",
    ),
    refused(
        "nowait",
        ZERO,
        "an operation that would wait fails with RWF_NOWAIT, and is no measurement of a device",
        LEAVE,
    ),
    refused("sqthread_poll", ZERO, "submission is not handed to a kernel thread", LEAVE),
    refused("sqthread_poll_cpu", NEVER, "submission is not handed to a kernel thread", LEAVE),
    refused("force_async", ZERO, "requests are not forced onto the kernel's worker threads", LEAVE),
    refused("readfua", ZERO, "reads do not go past the drive's cache", LEAVE),
    refused("writefua", ZERO, "it belongs to engines that are not here", "use sync=dsync"),
    refused(
        "cmdprio_percentage",
        ZERO,
        "all operations of a job have one priority",
        "use prio=7 or prioclass=3 for a job",
    ),
    refused(
        "cmdprio_class",
        NEVER,
        "all operations of a job have one priority",
        "use prio=7 or prioclass=3 for a job",
    ),
    refused(
        "cmdprio_bssplit",
        NEVER,
        "all operations of a job have one priority",
        "use prio=7 or prioclass=3 for a job",
    ),
    refused(
        "iodepth_low",
        NEVER,
        "the depth is kept full, not let down to a low mark first",
        "use thinktime for bursts",
    ),
    refused(
        "max_latency",
        ZERO,
        "a slow operation is measured, not the end of the run",
        "look at the maximum in the result",
    ),
    refused("thinktime_iotime", ZERO, "bursts are counted in operations", "use thinktime_blocks"),
    refused("fill_device", ZERO, "a target is never written until it is full", "give size"),
    refused("file_append", ZERO, "writes stay within the range", "give offset and size"),
    refused("write_barrier", ZERO, "Linux has no barrier writes", "use fdatasync=N or sync=dsync"),
    refused(
        "write_iolog",
        NEVER,
        "no iolog is written",
        "keep the run's directory, which regenerates every operation from the seed",
    ),
    refused(
        "write_hist_log",
        NEVER,
        "histograms over time are not written in fio's form",
        "use write_lat_log with log_avg_msec, or --output-format=json+",
    ),
    refused(
        "log_hist_msec",
        ZERO,
        "histograms over time are not written in fio's form",
        "use write_lat_log with log_avg_msec",
    ),
    refused(
        "log_hist_coarseness",
        ZERO,
        "histograms over time are not written in fio's form",
        "use --output-format=json+",
    ),
    refused("log_offset", ZERO, "a line of a log stands for many operations", LEAVE),
    refused("log_issue_time", ZERO, "a line of a log stands for many operations", LEAVE),
    refused("log_window_value", &["avg", "0"], "a line holds the mean or the maximum", "use log_max_value"),
    refused(
        "verify_only",
        ZERO,
        "what an earlier run of fio wrote carries fio's headers, which are not read",
        "verify in the job that writes",
    ),
    refused("verify_state_load", ZERO, "fio's state files are not read", LEAVE),
    refused(
        "trim_percentage",
        ZERO,
        "trims of verified blocks are not made",
        "use rw=randtrim in a job of its own",
    ),
    refused("trim_verify_zero", ZERO, "trims of verified blocks are not made", LEAVE),
    refused("trim_backlog", ZERO, "trims of verified blocks are not made", LEAVE),
    refused("create_only", ZERO, "files are made for a run, not alone", "use fallocate(1) or dd(1)"),
    refused(
        "pre_read",
        ZERO,
        "targets begin outside the page cache",
        "run a read job before it, with stonewall",
    ),
    refused("lockfile", &["none"], "operations on one file are not locked against each other", LEAVE),
    refused("opendir", NEVER, "directories are not searched for targets", "list them in filename"),
    refused("allow_mounted_write", ZERO, "a mounted device is never written to", "name a file on it"),
    refused("exec_prerun", NEVER, "commands are not run", "run it before"),
    refused("exec_postrun", NEVER, "commands are not run", "run it after"),
    refused("ioscheduler", NEVER, "the device's scheduler is not changed", "set it before"),
    refused("zonemode", &["none", "0"], "zones are not written in turn", "use random_distribution=zoned"),
    refused(
        "zonesize",
        ZERO,
        "zones are not read or written in turn, which it means unless zonemode=none is given",
        "use offset and size, or random_distribution=zoned",
    ),
    refused("read_beyond_wp", ZERO, "zoned devices are not supported", LEAVE),
    refused("job_max_open_zones", ZERO, "zoned devices are not supported", LEAVE),
    refused("ignore_zone_limits", ZERO, "zoned devices are not supported", LEAVE),
    refused("zone_reset_threshold", NEVER, "zoned devices are not supported", LEAVE),
    refused("zone_reset_frequency", NEVER, "zoned devices are not supported", LEAVE),
    refused(
        "lockmem",
        ZERO,
        "memory is not taken away from the page cache",
        "use a control group's memory.max",
    ),
    refused("nice", ZERO, "the processor priority is not changed", "start the command with nice(1)"),
    refused("write_hint", &["none"], "write lifetime hints are not given", LEAVE),
    refused("numa_cpu_nodes", NEVER, "processors are not named by node", "use cpus_allowed"),
    refused("profile", NEVER, "fio's built-in profiles are not here", "say it in options"),
    refused("cgroup", NEVER, "control groups are not changed", "start the command in one"),
    refused("cgroup_weight", NEVER, "control groups are not changed", "start the command in one"),
    refused("uid", NEVER, "the user is not changed", "start the command as that user"),
    refused("gid", NEVER, "the group is not changed", "start the command as that group"),
    refused("flow", ZERO, "jobs do not wait for each other's progress", "use rate_iops for a proportion"),
    refused("unified_rw_reporting", &["none", "0"], "reads and writes are reported apart", LEAVE),
    refused("unit_base", &["0", "8", "N/A"], "rates are printed in bytes", LEAVE),
    refused("stats", &["1"], "every job is measured", LEAVE),
    refused("ignore_error", NEVER, "failures are not left out by their number", "use continue_on_error"),
    refused("wait_for", NEVER, "a job waits for all before it or for none", "use stonewall"),
    refused("exit_what", NEVER, "a job ends the others or not", "use exitall"),
    refused(
        "merge_blktrace_file",
        NEVER,
        "traces are not merged",
        "merge them with fio --merge-blktrace-only",
    ),
    refused("md_per_io_size", ZERO, "protection information is not transferred", LEAVE),
    refused("pi_act", NEVER, "protection information is not transferred", LEAVE),
    refused("pi_chk", NEVER, "protection information is not transferred", LEAVE),
    refused("fdp", ZERO, "placement of data is not directed", LEAVE),
    refused("dataplacement", &["none"], "placement of data is not directed", LEAVE),
    refused("plids", NEVER, "placement of data is not directed", LEAVE),
    refused("deac", ZERO, "zeroes are not written by command", LEAVE),
    refused("verify_mode", NEVER, "it belongs to engines that are not here", LEAVE),
    refused("write_mode", &["write"], "it belongs to engines that are not here", LEAVE),
    refused("num_range", &["1"], "a trim has one range", LEAVE),
    refused(
        "sprandom",
        ZERO,
        "preconditioning by that pattern is not made",
        "write the target twice, then randomly until it is steady",
    ),
    refused("unlink_each_loop", ZERO, "files stay as they are between loops", "use unlink"),
    refused(
        "dedupe_working_set_percentage",
        NEVER,
        "copies of blocks that were written before are not made",
        "use dedupe_percentage",
    ),
];

/// What becomes of `setting`: `None` if it is not one of these, `Some(Ok)` if its value changes nothing.
pub(super) fn of(setting: &Setting) -> Option<Result<(), Error>> {
    let refused = REFUSED.iter().find(|refused| refused.name == setting.name)?;
    let is_harmless = setting.value.as_deref().is_some_and(|value| refused.harmless.contains(&value));
    if is_harmless {
        return Some(Ok(()));
    }
    let error = Error::new(&setting.place, format!("{} cannot be taken: {}", refused.name, refused.why));
    Some(Err(error.remedy(refused.remedy)))
}

/// The error of an option that fio knows and nothing here does.
pub(super) fn unsupported(setting: &Setting) -> Error {
    let problem = format!("{} is known to fio, but not supported here", setting.name);
    Error::new(&setting.place, problem).remedy("leave it out, or use fio")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::{said, vocabulary};
    use std::collections::BTreeSet;

    #[test]
    fn every_one_is_an_option_of_fio_and_nowhere_else() {
        let mut seen = BTreeSet::new();
        for refused in &REFUSED {
            let name = refused.name;
            assert!(vocabulary::find(name, "here").is_ok_and(|known| known.name == name), "{name}");
            assert!(seen.insert(name) && said::of(name).is_none(), "{name} twice");
        }
    }
}

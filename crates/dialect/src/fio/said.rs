//! Options that have no meaning here, and why: said once, so that nobody relies on them.

/// Each option and the reason.
const SAID: [(&str, &str); 81] = [
    ("thread", "workers are always threads"),
    ("threads", "fio itself does not know what it means; workers are always threads"),
    ("invalidate", "targets begin outside the page cache whatever it says"),
    ("fallocate", "missing files are made of written blocks, so nothing is only allocated"),
    ("overwrite", "missing files are always made in full before the first write"),
    ("create_serialize", "files are made one after the other"),
    ("create_fsync", "files are synced after they were made"),
    ("create_on_open", "files are made before the run"),
    ("file_service_type", "the files of a job take turns"),
    ("openfiles", "all files of a job are open"),
    ("unique_filename", "there is no server whose files could be confused"),
    ("fadvise_hint", "the page cache is left to find out"),
    ("allrandrepeat", "everything drawn follows from one seed"),
    ("clocksource", "time is CLOCK_MONOTONIC, one reading for each batch of completions"),
    ("gtod_reduce", "one reading of the clock serves a batch already, so latencies are kept"),
    ("gtod_cpu", "one reading of the clock serves a batch already"),
    ("disable_lat", "latencies cost nothing to keep: one reading of the clock serves a batch"),
    ("disable_clat", "latencies cost nothing to keep: one reading of the clock serves a batch"),
    ("disable_slat", "submission is not timed apart"),
    ("disable_bw_measurement", "bandwidth over time costs nothing to keep"),
    ("mem", "buffers come from a pool that the kernel knows where it can"),
    ("iomem_align", "buffers are aligned as the device needs it"),
    ("hugepage-size", "buffers come from a pool of ordinary pages"),
    ("iodepth_batch", "batches follow the pace of the device"),
    ("iodepth_batch_complete_min", "batches follow the pace of the device"),
    ("iodepth_batch_complete_max", "batches follow the pace of the device"),
    ("io_submit_mode", "an operation that starts late is measured from its intended start in any case"),
    ("fixedbufs", "buffers are registered where that is allowed"),
    ("registerfiles", "files are registered where that is allowed"),
    ("nonvectored", "requests are never vectored"),
    ("userspace_reap", "completions are reaped from the ring"),
    ("verify_fatal", "every mismatch is counted and makes the run fail"),
    ("verify_dump", "mismatches are reported with their place and what was found there"),
    ("verify_interval", "every logical block carries its stamp"),
    ("verify_offset", "stamps have a place of their own"),
    ("verify_pattern", "blocks hold plumb's own stamp and noise"),
    ("verify_async", "the reading threads verify"),
    ("verify_async_cpus", "the reading threads verify"),
    ("verify_backlog", "what was written is read back at the end, and whatever is read before is checked"),
    ("verify_backlog_batch", "what was written is read back at the end"),
    ("verify_policy", "everything written is read back, synced or not"),
    ("verify_write_sequence", "stamps carry the version of the block"),
    ("verify_header_seed", "stamps carry the seed"),
    ("verify_state_save", "a run's directory holds what is needed to verify it"),
    ("experimental_verify", "what was written regenerates from the seed"),
    ("serialize_overlap", "writes that overlap in flight are not told apart by a device either"),
    ("rate_cycle", "the schedule is exact, not averaged"),
    ("rate_ignore_thinktime", "the schedule never waits for pauses"),
    ("significant_figures", "figures are printed as fio prints them by default"),
    ("disk_util", "what the devices were handed is always reported"),
    ("log_entries", "logs take no memory in advance"),
    ("log_prio", "all operations of a job have one priority"),
    ("log_compression", "logs are small"),
    ("log_compression_cpus", "logs are not compressed"),
    ("log_store_compressed", "logs are not compressed"),
    ("log_alternate_epoch", "times in logs are since the start, or since 1970 with log_unix_epoch"),
    ("log_alternate_epoch_clock_id", "times in logs are since the start, or since 1970 with log_unix_epoch"),
    ("block_error_percentiles", "failures are counted by kind"),
    ("error_dump", "failures are reported by kind"),
    ("exitall_on_error", "a failure ends the whole run unless continue_on_error is given"),
    ("steadystate_check_interval", "rounds are judged as they end"),
    ("dedupe_global", "each job has copies of its own"),
    ("allow_file_create", "missing files are made"),
    (
        "hipri",
        "completions are waited for, not polled for: with it, fio's latencies are lower where the device polls",
    ),
    ("hipri_percentage", "no operation is polled for"),
    ("rate_min", "a job that is too slow is measured to its end, not stopped: the rate is in the result"),
    (
        "rate_iops_min",
        "a job that is too slow is measured to its end, not stopped: the rate is in the result",
    ),
    ("cmdprio", "all operations of a job have one priority"),
    ("cgroup_nodelete", "no control group is made"),
    ("flow_id", "no flow is given"),
    ("flow_sleep", "no flow is given"),
    ("merge_blktrace_scalars", "one trace is replayed"),
    ("merge_blktrace_iters", "one trace is replayed"),
    ("read_iolog_chunked", "the trace is read whole"),
    ("zonecapacity", "no zonemode is given"),
    ("zonerange", "no zonemode is given"),
    ("zoneskip", "no zonemode is given"),
    ("max_open_zones", "no zonemode is given"),
    ("numa_mem_policy", "buffers are where the worker's processor first touches them"),
    ("trim_backlog_batch", "no trim_backlog is given"),
    ("thinkcycles", "pauses are slept, not spun"),
];

/// What to say of `option`; `None` if it is not one of these.
pub(super) fn of(option: &str) -> Option<String> {
    let (name, why) = SAID.iter().find(|(name, _)| *name == option)?;
    Some(format!("{name} has no effect: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::vocabulary;
    use std::collections::BTreeSet;

    #[test]
    fn every_one_is_an_option_of_fio_and_said_once() {
        let mut seen = BTreeSet::new();
        for (name, _) in SAID {
            assert!(vocabulary::find(name, "here").is_ok_and(|known| known.name == name), "{name}");
            assert!(seen.insert(name), "{name} twice");
        }
    }
}

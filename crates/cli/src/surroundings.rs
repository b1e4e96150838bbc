//! Inputs of a run from outside: time of day, default seed, place of recordings, and properties of the
//! machine.

use std::path::PathBuf;
use std::sync::OnceLock;

use plumb_block::unix_time;
use plumb_dialect::{Machine, ProcessorPlace};
use plumb_linux::tree::{self, LiveTree, Tree};
use plumb_measure::{Out, process};
use plumb_report::RunContents;
use plumb_state::places;

use crate::arguments::running::RecordingArguments;

/// sysfs directory of the processors.
const PROCESSORS: &str = "/sys/devices/system/cpu";

/// Returns the place of the recording of `command`, which begins now. Default directory names sort by time.
pub(crate) fn out(typed: &RecordingArguments, command: &str) -> Out {
    match &typed.out {
        Some(path) => Out::At { path: path.clone(), replace: typed.replace },
        None if typed.no_record => Out::Nowhere,
        None => {
            let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%.3fZ");
            Out::Within { parents: places::runs(), stem: format!("{time}-{command}") }
        }
    }
}

/// Returns the newest run in the default directories that has a result.
pub(crate) fn newest_run() -> Option<PathBuf> {
    let runs = |parent: PathBuf| {
        let entries = std::fs::read_dir(parent).ok()?;
        let mut runs: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        runs.sort();
        runs.into_iter().rfind(|run| matches!(RunContents::open(run), Ok(Some(_))))
    };
    // The third directory is shared by all users, so its runs may be those of others.
    places::runs().into_iter().take(2).find_map(runs)
}

/// Returns the time of day in RFC 3339 format, in UTC, to the second.
pub(crate) fn time_of_day() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns a seed that differs between runs but is constant within a run, so that compared levels draw the
/// same offsets. It is recorded, so any run can be repeated.
pub(crate) fn seed_from_clock() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| unix_time().0)
}

/// Returns the command line as typed.
pub(crate) fn argv() -> Vec<String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// Returns the time since boot in milliseconds.
fn uptime_ms(tree: &dyn Tree) -> Option<u64> {
    let seconds: f64 = tree.text("/proc/uptime").ok()?.split_ascii_whitespace().next()?.parse().ok()?;
    Some((seconds * 1000.0) as u64)
}

/// Returns the places of those processors whose topology is known, by number.
fn topology(tree: &dyn Tree) -> Vec<ProcessorPlace> {
    let place = |number: u32| {
        let processor = format!("{PROCESSORS}/cpu{number}");
        let read = |name: &str| tree.text(&format!("{processor}/topology/{name}")).ok()?.parse().ok();
        // Without NUMA nodes, all memory is node 0.
        let names = tree.list(&processor).unwrap_or_default();
        let node = names.iter().find_map(|name| name.strip_prefix("node")?.parse().ok()).unwrap_or(0);
        Some(ProcessorPlace { number, core: read("core_id")?, socket: read("physical_package_id")?, node })
    };
    let names = tree.list(PROCESSORS).unwrap_or_default();
    let numbers = names.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok());
    let mut places: Vec<ProcessorPlace> = numbers.filter_map(place).collect();
    places.sort_by_key(|place| place.number);
    places
}

/// Returns the properties of the machine that dialects need.
pub(crate) fn machine(started_at: &str) -> Machine {
    let started_unix_ms = unix_time().0 / 1_000_000;
    let started_unix = started_unix_ms / 1000;
    Machine {
        host: process::host().unwrap_or_else(|| "localhost".to_owned()),
        processors: plumb_linux::thread::processors(),
        topology: topology(&LiveTree),
        governor: LiveTree.text(&format!("{PROCESSORS}/cpu0/cpufreq/scaling_governor")).ok(),
        page_bytes: rustix::param::page_size() as u64,
        memory_bytes: tree::memory_bytes(&LiveTree).unwrap_or(0),
        kernel: process::kernel().unwrap_or_default(),
        uptime_ms: uptime_ms(&LiveTree).unwrap_or(0),
        started_at: started_at.to_owned(),
        started_unix,
        started_unix_ms,
        zone_offset_seconds: plumb_linux::local_time::offset_seconds(started_unix),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        version_date: program_date().unwrap_or_else(|| "unknown".to_owned()),
        argv: argv(),
    }
}

/// Returns the date of this program: the modification time of its file.
fn program_date() -> Option<String> {
    let made = std::fs::metadata(std::env::current_exe().ok()?).ok()?.modified().ok()?;
    Some(jiff::Timestamp::try_from(made).ok()?.strftime("%Y/%m/%d").to_string())
}

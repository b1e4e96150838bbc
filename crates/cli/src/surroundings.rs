//! Inputs of a run from outside: the time of day, a seed, where runs are kept, and what the machine is.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use plumb_dialect::Machine;
use plumb_measure::Out;
use plumb_measure::process::surroundings;
use plumb_report::RunContents;
use plumb_state::places;

use crate::arguments::running::RecordingArguments;

/// Returns where a run of `command` that begins now is to be kept. The names of directories sort by time.
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

/// Returns the newest run that was kept without being told where, and that measured something.
pub(crate) fn newest_run() -> Option<PathBuf> {
    let runs = |parent: PathBuf| {
        let entries = std::fs::read_dir(parent).ok()?;
        let mut runs: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        runs.sort();
        runs.into_iter().rfind(|run| matches!(RunContents::open(run), Ok(Some(_))))
    };
    // Among temporary files may be those of other people.
    places::runs().into_iter().take(2).find_map(runs)
}

/// Returns the time of day by RFC 3339 in UTC, to the second.
pub(crate) fn time_of_day() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns a different seed for each run, and the same for all of one: levels that are compared draw the same
/// offsets. It is recorded, so any run can be repeated.
pub(crate) fn seed_from_clock() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
    })
}

/// Returns the command line as typed.
pub(crate) fn argv() -> Vec<String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// Returns the machine, as far as a dialect must know it.
pub(crate) fn machine(started_at: &str) -> Machine {
    let started_unix_ms =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let started_unix = started_unix_ms / 1000;
    Machine {
        host: surroundings::host().unwrap_or_else(|| "localhost".to_owned()),
        processors: plumb_linux::thread::processors(),
        topology: surroundings::topology(),
        governor: surroundings::governor(),
        page_bytes: rustix::param::page_size() as u64,
        memory_bytes: surroundings::memory_bytes().unwrap_or(0),
        kernel: surroundings::kernel().unwrap_or_default(),
        uptime_ms: surroundings::uptime_ms().unwrap_or(0),
        started_at: started_at.to_owned(),
        started_unix,
        started_unix_ms,
        zone_offset_seconds: plumb_linux::local_time::offset_seconds(started_unix),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        version_date: program_date().unwrap_or_else(|| "unknown".to_owned()),
        argv: argv(),
    }
}

/// Returns when this program was made: the time of its file.
fn program_date() -> Option<String> {
    let made = std::fs::metadata(std::env::current_exe().ok()?).ok()?.modified().ok()?;
    Some(jiff::Timestamp::try_from(made).ok()?.strftime("%Y/%m/%d").to_string())
}

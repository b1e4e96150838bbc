//! What comes into a run from outside: the time of day, a seed, where runs are kept, and what the machine is.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use plumb_dialect::Machine;
use plumb_measure::process::surroundings;

/// Where runs go unless told otherwise: here, else with the user's state, else with temporary files.
pub(crate) fn parents() -> Vec<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state")));
    let mut parents = vec![PathBuf::from(".")];
    parents.extend(state.map(|state| state.join("plumb")));
    parents.push(std::env::temp_dir());
    parents
}

/// RFC 3339 in UTC, to the second.
pub(crate) fn time_of_day() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A different seed for each run; it is recorded, so any run can be repeated.
pub(crate) fn seed_from_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// The command line as typed.
pub(crate) fn argv() -> Vec<String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// The machine, as far as a dialect must know it.
pub(crate) fn machine(started_at: &str) -> Machine {
    Machine {
        host: surroundings::host().unwrap_or_else(|| "localhost".to_owned()),
        processors: plumb_linux::thread::processors(),
        page_bytes: rustix::param::page_size() as u64,
        memory_bytes: surroundings::memory_bytes().unwrap_or(0),
        kernel: surroundings::kernel().unwrap_or_default(),
        uptime_ms: surroundings::uptime_ms().unwrap_or(0),
        started_at: started_at.to_owned(),
        started_unix: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        argv: argv(),
    }
}

//! Arguments of `plumb policy`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use plumb_policy::state::State;
use plumb_state::places::{CLAIMS, DESIRED_STATES, JOURNALS, PERSISTENCE};

use crate::arguments::output::{OutputArguments, PrintFormat};

/// Arguments of `plumb policy`.
#[derive(Debug, Args)]
pub(crate) struct PolicyArguments {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Show the state of each write cache by drive and kernel, its protection, and what is wrong
    Show(ShowArguments),
    /// Plan a change: the steps, their order, and why a disk is refused; changes nothing
    ///
    /// Disks are changed in waves. The least critical disk is changed first and alone (the canary). No wave
    /// has two disks of one port or one array. Namespaces of one NVMe controller share a write cache, and are
    /// one change.
    Plan(PlanArguments),
    /// Apply a plan: check every disk again, journal each step, change in waves, read back
    ///
    /// The plan file is the consent: plumb asks nothing and does nothing else. It refuses a plan that was
    /// altered, that is of another boot or another machine, or whose disks have changed. The exit code tells
    /// the state that was read back, not the state that was requested.
    Apply(ApplyArguments),
    /// Check whether disks are still in the planned state
    Verify(VerifyArguments),
    /// Restore the state before an apply, from its journal
    Rollback(RollbackArguments),
    /// Read the disks at intervals, and report changes: most changes cause no event of the kernel
    Watch(WatchArguments),
    /// Keep the current state of a disk after power cycles; without a disk, list the kept states
    Persist(PersistArguments),
    /// Repair disks whose cache is on but which get no flushes from the kernel or a layer above
    Heal(HealArguments),
    /// Record the claim of an administrator that the cache of a disk survives a power cut
    Claim(ClaimArguments),
    /// Bring every disk to the state that `persist` recorded; the udev rule and the units call this
    Enforce(EnforceArguments),
}

/// Arguments of every command that looks at disks.
#[derive(Debug, Clone, Args)]
pub(crate) struct DiskArguments {
    /// The file with the claims of administrators
    #[arg(long, value_name = "FILE", default_value = CLAIMS)]
    pub(crate) claims: PathBuf,

    #[command(flatten)]
    pub(crate) printed: PrintFormat,
}

/// Selection of disks.
#[derive(Debug, Clone, Args)]
pub(crate) struct Chosen {
    /// Disks: kernel names, nodes of /dev or links to them
    #[arg(value_name = "DEV", conflicts_with = "all")]
    pub(crate) devices: Vec<String>,

    /// Every disk that has its own write cache
    #[arg(long)]
    pub(crate) all: bool,

    /// Only the disks for which this is known to be true, such as "rotational = yes and size >= 4TB and not
    /// role = root"
    ///
    /// Properties are name, identity, serial, model, vendor, transport, port (or host, path), size,
    /// rotational (yes, no), role (unused, data, swap, boot, root) and state (off, on, protected, none,
    /// unknown, or the names of Windows). `=` and `!=` compare without regard to case, `~` with a pattern, in
    /// which * is any letters and ? one letter, and sizes also with < <= > >=. `and` binds tighter than `or`,
    /// `not` tightest; parentheses group; a value with spaces needs quotes. A property that a disk does not
    /// have is neither true nor false, and never selects the disk.
    #[arg(long = "where", value_name = "EXPR")]
    pub(crate) filter: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    #[command(flatten)]
    pub(crate) chosen: Chosen,

    /// Print metrics for Prometheus
    #[arg(long, conflicts_with_all = ["json", "format"])]
    pub(crate) prometheus: bool,

    /// Also print the commands sent to each drive, and the bytes of its answers
    #[arg(long, conflicts_with_all = ["json", "prometheus"])]
    pub(crate) explain: bool,

    /// Also show the report of a RAID controller's program: a file with the JSON of
    /// `storcli /cALL show all J`, perccli or ssacli. plumb starts none of them, and changes no logical disk
    #[arg(long, value_name = "FILE", conflicts_with = "prometheus")]
    pub(crate) raid_report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) shared: DiskArguments,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// off, on or protected; or the names of Windows: quick-removal, better-performance, power-protected
    #[arg(value_name = "STATE")]
    pub(crate) state: State,

    #[command(flatten)]
    pub(crate) chosen: Chosen,

    /// Write the plan, with its hash, to this file, for `apply`
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) writing: OutputArguments,

    /// Disks in a wave, after which all of them are read back again
    #[arg(long, value_name = "N", default_value_t = plumb_policy::waves::WAVE_SIZE, value_parser = wave_size)]
    pub(crate) wave_size: usize,

    /// Save the state in the drives that can, so that they start with it after a power cut
    #[arg(long)]
    pub(crate) save: bool,

    /// Also print the bytes of each step
    #[arg(long, conflicts_with_all = ["json", "format"])]
    pub(crate) explain: bool,

    #[command(flatten)]
    pub(crate) shared: DiskArguments,
}

/// Place of the journal, and format of the result.
#[derive(Debug, Clone, Args)]
pub(crate) struct Carrying {
    /// The directory of the journals
    #[arg(long, value_name = "DIR", default_value = JOURNALS)]
    pub(crate) journal: PathBuf,

    /// Run a light load (4 KiB and fdatasync, every 10 ms) on this new file during the change, and report the
    /// longest stall and every error. The file must be on one of the disks, and is removed
    #[arg(long, value_name = "FILE")]
    pub(crate) observe: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) shared: DiskArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArguments {
    /// The file that `plan --out` wrote
    #[arg(value_name = "PLAN", required_unless_present = "resume", conflicts_with = "resume")]
    pub(crate) plan: Option<PathBuf>,

    /// Continue an interrupted apply, from the directory of its journal
    #[arg(long, value_name = "JOURNAL", conflicts_with = "journal")]
    pub(crate) resume: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) carrying: Carrying,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// A plan file, or the directory of a journal
    #[arg(value_name = "PLAN|JOURNAL")]
    pub(crate) plan: PathBuf,

    /// Also replace this file with metrics for the textfile collector of node_exporter
    #[arg(long, value_name = "PATH")]
    pub(crate) prometheus_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) writing: OutputArguments,

    #[command(flatten)]
    pub(crate) shared: DiskArguments,
}

#[derive(Debug, Args)]
pub(crate) struct RollbackArguments {
    /// The directory of the journal, which `apply` printed
    #[arg(value_name = "JOURNAL")]
    pub(crate) journal: PathBuf,

    #[command(flatten)]
    pub(crate) shared: DiskArguments,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArguments {
    #[command(flatten)]
    pub(crate) chosen: Chosen,

    /// Time between two readings: 10s, 5m, 1h
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = interval)]
    pub(crate) interval: Duration,

    /// End after this many readings; default until interrupted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) looks: Option<u64>,

    /// After each reading, replace this file with metrics for the textfile collector of node_exporter
    #[arg(long, value_name = "PATH")]
    pub(crate) prometheus_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) writing: OutputArguments,

    #[command(flatten)]
    pub(crate) shared: DiskArguments,
}

#[derive(Debug, Args)]
pub(crate) struct PersistArguments {
    /// Disks: kernel names, nodes of /dev or links to them
    #[arg(value_name = "DEV")]
    pub(crate) devices: Vec<String>,

    /// Stop keeping the state; the disk stays as it is. A missing disk is named by its identity
    #[arg(long, requires = "devices")]
    pub(crate) remove: bool,

    /// Write below this directory instead of /: for the image of a machine
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,

    /// The path of plumb in the rule and the units; default that of this program
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<String>,

    #[command(flatten)]
    pub(crate) shared: DiskArguments,
}

#[derive(Debug, Args)]
pub(crate) struct HealArguments {
    #[command(flatten)]
    pub(crate) chosen: Chosen,

    /// Only print the steps
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) carrying: Carrying,
}

#[derive(Debug, Args)]
pub(crate) struct ClaimArguments {
    /// The disk
    #[arg(value_name = "DEV")]
    pub(crate) device: String,

    /// The name of the administrator
    #[arg(long, value_name = "WHO", required_unless_present = "withdraw")]
    pub(crate) by: Option<String>,

    /// When the claim expires: a day (2027-06-30, to its end in UTC) or a time (2027-06-30T12:00:00Z)
    #[arg(long, value_name = "DATE", required_unless_present = "withdraw", value_parser = plumb_policy::claims::parse_until)]
    pub(crate) until: Option<jiff::Timestamp>,

    /// Why the cache survives a power cut
    #[arg(long, value_name = "TEXT", required_unless_present = "withdraw")]
    pub(crate) reason: Option<String>,

    /// Withdraw the claim for this disk; a missing disk is named by its identity
    #[arg(long, conflicts_with_all = ["by", "until", "reason"])]
    pub(crate) withdraw: bool,

    #[command(flatten)]
    pub(crate) shared: DiskArguments,
}

#[derive(Debug, Args)]
pub(crate) struct EnforceArguments {
    /// The directory of the recorded states
    #[arg(long, value_name = "DIR", default_value = DESIRED_STATES)]
    pub(crate) from: PathBuf,

    /// Only this disk, which has just appeared; a disk without a recorded state is not changed
    #[arg(long, value_name = "NAME")]
    pub(crate) udev: Option<String>,

    /// The file that records how reliably each state is kept
    #[arg(long, value_name = "FILE", default_value = PERSISTENCE)]
    pub(crate) ledger: PathBuf,

    /// The directory of the journals
    #[arg(long, value_name = "DIR", default_value = JOURNALS)]
    pub(crate) journal: PathBuf,

    #[command(flatten)]
    pub(crate) shared: DiskArguments,
}

fn wave_size(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(size @ 1..=1000) => Ok(size),
        _ => Err("expected a number of disks from 1 to 1000".to_owned()),
    }
}

/// Parses the time between two readings.
fn interval(text: &str) -> Result<Duration, String> {
    super::running::time_within_a_day(text).map(Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_type_them() {
        assert_eq!(interval("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(interval("2"), Ok(Duration::from_secs(2)));
        assert_eq!(interval("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(interval("1h"), Ok(Duration::from_secs(3600)));
        for wrong in ["", "s", "0", "2d", "-1s", "99999999999999999999h", "1ms", "25h"] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }
}

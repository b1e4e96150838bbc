//! What can be typed after `plumb policy`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use plumb_block::Nanos;
use plumb_policy::state::State;

/// Where journals are kept, unless told otherwise.
const JOURNALS: &str = "/var/lib/plumb/policy/journals";

/// The write caches of disks: how they are, a plan, the change itself, proof, and the way back.
///
/// Three states, by their own names or those of Windows: `off` (no volatile cache; quick removal), `on` (a volatile cache,
/// and flushes are sent; better performance), `protected` (a volatile cache, and flushes are suppressed because a claim
/// of protection is recorded; power protected). Only `apply`, `rollback`, `heal` and `enforce` change a disk, and only
/// as root.
#[derive(Debug, Args)]
pub(crate) struct PolicyArguments {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// How each write cache is: the device's view, the kernel's, what protects it, what is wrong
    Show(ShowArguments),
    /// What would be changed, in which order, and why not where it is refused; changes nothing
    ///
    /// Disks are changed in waves, the least critical one first and alone (the canary), and never two of a port or of an array
    /// at once. Namespaces of one NVMe controller have one write cache, and are one change.
    Plan(PlanArguments),
    /// Carry out a plan: everything checked again, journalled, in waves, read back
    ///
    /// The plan file is the consent: nothing is asked again, and nothing else is done. It is refused if it was altered, is of
    /// another boot or another machine, or a disk is no longer what it was. The exit code says what was read back afterwards,
    /// never what was asked for.
    Apply(ApplyArguments),
    /// Whether disks still are as they were planned to be
    Verify(VerifyArguments),
    /// Restore what was before an apply, from its journal
    Rollback(RollbackArguments),
    /// Read the disks again and again, and say what has changed: most changes make no event
    Watch(WatchArguments),
    /// Make the state that a disk is in outlast power cycles; without a disk, say what is kept and how sure that is
    Persist(PersistArguments),
    /// Mend disks from which the kernel, or a layer above, keeps flushes although their cache is on
    Heal(HealArguments),
    /// Record an administrator's word that the cache of a disk survives a power cut
    Claim(ClaimArguments),
    /// Bring every disk to what `persist` has recorded for it: what the udev rule and the units call
    Enforce(EnforceArguments),
}

/// Where administrators' words are kept.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClaimsFile {
    /// The file of the words of administrators
    #[arg(long = "claims", value_name = "FILE", default_value = plumb_policy::device::claims::PLACE)]
    pub(crate) path: PathBuf,
}

/// Which disks.
#[derive(Debug, Clone, Args)]
pub(crate) struct Chosen {
    /// Disks: kernel names, nodes of /dev or links to them
    #[arg(value_name = "DEV", conflicts_with = "all")]
    pub(crate) devices: Vec<String>,

    /// Every disk that has a write cache of its own
    #[arg(long)]
    pub(crate) all: bool,

    /// Of these only the disks of which this is known to be true, such as "rotational = yes and size >= 4TB and not
    /// role = root"
    ///
    /// Properties are name, identity, serial, model, vendor, transport, port (or host, path), size, rotational (yes, no), role
    /// (unused, data, swap, boot, root) and state (off, on, protected, none, unknown; the words of Windows are understood).
    /// `=` and `!=` compare without regard to case, `~` with a pattern of * (any letters) and ? (one letter), and sizes also
    /// with < <= > >=. `and` binds tighter than `or`, `not` tightest; parentheses group; a value with spaces needs quotes.
    /// What a disk does not say is neither true nor false, and chooses it never.
    #[arg(long = "where", value_name = "EXPR")]
    pub(crate) filter: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    #[command(flatten)]
    pub(crate) chosen: Chosen,

    /// One JSON document on stdout
    #[arg(long, conflicts_with = "prometheus")]
    pub(crate) json: bool,

    /// Metrics for Prometheus on stdout
    #[arg(long)]
    pub(crate) prometheus: bool,

    /// Also print what each drive was asked, and the bytes that it answered
    #[arg(long, conflicts_with_all = ["json", "prometheus"])]
    pub(crate) explain: bool,

    /// Also say what a RAID controller's own program answered: a file with the JSON of `storcli /cALL show all J`,
    /// perccli or ssacli. plumb starts none of them, and changes no logical disk
    #[arg(long, value_name = "FILE", conflicts_with = "prometheus")]
    pub(crate) raid_report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) claims: ClaimsFile,
}

#[derive(Debug, Args)]
#[command(after_long_help = "EXAMPLES
  plumb policy plan off --where 'transport = sas and role = data' --out plan.json
  plumb policy apply plan.json
  plumb policy verify plan.json

EXIT CODES
  0  planned, or nothing to do    2  not understood    4  a disk is refused    5  failed")]
pub(crate) struct PlanArguments {
    /// off, on or protected; or as Windows calls them: quick-removal, better-performance, power-protected
    #[arg(value_name = "STATE")]
    pub(crate) state: State,

    #[command(flatten)]
    pub(crate) chosen: Chosen,

    /// Write the plan, with its hash, to this file: what `apply` takes
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// How many disks are changed before all of them are read back again
    #[arg(long, value_name = "N", default_value_t = plumb_policy::waves::WAVE_SIZE, value_parser = wave_size)]
    pub(crate) wave_size: usize,

    /// Drives that can are to start with it after a power cut, too
    #[arg(long)]
    pub(crate) save: bool,

    /// One JSON document on stdout: the plan
    #[arg(long)]
    pub(crate) json: bool,

    /// Also print the bytes of each step
    #[arg(long, conflicts_with = "json")]
    pub(crate) explain: bool,

    #[command(flatten)]
    pub(crate) claims: ClaimsFile,
}

/// Where what is done is written down, and how it is told.
#[derive(Debug, Clone, Args)]
pub(crate) struct Carrying {
    /// The directory in which journals are kept
    #[arg(long, value_name = "DIR", default_value = JOURNALS)]
    pub(crate) journal: PathBuf,

    /// Keep a light load (4 KiB and fdatasync, every 10 ms) on this new file while switching, and report the longest
    /// stall and every error; it must be on one of the disks, and is removed
    #[arg(long, value_name = "FILE")]
    pub(crate) observe: Option<PathBuf>,

    /// One JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArguments {
    /// The file that `plan --out` wrote
    #[arg(value_name = "PLAN", required_unless_present = "resume", conflicts_with = "resume")]
    pub(crate) plan: Option<PathBuf>,

    /// Go on with an apply that was cut off, from the directory of its journal
    #[arg(long, value_name = "JOURNAL", conflicts_with = "journal")]
    pub(crate) resume: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) carrying: Carrying,

    #[command(flatten)]
    pub(crate) claims: ClaimsFile,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// A plan file, or the directory of a journal
    #[arg(value_name = "PLAN|JOURNAL")]
    pub(crate) plan: PathBuf,

    /// One JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) claims: ClaimsFile,
}

#[derive(Debug, Args)]
pub(crate) struct RollbackArguments {
    /// The directory of a journal, as `apply` printed it
    #[arg(value_name = "JOURNAL")]
    pub(crate) journal: PathBuf,

    /// One JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) claims: ClaimsFile,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArguments {
    #[command(flatten)]
    pub(crate) chosen: Chosen,

    /// How long between two looks: 10s, 5m, 1h
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = interval)]
    pub(crate) interval: Duration,

    /// Look this often and end; without it, until interrupted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) looks: Option<u64>,

    /// After each look, replace this file with metrics: for node_exporter's textfile collector
    #[arg(long, value_name = "PATH")]
    pub(crate) prometheus_file: Option<PathBuf>,

    /// One JSON document for each change, a line each
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) claims: ClaimsFile,
}

#[derive(Debug, Args)]
pub(crate) struct PersistArguments {
    /// Disks: kernel names, nodes of /dev or links to them
    #[arg(value_name = "DEV")]
    pub(crate) devices: Vec<String>,

    /// Keep it no longer; the disk stays as it is. A disk that is not here is named by its identity
    #[arg(long, requires = "devices")]
    pub(crate) remove: bool,

    /// Write below this directory instead of /: for the image of a machine
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,

    /// How the rule and the units call plumb; default the path of this program
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<String>,

    /// One JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) claims: ClaimsFile,
}

#[derive(Debug, Args)]
pub(crate) struct HealArguments {
    #[command(flatten)]
    pub(crate) chosen: Chosen,

    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) carrying: Carrying,

    #[command(flatten)]
    pub(crate) claims: ClaimsFile,
}

#[derive(Debug, Args)]
pub(crate) struct ClaimArguments {
    /// The disk
    #[arg(value_name = "DEV")]
    pub(crate) device: String,

    /// Who says so
    #[arg(long, value_name = "WHO", required_unless_present = "withdraw")]
    pub(crate) by: Option<String>,

    /// Until when it counts: a day (2027-06-30, to its end in UTC) or a time (2027-06-30T12:00:00Z)
    #[arg(long, value_name = "DATE", required_unless_present = "withdraw", value_parser = until)]
    pub(crate) until: Option<jiff::Timestamp>,

    /// Why the cache survives a power cut
    #[arg(long, value_name = "TEXT", required_unless_present = "withdraw")]
    pub(crate) reason: Option<String>,

    /// Take back what was recorded for this disk; one that is not here is named by its identity
    #[arg(long, conflicts_with_all = ["by", "until", "reason"])]
    pub(crate) withdraw: bool,

    /// One JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) claims: ClaimsFile,
}

#[derive(Debug, Args)]
pub(crate) struct EnforceArguments {
    /// The directory of what is wished for
    #[arg(long, value_name = "DIR", default_value = "/etc/plumb/policy.d")]
    pub(crate) from: PathBuf,

    /// Only this disk, which has just appeared; a disk for which nothing is recorded is left alone
    #[arg(long, value_name = "NAME")]
    pub(crate) udev: Option<String>,

    /// The file in which it is kept how sure each policy is
    #[arg(long, value_name = "FILE", default_value = "/var/lib/plumb/policy/persistence.json")]
    pub(crate) ledger: PathBuf,

    /// The directory in which journals are kept
    #[arg(long, value_name = "DIR", default_value = JOURNALS)]
    pub(crate) journal: PathBuf,

    /// One JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) claims: ClaimsFile,
}

fn wave_size(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(size @ 1..=1000) => Ok(size),
        _ => Err("expected a number of disks from 1 to 1000".to_owned()),
    }
}

/// The time between two looks.
fn interval(text: &str) -> Result<Duration, String> {
    let time: Nanos = text.parse().map_err(|_| "expected a time such as 10s, 5m or 1h".to_owned())?;
    let fits = (Nanos::millis(100)..=Nanos::secs(86_400)).contains(&time);
    if fits { Ok(time.into()) } else { Err("expected a time from 100ms to 24h".to_owned()) }
}

/// A time, or the end of a day in UTC.
fn until(text: &str) -> Result<jiff::Timestamp, String> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let wrong = |_| format!("`{text}` is no date: expected such as 2027-06-30 or 2027-06-30T12:00:00Z");
    let day: jiff::civil::Date = text.parse().map_err(wrong)?;
    format!("{}T00:00:00Z", day.tomorrow().map_err(wrong)?).parse().map_err(wrong)
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

    #[test]
    fn a_claim_for_a_day_counts_to_the_end_of_it() {
        assert_eq!(until("2027-06-30").unwrap().to_string(), "2027-07-01T00:00:00Z");
        assert_eq!(until("2027-06-30T12:00:00+02:00").unwrap().to_string(), "2027-06-30T10:00:00Z");
        for wrong in ["soon", "", "2027-02-30", "30.6.2027", "9999-12-31"] {
            assert!(until(wrong).is_err(), "{wrong}");
        }
    }
}

//! Arguments of `plumb compare`.

use std::path::{Path, PathBuf};

use clap::{Arg, Args};
use plumb_block::{Bytes, Nanos};
use plumb_compare::{Factor, Gate, Terms, confidence, figure, percent};
use plumb_dialect::imported;
use plumb_dialect::native::Words;

use crate::arguments::running::{Detail, OwnArguments};
use crate::files;

/// Difference to detect by default.
const FIND: f64 = 0.03;
/// Options that do not apply to many hosts.
pub(super) const OF_ONE_MACHINE: [&str; 11] = [
    "against",
    "budget",
    "whole-budget",
    "together",
    "dry-run",
    "profile",
    "workload",
    "find",
    "cache-log",
    "fs-size",
    "show-workload",
];

/// Adapts an option to the help of `plumb fleet compare`, hiding those that the command refuses.
pub(crate) fn of_hosts(option: Arg) -> Arg {
    match option.get_long() {
        Some("factor") => option.help(
            "The factor that differs: buffering=cached,direct,dsync, drive=MODEL,MODEL, policy=off,on,protected or scheduler=NAME,NAME",
        ),
        Some(long) if OF_ONE_MACHINE.contains(&long) => option.hide(true),
        _ => option,
    }
}

/// Arguments of `plumb compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// The factor that differs: buffering=cached,direct,dsync, drive=MODEL,MODEL, policy=off,on,protected,
    /// cache=none,wb:SIZE, scheduler=NAME,NAME or fs=ext4,xfs,btrfs
    #[arg(long, value_name = "NAME=LEVEL,LEVEL", conflicts_with_all = ["a", "b"])]
    pub(super) factor: Option<Factor>,

    /// The file or block device for the log of cache=; default a file beside the target. For a simulated
    /// target sim:MODEL
    #[arg(long, value_name = "PATH", requires = "factor")]
    pub(super) cache_log: Option<String>,

    /// The size of the file systems of fs=; default 1GiB
    #[arg(long, value_name = "SIZE", requires = "factor")]
    pub(super) fs_size: Option<Bytes>,

    /// Options of the first level, in addition to those of both levels
    #[arg(long, value_name = "WORDS", requires = "b", allow_hyphen_values = true)]
    pub(super) a: Option<String>,

    /// Options of the second level, which is compared with the first
    #[arg(long, value_name = "WORDS", requires = "a", allow_hyphen_values = true)]
    pub(super) b: Option<String>,

    /// Compare recorded runs, or results of DiskSpd and fio, named in the place of targets, with these;
    /// labelled as not interleaved
    #[arg(long, value_name = "RUN", num_args = 1.., conflicts_with_all = ["factor", "a", "b"])]
    pub(super) against: Vec<PathBuf>,

    /// How long it may take; it ends earlier when the outcome is clear. Default 10m, on simulated drives 60s
    /// of their time
    #[arg(long, value_name = "TIME")]
    pub(super) budget: Option<Nanos>,

    /// Use the whole budget, even when the outcome is clear
    #[arg(long)]
    pub(super) whole_budget: bool,

    /// Run the levels at the same time, each on a target of its own, rather than in turns
    #[arg(long, conflicts_with = "against")]
    pub(super) together: bool,

    /// A difference up to this counts as none
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percent)]
    pub(super) equivalent: f64,

    /// How often an interval holds the true ratio
    #[arg(long, value_name = "PERCENT", default_value = "95%", value_parser = confidence)]
    pub(super) confidence: f64,

    /// The figure that decides; default iops, or bytes-per-second where block sizes differ, or p99 where
    /// operations start on a schedule
    #[arg(long, value_name = "FIGURE", value_parser = figure)]
    pub(super) figure: Option<String>,

    /// A limit, such as 'p99 ratio > 1.1': exit 1 if the whole interval is beyond it
    #[arg(long, value_name = "LIMIT")]
    pub(super) fail_if: Vec<Gate>,

    /// Compare under this application profile of `plumb load`; several are judged one by one
    #[arg(long, value_name = "NAME")]
    pub(super) profile: Vec<String>,

    /// Compare under these options, in addition to those of all workloads; each of several has a chapter of
    /// its own
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    pub(super) workload: Vec<String>,

    /// The difference to detect: after the pilot blocks plumb says how long that takes. Default 3%
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(super) find: Option<f64>,

    /// Pilot run only: estimate the budget needed, and what the given budget can detect
    #[arg(long, conflicts_with_all = ["against", "whole_budget", "fail_if"])]
    pub(super) dry_run: bool,

    #[command(flatten)]
    pub(super) words: Words,

    #[command(flatten)]
    pub(super) own: OwnArguments,

    #[command(flatten)]
    pub(super) detail: Detail,
}

impl CompareArguments {
    /// Returns true if recorded runs are compared, or nothing is run.
    pub(crate) fn reads(&self) -> bool {
        self.own.show_workload || self.is_of_records()
    }

    /// Returns true if recorded runs are compared.
    pub(super) fn is_of_records(&self) -> bool {
        let is_named = self.factor.is_some() || self.a.is_some();
        !self.against.is_empty() || (!is_named && are_recorded(&self.words.targets()))
    }

    /// Returns the terms of the outcome.
    pub(super) fn terms(&self) -> Terms {
        Terms {
            error: 1.0 - self.confidence,
            equivalent: 1.0 + self.equivalent,
            difference: self.find.unwrap_or(FIND),
        }
    }

    /// Returns plumb's own options.
    pub(crate) const fn own(&self) -> &OwnArguments {
        &self.own
    }

    /// Returns the options for the level of detail of the report.
    pub(crate) const fn detail(&self) -> Detail {
        self.detail
    }
}

/// Returns true if there are two targets, and at least one is a run or a result of another program, or has
/// the name of one. Only a comparison of recordings can then be meant; an error in the other is reported when
/// it is read.
fn are_recorded(targets: &[String]) -> bool {
    let is_recorded = |name: &String| {
        let path = Path::new(name);
        let path = imported::numbered(path).map_or(path, |(file, _)| file);
        let text = || files::read(&path.display().to_string());
        imported::is_named_so(path)
            || path.join("manifest.json").is_file()
            || (path.is_file() && text().is_ok_and(|text| imported::is_result(&text)))
    };
    targets.len() == 2 && targets.iter().any(is_recorded)
}

//! The documents of `plumb prove` beside proofs: of a trace, of real power cuts, of a replayed state.

use std::collections::BTreeMap;
use std::fmt;

use plumb_block::Bytes;
use serde::{Deserialize, Serialize};

/// Document of what a program synced, and of what it left to luck.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceDocument {
    /// [`TraceDocument::SCHEMA`].
    pub schema: String,
    /// The program with its arguments.
    pub command: Vec<String>,
    /// The directory beneath which files were looked at.
    pub beneath: String,
    /// End of the program, such as `exit status: 0`.
    pub ended: String,
    /// True if it ended with success.
    pub succeeded: bool,
    /// Number of writes of the drive that failed on purpose; null if none was to.
    pub failed_writes: Option<u64>,
    /// Number of calls of fsync(2), fdatasync(2) and syncfs(2) that failed. sync(2) reports no errors.
    pub failed_syncs: u64,
    /// Findings of what the program left to luck, in the order of its calls.
    pub findings: Vec<TraceFinding>,
    /// Number of times each file or directory was synced with success; by path beneath the directory, which
    /// itself is `.`.
    pub synced: BTreeMap<String, u64>,
    /// Number of times ways to write were set up that its calls do not tell of: `mmap`, `io_uring`, `aio`.
    /// What went through them was not seen.
    pub not_seen: BTreeMap<String, u64>,
    /// States that a power cut may leave; null if they were not explored.
    pub states: Option<TraceStates>,
}

/// States that a power cut may leave on a file system that promises only POSIX, each compared with what the
/// program had made visible.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceStates {
    /// Number of states that were explored.
    pub explored: u64,
    /// Number of those that fail.
    pub failing: u64,
    /// True if there are no others.
    pub exhaustive: bool,
    /// Reason why not all of them were explored, or not all that the program did is in them.
    pub incomplete_because: Option<String>,
    /// Ways in which states fail.
    pub failures: Vec<TraceFailure>,
}

/// Way in which states fail.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceFailure {
    /// Class of the failure, such as `lost-acknowledged`.
    pub class: String,
    /// Number of states that fail so.
    pub states: u64,
    /// Difference of the simplest of them, in words.
    pub words: String,
}

/// File or directory that was left unsynced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceFinding {
    /// `data-not-synced`, `directory-not-synced`, `renamed-before-sync`, `failed-sync-ignored`,
    /// `failed-sync-retried` or `failure-not-seen`.
    pub kind: String,
    /// File that the finding concerns, beneath the directory.
    pub path: String,
    /// Time of the call after which something is missing, in seconds since the program was started.
    pub at: f64,
    /// Description of the finding, in one sentence.
    pub sentence: String,
}

impl TraceDocument {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/prove-trace/1";

    /// Puts down that so many writes of the drive failed beneath the program. One that ended with success and
    /// was told by no call could not know.
    pub fn set_failed_writes(&mut self, failed: u64) {
        self.failed_writes = Some(failed);
        if failed > 0 && self.failed_syncs == 0 && self.succeeded {
            let sentence =
                "a write of the drive failed, and no fsync told the program; sync(2) reports no errors";
            self.findings.push(TraceFinding {
                kind: "failure-not-seen".to_owned(),
                path: ".".to_owned(),
                sentence: sentence.to_owned(),
                ..TraceFinding::default()
            });
        }
    }
}

/// In which way an acknowledged write is not there, or a block is not as any write left it. After Zheng et
/// al., "Understanding the Robustness of SSDs under Power Fault", FAST 2013.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A durable write is missing, and so is everything that was written after it was acknowledged as
    /// durable.
    Lost,
    /// A durable write is missing, and one that was issued after it was acknowledged as durable is there.
    Unserialised,
    /// The place holds what at least two durable writes had replaced, blocks of an earlier run, or zeroes.
    Stale,
    /// A part of a durable write is missing (shorn), or a block is torn inside.
    Torn,
    /// A block holds what was written for another address.
    Misdirected,
    /// A block is damaged: neither what was written nor anything older.
    Corrupt,
    /// A block cannot be read, and no write to it was at risk.
    Unreadable,
}

/// Formats the class as it stands in reports.
impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{self:?}").to_lowercase())
    }
}

/// Number of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassCount {
    /// Class of the failure.
    pub class: Class,
    /// Durable writes; none for classes that are told of blocks alone.
    pub writes: u64,
    /// Logical blocks.
    pub blocks: u64,
}

/// Block with wrong contents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// Class of the failure.
    pub class: Class,
    /// First byte of the block on the target.
    pub offset: Bytes,
    /// The durable write that had to be there; null if none had to.
    pub write: Option<u64>,
    /// Time at which that was acknowledged as durable, in seconds since the run began.
    pub durable_at: Option<f64>,
    /// Number of seconds before the last that the witness heard: close to the time before the cut.
    pub before_cut: Option<f64>,
    /// The write of this run that the block says it is of.
    pub found_write: Option<u64>,
    /// The run that it says it is of.
    pub found_run: Option<String>,
    /// The address that it says it was written for, in bytes.
    pub found_offset: Option<Bytes>,
}

/// Result of a verification, as `plumb prove verify --json` prints it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VerifyDocument {
    /// [`VerifyDocument::SCHEMA`].
    pub schema: String,
    /// `none`; `warning` if not all could be read; `danger` if anything is missing or wrong.
    pub level: String,
    /// The result in one sentence.
    pub headline: String,
    /// The run.
    pub run: String,
    /// The target as the writer had it.
    pub target: String,
    /// Identity that names the drive, compared before anything else; null for a file.
    pub identity: Option<String>,
    /// Writes of which the witness knows that they were answered.
    pub acknowledged: u64,
    /// Number of writes that the device said were durable, by FUA or a flush: these had to be there, or what
    /// replaced them.
    pub required: u64,
    /// Blocks that were read and compared.
    pub blocks_read: u64,
    /// Blocks of which nothing is said, because no answer came.
    pub blocks_unreached: u64,
    /// Blocks that cannot be read, as they may where a write was at risk.
    pub unreadable_at_risk: u64,
    /// Time at which the witness heard of something last, in seconds since the run began.
    pub recorded_until: f64,
    /// Classes of what is wrong; empty if nothing is.
    pub classes: Vec<ClassCount>,
    /// Number of seconds before that at which the oldest missing write was acknowledged as durable; null if
    /// none is missing.
    pub oldest_loss: Option<f64>,
    /// Some wrong blocks of each class.
    pub examples: Vec<Example>,
}

impl VerifyDocument {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/prove-verify/1";

    /// Returns true if anything is missing or wrong.
    pub fn has_loss(&self) -> bool {
        !self.classes.is_empty()
    }

    /// Returns true if all of it was read.
    pub const fn is_complete(&self) -> bool {
        self.blocks_unreached == 0
    }

    /// Returns the document with level and headline, which follow from the rest.
    #[must_use]
    pub fn concluded(mut self) -> Self {
        let counts = self.classes.iter().map(|count| match count.writes {
            0 => format!("{} blocks {}", count.blocks, count.class),
            writes => format!("{writes} writes {} ({} blocks)", count.class, count.blocks),
        });
        let counts = counts.collect::<Vec<_>>().join(", ");
        let drive = self.identity.as_deref().unwrap_or(&self.target);
        let (required, unreached) = (self.required, self.blocks_unreached);
        let (level, headline) = match () {
            () if self.has_loss() => (
                "danger",
                format!("{drive} lost data: {counts}; {required} writes were acknowledged as durable"),
            ),
            () if !self.is_complete() => {
                ("warning", format!("{unreached} blocks of {drive} could not be read: no answer came"))
            }
            () if required == 0 => (
                "warning",
                "no write was acknowledged as durable before the cut: nothing was tested".to_owned(),
            ),
            () => (
                "none",
                format!("all {required} writes that were acknowledged as durable are there on {drive}"),
            ),
        };
        (self.level, self.headline) = (level.to_owned(), headline);
        self
    }
}

/// Result of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CycleResult {
    /// All that was acknowledged as durable is there.
    Clean,
    /// Something is missing or wrong.
    Loss,
    /// The cycle says nothing about the drive.
    NotCounted,
    /// The drive did not come back.
    NoReturn,
}

/// Cycle of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cycle {
    /// Number of the cycle, from 1.
    pub number: u64,
    /// How it ended.
    pub result: CycleResult,
    /// Reason why it does not count, or what was found.
    pub because: String,
    /// Seconds from the end of the filling to the cut; null if the cut was aimed or did not happen.
    pub cut_after: Option<f64>,
    /// Time that it took, in seconds.
    pub seconds: f64,
    /// Writes that had to be there.
    pub required: u64,
    /// Classes of what is wrong.
    pub classes: Vec<ClassCount>,
}

/// All cycles, as `plumb prove campaign --json` prints them and as they are kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CampaignDocument {
    /// [`CampaignDocument::SCHEMA`].
    pub schema: String,
    /// `none`; `warning` if nothing or not all can be said; `danger` if a cycle lost something.
    pub level: String,
    /// The result in one sentence.
    pub headline: String,
    /// Settings: what is tested and how, as it was typed; a campaign goes on only with the same ones.
    pub settings: Vec<String>,
    /// Description of what cuts the power, in words.
    pub power: String,
    /// True if drives lose their power by that.
    pub is_power_cut: bool,
    /// Number of cycles that are wanted.
    pub cycles_wanted: u64,
    /// Cycles in which nothing was lost.
    pub clean: u64,
    /// Cycles in which something was.
    pub losses: u64,
    /// Bound, with 95 % confidence, on the share of cuts in the windows that were tested that lose something:
    /// 1 - 0.05^(1/n) after n clean cycles. Null if something was lost, or there is no clean cycle.
    pub loss_rate_below: Option<f64>,
    /// Reason why it ended before all cycles; null if it did not.
    pub incomplete_because: Option<String>,
    /// The cycle whose power may have been cut and which is not verified yet.
    pub pending: Option<u64>,
    /// The cycles.
    pub cycles: Vec<Cycle>,
}

impl CampaignDocument {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/prove-campaign/1";

    /// Computes the figures that follow from the cycles.
    pub fn conclude(&mut self) {
        let count = |result| self.cycles.iter().filter(|cycle| cycle.result == result).count() as u64;
        (self.clean, self.losses) = (count(CycleResult::Clean), count(CycleResult::Loss));
        let is_gone = count(CycleResult::NoReturn) > 0;
        let counted = self.clean + self.losses;
        // If the share of such cuts were at this bound, n cycles would all be clean with a chance of 5 %.
        self.loss_rate_below =
            (self.losses == 0 && self.clean > 0).then(|| -(0.05_f64.ln() / self.clean as f64).exp_m1());
        let (level, what) = match self.loss_rate_below {
            _ if self.losses > 0 => ("danger", format!("{} of {counted} cycles lost data", self.losses)),
            _ if is_gone => {
                ("warning", "the drive did not come back after a cut: see whether it is dead".to_owned())
            }
            None => ("warning", "no cycle says anything about the drive".to_owned()),
            Some(rate) => {
                let percent = rate * 100.0;
                let what = format!(
                    "no loss in {counted} cycles: with 95 % confidence fewer than {percent:.3} % of cuts in the windows tested \
                     lose data"
                );
                (if self.is_power_cut { "none" } else { "warning" }, what)
            }
        };
        (self.level, self.headline) = (level.to_owned(), format!("{what} ({})", self.power));
    }
}

/// `plumb prove replay`: a failing state put before the checker again.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProveReplay {
    /// [`ProveReplay::SCHEMA`].
    pub schema: String,
    /// Class of the failure in the proof.
    pub class: String,
    /// The acknowledgement that had to be found.
    pub required: Option<u64>,
    /// True if it fails as it did.
    pub reproduced: bool,
    /// Finding of the checker now; null if it finds nothing.
    pub found: Option<String>,
    /// Message of the checker.
    pub words: Option<String>,
}

impl ProveReplay {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/prove-replay/1";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_of_a_campaign_is_exact_also_for_few_cycles() {
        for (cycles, bound, said) in
            [(1, 0.95, "95.000 %"), (3, 0.631_597, "63.160 %"), (3000, 0.000_998, "0.100 %")]
        {
            let cycle = Cycle {
                number: 1,
                result: CycleResult::Clean,
                because: String::new(),
                cut_after: None,
                seconds: 1.0,
                required: 1,
                classes: Vec::new(),
            };
            let mut document =
                CampaignDocument { cycles: vec![cycle; cycles], ..CampaignDocument::default() };
            document.conclude();
            let rate = document.loss_rate_below.unwrap();
            assert!((rate - bound).abs() < 1e-6, "{cycles}: {rate}");
            assert!(document.headline.contains(said), "{}", document.headline);
        }
    }
}

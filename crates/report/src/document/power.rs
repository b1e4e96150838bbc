//! Documents of `plumb prove` other than proofs: of a trace, of real power cuts, of a replayed state.

use std::collections::BTreeMap;
use std::fmt;

use plumb_block::Bytes;
use serde::{Deserialize, Serialize};

/// Operations that a program synced, and those that it left unsynced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceDocument {
    /// Name and version of the document: [`TraceDocument::SCHEMA`].
    pub schema: String,
    /// Program with its arguments.
    pub command: Vec<String>,
    /// Directory below which files are audited.
    pub beneath: String,
    /// End of the program, such as `exit status: 0`.
    pub ended: String,
    /// True if the program ended successfully.
    pub succeeded: bool,
    /// Number of writes to the drive that failed on purpose; null if none was to fail.
    pub failed_writes: Option<u64>,
    /// Number of calls of fsync(2), fdatasync(2) and syncfs(2) that failed. sync(2) reports no errors.
    pub failed_syncs: u64,
    /// Unsynced operations, in the order of the program's calls.
    pub findings: Vec<TraceFinding>,
    /// Number of successful syncs of each file or directory, by path relative to the directory, which itself
    /// is `.`.
    pub synced: BTreeMap<String, u64>,
    /// Number of uses of interfaces whose writes are not visible in system calls: `mmap`, `io_uring`, `aio`.
    pub not_seen: BTreeMap<String, u64>,
    /// States that a power cut may leave; null if they were not explored.
    pub states: Option<TraceStates>,
}

/// States that a power cut may leave on a file system with the guarantees of POSIX only, each compared with
/// the files that the program had made visible.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceStates {
    /// Number of explored states.
    pub explored: u64,
    /// Number of failing states.
    pub failing: u64,
    /// True if all states were explored.
    pub exhaustive: bool,
    /// Reason why states were not explored, or operations of the program are missing from them.
    pub incomplete_because: Option<String>,
    /// Failures by class.
    pub failures: Vec<TraceFailure>,
}

/// Failing states of one class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceFailure {
    /// Class of the failure, such as `lost-acknowledged`.
    pub class: String,
    /// Number of failing states.
    pub states: u64,
    /// Description of the simplest failing state.
    pub words: String,
}

/// File or directory that was not synced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceFinding {
    /// `data-not-synced`, `directory-not-synced`, `renamed-before-sync`, `failed-sync-ignored`,
    /// `failed-sync-retried` or `failure-not-seen`.
    pub kind: String,
    /// Path of the file, relative to the directory.
    pub path: String,
    /// Time of the call that lacks a sync, in seconds since the start of the program.
    pub at: f64,
    /// Description of the finding, in one sentence.
    pub sentence: String,
}

impl TraceDocument {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/prove-trace/1";

    /// Sets the number of failed writes of the drive. A program that succeeded without an error from any call
    /// cannot have known of them.
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

/// Class of a missing acknowledged write, or of a block that no write left as it is. After Zheng et al.,
/// "Understanding the Robustness of SSDs under Power Fault", FAST 2013.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A durable write is missing, and so is everything written after it was acknowledged as durable.
    Lost,
    /// A durable write is missing, but a write issued after it was acknowledged as durable is present.
    Unserialised,
    /// The block holds a version that at least two durable writes had replaced, data of an earlier run, or
    /// zeroes.
    Stale,
    /// Part of a durable write is missing (shorn), or a block is torn.
    Torn,
    /// A block holds data written for another address.
    Misdirected,
    /// A block is damaged: it holds neither the written data nor an older version.
    Corrupt,
    /// A block cannot be read, and no write to it was at risk.
    Unreadable,
}

/// Formats the class for reports.
impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{self:?}").to_lowercase())
    }
}

/// Number of occurrences of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassCount {
    /// Class of the failure.
    pub class: Class,
    /// Number of durable writes; 0 for classes that only concern blocks.
    pub writes: u64,
    /// Number of logical blocks.
    pub blocks: u64,
}

/// Block with wrong contents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// Class of the failure.
    pub class: Class,
    /// First byte of the block on the target.
    pub offset: Bytes,
    /// Number of the durable write that is required there; null if there is none.
    pub write: Option<u64>,
    /// Time at which that write was acknowledged as durable, in seconds since the start of the run.
    pub durable_at: Option<f64>,
    /// Seconds from that acknowledgement to the last message to the witness, which was shortly before the
    /// cut.
    pub before_cut: Option<f64>,
    /// Number of the write in the block's stamp, if it is of this run.
    pub found_write: Option<u64>,
    /// Run in the block's stamp.
    pub found_run: Option<String>,
    /// Address in the block's stamp, in bytes.
    pub found_offset: Option<Bytes>,
}

/// Result of a verification, as `plumb prove verify --json` prints it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VerifyDocument {
    /// Name and version of the document: [`VerifyDocument::SCHEMA`].
    pub schema: String,
    /// `none`; `warning` if not everything could be read; `danger` if anything is missing or wrong.
    pub level: String,
    /// Result in one sentence.
    pub headline: String,
    /// Name of the run.
    pub run: String,
    /// Target as the writer named it.
    pub target: String,
    /// Identity of the drive, compared before anything else; null for a file.
    pub identity: Option<String>,
    /// Number of writes known to the witness as completed.
    pub acknowledged: u64,
    /// Number of writes that the device reported durable, by FUA or a flush. These, or later versions, must
    /// be present.
    pub required: u64,
    /// Number of blocks read and compared.
    pub blocks_read: u64,
    /// Number of blocks that could not be judged because the device did not answer.
    pub blocks_unreached: u64,
    /// Number of unreadable blocks with a write at risk, which is permitted.
    pub unreadable_at_risk: u64,
    /// Time of the last message to the witness, in seconds since the start of the run.
    pub recorded_until: f64,
    /// Classes of wrong contents; empty if there are none.
    pub classes: Vec<ClassCount>,
    /// Seconds from the acknowledgement of the oldest missing write as durable to that message; null if none
    /// is missing.
    pub oldest_loss: Option<f64>,
    /// Examples of wrong blocks of each class.
    pub examples: Vec<Example>,
}

impl VerifyDocument {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/prove-verify/1";

    /// Returns true if anything is missing or wrong.
    pub fn has_loss(&self) -> bool {
        !self.classes.is_empty()
    }

    /// Returns true if everything was read.
    pub const fn is_complete(&self) -> bool {
        self.blocks_unreached == 0
    }

    /// Returns the document with its level and headline, which are derived from the rest.
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
    /// Everything acknowledged as durable is present.
    Clean,
    /// Something is missing or wrong.
    Loss,
    /// The cycle tells nothing about the drive.
    NotCounted,
    /// The drive did not return.
    NoReturn,
}

/// Cycle of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cycle {
    /// Number of the cycle, from 1.
    pub number: u64,
    /// Result of the cycle.
    pub result: CycleResult,
    /// Reason why the cycle does not count, or its result.
    pub because: String,
    /// Seconds from the end of the filling to the cut; null if the cut was aimed or not made.
    pub cut_after: Option<f64>,
    /// Duration of the cycle, in seconds.
    pub seconds: f64,
    /// Number of writes that must be present.
    pub required: u64,
    /// Classes of wrong contents.
    pub classes: Vec<ClassCount>,
}

/// All cycles, as `plumb prove campaign --json` prints them and as they are stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CampaignDocument {
    /// Name and version of the document: [`CampaignDocument::SCHEMA`].
    pub schema: String,
    /// `none`; `warning` if the result is unknown in whole or in part; `danger` if a cycle lost something.
    pub level: String,
    /// Result in one sentence.
    pub headline: String,
    /// Settings as the user typed them. A campaign is resumed only with the same settings.
    pub settings: Vec<String>,
    /// Description of the power switch.
    pub power: String,
    /// True if the switch takes the power from drives.
    pub is_power_cut: bool,
    /// Requested number of cycles.
    pub cycles_wanted: u64,
    /// Number of cycles without loss.
    pub clean: u64,
    /// Number of cycles with loss.
    pub losses: u64,
    /// Upper bound, with 95 % confidence, of the share of cuts in the tested windows that lose something: 1 -
    /// 0.05^(1/n) after n clean cycles. Null after a loss, or without a clean cycle.
    pub loss_rate_below: Option<f64>,
    /// Reason for an end before all cycles; null otherwise.
    pub incomplete_because: Option<String>,
    /// Cycle whose power may have been cut and which is not verified yet.
    pub pending: Option<u64>,
    /// Cycles.
    pub cycles: Vec<Cycle>,
}

impl CampaignDocument {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/prove-campaign/1";

    /// Computes the figures derived from the cycles.
    pub fn conclude(&mut self) {
        let count = |result| self.cycles.iter().filter(|cycle| cycle.result == result).count() as u64;
        (self.clean, self.losses) = (count(CycleResult::Clean), count(CycleResult::Loss));
        let is_gone = count(CycleResult::NoReturn) > 0;
        let counted = self.clean + self.losses;
        // With a share at this bound, the probability of n clean cycles is 5 %.
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

/// `plumb prove replay`: a failing state checked again.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProveReplay {
    /// Name and version of the document: [`ProveReplay::SCHEMA`].
    pub schema: String,
    /// Class of the failure in the proof.
    pub class: String,
    /// Required acknowledgement.
    pub required: Option<u64>,
    /// True if the failure is the same.
    pub reproduced: bool,
    /// Class of the failure found now; null if the check finds none.
    pub found: Option<String>,
    /// Message of the checker.
    pub words: Option<String>,
}

impl ProveReplay {
    /// Name and version of the JSON document.
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

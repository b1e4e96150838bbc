//! Document of a proof, as `plumb prove app --json` prints it: the recording, the states that a power cut may
//! leave, and the results of the checker.
//!
//! Durations are seconds since the start of the recording. A state counts once for each acknowledgement that
//! it may have to contain.

use serde::{Deserialize, Serialize};

use super::run::Environment;

/// Results for one subject on one file system and one drive.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProofDocument {
    /// Name and version of the document: [`ProofDocument::SCHEMA`].
    pub schema: String,
    /// True if no state fails and all were explored: every window exhaustive, acknowledged through the
    /// control file, and recorded with several requests in flight. It applies to this recording, this drive
    /// profile and this checker.
    pub proved: bool,
    /// Severity of the result: `none`, `warning` (not everything requested could be judged) or `danger` (a
    /// state fails).
    pub level: String,
    /// Result in one sentence.
    pub headline: String,
    /// Reasons why the result is not proved although no state fails; empty if it is proved, or a state fails.
    pub not_proved_because: Vec<String>,
    /// Tested subject, such as `sqlite:journal=delete,synchronous=full`, or the command as the user typed it.
    pub subject: String,
    /// File system, with its options if there are any; `none` for the bare drive.
    pub file_system: String,
    /// Drive profile.
    pub drive: String,
    /// Model of the file system that the result applies to, such as `ext4 as recorded` or `ext4 as recorded
    /// and with writeback chosen (21 recordings)`.
    #[serde(default)]
    pub model: String,
    /// Facts about the recording.
    pub recording: RecordingFacts,
    /// Number of states.
    pub states: StateCounts,
    /// Coverage of the windows.
    pub coverage: CoverageCounts,
    /// Windows in order.
    pub windows: Vec<WindowResult>,
    /// Failures, one entry for each class, the worst first.
    pub failures: Vec<Failure>,
    /// Results of the same recording under other drive profiles.
    pub profiles: Vec<ProfileResult>,
    /// Further recordings of the same work with other choices of writeback. The other figures include their
    /// states.
    #[serde(default)]
    pub recordings: Vec<RecordingResult>,
    /// Number of recordings of the proof that were not made.
    #[serde(default)]
    pub recordings_left: u64,
    /// Results of power cuts during the checks of states; null if there were none.
    pub recovery: Option<RecoveryResult>,
    /// Results without any recorded flush, if every window enlarged by that was exhaustive.
    pub flushes: Option<FlushesLeftOut>,
    /// Search for sync calls that can be removed; null if not requested.
    pub syncs_left_out: Option<SyncsLeftOut>,
    /// Sync calls without which no state fails, each verified by a new run.
    #[serde(default)]
    pub needless_syncs: Vec<NeedlessSync>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Duration of the proof in seconds; 0 if unknown.
    #[serde(default)]
    pub seconds: f64,
    /// True if the proof ran to its end.
    pub complete: bool,
    /// Reason why it is not complete; null if it is.
    pub incomplete_because: Option<String>,
    /// Remarks that supplement the figures.
    pub notes: Vec<String>,
    /// Environment of the measurement.
    pub environment: Environment,
    /// Path of the recording and the reports; null if there are none.
    pub run_directory: Option<String>,
}

impl ProofDocument {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/prove/1";
}

/// Facts about the recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordingFacts {
    /// Duration in seconds.
    pub seconds: f64,
    /// Capacity of the drive, in bytes.
    pub size: u64,
    /// Write commands.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Flush commands.
    pub flushes: u64,
    /// Discards and writes of zeroes.
    pub discards: u64,
    /// Number of acknowledgements.
    pub acknowledgements: u64,
    /// Source of the acknowledgements: `control-file`, `descriptor` or `stdout`, `mark` (in a log of
    /// dm-log-writes), or `exit` if the end of the program is the only one; null if there were none.
    pub acknowledged_by: Option<String>,
    /// Method of recording: `loop` (FUA arrives as write and flush), `ublk` (with FUA), `system calls`
    /// (without a drive) or `dm-log-writes` (from a log).
    pub attached_by: String,
    /// Reason why requests may have been recorded one at a time, which hides reordering; null if the
    /// self-test passed.
    pub serialised_because: Option<String>,
}

impl RecordingFacts {
    /// Value of `attached_by` for a work recorded from system calls alone, without a drive.
    pub const BY_SYSTEM_CALLS: &str = "system calls";
    /// Value of `attached_by` for a work read from a log of dm-log-writes.
    pub const BY_LOG_WRITES: &str = "dm-log-writes";
    /// Value of `acknowledged_by` for such a work.
    pub const BY_MARK: &str = "mark";
    /// Value of `acknowledged_by` if the end of the program is the only acknowledgement.
    pub const BY_EXIT: &str = "exit";
}

/// Number of states.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateCounts {
    /// States that were enumerated.
    pub explored: u64,
    /// States that differ in their contents or in the required acknowledgement.
    pub distinct: u64,
    /// States for which the checker ran. The results of the others follow from its reads.
    pub checked: u64,
    /// Failing states.
    pub failing: u64,
}

/// Number of windows by coverage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoverageCounts {
    /// Windows.
    pub windows: u64,
    /// Windows with every state explored.
    pub exhaustive: u64,
    /// Windows with every subset of the commands explored, but not every tear.
    pub bounded: u64,
    /// Windows with some states explored.
    pub sampled: u64,
}

impl CoverageCounts {
    /// Counts the coverage of `windows`.
    pub fn from_windows(windows: &[WindowResult]) -> Self {
        let count = |of| windows.iter().filter(|window| window.coverage == of).count() as u64;
        Self {
            windows: windows.len() as u64,
            exhaustive: count(Coverage::Exhaustive),
            bounded: count(Coverage::Bounded),
            sampled: count(Coverage::Sampled),
        }
    }
}

/// Results of exploring one window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowResult {
    /// Beginning of the window, in seconds.
    pub from: f64,
    /// End of the window, which is the moment of the cut, in seconds.
    pub until: f64,
    /// Number of the last acknowledgement before the cut.
    pub required: Option<u64>,
    /// Number of commands at risk.
    pub at_risk: u64,
    /// Distinct states.
    pub states: u64,
    /// Failing states.
    pub failing: u64,
    /// Coverage of the window.
    pub coverage: Coverage,
}

/// Results of power cuts during the checks of states that were intact and wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryResult {
    /// Number of successive cuts, each during the check of the state after the previous one.
    pub depth: u32,
    /// Number of states whose checks were cut at every moment.
    pub states: u64,
    /// Number of states whose checks wrote but were not cut at every moment.
    pub states_left: u64,
    /// Number of distinct states that a cut during a check may leave.
    pub explored: u64,
    /// Number of failing ones among these.
    pub failing: u64,
}

/// Coverage of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// Some states, chosen or random.
    #[default]
    Sampled,
    /// Every subset of the commands, but not every tear.
    Bounded,
    /// Every state that a cut may leave there.
    Exhaustive,
}

/// Class of the failure of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureClass {
    /// Something acknowledged is missing.
    LostAcknowledged,
    /// Data that is present cannot be read, or was never written.
    Corrupt,
    /// The file system cannot be mounted.
    Unmountable,
    /// The state after one cut recovers correctly, but not after a second cut during that recovery.
    RecoveryNotIdempotent,
    /// Something that was removed is present again.
    Resurrected,
    /// Something later is present while something earlier is missing.
    OutOfOrder,
    /// The checker reports a failure in its own words.
    Checker,
}

impl FailureClass {
    /// All classes, the worst first.
    pub const ALL: [Self; 7] = [
        Self::Unmountable,
        Self::Corrupt,
        Self::LostAcknowledged,
        Self::RecoveryNotIdempotent,
        Self::OutOfOrder,
        Self::Resurrected,
        Self::Checker,
    ];

    /// Returns the name of the class in the document.
    pub const fn name(self) -> &'static str {
        self.words().0
    }

    /// Returns the meaning of the failure after a power loss, in a few words.
    pub const fn meaning(self) -> &'static str {
        self.words().1
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Unmountable => ("unmountable", "the file system cannot be mounted"),
            Self::Corrupt => ("corrupt", "data is corrupt"),
            Self::LostAcknowledged => ("lost-acknowledged", "acknowledged data is lost"),
            Self::RecoveryNotIdempotent => (
                "recovery-not-idempotent",
                "a second cut during the recovery ruins what the first one had left",
            ),
            Self::OutOfOrder => ("out-of-order", "something earlier is missing, something later is there"),
            Self::Resurrected => ("resurrected", "something that was removed is back"),
            Self::Checker => ("checker", "the checker objects"),
        }
    }
}

/// Failing states of one class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Class of the failure.
    pub class: FailureClass,
    /// Number of states.
    pub states: u64,
    /// Checker's message about the minimal case.
    pub words: String,
    /// Required acknowledgement of the minimal case.
    pub required: Option<u64>,
    /// Minimal case.
    pub minimal: MinimalCase,
    /// Seed of the exploration that found it.
    pub seed: u64,
    /// Recording in which it was found: 0 for the first one, otherwise one of
    /// [`recordings`](ProofDocument::recordings).
    #[serde(default)]
    pub recording: u64,
    /// Command that reproduces it.
    pub replay: String,
    /// Smallest change that removes the failure; null if none was found or sought.
    pub change: Option<Change>,
    /// Reason why there is no change: the attempts that failed, or that none was possible. Null if no change
    /// was sought.
    pub change_unknown_because: Option<String>,
    /// True if a baseline of `plumb prove ci` lists it.
    #[serde(default)]
    pub accepted: bool,
}

impl Failure {
    /// Returns 16 hexadecimal digits that identify the failure across runs. They are derived from its class,
    /// and from the files and parts of files that the cut has to take, without their numbers.
    pub fn fingerprint(&self) -> String {
        let parts = self.minimal.dropped.iter().chain(&self.minimal.torn);
        let mut names: Vec<String> = parts
            .map(|part| {
                let name =
                    format!("{} {}", part.file.as_deref().unwrap_or(""), part.role.as_deref().unwrap_or(""));
                name.chars().map(|letter| if letter.is_ascii_digit() { '#' } else { letter }).collect()
            })
            .collect();
        names.sort();
        names.dedup();
        let text = format!("{}\n{}", self.class.name(), names.join("\n"));
        // FNV-1a, which is stable across versions.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{hash:016x}")
    }
}

/// The fewest commands that a cut has to drop or tear for a failure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MinimalCase {
    /// Time of the power cut, in seconds.
    pub at: f64,
    /// Event of the recording before which the power fails.
    pub event: u64,
    /// Commands lost completely.
    pub dropped: Vec<CommandRole>,
    /// Commands lost in part.
    pub torn: Vec<CommandRole>,
    /// Events before the cut, for a drawing.
    pub timeline: Vec<TimelineItem>,
}

/// Command and its purpose.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandRole {
    /// Number of the command in the recording.
    pub command: u64,
    /// `write`, `discard`, `write-zeroes`.
    pub op: String,
    /// Offset of the command's first byte on the drive.
    pub offset: u64,
    /// Length of the command, in bytes.
    pub length: u64,
    /// Lost blocks of the command, by their numbers on the drive.
    pub lost: Vec<u64>,
    /// File that owns the blocks, relative to the mount; null if unknown or none.
    pub file: Option<String>,
    /// Role of the blocks: `data`, `journal`, `inode table`, `directory`; null if unknown.
    pub role: Option<String>,
    /// System call during which the command was sent, and the process; null if there was none, or none was
    /// traced.
    pub caused_by: Option<String>,
    /// Number of bytes of a torn command that survive; null for a dropped one.
    pub survives: Option<u64>,
    /// True if the last flush before the cut was sent while the command was in flight, so that it does not
    /// cover the command.
    #[serde(default)]
    pub flush_came_early: bool,
}

/// Item in the drawing of a cut.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TimelineItem {
    /// Lane in which the item is drawn.
    pub lane: Lane,
    /// Beginning in seconds.
    pub from: f64,
    /// End in seconds; null if the item had not ended at the cut.
    pub until: Option<f64>,
    /// Short label: `acknowledged 3`, `unlink t.db-journal`, `t.db (data), 4 KiB`.
    pub label: String,
    /// Fate of the command; null if the item is not a command.
    pub fate: Option<Fate>,
}

/// Lane of a drawing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lane {
    /// Acknowledgements of the subject.
    Acknowledgement,
    /// System calls of the subject.
    SystemCall,
    /// Writes that the drive received.
    #[default]
    Write,
    /// Discards and writes of zeroes.
    Discard,
    /// Flushes.
    Flush,
}

/// Fate of a command in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// A flush or FUA had made it durable.
    Durable,
    /// The command was at risk, and survived.
    Survived,
    /// The whole command was lost.
    Dropped,
    /// A part of the command was lost.
    Torn,
}

/// Kind of a change. Kinds are never combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// An additional flush of the device. The states are a subset of those recorded.
    DeviceFlush,
    /// An additional sync call of the program, which ran again and was recorded again.
    SyncCall,
}

/// Verification of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerifiedBy {
    /// The verification explored the same recording again.
    SameRecording,
    /// The program ran again, and the new recording was explored.
    NewRun,
}

/// Change that removes a failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Instruction in one sentence.
    pub sentence: String,
    /// Verification of the change.
    pub verified_by: VerifiedBy,
    /// Number of distinct states explored with the change.
    pub explored: u64,
    /// Number of these that still fail.
    pub failing_after: u64,
}

/// Result of the same recording under one drive profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileResult {
    /// Name of the profile.
    pub name: String,
    /// Distinct states.
    pub explored: u64,
    /// Failing states; null if the profile was not judged.
    pub failing: Option<u64>,
    /// Classes of the failures, the worst first.
    pub classes: Vec<FailureClass>,
    /// True if every window was exhaustive.
    pub exhaustive: bool,
    /// Share of the exhaustively explored windows, the largest of the rest, and the remedy; null if all were.
    pub not_exhaustive_because: Option<String>,
    /// Reason why the profile was not judged; null if it was.
    pub not_judged_because: Option<String>,
}

/// Part of the dirty data in memory that is written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// Data of the file that a call has changed: sync_file_range(2).
    Data,
    /// Metadata: a commit of the journal, by fsync of another file of the file system.
    Journal,
    /// Data of the file, and then the journal.
    DataAndJournal,
    /// Everything: syncfs(2).
    Everything,
}

impl Extent {
    /// All extents, the smallest first.
    pub const ALL: [Self; 4] = [Self::Data, Self::Journal, Self::DataAndJournal, Self::Everything];

    /// Returns a description of the extent.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Data => "the data",
            Self::Journal => "the journal",
            Self::DataAndJournal => "the data and the journal",
            Self::Everything => "everything",
        }
    }
}

/// Choice of writeback in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Writeback {
    /// Writeback after each call that changes something.
    AtOnce {
        /// Part to write back.
        extent: Extent,
    },
    /// No writeback before this many sync calls have returned, then after each write.
    AfterSync {
        /// Number of the sync call, from 1.
        sync: u64,
        /// Part to write back.
        extent: Extent,
    },
    /// After each call that changes something a random choice of none or one of the extents.
    Mixture {
        /// Seed of the choices.
        seed: u64,
    },
}

impl std::fmt::Display for Writeback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtOnce { extent } => write!(f, "{} written back at once", extent.words()),
            Self::AfterSync { sync, extent } => {
                write!(f, "{} written back at once after sync call {sync}", extent.words())
            }
            Self::Mixture { seed } => write!(f, "writeback drawn from seed {seed}"),
        }
    }
}

/// Results of a further recording of the work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordingResult {
    /// Number of the recording, from 1. 0 is the first one, with the kernel's own writeback.
    pub number: u64,
    /// Choice of writeback.
    pub writeback: Writeback,
    /// Number of states, under the first drive profile.
    pub states: StateCounts,
    /// Coverage of its windows, under the first drive profile.
    pub coverage: CoverageCounts,
    /// Results under each drive profile.
    pub profiles: Vec<ProfileResult>,
}

/// Search for sync calls that can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SyncsLeftOut {
    /// Number of sync calls of the program.
    pub calls: u64,
    /// Number of calls whose need was determined.
    pub tried: u64,
    /// Duration of all calls in seconds.
    pub seconds: f64,
}

/// Sync call without which no state fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NeedlessSync {
    /// Number among the sync calls of the program, from 1.
    pub number: u64,
    /// Name of the system call.
    pub call: String,
    /// File or directory that the call syncs, relative to the mount.
    pub file: String,
    /// Duration of the call in seconds.
    pub seconds: f64,
    /// Flushes of the drive during the call; null without a drive.
    pub flushes: Option<u64>,
    /// Distinct states explored without the call.
    pub explored: u64,
    /// Verification.
    pub verified_by: VerifiedBy,
    /// True if the call can be removed together with all others that are marked so.
    pub together: bool,
}

/// Results without any of the recorded flushes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlushesLeftOut {
    /// Number of flushes left out.
    pub flushes: u64,
    /// Distinct states explored without them.
    pub explored: u64,
    /// Failing states.
    pub failing: u64,
}

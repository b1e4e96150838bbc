//! The document of a proof, as `plumb prove app --json` prints it: what was recorded, which states a power
//! cut may leave, and what a checker found in them.
//!
//! Durations are seconds since the recording began. A state counts once for each acknowledgement that must be
//! found in it.

use serde::{Deserialize, Serialize};

use super::run::Environment;

/// All that was learnt of one subject on one file system on one drive.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProofDocument {
    /// [`ProofDocument::SCHEMA`].
    pub schema: String,
    /// True if no state fails and all were explored: every window exhaustive, acknowledged through the
    /// control file, and recorded with requests in flight together. It holds for this recording, this drive
    /// profile and this checker.
    pub proved: bool,
    /// The severity of what was found: `none`, `warning` (not all that was asked for could be judged) or
    /// `danger` (a state fails).
    pub level: String,
    /// The result in one sentence.
    pub headline: String,
    /// Reason why it is not proved although no state fails; empty if it is, or if one does.
    pub not_proved_because: Vec<String>,
    /// Tested subject, such as `sqlite:journal=delete,synchronous=full`, or the command as typed.
    pub subject: String,
    /// The file system, with its options if any were given; `none` for the bare drive.
    pub file_system: String,
    /// The drive profile.
    pub drive: String,
    /// Model of the file system for which the result holds, such as `ext4 as recorded` or
    /// `ext4 as recorded and with writeback chosen (21 recordings)`.
    #[serde(default)]
    pub model: String,
    /// Facts about the recording.
    pub recording: RecordingFacts,
    /// Number of states.
    pub states: StateCounts,
    /// How much of the windows was explored.
    pub coverage: CoverageCounts,
    /// Each window, in order.
    pub windows: Vec<WindowResult>,
    /// Failures, one entry for each class, the worst first.
    pub failures: Vec<Failure>,
    /// Results of the same recording under other drive profiles.
    pub profiles: Vec<ProfileResult>,
    /// Further recordings of the same work, in each of which the file system was written back in another
    /// way. All that is counted here is contained in the other figures.
    #[serde(default)]
    pub recordings: Vec<RecordingResult>,
    /// Number of recordings that a proof of this program takes and that were not made.
    #[serde(default)]
    pub recordings_left: u64,
    /// Results of cutting the power again during the checks of states; null if it was not.
    pub recovery: Option<RecoveryResult>,
    /// Results of leaving out all recorded flushes together, if every window thus enlarged was exhaustive.
    pub flushes: Option<FlushesLeftOut>,
    /// Search for sync calls that can go; null if it was not made.
    pub syncs_left_out: Option<SyncsLeftOut>,
    /// Sync calls without which no state fails, each left out in a new run.
    #[serde(default)]
    pub needless_syncs: Vec<NeedlessSync>,
    /// The seed of all random choices.
    pub seed: u64,
    /// Time that the proof took, in seconds; 0 if it is not known.
    #[serde(default)]
    pub seconds: f64,
    /// True if it went on to its end.
    pub complete: bool,
    /// Reason why not.
    pub incomplete_because: Option<String>,
    /// Remarks that supplement the figures.
    pub notes: Vec<String>,
    /// Where and how it was made.
    pub environment: Environment,
    /// Where the recording and the reports are; null if they are not kept.
    pub run_directory: Option<String>,
}

impl ProofDocument {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/prove/1";
}

/// Facts about the recording: what was recorded, and how.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordingFacts {
    /// Time that it took, in seconds.
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
    /// Number of acknowledgements that there were.
    pub acknowledgements: u64,
    /// How they arrived: `control-file`, `descriptor` or `stdout`, `mark` (in a log of dm-log-writes), or
    /// `exit` where the end of the program is the only one; null if there were none.
    pub acknowledged_by: Option<String>,
    /// Way of recording: `loop` (FUA arrives as write and flush), `ublk` (with FUA), or `system calls`
    /// (without a drive), or `dm-log-writes` (a log of that).
    pub attached_by: String,
    /// Reason why requests may have been recorded one after the other, so that reordering is hidden; null if
    /// the self-test passed.
    pub serialised_because: Option<String>,
}

impl RecordingFacts {
    /// Value of `attached_by` of a work that was recorded by its system calls alone, without a drive.
    pub const BY_SYSTEM_CALLS: &str = "system calls";
    /// Value of `attached_by` of a work that a log of dm-log-writes holds.
    pub const BY_LOG_WRITES: &str = "dm-log-writes";
    /// Value of `acknowledged_by` of such a work.
    pub const BY_MARK: &str = "mark";
    /// Value of `acknowledged_by` where the end of the program is the only acknowledgement.
    pub const BY_EXIT: &str = "exit";
}

/// Number of states.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateCounts {
    /// States that a cut may leave, as they were enumerated.
    pub explored: u64,
    /// Number of explored states that differ in contents or in what must be found.
    pub distinct: u64,
    /// For how many of these the checker ran; the result of the others follows from what it had read.
    pub checked: u64,
    /// Number that fail.
    pub failing: u64,
}

/// Number of windows that were explored how far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoverageCounts {
    /// Windows.
    pub windows: u64,
    /// Every state.
    pub exhaustive: u64,
    /// Every subset of the commands, but not every tear.
    pub bounded: u64,
    /// Some states.
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
    /// When it begins, in seconds.
    pub from: f64,
    /// When it ends: the moment of the cut.
    pub until: f64,
    /// The last acknowledgement before the cut.
    pub required: Option<u64>,
    /// Number of commands that were at risk.
    pub at_risk: u64,
    /// Distinct states.
    pub states: u64,
    /// Number of them that fail.
    pub failing: u64,
    /// How much that is.
    pub coverage: Coverage,
}

/// Results of cutting the power again during the checks of states that were intact and wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryResult {
    /// Number of cuts, one during the check of what the one before has left.
    pub depth: u32,
    /// Number of states whose checks were cut in every way.
    pub states: u64,
    /// Number of states whose checks wrote and were not cut, or not in every way.
    pub states_left: u64,
    /// Number of distinct states that a cut during a check may leave.
    pub explored: u64,
    /// Number of these that fail.
    pub failing: u64,
}

/// How much of a window was explored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// Some states that were drawn or chosen.
    #[default]
    Sampled,
    /// Every subset of the commands, but not every tear.
    Bounded,
    /// Every state that a cut may leave there.
    Exhaustive,
}

/// Kind of failure that a state shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureClass {
    /// Something acknowledged is missing.
    LostAcknowledged,
    /// Data that is present cannot be read, or was never written.
    Corrupt,
    /// The file system cannot be mounted.
    Unmountable,
    /// The recovery of what a cut has left is intact, but not after a second cut during it.
    RecoveryNotIdempotent,
    /// Something that was removed is back.
    Resurrected,
    /// Something later is there, and something earlier is missing.
    OutOfOrder,
    /// The checker says so, in its own words.
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

    /// Returns the meaning of the failure for a user who lost power, in a few words.
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

/// The states that fail in one way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// How.
    pub class: FailureClass,
    /// Number of states.
    pub states: u64,
    /// Checker's message about the minimal case.
    pub words: String,
    /// The acknowledgement that had to be found in it.
    pub required: Option<u64>,
    /// The minimal case.
    pub minimal: MinimalCase,
    /// The seed with which it was found.
    pub seed: u64,
    /// Recording in which it was found: 0 is the first one, others are those of
    /// [`recordings`](ProofDocument::recordings).
    #[serde(default)]
    pub recording: u64,
    /// The command that shows it again.
    pub replay: String,
    /// The smallest change that removes it; null if none was found, or looked for.
    pub change: Option<Change>,
    /// Reason why there is no change: what was tried in vain, or that nothing could be tried. Null where no
    /// change was looked for.
    pub change_unknown_because: Option<String>,
    /// True if a baseline of `plumb prove ci` lists it.
    #[serde(default)]
    pub accepted: bool,
}

impl Failure {
    /// Returns 16 hexadecimal digits by which the failure is known in another run: they follow from its
    /// class, and from the files and parts of files that a cut has to take, without their numbers.
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
        // FNV-1a, which is the same in every version.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{hash:016x}")
    }
}

/// The fewest commands that a cut has to drop or tear for a failure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MinimalCase {
    /// When the power goes, in seconds.
    pub at: f64,
    /// The event of the recording before which it goes.
    pub event: u64,
    /// The commands that are lost whole.
    pub dropped: Vec<CommandRole>,
    /// The commands of which a part is lost.
    pub torn: Vec<CommandRole>,
    /// Events before the cut, for a drawing.
    pub timeline: Vec<TimelineItem>,
}

/// A command, and what it was for.
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
    /// The blocks of the drive that are lost of it.
    pub lost: Vec<u64>,
    /// The file that owns the blocks, beneath the mount; null if it is not known or none does.
    pub file: Option<String>,
    /// Role of the blocks: `data`, `journal`, `inode table`, `directory`; null if it is not known.
    pub role: Option<String>,
    /// The system call during which it was sent, and the process; null if none was, or none was traced.
    pub caused_by: Option<String>,
    /// Number of bytes of a torn command that survive; null for a dropped one.
    pub survives: Option<u64>,
    /// Order of the last flush before the cut and the command: true if the flush was sent while the command
    /// was in flight, so that it does not cover it.
    #[serde(default)]
    pub flush_came_early: bool,
}

/// One thing in a drawing of what happened around a cut.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TimelineItem {
    /// Lane in which the item is drawn.
    pub lane: Lane,
    /// When it began, in seconds.
    pub from: f64,
    /// When it ended; null if it had not at the cut.
    pub until: Option<f64>,
    /// In a few words: `acknowledged 3`, `unlink t.db-journal`, `t.db (data), 4 KiB`.
    pub label: String,
    /// Fate of the command; null if the item is not a command.
    pub fate: Option<Fate>,
}

/// A lane of a drawing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lane {
    /// Promises of the subject.
    Acknowledgement,
    /// System calls of the subject.
    SystemCall,
    /// Writes that the drive received.
    #[default]
    Write,
    /// Requests to the drive to discard data, or to fill it with zeroes.
    Discard,
    /// When it was asked to make all of it durable.
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
    /// A part of it was lost.
    Torn,
}

/// Kind of a change. The two are never mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// A flush of the device, where the writes had completed: the states are a subset of those recorded.
    DeviceFlush,
    /// A sync call of the program: the program ran again with it, and was recorded again.
    SyncCall,
}

/// How a change was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerifiedBy {
    /// The verification explored the same recording again.
    SameRecording,
    /// The program ran again, and the new recording was explored.
    NewRun,
}

/// A change that removes a failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Instruction in one sentence.
    pub sentence: String,
    /// How that was verified.
    pub verified_by: VerifiedBy,
    /// Number of distinct states that were explored with it.
    pub explored: u64,
    /// How many of them still fail.
    pub failing_after: u64,
}

/// Result of the same recording under one drive profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileResult {
    /// The profile.
    pub name: String,
    /// Distinct states.
    pub explored: u64,
    /// Number that fail; null if it was not judged.
    pub failing: Option<u64>,
    /// Classes of the failures, the worst first.
    pub classes: Vec<FailureClass>,
    /// True if every window was exhaustive.
    pub exhaustive: bool,
    /// Share of the windows that were explored whole, the largest of the rest, and what would help; null if
    /// all were.
    pub not_exhaustive_because: Option<String>,
    /// Reason why it was not judged.
    pub not_judged_because: Option<String>,
}

/// Part of what is dirty in memory that is written back.
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

    /// Returns the extent in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Data => "the data",
            Self::Journal => "the journal",
            Self::DataAndJournal => "the data and the journal",
            Self::Everything => "everything",
        }
    }
}

/// Moments at which plumb has the file system write back in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Writeback {
    /// After each call that changes something.
    AtOnce {
        /// Part that is written back.
        extent: Extent,
    },
    /// At once after each write, from the return of this many sync calls on.
    AfterSync {
        /// Number of the sync call, from 1.
        sync: u64,
        /// Part that is written back.
        extent: Extent,
    },
    /// After each call that changes something nothing, or one of the extents, as drawn.
    Mixture {
        /// Seed of what is drawn.
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
    /// Number of the recording, from 1; 0 is the first one, for which the kernel chose.
    pub number: u64,
    /// Choice of writeback.
    pub writeback: Writeback,
    /// Number of states, under the first drive profile.
    pub states: StateCounts,
    /// How much of its windows was explored, under the first drive profile.
    pub coverage: CoverageCounts,
    /// Results under each drive profile.
    pub profiles: Vec<ProfileResult>,
}

/// Search for sync calls that can go.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SyncsLeftOut {
    /// Number of sync calls of the program.
    pub calls: u64,
    /// Number of these that are known to be needed or needless.
    pub tried: u64,
    /// Time that all calls took, in seconds.
    pub seconds: f64,
}

/// Sync call without which no state fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NeedlessSync {
    /// Number among the sync calls of the program, from 1.
    pub number: u64,
    /// Name of the system call.
    pub call: String,
    /// File or directory that it syncs, beneath the mount.
    pub file: String,
    /// Time that it took, in seconds.
    pub seconds: f64,
    /// Flushes of the drive during the call; null without a drive.
    pub flushes: Option<u64>,
    /// Distinct states that were explored without it.
    pub explored: u64,
    /// How that was verified.
    pub verified_by: VerifiedBy,
    /// True if it can go together with all others that are marked so.
    pub together: bool,
}

/// Results for the states without any of the recorded flushes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlushesLeftOut {
    /// Number of flushes that were left out.
    pub flushes: u64,
    /// Distinct states that were explored without them.
    pub explored: u64,
    /// Number that fail.
    pub failing: u64,
}

//! Comparison of what is there after the cut with what the witness knows, and the document of it.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use plumb_block::{Bytes, Device};
use plumb_load::read_back;
use serde::{Deserialize, Serialize};

use super::ledger::Ledger;
use super::record::Record;
use super::{Link, Message, Plan, RunFacts, refused};
use crate::error::Result;

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

/// How often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassCount {
    /// Class of the failure.
    pub class: Class,
    /// Durable writes; none for classes that are told of blocks alone.
    pub writes: u64,
    /// Logical blocks.
    pub blocks: u64,
}

/// One wrong block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// Class of the failure.
    pub class: Class,
    /// First byte of the block on the target.
    pub offset: Bytes,
    /// The durable write that had to be there; null if none had to.
    pub write: Option<u64>,
    /// When that was acknowledged as durable, in seconds since the run began.
    pub durable_at: Option<f64>,
    /// How many seconds before the last that the witness heard: close to the time before the cut.
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
    /// When the witness heard of something last, in seconds since the run began.
    pub recorded_until: f64,
    /// Classes of what is wrong; empty if nothing is.
    pub classes: Vec<ClassCount>,
    /// How many seconds before that the oldest missing write was acknowledged as durable; null if none is
    /// missing.
    pub oldest_loss: Option<f64>,
    /// Some wrong blocks of each class.
    pub examples: Vec<Example>,
}

impl VerifyDocument {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/prove-verify/1";

    pub(super) fn from_facts(facts: &RunFacts) -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            run: facts.plan.name(),
            target: facts.target.clone(),
            identity: facts.identity.clone(),
            ..Self::default()
        }
    }

    /// Returns true if anything is missing or wrong.
    pub fn has_loss(&self) -> bool {
        !self.classes.is_empty()
    }

    /// Returns true if all of it was read.
    pub const fn is_complete(&self) -> bool {
        self.blocks_unreached == 0
    }

    /// Returns the document with level and headline, which follow from the rest.
    pub(super) fn concluded(mut self) -> Self {
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

/// Gets the record of the newest run on this drive.
///
/// # Errors
/// If the witness has none, or cannot be reached.
pub fn fetch(link: &mut Link, target: &str, identity: Option<String>) -> Result<Record> {
    let (answers, confirmed) = link.ask(&Message::Fetch { target: target.to_owned(), identity })?;
    let mut record = None;
    for answer in answers {
        match (answer, &mut record) {
            (Message::Run(facts), None) => record = Some(Record::new(facts)),
            (Message::Batch(batch), Some(record)) if batch.number == record.confirmed() + 1 => {
                record.batches.push(batch);
            }
            _ => break,
        }
    }
    let is_whole = |record: &Record| record.confirmed() == confirmed;
    let broken = || refused("the witness did not send the whole run");
    record.filter(is_whole).ok_or_else(broken)
}

/// Reads the region of the run from `device`, and compares every block. Reads only. `progress` is told of the
/// bytes that were read.
///
/// # Errors
/// If the record contradicts itself, the device is another one, a later run was on it, or it was stopped.
pub fn verify(
    record: &Record,
    device: &dyn Device,
    identity: Option<&str>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Bytes),
) -> Result<VerifyDocument> {
    let (facts, info) = (&record.facts, device.info());
    if facts.identity.as_deref() != identity || facts.size != info.size {
        let drive = |identity: Option<&str>, size: Bytes| {
            format!("{} of {size}", identity.unwrap_or("a target without a serial"))
        };
        let (was, is) = (drive(facts.identity.as_deref(), facts.size), drive(identity, info.size));
        return Err(refused(format!("the run was on {was}, and this is {is}: name the drive of the run")));
    }
    facts.plan.check(&info)?;
    let mut ledger = Ledger::from_record(record)?;
    if !read_back(device, &mut ledger, stop, progress)? {
        return Err(refused("stopped before everything was read: no result"));
    }
    let seed = facts.plan.seed;
    let later = Plan::seeds_between(seed, SystemTime::now());
    if let Some(later) = later.and_then(|later| ledger.others.range(later).next_back().copied()) {
        return Err(refused(format!(
            "there are blocks of run {later:016x}, which began after run {seed:016x}, the newest that this witness knows of this \
             target: ask the witness of that run"
        )));
    }
    Ok(ledger.into_document())
}

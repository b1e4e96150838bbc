//! Commands sent to a device, their completions, and the acknowledgements of an application meanwhile, in one
//! order.

mod contents;
mod file;
mod log_writes;
mod recorder;

pub use contents::{Content, Contents};
pub(crate) use log_writes::LogContents;
pub use recorder::Recorder;
pub(crate) use recorder::bytes_of;

use plumb_block::{Bytes, LbaRange, Nanos, Op};
use serde::{Deserialize, Serialize};

/// Index of a command in [`Recording::commands`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CommandId(pub u32);

/// Event of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A command was submitted to the device.
    Submitted(CommandId),
    /// The device completed the command.
    Completed(CommandId),
    /// The command failed, or the device did not answer.
    Failed(CommandId),
    /// The command became durable without a flush, by a sync call in a modelled file system.
    Persisted(CommandId),
    /// The application acknowledged what this number stands for: from here on it must survive.
    Acknowledged(u64),
    /// Event for orientation: the application was started, a system call returned.
    Marked(String),
}

/// Write, discard or flush. Reads are not recorded, since they change nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Operation of the command.
    pub op: Op,
    /// Range of blocks; empty for a flush.
    pub range: LbaRange,
    /// Content of each block of a write; empty for other commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<Content>,
    /// First command of a group that survives or is lost as a whole, such as the two entries of a rename;
    /// `None` for a single command. The first command of a group names itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<CommandId>,
    /// Earlier groups, by their first commands, that survive whenever this command does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<CommandId>,
}

impl Command {
    /// Creates a command that survives or is lost independently.
    pub const fn new(op: Op, range: LbaRange, contents: Vec<Content>) -> Self {
        Self { op, range, contents, group: None, needs: Vec::new() }
    }

    /// Returns the content that the command leaves in block `lba`, which must be in its range.
    pub fn content(&self, lba: u64) -> Content {
        let index = lba.checked_sub(self.range.lba.0).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| self.contents.get(index)).copied().unwrap_or_default()
    }
}

/// Commands and events of a device, or of several, since it was blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// Capacity of the device.
    pub size: Bytes,
    /// Size of a logical block.
    pub logical_block: Bytes,
    /// First block of each drive after the first, if the device consists of several drives that lose their
    /// power together. A flush applies only to the drive in which its range begins.
    pub further_drives: Vec<u64>,
    /// Commands in the order of submission.
    pub commands: Vec<Command>,
    /// Events, with their times by the recorder's clock.
    pub events: Vec<(Nanos, Event)>,
    /// Contents of written blocks.
    pub contents: Contents,
}

impl Recording {
    /// Creates the recording of a blank device: all zeroes, without commands.
    pub fn of_blank(size: Bytes, logical_block: Bytes) -> Self {
        Self {
            size: size.round_down(logical_block),
            logical_block,
            further_drives: Vec::new(),
            commands: Vec::new(),
            events: Vec::new(),
            contents: Contents::new(logical_block),
        }
    }

    /// Returns the index of the drive to which a block belongs, from 0.
    pub fn drive_of(&self, lba: u64) -> usize {
        self.further_drives.partition_point(|first| *first <= lba)
    }

    /// Records the submission of a command. `bytes` are those of a write, in whole blocks.
    pub fn submit(&mut self, at: Nanos, op: Op, range: LbaRange, bytes: &[u8]) -> CommandId {
        let blocks = bytes.chunks_exact(self.logical_block.0 as usize);
        let contents = blocks.map(|block| self.contents.number(block)).collect();
        let id = CommandId(self.commands.len() as u32);
        self.commands.push(Command::new(op, range, contents));
        self.events.push((at, Event::Submitted(id)));
        id
    }

    /// Returns the first command of the command's group, which is the command itself without a group.
    pub fn leader(&self, id: CommandId) -> CommandId {
        self.commands[id.0 as usize].group.unwrap_or(id)
    }

    /// Records an event.
    pub fn happened(&mut self, at: Nanos, event: Event) {
        self.events.push((at, event));
    }
}

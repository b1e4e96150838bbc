//! Commands that a device was given, its answers, and what an application acknowledged meanwhile, in one
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

/// The place of a command in [`Recording::commands`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CommandId(pub u32);

/// Event of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The device was handed a command.
    Submitted(CommandId),
    /// The device completed the command.
    Completed(CommandId),
    /// The command failed, or the device gave no answer.
    Failed(CommandId),
    /// The command became durable by itself, without a flush: by a sync call of a file system that is
    /// modelled.
    Persisted(CommandId),
    /// The application said that what it calls by this number is done: from here on it must survive.
    Acknowledged(u64),
    /// Something worth knowing when: the application was started, a system call returned.
    Marked(String),
}

/// A write, discard or flush. Reads are not recorded: they change nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Operation of the command.
    pub op: Op,
    /// Where; without blocks for a flush.
    pub range: LbaRange,
    /// Content that each block of a write is to hold; empty for other commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<Content>,
    /// First command of a group that survives or is lost as a whole, such as the two entries of a rename;
    /// `None` for a command on its own. The first command of a group names itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<CommandId>,
    /// Earlier groups, by their first commands, that survive wherever this command does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<CommandId>,
}

impl Command {
    /// Creates a command that survives or is lost by itself.
    pub const fn new(op: Op, range: LbaRange, contents: Vec<Content>) -> Self {
        Self { op, range, contents, group: None, needs: Vec::new() }
    }

    /// Returns the content that the command leaves in block `lba`, which is one of its own.
    pub fn content(&self, lba: u64) -> Content {
        let index = lba.checked_sub(self.range.lba.0).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| self.contents.get(index)).copied().unwrap_or_default()
    }
}

/// All that a device, or several, was asked since it was blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// Capacity of the device.
    pub size: Bytes,
    /// The size of a logical block.
    pub logical_block: Bytes,
    /// The first blocks of all drives but the first, where it is several that lie one behind the other and
    /// lose their power together. A flush is of the drive in which its range begins, and of no other.
    pub further_drives: Vec<u64>,
    /// The commands, in the order in which they were submitted.
    pub commands: Vec<Command>,
    /// Events, with their times by the recorder's clock.
    pub events: Vec<(Nanos, Event)>,
    /// Contents with which blocks were written.
    pub contents: Contents,
}

impl Recording {
    /// Creates the recording of a blank device: all zeroes, and no commands yet.
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

    /// Returns the index of the drive to which this block belongs, from 0.
    pub fn drive_of(&self, lba: u64) -> usize {
        self.further_drives.partition_point(|first| *first <= lba)
    }

    /// Puts a command down as submitted now. `bytes` are those of a write, whole blocks.
    pub fn submit(&mut self, at: Nanos, op: Op, range: LbaRange, bytes: &[u8]) -> CommandId {
        let blocks = bytes.chunks_exact(self.logical_block.0 as usize);
        let contents = blocks.map(|block| self.contents.number(block)).collect();
        let id = CommandId(self.commands.len() as u32);
        self.commands.push(Command::new(op, range, contents));
        self.events.push((at, Event::Submitted(id)));
        id
    }

    /// Returns the command that stands for the group of a command; the command itself if it has none.
    pub fn leader(&self, id: CommandId) -> CommandId {
        self.commands[id.0 as usize].group.unwrap_or(id)
    }

    /// Puts down what happened now.
    pub fn happened(&mut self, at: Nanos, event: Event) {
        self.events.push((at, event));
    }
}

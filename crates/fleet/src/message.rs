//! Messages between a controller and an agent. Times are those of the agent's monotonic clock unless stated
//! otherwise.

use std::io::Read;

use plumb_block::Nanos;
use plumb_load::LoadOutcome;
use plumb_report::RunDocument;
use plumb_state::digest::sha256_hex_of;
use plumb_text::excerpt;
use serde::{Deserialize, Serialize};

/// Maximum number of characters of a reason.
pub(crate) const SHORT_MAX: usize = 400;

/// Makes text from the peer printable and shortens it to [`SHORT_MAX`]: it appears on stderr and several
/// times in a report.
pub(crate) fn short(text: &str) -> String {
    excerpt(text, SHORT_MAX)
}

/// Identity of the program on one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Version of plumb.
    pub version: String,
    /// SHA-256 of the program, in hexadecimal.
    pub binary: String,
    /// Boot id, which identifies the machine under all its names; `None` if it cannot be read.
    pub boot_id: Option<String>,
}

impl Identity {
    /// Returns the identity of this process, whose file is read from `program`.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn from_program(program: impl Read) -> std::io::Result<Self> {
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            binary: sha256_hex_of(program)?,
            boot_id: None,
        })
    }
}

/// Message from the controller to an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ToAgent {
    /// First message. A silence of two heartbeats and a second means that the controller is lost.
    Hello {
        /// Identity of the controller.
        identity: Identity,
        /// Longest interval between messages of the controller.
        heartbeat: Nanos,
    },
    /// Request for an immediate [`FromAgent::Pong`].
    Ping {
        /// Number that the answer repeats.
        number: u64,
    },
    /// Heartbeat without an answer.
    Here,
    /// Prepare this task. Only one task runs at a time.
    Run {
        /// The task.
        task: Task,
    },
    /// Start, as all hosts are ready.
    Start {
        /// Start time.
        at: Nanos,
    },
    /// End the task early, with the result as it is.
    Stop,
    /// No more tasks follow.
    Bye,
}

/// Task for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    /// A load, which starts together with those of the other hosts.
    Load(LoadTask),
    /// A command of plumb that prints one JSON document.
    Command {
        /// Arguments without `plumb`, such as `survey`, `/srv`, `--json`.
        arguments: Vec<String>,
        /// Schema of the document, such as `plumb/survey/1`.
        schema: String,
    },
}

impl Task {
    /// Returns the schema of the document that the task produces.
    pub fn schema(&self) -> &str {
        match self {
            Self::Load(_) => RunDocument::SCHEMA,
            Self::Command { schema, .. } => schema,
        }
    }
}

/// A load, as sent by the controller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadTask {
    /// Scenario in plumb's own dialect (TOML).
    pub words: String,
    /// True if files not created by plumb may be overwritten.
    pub overwrite: bool,
    /// Serials of disks that may be destroyed.
    pub destroy: Vec<String>,
    /// True to remove created targets at the end.
    pub remove_after: bool,
    /// Level to set on the host before the load and to restore after it.
    pub level: Option<Level>,
}

/// A level of a factor that is set on the machine, such as a write-cache policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// Factor with all its levels, as typed: `policy=on,off`.
    pub factor: String,
    /// Index of the level.
    pub number: usize,
}

/// Result of a task.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TaskResult {
    /// Exit code of the command.
    pub exit: u8,
    /// Reason why the result is incomplete; `None` if it is complete.
    pub because: Option<String>,
    /// JSON document printed by the command.
    pub document: Option<String>,
    /// Figures of a load.
    pub outcome: Option<LoadOutcome>,
    /// Time from the start of the load to its last operation, in its own time.
    pub lasted: Option<Nanos>,
}

/// Message from an agent to the controller.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum FromAgent {
    /// Answer to [`ToAgent::Hello`].
    Hello {
        /// Identity of the agent.
        identity: Identity,
    },
    /// Answer to [`ToAgent::Ping`].
    Pong {
        /// Number of the ping.
        number: u64,
        /// Arrival of the ping.
        received: Nanos,
        /// Departure of this answer.
        sent: Nanos,
    },
    /// The task is ready to start.
    Ready,
    /// The task has started.
    Begun {
        /// Delay after the start time.
        late: Nanos,
    },
    /// Interim figures of a load, without time series.
    Figures(Box<LoadOutcome>),
    /// Part of a [`TaskResult`] in JSON.
    Part {
        /// Text of the part.
        text: String,
        /// True for the last part.
        is_last: bool,
    },
}

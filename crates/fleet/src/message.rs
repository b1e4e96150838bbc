//! Messages between a controller and an agent. Times are of the agent's monotonic clock unless said
//! otherwise.

use std::io::Read;

use plumb_block::Nanos;
use plumb_load::LoadOutcome;
use plumb_report::RunDocument;
use plumb_state::digest::sha256_hex_of;
use plumb_text::excerpt;
use serde::{Deserialize, Serialize};

/// Number of characters of a reason that are kept.
pub(crate) const SHORT_MAX: usize = 400;

/// Shortens what the other side said, ready to print, to no more than a person reads: it is said on stderr
/// and several times in a report.
pub(crate) fn short(text: &str) -> String {
    excerpt(text, SHORT_MAX)
}

/// Identity of the program on one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The version of plumb.
    pub version: String,
    /// SHA-256 of the program, in hexadecimal digits.
    pub binary: String,
    /// Boot id of the machine, which all names of one machine share; `None` if it cannot be read.
    pub boot_id: Option<String>,
}

impl Identity {
    /// Returns the identity of this process, whose program is read from `program`.
    ///
    /// # Errors
    /// If it cannot be read.
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
    /// The first message. Silence for two heartbeats and a second means that the controller is lost.
    Hello {
        /// Identity of the controller.
        identity: Identity,
        /// How often it is heard at least.
        heartbeat: Nanos,
    },
    /// Request that the agent answers at once.
    Ping {
        /// Comes back with the answer.
        number: u64,
    },
    /// The controller is there. No answer is wanted.
    Here,
    /// Do this; one thing at a time.
    Run {
        /// The task.
        task: Task,
    },
    /// All hosts are ready: begin then.
    Start {
        /// When.
        at: Nanos,
    },
    /// End what you do early, and answer with what there is.
    Stop,
    /// Nothing more comes.
    Bye,
}

/// Task for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    /// A load, which waits for the other hosts before it starts.
    Load(LoadTask),
    /// A command of plumb that prints one JSON document, without `plumb` in front.
    Command {
        /// `survey /srv --json`, word by word.
        arguments: Vec<String>,
        /// The schema of the document: `plumb/survey/1`.
        schema: String,
    },
}

impl Task {
    /// Returns the schema of the document that it gives.
    pub fn schema(&self) -> &str {
        match self {
            Self::Load(_) => RunDocument::SCHEMA,
            Self::Command { schema, .. } => schema,
        }
    }
}

/// A load as the controller describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadTask {
    /// The scenario in plumb's own words (TOML).
    pub words: String,
    /// True if files that plumb did not make may be overwritten.
    pub overwrite: bool,
    /// Disks that may be destroyed, by their serials.
    pub destroy: Vec<String>,
    /// True if targets that it makes are removed at the end.
    pub remove_after: bool,
    /// Level that is set on the host before, and put back after.
    pub level: Option<Level>,
}

/// A level of a factor that is set on a machine, such as the policy of its disks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// The factor with all its levels, as typed: `policy=on,off`.
    pub factor: String,
    /// Number of the level.
    pub number: usize,
}

/// Result of a task.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TaskResult {
    /// The exit code of the command.
    pub exit: u8,
    /// Reason why it is not complete, if it is not.
    pub because: Option<String>,
    /// The JSON document that the command prints.
    pub document: Option<String>,
    /// Measurements of a load.
    pub outcome: Option<LoadOutcome>,
    /// Time that a load ran, from its start to its last operation, by the clock that it went by.
    pub lasted: Option<Nanos>,
}

/// Message from an agent to the controller.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum FromAgent {
    /// The answer to the first message.
    Hello {
        /// Identity of the agent.
        identity: Identity,
    },
    /// The answer to a ping.
    Pong {
        /// Number of the ping.
        number: u64,
        /// When the ping arrived.
        received: Nanos,
        /// When this was sent.
        sent: Nanos,
    },
    /// Everything is ready to start.
    Ready,
    /// The task has started, later than it was told to.
    Begun {
        /// Delay of the start by the agent's clock.
        late: Nanos,
    },
    /// All that a load has measured until now, without its time series.
    Figures(Box<LoadOutcome>),
    /// A piece of a [`TaskResult`] as JSON.
    Part {
        /// The piece.
        text: String,
        /// True if it is the last.
        is_last: bool,
    },
}

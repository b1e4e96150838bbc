//! The document of `plumb restore`: what killed plumb processes left on a machine.

use serde::Serialize;

/// Things that killed processes left, and what became of them.
#[derive(Debug, Serialize)]
pub struct RestoreDocument {
    /// [`RestoreDocument::SCHEMA`].
    pub schema: &'static str,
    /// True if they were only listed.
    pub dry_run: bool,
    /// True if it was done as root; otherwise not all could be looked for.
    pub as_root: bool,
    /// The things.
    pub left: Vec<Leftover>,
}

impl RestoreDocument {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/restore/1";
}

/// The kind of a leftover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftoverKind {
    /// Settings that a comparison changed: policies, attributes of the kernel, caches, mounts.
    Setting,
    /// An instance of the kernel's tracing.
    TracingInstance,
    /// A mount and the loop device over it.
    Attachment,
    /// A block device of the ublk driver.
    UblkDevice,
    /// The control socket of a server.
    ControlSocket,
}

/// Outcome for a leftover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftoverOutcome {
    /// Left in place: nothing was tried.
    Left,
    /// Put back or removed.
    PutBack,
    /// Left in place, because somebody uses it.
    InUse,
    /// Left in place, because an attempt failed.
    Failed,
}

/// A thing that a killed process left.
#[derive(Debug, Clone, Serialize)]
pub struct Leftover {
    /// Kind of the thing.
    pub kind: LeftoverKind,
    /// Name; for settings their words.
    pub name: String,
    /// Result of the attempt.
    pub outcome: LeftoverOutcome,
    /// Reason for staying, where an attempt was made.
    pub because: Option<String>,
}

impl Leftover {
    /// Returns what it is called in sentences.
    pub fn words(&self) -> String {
        let name = &self.name;
        match self.kind {
            LeftoverKind::Setting | LeftoverKind::UblkDevice => name.clone(),
            LeftoverKind::TracingInstance => format!("the tracing instance {name}"),
            LeftoverKind::Attachment => format!("the attachment {name}"),
            LeftoverKind::ControlSocket => format!("the control socket {name}"),
        }
    }

    /// Returns why it stays, with a colon before it; nothing where that is not known.
    pub fn reason(&self) -> String {
        self.because.as_ref().map_or_else(String::new, |why| format!(": {why}"))
    }
}

//! Document of `plumb restore`: the leftovers of killed plumb processes on a machine.

use serde::Serialize;

use crate::quantity::{count, counted};

/// Leftovers of killed processes, and their outcomes.
#[derive(Debug, Serialize)]
pub struct RestoreDocument {
    /// Name and version of the document: [`RestoreDocument::SCHEMA`].
    pub schema: &'static str,
    /// True if they were only listed.
    pub dry_run: bool,
    /// True if it ran as root. Otherwise the search is incomplete.
    pub as_root: bool,
    /// Leftovers.
    pub left: Vec<Leftover>,
}

impl RestoreDocument {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/restore/1";
}

/// Kind of a leftover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftoverKind {
    /// Settings changed by a comparison: policies, attributes of the kernel, caches, mounts.
    Setting,
    /// An instance of the kernel's tracing.
    TracingInstance,
    /// A mount and the loop device on it.
    Attachment,
    /// A block device of the ublk driver.
    UblkDevice,
    /// The control socket of a server.
    ControlSocket,
    /// Files created for the log of a cache that does not use them.
    UnfinishedLog,
}

/// Outcome of a leftover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftoverOutcome {
    /// Left in place without an attempt.
    Left,
    /// Restored or removed.
    PutBack,
    /// Left in place, since it is in use.
    InUse,
    /// Left in place, since an attempt failed.
    Failed,
}

/// Leftover of a killed process.
#[derive(Debug, Clone, Serialize)]
pub struct Leftover {
    /// Kind of the leftover.
    pub kind: LeftoverKind,
    /// Name. For settings, their description.
    pub name: String,
    /// Outcome of the attempt.
    pub outcome: LeftoverOutcome,
    /// Reason why an attempt left it in place.
    pub because: Option<String>,
}

/// Maximum number of leftovers of one kind that are named individually.
const NAMED_MAX: usize = 4;

/// Leftovers of one kind with one outcome, for a line of text.
#[derive(Debug)]
pub struct LeftoverGroup<'a> {
    /// Result of the attempts.
    pub outcome: LeftoverOutcome,
    /// Leftovers, at least one.
    all: Vec<&'a Leftover>,
}

impl<'a> LeftoverGroup<'a> {
    /// Groups the leftovers of a kind and outcome if there are many. The others form groups of one. Groups
    /// are in the order of their first member.
    pub fn from_leftovers(left: impl IntoIterator<Item = &'a Leftover>) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for one in left {
            let is_alike = |group: &&mut Self| (group.all[0].kind, group.outcome) == (one.kind, one.outcome);
            match groups.iter_mut().find(is_alike) {
                Some(group) => group.all.push(one),
                None => groups.push(Self { outcome: one.outcome, all: vec![one] }),
            }
        }
        let alone = |one: &'a Leftover| Self { outcome: one.outcome, all: vec![one] };
        let split = |group: Self| match group.all.len() {
            0..=NAMED_MAX => group.all.into_iter().map(alone).collect(),
            _ => vec![group],
        };
        groups.into_iter().flat_map(split).collect()
    }

    /// Returns the names and the reason for staying; for a large group the number, and the first by name.
    pub fn words(&self) -> String {
        if let [one] = &self.all[..] {
            return format!("{}{}", one.words(), one.reason());
        }
        let (named, others) = self.all.split_at(NAMED_MAX - 1);
        let named: Vec<String> = named.iter().map(|one| format!("{}{}", one.name, one.reason())).collect();
        let what = match self.all[0].kind {
            LeftoverKind::Setting => "setting",
            LeftoverKind::TracingInstance => "tracing instance",
            LeftoverKind::Attachment => "attachment",
            LeftoverKind::UblkDevice => "block device",
            LeftoverKind::ControlSocket => "control socket",
            LeftoverKind::UnfinishedLog => "unfinished log",
        };
        let (all, others) = (counted(self.all.len() as u64, what), count(others.len() as u64));
        format!("{all}: {} and {others} more", named.join(", "))
    }
}

impl Leftover {
    /// Returns the name of the leftover in sentences.
    pub fn words(&self) -> String {
        let name = &self.name;
        match self.kind {
            LeftoverKind::Setting | LeftoverKind::UblkDevice => name.clone(),
            LeftoverKind::TracingInstance => format!("the tracing instance {name}"),
            LeftoverKind::Attachment => format!("the attachment {name}"),
            LeftoverKind::ControlSocket => format!("the control socket {name}"),
            LeftoverKind::UnfinishedLog => format!("the unfinished log of the cache {name}"),
        }
    }

    /// Returns the reason for staying after a colon; empty if unknown.
    pub fn reason(&self) -> String {
        self.because.as_ref().map_or_else(String::new, |why| format!(": {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_of_a_kind_are_one_line_with_their_number_and_a_few_are_named_each() {
        let left = |kind, number: usize, because: Option<&str>| {
            let outcome = if because.is_some() { LeftoverOutcome::Failed } else { LeftoverOutcome::Left };
            Leftover { kind, name: format!("n{number}"), outcome, because: because.map(str::to_owned) }
        };
        let mut all: Vec<Leftover> =
            (0..1003).map(|number| left(LeftoverKind::ControlSocket, number, None)).collect();
        all.push(left(LeftoverKind::ControlSocket, 2000, Some("it is read-only")));
        all.extend((0..4).map(|number| left(LeftoverKind::Attachment, number, None)));
        all.extend((0..5).map(|number| left(LeftoverKind::Setting, number, Some("gone"))));
        let lines: Vec<String> =
            LeftoverGroup::from_leftovers(&all).iter().map(LeftoverGroup::words).collect();
        let expected = [
            "1,003 control sockets: n0, n1, n2 and 1,000 more",
            "the control socket n2000: it is read-only",
            "the attachment n0",
            "the attachment n1",
            "the attachment n2",
            "the attachment n3",
            "5 settings: n0: gone, n1: gone, n2: gone and 2 more",
        ];
        assert_eq!(lines, expected);
    }
}

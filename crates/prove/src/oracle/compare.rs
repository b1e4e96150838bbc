//! Comparison of a state with the moments that it may hold, name by name.

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::ops::Range;
use std::path::Path;

use plumb_report::document::proof::FailureClass;

use super::found::{FoundFile, FoundNode, FoundTree};
use super::moments::{Epoch, Moment, Moments};
use crate::posix::{Inode, Object};
use crate::subject::Outcome;

/// Maximum number of names that the description of a state lists.
const NAMED: usize = 3;

/// Kind of difference of a name, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Mixed,
    Torn,
    Lost,
    Resurrected,
}

impl Kind {
    const fn class(self) -> FailureClass {
        match self {
            Self::Mixed | Self::Torn => FailureClass::Corrupt,
            Self::Lost => FailureClass::LostAcknowledged,
            Self::Resurrected => FailureClass::Resurrected,
        }
    }
}

impl Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mixed => "mixed",
            Self::Torn => "torn",
            Self::Lost => "lost",
            Self::Resurrected => "resurrected",
        })
    }
}

/// Difference of one name, and its description.
type Difference = (Kind, String);

impl Moments {
    /// Judges a state by its tree of files.
    pub(crate) fn judge(&self, found: &FoundTree, required: Option<u64>) -> Outcome {
        let comparison = Comparison { moments: self, found, range: self.since(required) };
        let paths: BTreeSet<&Path> = self.paths(found.0.keys()).into_iter().collect();
        let mut differences: Vec<Difference> =
            paths.into_iter().filter_map(|path| comparison.difference(path)).collect();
        differences.sort_by_key(|(kind, _)| *kind);
        let Some((worst, _)) = differences.first() else { return Outcome::Intact };
        let class = worst.class();
        let mut words: Vec<String> =
            differences.iter().take(NAMED).map(|(kind, words)| format!("{kind}: {words}")).collect();
        if let Some(more @ 1..) = differences.len().checked_sub(NAMED) {
            words.push(format!("{more} more files differ"));
        }
        Outcome::Failed { class, words: words.join("; ") }
    }
}

struct Comparison<'a> {
    moments: &'a Moments,
    found: &'a FoundTree,
    /// Moments that the state may hold.
    range: Range<Moment>,
}

impl Comparison<'_> {
    /// Returns the difference of a name from all versions that it may have; `None` if one matches.
    fn difference(&self, path: &Path) -> Option<Difference> {
        let epochs = self.moments.epochs(path, &self.range);
        let name = format!("`{}`", path.display());
        let Some(found) = self.found.0.get(path) else {
            let may_be_absent = epochs.iter().any(|epoch| epoch.inode.is_none()) && !self.is_gone(&epochs);
            return (!may_be_absent).then(|| (Kind::Lost, format!("{name} is not there")));
        };
        if epochs.iter().all(|epoch| epoch.inode.is_none()) {
            let was_there = self.moments.names.contains_key(path);
            let words = if was_there { "had been removed, and is back" } else { "was never made" };
            return Some((Kind::Resurrected, format!("{name} {words}")));
        }
        let objects = epochs.iter().filter_map(|epoch| self.moments.layout().object(epoch.inode?));
        match found {
            FoundNode::File(file) if self.is_agreed(file, &epochs) => None,
            FoundNode::File(file) => Some(self.file_difference(path, &name, file, &epochs)),
            FoundNode::Directory => {
                let is_one = objects.into_iter().any(|object| matches!(object, Object::Directory(_)));
                (!is_one).then(|| (Kind::Torn, format!("{name} is a directory")))
            }
            FoundNode::Link(target) => {
                let is_one = objects.into_iter().any(|object| *object == Object::Link(target.clone()));
                (!is_one).then(|| (Kind::Torn, format!("{name} is a link to {}", target.display())))
            }
        }
    }

    /// Returns true if a file matches one moment of an epoch.
    fn is_agreed(&self, file: &FoundFile, epochs: &[Epoch]) -> bool {
        // A name that was absent has no guarantee yet.
        let is_new = epochs.first().is_some_and(|first| first.inode.is_none());
        epochs.iter().any(|epoch| {
            let Some(inode) = epoch.inode.filter(|inode| self.is_file(*inode)) else { return false };
            let begun = if is_new { 0 } else { self.moments.size(inode, epoch.first) };
            let changes = self.moments.changes(inode, epoch.first, epoch.last);
            let longest = changes.iter().map(|moment| self.moments.size(inode, *moment)).max();
            changes.iter().any(|moment| {
                let size = self.moments.size(inode, *moment);
                match size < begun {
                    true => {
                        file.size == size
                            && self.is_same(file, inode, *moment, size)
                            && !self.is_cut(size, epochs)
                    }
                    false => {
                        (begun..=longest.unwrap_or(begun)).contains(&file.size)
                            && self.is_same(file, inode, *moment, begun)
                    }
                }
            })
        })
    }

    fn is_file(&self, inode: Inode) -> bool {
        matches!(self.moments.layout().object(inode), Some(Object::File(_)))
    }

    /// Returns true if the first `length` bytes of a file are as at a moment.
    fn is_same(&self, file: &FoundFile, inode: Inode, at: Moment, length: u64) -> bool {
        self.first_difference(file, inode, at, length).is_none()
    }

    /// Returns the number of the first block below `length` that differs from a moment.
    fn first_difference(&self, file: &FoundFile, inode: Inode, at: Moment, length: u64) -> Option<u64> {
        let (block, contents) = (self.moments.recording.logical_block.0, &self.moments.recording.contents);
        (0..length.div_ceil(block)).find(|number| {
            let below = (length - number * block).min(block) as usize;
            let found = file.block(*number, block, contents);
            found.get(..below) != Some(&self.moments.block(inode, *number, at)[..below])
        })
    }

    /// Returns true if an absent name is a loss: it existed at the acknowledgement, it exists at the end or
    /// its file had a name at each moment, and no other name holds the contents of the file.
    fn is_gone(&self, epochs: &[Epoch]) -> bool {
        let [Some(first), Some(last)] = [epochs.first(), epochs.last()] else { return false };
        let Some(begun) = first.inode.filter(|inode| self.is_file(*inode)) else { return false };
        let is_kept = last.inode.is_some() || self.moments.has_name(begun, &self.range);
        is_kept && !self.has_copy(begun)
    }

    /// Returns true if a file truncated to `size` is a loss: it is longer at the end, and no other name holds
    /// its contents.
    fn is_cut(&self, size: u64, epochs: &[Epoch]) -> bool {
        let [Some(first), Some(last)] = [epochs.first(), epochs.last()] else { return false };
        let ended = last.inode.map_or(0, |inode| self.moments.size(inode, last.last));
        ended > size && first.inode.is_some_and(|begun| !self.has_copy_of(begun, self.range.start))
    }

    /// Returns true if the state holds a file as it was at one moment.
    fn has_copy(&self, inode: Inode) -> bool {
        let moments = self.moments.changes(inode, self.range.start, self.range.end - 1);
        moments.into_iter().any(|at| self.has_copy_of(inode, at))
    }

    /// Returns true if the state holds a file as it was at a moment.
    fn has_copy_of(&self, inode: Inode, at: Moment) -> bool {
        let size = self.moments.size(inode, at);
        self.found.0.values().any(|node| match node {
            FoundNode::File(file) => file.size == size && self.is_same(file, inode, at, size),
            FoundNode::Directory | FoundNode::Link(_) => false,
        })
    }

    /// Describes how a file differs from all moments that it may match.
    fn file_difference(&self, path: &Path, name: &str, file: &FoundFile, epochs: &[Epoch]) -> Difference {
        if file.size == 0 {
            return (Kind::Lost, format!("{name} is empty"));
        }
        let all = self.moments.epochs(path, &(0..self.range.end));
        let files = |epochs: &[Epoch]| -> Vec<(Inode, Epoch)> {
            let files = epochs.iter().filter_map(|epoch| Some((epoch.inode?, *epoch)));
            files.filter(|(inode, _)| self.is_file(*inode)).collect()
        };
        let is_whole = |(inode, epoch): &(Inode, Epoch)| {
            let moments = self.moments.changes(*inode, epoch.first, epoch.last);
            moments.into_iter().any(|at| {
                file.size == self.moments.size(*inode, at) && self.is_same(file, *inode, at, file.size)
            })
        };
        if files(&all).iter().any(is_whole) {
            let words = format!("{name} is as it was before, or in the middle of its change");
            return (Kind::Lost, words);
        }
        let Some((inode, epoch)) = files(epochs).pop() else {
            return (Kind::Torn, format!("{name} is a file"));
        };
        let size = self.moments.size(inode, epoch.last);
        if file.size < size && self.is_same(file, inode, epoch.last, file.size) {
            return (Kind::Lost, format!("{name} has only the first {} of {size} bytes", file.size));
        }
        let (block, contents) = (self.moments.recording.logical_block.0, &self.moments.recording.contents);
        let is_of_some_moment = |number: u64| {
            let found = file.block(number, block, contents);
            files(&all).iter().any(|(inode, epoch)| {
                let moments = self.moments.changes(*inode, epoch.first, epoch.last);
                let is_same = |at: Moment| &self.moments.block(*inode, number, at)[..found.len()] == found;
                moments.into_iter().any(|at| number * block < self.moments.size(*inode, at) && is_same(at))
            })
        };
        if file.size <= size && (0..file.size.div_ceil(block)).all(is_of_some_moment) {
            return (Kind::Mixed, format!("{name} holds blocks of different moments"));
        }
        let at = self.first_difference(file, inode, epoch.last, file.size.min(size)).unwrap_or(0) * block;
        (Kind::Torn, format!("{name} holds data from byte {at} on that it held at no moment"))
    }
}

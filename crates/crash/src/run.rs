//! A run of blocks covered by the same commands, and its possible contents after a cut: rules 5, 6 and 8.

use plumb_block::LbaRange;

use crate::command::{Command, Span};
use crate::enumerate::Survivor;
use crate::window::Window;

/// A run of blocks covered by the same commands of a window, extracted to choose survivors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The blocks.
    pub range: LbaRange,
    /// Commands, in arbitrary order.
    pub versions: Vec<Contender>,
}

/// A command that covers a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contender {
    /// Number of the command.
    pub id: u64,
    /// True if a cut must leave the command's version, or one that is not older.
    pub is_decisive: bool,
    /// True if a cut may leave the command's blocks unreadable.
    pub may_break: bool,
    /// Time in flight.
    span: Span,
}

impl Contender {
    pub(crate) fn from_command<T>(id: u64, command: &Command<T>, is_untearable: bool) -> Self {
        Self {
            id,
            is_decisive: command.is_decisive(),
            may_break: !(command.is_acknowledged() || command.is_durable || is_untearable),
            span: command.span,
        }
    }
}

impl Run {
    /// Fills `survivors` with the possible contents of a block of the run after the cut. `survives` tells for
    /// an index in `versions` whether the command survives the cut, if that is already decided; it is not
    /// called for decisive ones. If everything is decided and no commands overlapped in time, one survivor
    /// remains.
    pub fn survivors(
        &self,
        survives: impl Fn(usize) -> Option<bool>,
        unreadable: bool,
        survivors: &mut Vec<Survivor>,
    ) {
        survivors.clear();
        let is_certain = |place: usize, one: &Contender| one.is_decisive || survives(place) == Some(true);
        let is_absent = |place: usize, one: &Contender| !one.is_decisive && survives(place) == Some(false);
        let versions = || self.versions.iter().enumerate();
        // A command is older than one of the certain ones exactly if it is older than the last submitted of
        // them.
        let certain = versions().filter(|(place, one)| is_certain(*place, one));
        let newest = certain.map(|(_, one)| one.span).max_by_key(|span| span.submitted);
        if newest.is_none() {
            survivors.push(Survivor::Stored);
        }
        for (_, one) in versions().filter(|(place, one)| !is_absent(*place, one)) {
            if newest.is_none_or(|newest| !one.span.is_older_than(newest)) {
                survivors.push(Survivor::Command(one.id));
            }
        }
        if unreadable && self.versions.iter().any(|one| one.may_break) {
            survivors.push(Survivor::Unreadable);
        }
    }
}

impl<T: Clone> Window<T> {
    /// Returns the runs covered by commands in order of blocks. Elsewhere a cut leaves the content stored by
    /// the caller.
    pub fn runs(&self) -> impl Iterator<Item = Run> {
        self.versions.iter().map(|(range, ids)| {
            let contender = |id: &u64| {
                Contender::from_command(*id, &self.commands[id], self.is_untearable(&self.commands[id]))
            };
            Run { range, versions: ids.iter().map(contender).collect() }
        })
    }
}

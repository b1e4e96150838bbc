//! A run of blocks over which the same commands lie, and what a cut may leave there: rules 5, 6 and 8.

use plumb_block::LbaRange;

use crate::command::{Command, Span};
use crate::enumerate::Survivor;
use crate::window::Window;

/// A run of blocks over which the same commands of a window lie, taken from the window for choosing what
/// survives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The blocks.
    pub range: LbaRange,
    /// The commands, in no order that means anything.
    pub versions: Vec<Contender>,
}

/// A command that lies over a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contender {
    /// Number of the command.
    pub id: u64,
    /// True if a cut must leave its version, or one that is not older.
    pub is_decisive: bool,
    /// True if a cut may leave its blocks unreadable.
    pub may_break: bool,
    /// When it was in flight.
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
    /// Fills `survivors` with what a block of the run may hold after the cut. `survives` says of the command
    /// at a place in `versions` whether it survives the cut whole, if that is known; it is not asked of
    /// decisive ones. Where all is known and none were in flight together, one is left.
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
        // Older than any of those that are certain is what is older than the last submitted of them.
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
    /// Returns the runs over which commands lie, in the order of blocks. Everywhere else a cut leaves what
    /// the caller has stored.
    pub fn runs(&self) -> impl Iterator<Item = Run> {
        self.versions.iter().map(|(range, ids)| {
            let contender = |id: &u64| {
                Contender::from_command(*id, &self.commands[id], self.is_untearable(&self.commands[id]))
            };
            Run { range, versions: ids.iter().map(contender).collect() }
        })
    }
}

//! The commands that may still change what a cut leaves, kept as they come: which of them a block must and
//! may hold is known at any moment without looking at the history again.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use plumb_block::{ExtentMap, LbaRange};

use crate::command::{Command, Kind, Landing, Moment};
use crate::promise::{FlushKept, FuaKept, Promise};

/// How many entries for commands that are not at risk any more are not worth looking for.
const COMPLETED_MAX: usize = 1024;

/// Numbers that are counted up need no hash that withstands an attack.
pub(crate) type ByNumber = BuildHasherDefault<NumberHasher>;

/// Hashes one number.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.0 ^ u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Obligation of a cut towards a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obligation {
    /// The command's blocks are there, unless something that is not older is.
    Must,
    /// Each of the command's blocks may be there.
    May,
}

/// The commands of one device that are in flight, at risk, failed, or durable while something that is not
/// newer than they are is left over the same blocks. The caller numbers the commands and attaches a content
/// of type `T` to each; numbers are not used again. The window hands over what becomes durable, so that the
/// caller can store it: what the caller has stored so is what each block holds if everything that may be lost
/// is lost.
///
/// A command over any number of blocks is one entry, as long as no other lies over a part of it.
#[derive(Debug, Clone)]
pub struct Window<T> {
    pub(crate) promise: Promise,
    /// The last event.
    pub(crate) now: Moment,
    pub(crate) commands: HashMap<u64, Command<T>, ByNumber>,
    /// By block: the commands of which it may hold the version. If one of them is decisive, what the caller
    /// has stored is one of these versions; if none is, it is another candidate.
    pub(crate) versions: ExtentMap<Vec<u64>>,
    /// Completed commands by completion. Some are durable or gone by now; they are dropped when they are in
    /// front or the many.
    completed: VecDeque<(Moment, u64)>,
    pub(crate) at_risk_blocks: u64,
    /// Flushes in flight, with their submission.
    flushes: HashMap<u64, Moment, ByNumber>,
    /// The submissions of completed flushes that a device which ignores the last ones has not carried out.
    not_carried_out: VecDeque<Moment>,
    /// Commands that completed before this were said to be durable by a completed flush, carried out or not.
    said_durable_before: Moment,
    /// The next number for a part of a divided command; counts down, out of the way of the caller's.
    next_part: u64,
}

impl<T: Clone> Window<T> {
    /// Creates a window without commands, on a device that keeps this.
    pub fn new(promise: Promise) -> Self {
        Self {
            promise,
            now: 0,
            commands: HashMap::default(),
            versions: ExtentMap::default(),
            completed: VecDeque::new(),
            at_risk_blocks: 0,
            flushes: HashMap::default(),
            not_carried_out: VecDeque::new(),
            said_durable_before: 0,
            next_part: u64::MAX,
        }
    }

    /// Returns the promises that the device keeps.
    pub const fn promise(&self) -> Promise {
        self.promise
    }

    /// Changes what is kept from now on. What is at risk stays so until it is destaged or flushed.
    pub const fn set_promise(&mut self, promise: Promise) {
        self.promise = promise;
    }

    /// Takes a command over `range`, which is not empty: it is in flight from now on.
    pub fn submit(&mut self, id: u64, kind: Kind, range: LbaRange, content: T) {
        self.now += 1;
        self.insert(id, Command::submitted(kind, range, self.now, content));
    }

    fn insert(&mut self, id: u64, command: Command<T>) {
        self.versions.update(command.range, || vec![id], |ids| ids.push(id));
        self.commands.insert(id, command);
    }

    /// Takes a flush: it is in flight from now on.
    pub fn submit_flush(&mut self, id: u64) {
        self.now += 1;
        self.flushes.insert(id, self.now);
    }

    /// Completes the command or flush as done. What becomes durable by that is handed to `store`, run by run,
    /// in an order in which the last one for a block counts.
    pub fn complete(&mut self, id: u64, landing: Landing, store: &mut (impl FnMut(LbaRange, &T) + ?Sized)) {
        self.now += 1;
        if let Some(submitted) = self.flushes.remove(&id) {
            return self.flush_completed(submitted, store);
        }
        let Some(command) = self.commands.get_mut(&id).filter(|one| !one.span.is_completed()) else { return };
        command.span.completed = self.now;
        command.landing = landing;
        let has_fua = command.kind.is_fua() && self.promise.fua == FuaKept::Honoured && !command.is_failed;
        if !self.promise.volatile || has_fua || command.is_destaged {
            return self.make_durable(id, store);
        }
        self.at_risk_blocks += command.live_blocks;
        self.completed.push_back((self.now, id));
        while self.completed.front().is_some_and(|(_, id)| !self.is_at_risk(*id)) {
            self.completed.pop_front();
        }
        if self.completed.len() > 2 * self.commands.len() + COMPLETED_MAX {
            let commands = &self.commands;
            self.completed.retain(|(_, id)| commands.get(id).is_some_and(Command::is_at_risk));
        }
    }

    fn is_at_risk(&self, id: u64) -> bool {
        self.commands.get(&id).is_some_and(Command::is_at_risk)
    }

    fn flush_completed(&mut self, submitted: Moment, store: &mut (impl FnMut(LbaRange, &T) + ?Sized)) {
        self.said_durable_before = self.said_durable_before.max(submitted);
        match self.promise.flush {
            FlushKept::Always => self.cover(submitted, store),
            FlushKept::Never => {}
            FlushKept::AllButLast(last) => {
                self.not_carried_out.push_back(submitted);
                while self.not_carried_out.len() > last as usize {
                    let Some(submitted) = self.not_carried_out.pop_front() else { break };
                    self.cover(submitted, store);
                }
            }
        }
    }

    /// Lets a flush that was submitted at this moment take effect: rule 2.
    fn cover(&mut self, submitted: Moment, store: &mut (impl FnMut(LbaRange, &T) + ?Sized)) {
        while let Some((_, id)) = self.completed.front().copied().filter(|(at, _)| *at < submitted) {
            self.completed.pop_front();
            self.take_from_risk(id, store);
        }
    }

    /// Makes a command durable if it is at risk.
    fn take_from_risk(&mut self, id: u64, store: &mut (impl FnMut(LbaRange, &T) + ?Sized)) {
        if let Some(command) = self.commands.get(&id).filter(|command| command.is_at_risk()) {
            self.at_risk_blocks -= command.live_blocks;
            self.make_durable(id, store);
        }
    }

    /// Notes that the device has destaged a command: it is durable, or will be as soon as it completes.
    pub fn destage(&mut self, id: u64, store: &mut (impl FnMut(LbaRange, &T) + ?Sized)) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        if !command.span.is_completed() {
            command.is_destaged = true;
        } else {
            self.take_from_risk(id, store);
        }
    }

    /// Notes that the command failed or was not answered: rule 9. It stays in flight, unless it had completed
    /// (the first half of a write whose flush failed): that one is where it is, but was not acknowledged. A
    /// flush that failed covers nothing.
    pub fn fail(&mut self, id: u64) {
        self.now += 1;
        self.flushes.remove(&id);
        if let Some(command) = self.commands.get_mut(&id) {
            command.is_failed = true;
        }
    }

    /// Leaves of a command in flight only these parts, each a command of its own with its own content; their
    /// numbers.
    pub fn divide(&mut self, id: u64, parts: Vec<(LbaRange, T)>) -> Vec<u64> {
        let Some(command) = self.commands.get(&id).cloned() else { return Vec::new() };
        self.withdraw(id);
        let mut ids = Vec::new();
        for (range, content) in parts {
            let part = Command { range, content, live_blocks: range.nlb, ..command.clone() };
            self.insert(self.next_part, part);
            ids.push(self.next_part);
            self.next_part -= 1;
        }
        ids
    }

    /// Returns the command, if it is still in the window.
    pub fn command(&self, id: u64) -> Option<&Command<T>> {
        self.commands.get(&id)
    }

    /// Returns the standing of command `id` at a cut now; `None` if it is not in the window.
    pub fn standing(&self, id: u64) -> Option<Obligation> {
        let command = self.commands.get(&id)?;
        Some(if command.is_decisive() { Obligation::Must } else { Obligation::May })
    }

    /// Returns true if the device has said that a command is durable, truly or not.
    pub fn was_said_durable(&self, command: &Command<T>) -> bool {
        let is_said = command.kind.is_fua() || command.span.completed < self.said_durable_before;
        command.is_acknowledged() && (command.is_durable || is_said)
    }

    /// Returns the runs of `range` over which the same commands lie, with their numbers, in order. Runs
    /// without one are left out.
    pub fn versions(&self, range: LbaRange) -> impl Iterator<Item = (LbaRange, &[u64])> {
        self.versions.over(range).map(|(range, ids)| (range, ids.as_slice()))
    }

    /// Returns the command that is visible in a run with the commands `ids`: of those that completed, the one
    /// that landed last. `None`: what the caller has stored is visible.
    pub fn visible(&self, ids: &[u64]) -> Option<u64> {
        let completed = ids.iter().filter(|id| self.commands[id].span.is_completed());
        completed.copied().max_by_key(|id| (self.commands[id].landed(), self.commands[id].span.submitted))
    }

    /// Returns the number of commands that it holds.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Returns true if a cut can change nothing.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Returns how many blocks of completed commands are at risk; what was written twice counts twice.
    pub const fn at_risk_blocks(&self) -> u64 {
        self.at_risk_blocks
    }

    /// Forgets all commands, and what was said of them: the power was cut.
    pub fn clear(&mut self) {
        *self = Self { now: self.now, next_part: self.next_part, ..Self::new(self.promise) };
    }
}

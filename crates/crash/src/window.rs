//! The commands that may still affect the state after a cut. The set is maintained incrementally, so the
//! versions that a block must or may hold are known at any moment without replaying the history.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use plumb_block::{ExtentMap, LbaRange};

use crate::command::{Command, Kind, Landing, Moment};
use crate::promise::{FlushKept, FuaKept, Promise};

/// Number of stale entries in `completed` that are tolerated.
const COMPLETED_MAX: usize = 1024;

/// Hasher for sequential numbers, which needs no protection against attacks.
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

/// Required treatment of a command by a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obligation {
    /// The command's blocks are present, unless replaced by something that is not older.
    Must,
    /// Each of the command's blocks may be present.
    May,
}

/// Commands of one device that are in flight, at risk, failed, or durable while commands that are not newer
/// remain over the same blocks. The caller numbers the commands, never reusing a number, and attaches a
/// content of type `T` to each. The window passes on whatever becomes durable, so that the caller can store
/// it: the stored content is what each block holds if everything that may be lost is lost.
///
/// A command over any number of blocks takes one entry, unless another covers a part of it.
#[derive(Debug, Clone)]
pub struct Window<T> {
    pub(crate) promise: Promise,
    /// Time of the last event.
    pub(crate) now: Moment,
    pub(crate) commands: HashMap<u64, Command<T>, ByNumber>,
    /// For each block, the commands whose version it may hold. If one of them is decisive, the content stored
    /// by the caller is one of these versions; otherwise it is another candidate.
    pub(crate) versions: ExtentMap<Vec<u64>>,
    /// Completed commands in order of completion. Some may be durable or gone; these are removed at the
    /// front, or when they become too many.
    completed: VecDeque<(Moment, u64)>,
    pub(crate) at_risk_blocks: u64,
    /// Flushes in flight with their time of submission.
    flushes: HashMap<u64, Moment, ByNumber>,
    /// Submission times of completed flushes not yet carried out by a device that ignores the last ones.
    not_carried_out: VecDeque<Moment>,
    /// Commands completed before this were reported as durable by a completed flush, whether carried out or
    /// not.
    said_durable_before: Moment,
    /// Next number for a part of a divided command; counts down, to avoid the caller's numbers.
    next_part: u64,
}

impl<T: Clone> Window<T> {
    /// Creates an empty window for a device that keeps `promise`.
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

    /// Returns the guarantees that the device keeps.
    pub const fn promise(&self) -> Promise {
        self.promise
    }

    /// Changes the guarantees from now on. Commands at risk stay so until they are destaged or flushed.
    pub const fn set_promise(&mut self, promise: Promise) {
        self.promise = promise;
    }

    /// Adds a command over `range`, which must not be empty, as in flight.
    pub fn submit(&mut self, id: u64, kind: Kind, range: LbaRange, content: T) {
        self.now += 1;
        self.insert(id, Command::submitted(kind, range, self.now, content));
    }

    fn insert(&mut self, id: u64, command: Command<T>) {
        self.versions.update(command.range, || vec![id], |ids| ids.push(id));
        self.commands.insert(id, command);
    }

    /// Adds a flush as in flight.
    pub fn submit_flush(&mut self, id: u64) {
        self.now += 1;
        self.flushes.insert(id, self.now);
    }

    /// Completes the command or flush successfully. Passes whatever becomes durable to `store`, run by run;
    /// for each block the last call counts.
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

    /// Applies a flush submitted at this moment: rule 2.
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

    /// Records that the device has destaged a command: it is durable, or will be at its completion.
    pub fn destage(&mut self, id: u64, store: &mut (impl FnMut(LbaRange, &T) + ?Sized)) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        if !command.span.is_completed() {
            command.is_destaged = true;
        } else {
            self.take_from_risk(id, store);
        }
    }

    /// Records that the command failed or was not answered: rule 9. The command stays in flight, unless it
    /// had completed (the first half of a write whose flush failed): then it has landed, but was not
    /// acknowledged. A failed flush covers nothing.
    pub fn fail(&mut self, id: u64) {
        self.now += 1;
        self.flushes.remove(&id);
        if let Some(command) = self.commands.get_mut(&id) {
            command.is_failed = true;
        }
    }

    /// Reduces a command in flight to `parts`, each a separate command with its own content. Returns the
    /// numbers of the parts.
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

    /// Returns the obligation of a cut at this moment towards command `id`; `None` if it is not in the
    /// window.
    pub fn standing(&self, id: u64) -> Option<Obligation> {
        let command = self.commands.get(&id)?;
        Some(if command.is_decisive() { Obligation::Must } else { Obligation::May })
    }

    /// Returns true if the device has reported the command as durable, truthfully or not.
    pub fn was_said_durable(&self, command: &Command<T>) -> bool {
        let is_said = command.kind.is_fua() || command.span.completed < self.said_durable_before;
        command.is_acknowledged() && (command.is_durable || is_said)
    }

    /// Returns the runs of `range` covered by the same commands, with their numbers, in order. Runs without
    /// commands are left out.
    pub fn versions(&self, range: LbaRange) -> impl Iterator<Item = (LbaRange, &[u64])> {
        self.versions.over(range).map(|(range, ids)| (range, ids.as_slice()))
    }

    /// Returns the visible command among `ids` of a run: of those completed, the one that landed last. `None`
    /// if the content stored by the caller is visible.
    pub fn visible(&self, ids: &[u64]) -> Option<u64> {
        let completed = ids.iter().filter(|id| self.commands[id].span.is_completed());
        completed.copied().max_by_key(|id| (self.commands[id].landed(), self.commands[id].span.submitted))
    }

    /// Returns the number of commands in the window.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Returns true if a cut would change nothing.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Returns the number of blocks of completed commands at risk; a block written twice counts twice.
    pub const fn at_risk_blocks(&self) -> u64 {
        self.at_risk_blocks
    }

    /// Removes all commands and their history after a power cut.
    pub fn clear(&mut self) {
        *self = Self { now: self.now, next_part: self.next_part, ..Self::new(self.promise) };
    }
}

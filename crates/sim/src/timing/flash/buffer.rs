//! Path of written data in a flash drive: the buffer, the program units for the dies, and flushes.
//!
//! Firmware collects data before programming: full units wait in the buffer, so that whole stripes are
//! programmed, and data that is soon overwritten is not programmed at all. Units go to the dies, oldest
//! first, when more than `gather` are waiting, after `destage_after`, at a flush, when the cache is disabled,
//! and when space is short. So answered but unflushed data is at risk for a while, even on a drive that
//! ignores flushes. FUA data uses separate units, so it does not force out earlier data.

use plumb_block::{Nanos, Op};

use super::drive::FlashTiming;
use super::due::Due;
use super::ftl::PAGE;
use crate::command::{Command, CommandId, SECTOR};
use crate::timing::Event;

/// Bytes that a discard or a write-zeroes takes in the buffer: an entry of the map's journal.
const JOURNAL_ENTRY: u64 = 512;

impl FlashTiming {
    /// Returns the number of bytes that a write takes in the buffer.
    pub(super) const fn buffered(command: Command) -> u64 {
        match command.op {
            Op::Write { .. } => command.sectors.bytes().0,
            _ => JOURNAL_ENTRY,
        }
    }

    /// Returns true if the command fits into the buffer. One larger than the whole buffer fits when the
    /// buffer is empty.
    #[inline]
    pub(super) const fn has_room(&self, command: Command) -> bool {
        self.units.bytes == 0 || self.units.bytes + Self::buffered(command) <= self.parameters.buffer.0.0
    }

    #[inline]
    pub(super) fn write(&mut self, at: u64, command: Command) {
        let bytes = Self::buffered(command);
        let (zeroes, fua) = match command.op {
            Op::WriteZeroes { fua, .. } => (true, fua),
            op => (false, op == Op::Write { fua: true }),
        };
        let arrived = if zeroes { at + self.parameters.trim.0.0 } else { self.carry(at, bytes, false) };
        self.remap(command, zeroes);
        let answered = arrived + self.parameters.latency.0.0;
        if self.write_buffer.protected {
            self.agenda.put(answered, Due::Answer(command.id));
            self.store(arrived, answered, bytes, self.write_buffer.dead.then_some(command.id));
        } else if self.at_risk() && !fua {
            self.agenda.put(answered, Due::Answer(command.id));
            self.store(arrived, answered, bytes, Some(command.id));
        } else {
            let end = self.store_alone(arrived, bytes) + self.parameters.latency.0.0;
            let due = if self.at_risk() { Due::AnswerPersisted(command.id) } else { Due::Answer(command.id) };
            self.agenda.put(end, due);
        }
    }

    /// Updates the map, and accounts for the cost.
    #[inline]
    pub(super) fn remap(&mut self, command: Command, zeroes: bool) {
        self.journal_dirty = true;
        let (first, bytes) = (command.sectors.first * SECTOR.0, command.sectors.bytes().0);
        let page = first / PAGE;
        let pages = ((first + bytes).div_ceil(PAGE) - page).max(1);
        if zeroes {
            self.ftl.trim(page, pages);
            return;
        }
        let moved = self.ftl.write(page, pages);
        if moved > 0 {
            self.dies.owe(moved * PAGE);
        }
        if self.parameters.mapping.0.0 > PAGE && first != self.write_end {
            self.rewrite += self.parameters.mapping.0.0;
        }
        self.write_end = first + bytes;
    }

    /// Puts `bytes` into the open unit and following ones; `id` is recorded with the last byte.
    #[inline]
    pub(super) fn store(&mut self, arrived: u64, answered: u64, bytes: u64, id: Option<CommandId>) {
        self.units.bytes += bytes;
        let mut left = bytes;
        loop {
            let open = &mut self.units.open;
            if open.bytes == 0 {
                open.since = arrived;
                open.goes_on = left < bytes;
            }
            let part = left.min(self.unit - open.bytes);
            open.bytes += part;
            open.arrived = open.arrived.max(arrived);
            left -= part;
            if left == 0 {
                open.ids.extend(id);
                open.floor = open.floor.max(answered);
            }
            if open.bytes == self.unit {
                self.gather(arrived);
            }
            if left == 0 {
                break;
            }
        }
        self.wait_for_more();
    }

    /// Adds the full open unit to the waiting ones, and programs those that are due.
    #[inline]
    fn gather(&mut self, at: u64) {
        let number = self.units.send();
        self.units.gathered.push_back(number);
        while self.units.gathered.len() as u64 * self.unit > self.parameters.gathered() {
            self.program_oldest(at);
        }
    }

    /// Sets the time until which the present data may wait.
    #[inline]
    fn wait_for_more(&mut self) {
        self.open_until = self.units.oldest().map(|since| since + self.parameters.destage_after.0.0);
    }

    /// Sends the oldest waiting unit to a die.
    fn program_oldest(&mut self, at: u64) {
        if let Some(number) = self.units.gathered.pop_front() {
            self.program(at, number);
        }
    }

    /// Sends a unit to a die. Returns the time when it is programmed, together with all commands that end in
    /// it.
    fn program(&mut self, at: u64, number: u32) -> u64 {
        let unit = self.units.closed(number);
        let (start, floor, goes_on) = (at.max(unit.arrived), unit.floor, unit.goes_on);
        let padding = self.unit - unit.bytes;
        if padding > 0 {
            let moved = self.ftl.pad(padding);
            self.dies.owe(moved * PAGE);
        }
        let before = if goes_on { self.units.chain } else { 0 };
        let end = self.dies.program(start, std::mem::take(&mut self.rewrite)).max(floor).max(before);
        self.units.chain = end;
        self.agenda.put(end, Due::Programmed(number));
        // A flush waits for the floor, too.
        self.dies.last_end = self.dies.last_end.max(end);
        end
    }

    /// Puts `bytes` into separate units that are programmed at once. Returns the time when they are done.
    fn store_alone(&mut self, arrived: u64, bytes: u64) -> u64 {
        self.units.bytes += bytes;
        let chain = self.units.chain;
        let (mut left, mut end) = (bytes, arrived);
        while left > 0 {
            let part = left.min(self.unit);
            let number = self.units.send_alone(part, arrived);
            end = end.max(self.program(arrived, number));
            left -= part;
        }
        // Waiting units continue as before.
        self.units.chain = chain;
        end
    }

    /// Sends all units to the dies that have waited long enough.
    pub(super) fn close_waited(&mut self, now: u64) {
        while let Some(since) = self.units.oldest()
            && since + self.parameters.destage_after.0.0 <= now
        {
            if self.units.gathered.is_empty() {
                self.close_open(now);
            } else {
                self.program_oldest(now);
            }
        }
        self.wait_for_more();
    }

    /// Sends all waiting data to the dies.
    pub(super) fn close_unit(&mut self, at: u64) {
        while !self.units.gathered.is_empty() {
            self.program_oldest(at);
        }
        if self.units.open.bytes > 0 {
            self.close_open(at);
        }
        self.open_until = None;
    }

    fn close_open(&mut self, at: u64) {
        let number = self.units.send();
        self.program(at, number);
    }

    pub(super) fn flush(&mut self, at: u64, id: CommandId) {
        let done = if self.write_buffer.protected {
            at + self.parameters.flush.0.0
        } else {
            self.close_unit(at);
            if std::mem::take(&mut self.journal_dirty) {
                self.journal_free =
                    at.max(self.dies.last_end).max(self.journal_free) + self.parameters.flush.0.0;
            }
            at.max(self.journal_free)
        };
        self.agenda.put(done + self.parameters.latency.0.0, Due::Answer(id));
    }

    pub(super) fn discard(&mut self, at: u64, command: Command) {
        self.journal_dirty = true;
        let (first, bytes) = (command.sectors.first * SECTOR.0, command.sectors.bytes().0);
        // Only whole pages are unmapped.
        let (page, end) = (first.div_ceil(PAGE), (first + bytes) / PAGE);
        self.ftl.trim(page, end.saturating_sub(page));
        let answered = at + self.parameters.trim.0.0 + self.parameters.latency.0.0;
        self.agenda.put(answered, Due::Answer(command.id));
        if self.at_risk() || self.write_buffer.dead {
            self.store(at, answered, JOURNAL_ENTRY, Some(command.id));
        }
    }

    pub(super) fn programmed(&mut self, at: u64, number: u32, events: &mut Vec<Event>) {
        self.units.land(number, |id| events.push(Event::Persisted { id, at: Nanos(at) }));
        while let Some(command) = self.stalled.front().copied()
            && self.has_room(command)
        {
            self.stalled.pop_front();
            self.write(at, command);
        }
        if !self.stalled.is_empty() {
            self.close_unit(at);
        }
    }
}

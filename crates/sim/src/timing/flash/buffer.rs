//! What a flash drive does with what is written: the buffer, the units that go to the dies, and the flush.

use plumb_block::{Nanos, Op};

use super::agenda::{Due, Ring};
use super::drive::FlashTiming;
use super::ftl::PAGE;
use crate::command::{Command, CommandId, SECTOR};
use crate::timing::Event;

/// What a discard or a write-zeroes takes of the buffer: an entry of the map's journal.
const JOURNAL_ENTRY: u64 = 512;

impl FlashTiming {
    /// What a write takes of the buffer.
    pub(super) const fn buffered(command: Command) -> u64 {
        match command.op {
            Op::Write { .. } => command.sectors.bytes().0,
            _ => JOURNAL_ENTRY,
        }
    }

    /// A write that is larger than the whole buffer has room when the buffer is empty.
    #[inline]
    pub(super) const fn has_room(&self, command: Command) -> bool {
        self.units.bytes == 0 || self.units.bytes + Self::buffered(command) <= self.buffer
    }

    #[inline]
    pub(super) fn write(&mut self, at: u64, command: Command) {
        let bytes = Self::buffered(command);
        let (zeroes, fua) = match command.op {
            Op::WriteZeroes { fua, .. } => (true, fua),
            op => (false, op == Op::Write { fua: true }),
        };
        let arrived = if zeroes { at + self.trim } else { self.carry(at, bytes, false) };
        self.remap(command, zeroes);
        let answered = arrived + self.latency;
        if self.write_buffer.protected {
            self.agenda.put_in(Ring::Writes, answered, Due::Answer(command.id));
            self.store(arrived, answered, bytes, self.write_buffer.dead.then_some(command.id));
        } else if self.at_risk() && !fua {
            self.agenda.put_in(Ring::Writes, answered, Due::Answer(command.id));
            self.store(arrived, answered, bytes, Some(command.id));
        } else {
            let floor = self.store(arrived, 0, bytes, None);
            let end = self.close_unit(arrived).max(floor).max(arrived) + self.latency;
            let due = if self.at_risk() { Due::AnswerPersisted(command.id) } else { Due::Answer(command.id) };
            self.agenda.put(end, due);
        }
    }

    /// Tells the map, and what it costs to keep it.
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
        if self.mapping > PAGE && first != self.write_end {
            self.rewrite += self.mapping;
        }
        self.write_end = first + bytes;
    }

    /// Puts `bytes` into the open unit and those after it, with `id` where the last byte is; returns when those parts are
    /// programmed whose units are full.
    #[inline]
    pub(super) fn store(&mut self, arrived: u64, answered: u64, bytes: u64, id: Option<CommandId>) -> u64 {
        self.units.bytes += bytes;
        let (mut left, mut floor) = (bytes, answered);
        loop {
            let open = &mut self.units.open;
            let part = left.min(self.unit - open.bytes);
            open.bytes += part;
            open.arrived = open.arrived.max(arrived);
            left -= part;
            if left == 0 {
                open.ids.extend(id);
                open.floor = open.floor.max(floor);
            }
            if open.bytes == self.unit {
                floor = floor.max(self.close_unit(arrived));
            } else if self.open_until.is_none() && part > 0 {
                self.open_until = Some(arrived + self.destage_after);
            }
            if left == 0 {
                return floor;
            }
        }
    }

    /// Sends the open unit to a die, if there is anything in it, and returns when all so far is programmed at the latest.
    pub(super) fn close_unit(&mut self, at: u64) -> u64 {
        self.open_until = None;
        if self.units.open.bytes == 0 {
            return 0;
        }
        let open = &self.units.open;
        let (start, floor, padding) = (at.max(open.arrived), open.floor, self.unit - open.bytes);
        if padding > 0 {
            let moved = self.ftl.pad(padding);
            self.dies.owe(moved * PAGE);
        }
        let end = self.dies.program(start, std::mem::take(&mut self.rewrite)).max(floor);
        let number = self.units.send();
        self.agenda.put_in(Ring::Units, end, Due::Programmed(number));
        // A flush waits for the floor too.
        self.dies.last_end = self.dies.last_end.max(end);
        end
    }

    pub(super) fn flush(&mut self, at: u64, id: CommandId) {
        let done = if self.write_buffer.protected {
            at + self.flush
        } else {
            self.close_unit(at);
            if std::mem::take(&mut self.journal_dirty) {
                self.journal_free = at.max(self.dies.last_end).max(self.journal_free) + self.flush;
            }
            at.max(self.journal_free)
        };
        self.agenda.put(done + self.latency, Due::Answer(id));
    }

    pub(super) fn discard(&mut self, at: u64, command: Command) {
        self.journal_dirty = true;
        let (first, bytes) = (command.sectors.first * SECTOR.0, command.sectors.bytes().0);
        // Only whole pages are forgotten.
        let (page, end) = (first.div_ceil(PAGE), (first + bytes) / PAGE);
        self.ftl.trim(page, end.saturating_sub(page));
        let answered = at + self.trim + self.latency;
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

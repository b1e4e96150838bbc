//! Who waits until something has left the cache.

use super::runs::Ticket;
use super::slots::Slot;
use crate::command::CommandId;

/// What is done when all that a ticket waits for has left the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Party {
    /// It is told that an answered command is persisted.
    Persisted(CommandId),
    /// A command is answered.
    Write(Slot),
    /// A flush is answered.
    Flush(Slot),
}

/// Tickets by number.
#[derive(Debug, Clone, Default)]
pub(super) struct Tickets {
    tickets: Vec<(u32, Party)>,
    free: Vec<Ticket>,
}

impl Tickets {
    /// A ticket of `party` for `runs` runs.
    pub(super) fn issue(&mut self, runs: u32, party: Party) -> Ticket {
        if let Some(ticket) = self.free.pop() {
            self.tickets[ticket as usize] = (runs, party);
            return ticket;
        }
        self.tickets.push((runs, party));
        (self.tickets.len() - 1) as Ticket
    }

    /// `ticket` waits for `runs` runs.
    pub(super) fn await_runs(&mut self, ticket: Ticket, runs: u32) {
        self.tickets[ticket as usize].0 = runs;
    }

    /// One of the runs has left: the party, if it was the last.
    pub(super) fn one_left(&mut self, ticket: Ticket) -> Option<Party> {
        let (runs, party) = &mut self.tickets[ticket as usize];
        *runs -= 1;
        (*runs == 0).then(|| {
            self.free.push(ticket);
            *party
        })
    }

    /// Takes back a ticket that waits for nothing.
    pub(super) fn withdraw(&mut self, ticket: Ticket) {
        self.free.push(ticket);
    }

    pub(super) fn clear(&mut self) {
        self.tickets.clear();
        self.free.clear();
    }
}

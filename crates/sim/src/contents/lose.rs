//! Commands that failed or were not answered: each block is old, new or unreadable, and may land later.

use rand_xoshiro::rand_core::Rng as _;

use super::drive_side::Contents;
use super::medium::What;
use super::window::{Node, Pending};
use crate::command::CommandId;
use crate::rules::planted::{Bug, planted};

/// One in so many commands that come after it lets a late one land.
const LATE_ODDS: u64 = 8;

impl Contents {
    /// The command failed or is not answered. What becomes of it is drawn: it lands now, later or never, or each of its
    /// blocks lands, does not, or becomes unreadable. Visible or not, it is at risk as long as it is not flushed. A
    /// flush that is lost track of covers nothing. One that was answered to the drive, and is not to the host because its
    /// flush failed, is where it is.
    pub fn lose_track(&mut self, id: CommandId) {
        self.now += 1;
        self.window.flushes.retain(|flush| flush.id != id);
        let number = self.window.ids.get(id.0);
        let Some(pending) = self.window.pendings.get_mut(number) else { return };
        pending.state.is_given_up = true;
        if pending.span.is_completed() {
            return;
        }
        self.window.ids.take(id.0);
        let is_narrow = !pending.state.is_wide;
        match self.chance.next_u64() % 4 {
            _ if planted(Bug::FailedNeverLands) => self.withdraw(number),
            0 => self.land(number),
            1 => self.withdraw(number),
            2 if is_narrow => self.land_in_parts(number),
            _ => self.window.late.push(number),
        }
        self.medium.drain();
    }

    /// Lets one of those that are late land, now and then.
    pub(super) fn land_late_ones(&mut self) {
        if self.window.late.is_empty() || !self.chance.next_u64().is_multiple_of(LATE_ODDS) {
            return;
        }
        let place = (self.chance.next_u64() % self.window.late.len() as u64) as usize;
        let number = self.window.late.swap_remove(place);
        // An event of its own, between the others.
        self.land(number);
        self.now += 1;
    }

    /// Each block lands, does not, or becomes unreadable.
    fn land_in_parts(&mut self, number: u32) {
        let pending = self.window.pendings[number];
        if pending.live == 0 {
            return self.withdraw(number);
        }
        self.has_unreadable = true;
        let broken = self.window.pendings.insert(Pending { what: What::Unreadable, live: 0, ..pending });
        for page in self.geometry.pages(pending.range) {
            let (lands, breaks) = self.draw_masks();
            self.split(page, number, broken, (lands, breaks));
        }
        for number in [number, broken] {
            if self.window.pendings.get(number).is_some_and(|one| one.live == 0) {
                self.window.forget(number);
            }
            self.land(number);
        }
    }

    /// Which blocks land, and which of the others become unreadable.
    fn draw_masks(&mut self) -> (u8, u8) {
        let drawn = self.chance.next_u64();
        let lands = drawn as u8;
        (lands, !lands & (drawn >> 8) as u8)
    }

    /// Leaves to the node of `number` the blocks that land, and makes one for those that break.
    fn split(&mut self, page: u64, number: u32, broken: u32, (lands, breaks): (u8, u8)) {
        let head = self.window.heads.get(page);
        let found = self.window.chain(head).find(|(_, node)| node.pending == number);
        let Some((place, mask)) = found.map(|(place, node)| (place, node.mask)) else { return };
        if mask & breaks != 0 {
            self.window.link(page, Node { next: 0, pending: broken, slot: 0, mask: mask & breaks });
            self.window.pendings[broken].live += 1;
        }
        self.window.nodes[place].mask = mask & lands;
        if mask & lands == 0 {
            // Kept alive until both are done with, so that nothing lands on a number that was given to another.
            self.window.pendings[number].live += 1;
            self.unlink(page, number);
            self.window.pendings[number].live -= 1;
        }
        self.settle(page);
    }
}

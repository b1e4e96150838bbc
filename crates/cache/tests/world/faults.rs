//! Faults in a world, and what the oracle can still judge after them.

use plumb_cache::State;

use super::World;
use crate::history::Fault;
use crate::setup::{Faults, Legs};

impl World {
    pub(super) fn break_(&mut self, fault: Fault) {
        let is_mirror = self.setup.layout == Legs::Mirror;
        let is_opening = self.state() == State::Recovering && !self.is_degraded;
        if self.setup.faults == Faults::OneLeg && is_opening {
            // A leg that fails now would be missing, and the cache would refuse to open.
            return;
        }
        if std::mem::take(&mut self.is_replaced) && self.is_whole() {
            // The mirror is complete again, so the other leg may fail next.
            self.weak_leg = 1 - self.weak_leg;
            self.failed_legs.clear();
        }
        let fault = match self.setup.faults {
            Faults::OneLeg => fault.on_leg(self.weak_leg),
            _ => fault,
        };
        // A leg that was left behind does not record that, so it would be used if the others are lost.
        let is_left_behind = |leg: usize| self.failed_legs.iter().any(|failed| *failed != leg);
        match fault {
            Fault::Fails { member, kind, nth } => self.faults.push((member, kind, nth)),
            Fault::Flip { leg, byte, bits } => {
                let byte = byte % self.members[leg].info.size.0;
                self.members[leg].flip(byte as usize, bits);
                self.damaged(is_mirror);
            }
            Fault::Unreadable { member, lba } => {
                let medium = &mut self.members[member];
                medium.break_block(lba % medium.info.blocks());
                self.damaged(is_mirror || member == self.setup.legs());
            }
            Fault::ReadOnly => self.read_only.extend(0..self.setup.legs()),
            Fault::Lost { leg } => {
                let is_left_behind = is_left_behind(leg) || !self.away.is_empty();
                self.members[leg].is_dead = true;
                self.is_broken = true;
                let is_last = self.members[..self.setup.legs()].iter().all(|leg| leg.is_dead);
                self.is_hopeless_later |= !is_mirror || is_last || is_left_behind;
            }
            Fault::Away { leg } => {
                if !self.members[leg].is_dead {
                    let is_left_behind = is_left_behind(leg);
                    self.members[leg].is_dead = true;
                    self.away.push(leg);
                    self.is_broken = true;
                    let is_last = self.members[..self.setup.legs()].iter().all(|leg| leg.is_dead);
                    self.is_hopeless_later |= is_mirror && (is_last || is_left_behind);
                }
            }
        }
    }

    /// Records damage on a medium. Without another leg the log may seem to end earlier after a restart: the
    /// last flushed data is then lost, which cannot be noticed.
    fn damaged(&mut self, is_known_elsewhere: bool) {
        self.is_broken = true;
        let is_end_unknown = !is_known_elsewhere || self.setup.faults == Faults::Any;
        self.is_hopeless_later |= is_end_unknown;
        self.is_hopeless |= is_end_unknown && self.state() == State::Recovering;
    }
}

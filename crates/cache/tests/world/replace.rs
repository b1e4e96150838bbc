//! A leg of a mirror that is replaced while the cache serves.

use plumb_block::Nanos;
use plumb_cache::{Cache, LOG_BLOCK, LegState, State};
use plumb_crash::Survival;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{PATIENCE, World, member};
use crate::medium::Medium;
use crate::setup::{Faults, Legs};

impl World {
    /// Returns true if every leg counts, and the log states that durably.
    pub(super) fn is_whole(&self) -> bool {
        let status = self.status();
        status.is_some_and(|status| status.legs.iter().all(|state| *state == LegState::Live))
    }

    /// Replaces a leg: the one with the faults, if there is one. Copying continues with the following steps.
    pub(super) fn replace(
        &mut self,
        leg: usize,
        is_same: bool,
        chance: &mut Xoshiro256PlusPlus,
    ) -> Result<(), String> {
        let leg = if self.setup.faults == Faults::OneLeg { self.weak_leg } else { leg };
        if self.setup.layout != Legs::Mirror || self.state() != State::Serving {
            return Ok(());
        }
        let (info, now) = (self.members[leg].info.clone(), self.now);
        match self.cache().retire_leg(leg, now) {
            Ok(()) => {}
            Err(why) if why.to_string().contains("being enlarged") => return Ok(()),
            // The leg may be the last one.
            Err(_) if self.setup.faults != Faults::OneLeg => return Ok(()),
            Err(why) => return Err(format!("leg {leg} cannot be replaced: {why}")),
        }
        self.cache().may_replace(&info).map_err(|why| why.to_string())?;
        self.members[leg].is_dead = true;
        self.faults.retain(|(at, ..)| *at != leg);
        for _ in 0..PATIENCE {
            self.pump()?;
            let here = |flight: &super::Flight| member(&self.setup, flight.action.member) == leg;
            if let Some(old) = self.flights.iter().position(here) {
                self.complete(old, chance)?;
                continue;
            }
            let now = self.now;
            let is_out = self.status().is_some_and(|status| status.legs[leg] == LegState::Lost);
            if is_out && self.cache().replace_leg(leg, info.clone(), now).is_ok() {
                self.put_in(leg, is_same, chance);
                self.is_replaced = true;
                self.away.retain(|away| *away != leg);
                return self.pump();
            }
            if self.state() != State::Serving {
                return Ok(());
            }
            if !self.advance(Nanos(u64::MAX), chance)? {
                return Err(format!("leg {leg} is not taken out: {:?}", self.status()));
            }
        }
        Err(format!("leg {leg} is never taken out"))
    }

    /// Prepares the device that will be the leg.
    fn put_in(&mut self, leg: usize, is_same: bool, chance: &mut Xoshiro256PlusPlus) {
        let medium = &mut self.members[leg];
        if is_same {
            medium.cut(chance, Survival::Mixed);
            medium.is_dead = false;
        } else {
            let info = medium.info.clone();
            *medium = Medium::new(info.clone(), &vec![0xa5; info.size.0 as usize]);
        }
        for range in Cache::superblocks_of(&medium.info) {
            medium.overwrite(range, &[0; LOG_BLOCK as usize]);
        }
    }
}

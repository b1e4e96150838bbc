//! The power switch and the write-cache switch.

use plumb_block::{Error, ErrorKind, LbaRange, Nanos, Op, Outcome, Result, VolatileCache};

use super::Drive;
use super::in_flight::NEVER;
use super::promise::promise;
use crate::contents::{Data, FlushKept, Promise};
use crate::cut::{ArmedCut, CutWhen, Edge};

impl Drive {
    /// Requests a power cut at `when`, replacing any earlier request.
    pub fn cut_when(&mut self, now: Nanos, when: CutWhen) {
        self.armed = ArmedCut::new(when);
        if when == CutWhen::Now {
            self.cut_power(now);
        }
    }

    /// Cuts the power now. Everything in flight ends with power loss.
    pub fn cut_power(&mut self, now: Nanos) {
        self.armed = None;
        if !self.is_powered {
            return;
        }
        self.is_powered = false;
        self.counters.cuts += 1;
        self.timing.power_cut(now);
        self.later.clear();
        self.no_deadline_before = NEVER;
        self.destaged.clear();
        let in_flight = self.in_flight.drain();
        for (_, pending) in &in_flight {
            self.give_up_first_half(pending.stage);
        }
        // The crash rules keep answered writes durable if nothing is volatile.
        self.last_cut = Some(self.contents.cut(&mut self.chance, &self.behaviour.damage));
        for (_, pending) in in_flight {
            self.answer(pending, Outcome::PowerLost, now);
        }
    }

    /// Cancels a requested cut.
    pub fn disarm(&mut self) {
        self.armed = None;
    }

    /// Turns the power on again. The drive has the surviving data and no latch, and its write cache is in the
    /// initial state: switching it lasts only until power-off (ATA SET FEATURES, SCSI MODE SELECT without SP,
    /// NVMe Set Features without SV).
    pub fn power_on(&mut self, now: Nanos) {
        if self.is_powered {
            return;
        }
        self.is_powered = true;
        self.latch = None;
        self.info.generation += 1;
        self.wce = self.saved_wce;
        if let Some(enabled) = self.wce {
            self.timing.set_wce(now, enabled);
        }
        self.contents.set_promise(promise(&self.behaviour, self.kind, &self.info, self.wce));
        self.state_volatile_cache();
    }

    /// Turns the write cache on or off. When it is turned off, its contents are durable on return.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) if there is no write cache to switch, if reading the state
    /// back shows no change, or without power.
    pub fn set_wce(&mut self, now: Nanos, enabled: bool) -> Result<()> {
        let failed = |kind| Error::new(kind, "switch the write cache of", self.name.clone());
        if !self.is_powered {
            return Err(failed(ErrorKind::PowerLost));
        }
        let Some(was) = self.wce else {
            return Err(failed(ErrorKind::Unsupported).because("it has none that can be switched"));
        };
        if was == enabled {
            return Ok(());
        }
        if self.behaviour.ignores_set_wce {
            let state = if was { "on" } else { "off" };
            return Err(failed(ErrorKind::Invalid).because(format!(
                "the command succeeded, and reading back shows that the cache is still {state}"
            )));
        }
        self.wce = Some(enabled);
        self.timing.set_wce(now, enabled);
        if !enabled {
            self.empty_cache()?;
        }
        self.contents.set_promise(promise(&self.behaviour, self.kind, &self.info, self.wce));
        self.info.generation += 1;
        self.state_volatile_cache();
        Ok(())
    }

    /// Shuts down cleanly: data at risk reaches the medium, and the backing file reaches the host's disk.
    ///
    /// # Errors
    /// If the backing file fails; its contents are then unknown.
    pub fn shut_down(&mut self, _now: Nanos) -> Result<()> {
        if self.is_powered {
            // A clean shutdown leaves enough time to destage.
            self.empty_cache()?;
        }
        let name = &self.name;
        self.contents
            .sync_backing()
            .map_err(|error| Error::io(&error, "sync the backing file of", name.clone()))
    }

    /// Flushes the contents internally: at once and truly, even if the drive ignores flushes of hosts.
    fn empty_cache(&mut self) -> Result<()> {
        let promise = self.contents.promise();
        self.contents.set_promise(Promise { flush: FlushKept::Always, ..promise });
        let emptied = self.flush_contents();
        self.contents.set_promise(promise);
        self.destaged.clear();
        emptied
    }

    fn flush_contents(&mut self) -> Result<()> {
        let id = self.in_flight.number_of_own();
        self.contents.submit(id, Op::Flush, LbaRange::EMPTY, Data::None);
        self.contents.complete(id).map_err(|error| {
            let kind = ErrorKind::Os(error.errno);
            Error::new(kind, "write the backing file of", self.name.clone()).because(error.to_string())
        })
    }

    /// Updates the reported state of the write cache, which may be a lie, and whether it survives a power
    /// cut.
    pub(super) const fn state_volatile_cache(&mut self) {
        let says = matches!(self.wce, Some(true)) && !self.behaviour.reports_write_through;
        self.info.volatile_cache = if says { VolatileCache::Enabled } else { VolatileCache::None };
        self.info.is_cache_protected = says && self.behaviour.survives_power_cut();
        self.info.is_cache_switched_off = self.wce.is_some() && !says;
    }

    /// Cuts the power if a requested cut is due at this event.
    pub(super) fn watch_for_cut(&mut self, op: Op, edge: Edge, now: Nanos) {
        if self.is_cut_due(op, edge, now) {
            self.cut_power(now);
        }
    }

    /// Returns true if a requested cut is due at this event.
    pub(super) fn is_cut_due(&mut self, op: Op, edge: Edge, now: Nanos) -> bool {
        self.armed.as_mut().is_some_and(|armed| armed.sees(op, edge, now, &mut self.chance))
    }
}

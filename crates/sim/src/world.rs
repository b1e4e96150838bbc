//! Several drives on one virtual clock, with power switches.
//!
//! The world alone moves the clock, from event to event: when it is told to, or when a queue's poll waits. So nothing
//! takes real time to wait, and the same seed gives the same run. Whoever has several queues does not wait in any of
//! them, but tells the world.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::{Clock, Nanos, VirtualClock};

use crate::device::Handle;
use crate::drive::{Drive, MOMENTS_MAX};

/// A drive of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DriveNumber(usize);

/// Drives that share a clock. Clones are the same world.
#[derive(Debug, Clone, Default)]
pub struct World(Arc<Shared>);

#[derive(Debug, Default)]
pub(crate) struct Shared {
    clock: Arc<VirtualClock>,
    drives: Mutex<Vec<Handle>>,
}

impl World {
    /// No drives, at time zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// No drives, on a clock that is there already.
    pub fn on(clock: Arc<VirtualClock>) -> Self {
        Self(Arc::new(Shared { clock, drives: Mutex::default() }))
    }

    /// The clock.
    pub fn clock(&self) -> Arc<VirtualClock> {
        Arc::clone(&self.0.clock)
    }

    /// Puts a drive into the world.
    pub fn add(&self, drive: Drive) -> DriveNumber {
        let clock = Arc::clone(&self.0.clock) as Arc<dyn Clock>;
        let mut drives = self.0.drives();
        drives.push(Handle::in_virtual_time(drive, clock, Arc::downgrade(&self.0)));
        DriveNumber(drives.len() - 1)
    }

    /// A drive of this world.
    pub fn drive(&self, number: DriveNumber) -> Handle {
        self.0.drives()[number.0].clone()
    }

    /// Moves the clock to the next event of any drive, but not beyond `deadline`, and lets everything happen that is due.
    /// What happens inside drives is passed over until one of them answers something. The time that it is then.
    pub fn advance(&self, deadline: Nanos) -> Nanos {
        self.0.advance(deadline)
    }

    /// Cuts the power of all these drives at once: what hangs on one power supply.
    pub fn cut(&self, domain: &[DriveNumber]) {
        for number in domain {
            self.drive(*number).with(Drive::cut_power);
        }
    }

    /// Turns their power on again.
    pub fn power_on(&self, domain: &[DriveNumber]) {
        for number in domain {
            self.drive(*number).with(Drive::power_on);
        }
    }
}

impl Shared {
    /// As [`World::advance`].
    pub(crate) fn advance(&self, deadline: Nanos) -> Nanos {
        let drives = self.drives();
        let deadline = deadline.max(self.clock.now());
        let has_happened = match drives.as_slice() {
            [drive] => drive.run_to_answer(deadline, &self.clock),
            drives => self.run_to_event(drives, deadline),
        };
        if !has_happened {
            self.clock.advance_to(deadline);
        }
        self.clock.now()
    }

    /// Runs several drives, all to the same time, until one of them answers. Whether anything happened by `deadline`.
    fn run_to_event(&self, drives: &[Handle], deadline: Nanos) -> bool {
        let mut has_happened = false;
        for _ in 0..MOMENTS_MAX {
            let next = drives.iter().filter_map(Handle::next_event).min().filter(|next| *next <= deadline);
            let Some(next) = next else { break };
            self.clock.advance_to(next);
            has_happened = true;
            // Every one of them catches up, whichever answers.
            if drives.iter().filter(|drive| drive.catch_up()).count() > 0 {
                break;
            }
        }
        has_happened
    }

    /// Whether anything happens by itself.
    pub(crate) fn has_events(&self) -> bool {
        self.drives().iter().any(|drive| drive.next_event().is_some())
    }

    fn drives(&self) -> MutexGuard<'_, Vec<Handle>> {
        self.drives.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Several drives on one virtual clock, with power switches.
//!
//! The world alone moves the clock, from event to event: when it is told to, or when a queue's poll waits. So nothing
//! takes real time to wait, and the same seed gives the same run. Whoever has several queues does not wait in any of
//! them, but tells the world.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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
    first: Place,
    /// Held by whoever moves several drives together.
    moving: Mutex<()>,
}

/// Where a drive is, or will be. Drives are only added, so that nobody who looks through them need lock anything.
type Place = OnceLock<Box<Link>>;

#[derive(Debug)]
struct Link {
    drive: Handle,
    next: Place,
}

impl World {
    /// No drives, at time zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// No drives, on a clock that is there already.
    pub fn on(clock: Arc<VirtualClock>) -> Self {
        Self(Arc::new(Shared { clock, ..Shared::default() }))
    }

    /// The clock.
    pub fn clock(&self) -> Arc<VirtualClock> {
        Arc::clone(&self.0.clock)
    }

    /// Puts a drive into the world.
    pub fn add(&self, drive: Drive) -> DriveNumber {
        let clock = Arc::clone(&self.0.clock) as Arc<dyn Clock>;
        let drive = Handle::in_virtual_time(drive, clock, Arc::downgrade(&self.0));
        DriveNumber(self.0.add(Box::new(Link { drive, next: Place::new() })))
    }

    /// A drive of this world.
    ///
    /// # Panics
    /// If the number is that of another world, which has more.
    pub fn drive(&self, number: DriveNumber) -> Handle {
        self.0.drives().nth(number.0).expect("a number of this world").clone()
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
    /// Puts a drive behind the last one; how many there were before.
    fn add(&self, mut link: Box<Link>) -> usize {
        let (mut place, mut before) = (&self.first, 0);
        while let Err(refused) = place.set(link) {
            link = refused;
            place = place.get().map_or(place, |taken| &taken.next);
            before += 1;
        }
        before
    }

    fn drives(&self) -> impl Iterator<Item = &Handle> {
        let links = std::iter::successors(self.first.get(), |link| link.next.get());
        links.map(|link| &link.drive)
    }

    /// As [`World::advance`].
    pub(crate) fn advance(&self, deadline: Nanos) -> Nanos {
        let deadline = deadline.max(self.clock.now());
        let has_happened = match self.first.get() {
            Some(alone) if alone.next.get().is_none() => alone.drive.run_to_answer(deadline, &self.clock),
            _ => self.run_to_event(deadline),
        };
        if !has_happened {
            self.clock.advance_to(deadline);
        }
        self.clock.now()
    }

    /// Runs several drives, all to the same time, until one of them answers. Whether anything happened by `deadline`.
    fn run_to_event(&self, deadline: Nanos) -> bool {
        // Nothing is behind the lock that a panic could have left half done.
        let _moving = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        let mut has_happened = false;
        for _ in 0..MOMENTS_MAX {
            let next = self.drives().filter_map(Handle::next_event).min().filter(|next| *next <= deadline);
            let Some(next) = next else { break };
            self.clock.advance_to(next);
            has_happened = true;
            // Every one of them catches up, whichever answers.
            if self.drives().filter(|drive| drive.catch_up()).count() > 0 {
                break;
            }
        }
        has_happened
    }

    /// Whether anything happens by itself.
    pub(crate) fn has_events(&self) -> bool {
        self.drives().any(|drive| drive.next_event().is_some())
    }
}

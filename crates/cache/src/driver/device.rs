//! [`CachedDevice`]: a cache over open devices, as a [`Device`](plumb_block::Device) of its own.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::{
    Bytes, Clock as _, Device, DeviceInfo, Errno, Error, ErrorKind, Extent, ExtentState, Latch, LbaRange,
    Nanos, Pool, Power, Queue, QueueOptions, Result, Time,
};

use super::carry_out::erase;
use super::latency::LatencyByRequest;
use super::members::{DEPTH, MemberQueues};
use super::queue::CacheQueue;
use super::shared::RunningCache;
use crate::{Cache, LegState, Mark, Member, NewLog, Options, State};

/// The devices of a cache.
#[derive(Clone)]
pub struct Members {
    /// Devices of the legs, by number; `None` for a missing leg.
    pub legs: Vec<Option<Arc<dyn Device>>>,
    /// The device that is cached, without the place of the marker.
    pub backing: Arc<dyn Device>,
}

impl Members {
    /// Returns the devices that are present, each with its name.
    pub fn present(&self) -> impl Iterator<Item = (Member, &Arc<dyn Device>)> {
        let legs = self.legs.iter().enumerate();
        let legs = legs.filter_map(|(leg, device)| Some((Member::Leg(leg), device.as_ref()?)));
        legs.chain([(Member::Backing, &self.backing)])
    }
}

/// A cache that serves. Clones are the same cache. When the last of them and of its queues is gone it stops;
/// what was acknowledged stands in the log then.
#[derive(Clone)]
pub struct CachedDevice {
    running: Arc<RunningCache>,
    members: Arc<Mutex<Members>>,
    memory: Pool,
}

impl CachedDevice {
    /// Opens the cache whose log is on these legs: recovers, and serves then, unless the options say that it
    /// is only looked at. In real time every thread that uses the cache polls the queues of the members:
    /// those of files are to be opened as shared ones (`FileOptions::shared` of plumb-linux).
    ///
    /// # Errors
    /// The sentence of the core, if it refuses or cannot; a member that gives no queue.
    pub fn open(options: Options, members: Members, time: Time) -> Result<Self> {
        let infos = members.legs.iter().map(|leg| leg.as_ref().map(|leg| leg.info())).collect();
        let memory = options.memory.clone();
        let core = Cache::open(options, infos, members.backing.info())?;
        let mut queues = MemberQueues::new(time.is_virtual())?;
        for (member, device) in members.present() {
            queues.add(member, queue_of(&**device, &memory)?)?;
        }
        let running = RunningCache::start(core, queues, time)?;
        let place = || members.backing.info().name;
        let served = running.wait_for(|core| match core.state() {
            State::Recovering => None,
            // Stopped: it was only to be looked at.
            State::Serving | State::Stopped { .. } => Some(Ok(())),
            State::Failed { because } | State::Latched { because } => Some(Err(because)),
        })?;
        match served {
            Some(Ok(())) => Ok(Self { running, members: Arc::new(Mutex::new(members)), memory }),
            Some(Err(why)) => Err(Error::new(ErrorKind::Invalid, "open the cache of", place()).because(why)),
            None => {
                let why = "one of its devices does not answer";
                Err(Error::new(ErrorKind::PowerLost, "open the cache of", place()).because(why))
            }
        }
    }

    /// Looks at the core.
    pub fn look<R>(&self, look: impl FnOnce(&Cache) -> R) -> R {
        self.running.look(look)
    }

    /// Returns the latency of the requests of clients, since the cache was opened.
    pub fn latency(&self) -> LatencyByRequest {
        self.running.latency()
    }

    /// Tells the core something.
    pub fn with<R>(&self, tell: impl FnOnce(&mut Cache, Nanos) -> R) -> R {
        self.running.with(tell)
    }

    /// Waits until `look` finds what it waits for.
    ///
    /// # Errors
    /// If the system cannot wait, or if in virtual time nothing will ever happen.
    pub fn wait_for<R>(&self, look: impl FnMut(&mut Cache) -> Option<R>) -> Result<R> {
        let stuck = || Error::new(ErrorKind::PowerLost, "wait for", "a cache that makes no more progress");
        self.running.wait_for(look)?.ok_or_else(stuck)
    }

    /// Waits for the next mark of the backing device: see [`Cache::to_mark`]. `None` once another thread has
    /// said that [it is over](Self::end_marking).
    pub fn wait_to_mark(&self, is_over: &AtomicBool) -> Option<Mark> {
        self.running.wait_to_mark(is_over)
    }

    /// Nobody waits in [`wait_to_mark`](Self::wait_to_mark) for this any more.
    pub fn end_marking(&self, is_over: &AtomicBool) {
        self.running.end_marking(is_over);
    }

    /// Ends at once, as a killed process does: nothing more goes to a device of it, and nobody is answered
    /// any more.
    pub fn halt(&self) {
        self.running.halt();
    }

    /// Returns the devices that it stands on.
    pub fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a leg of a mirror out, and lets go of its device. Returns once the log says so durably.
    ///
    /// # Errors
    /// If it is the last that has everything, or the cache does not serve.
    pub fn retire_leg(&self, leg: usize) -> Result<()> {
        self.with(|core, now| core.retire_leg(leg, now))?;
        self.wait_for(|core| match core.status() {
            Some(status) if status.state == State::Serving && status.legs[leg] != LegState::Lost => None,
            _ => Some(()),
        })?;
        self.running.remove_member(Member::Leg(leg));
        self.members().legs[leg] = None;
        Ok(())
    }

    /// Puts a device into the place of a leg that was taken out: what is on it goes. `before` is done when it
    /// has been blanked; the device is copied to after this returns.
    ///
    /// # Errors
    /// If the device is too small or fails, another leg is being copied to, or `before` fails.
    pub fn replace_leg(
        &self,
        leg: usize,
        by: Arc<dyn Device>,
        before: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let info = by.info();
        self.look(|core| core.may_replace(&info))?;
        erase(&*by)?;
        before()?;
        self.running.add_member(Member::Leg(leg), queue_of(&*by, &self.memory)?)?;
        self.with(|core, now| core.replace_leg(leg, info, now))?;
        self.members().legs[leg] = Some(by);
        Ok(())
    }

    /// Checks that [`grow`](Self::grow) would begin now.
    ///
    /// # Errors
    /// As [`grow`](Self::grow).
    pub fn may_grow(&self, size: Bytes) -> Result<()> {
        let legs = self.legs();
        self.look(|core| core.may_grow(size, &legs))
    }

    /// Has the log use `size` of each device: see [`Cache::grow`].
    ///
    /// # Errors
    /// If the log would not become larger, or a device has not that much.
    pub fn grow(&self, size: Bytes) -> Result<()> {
        let legs = self.legs();
        self.with(|core, now| core.grow(size, legs, now))
    }

    /// Has the cache take all of `backing`, its backing device that has grown; `witnesses` are those of it.
    /// `mark` marks the device with its new size, durably.
    ///
    /// # Errors
    /// If the cache does not serve, its log is not written any more, or `mark` fails: the cache is as large
    /// as before then.
    pub fn grow_backing(
        &self,
        backing: Arc<dyn Device>,
        witnesses: Vec<LbaRange>,
        mark: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.with(Cache::silence_mark)?;
        let silent = self.wait_for(|core| match core.state() {
            State::Serving => core.is_mark_silent().then_some(Ok(())),
            _ => Some(Err("it no longer serves")),
        })?;
        let failed = |why| Error::new(ErrorKind::Invalid, "grow", self.info().name).because(why);
        let size = backing.info().size;
        let grown = silent
            .map_err(failed)
            .and_then(|()| mark())
            .and_then(|()| self.with(|core, now| core.grow_backing(size, witnesses, now)));
        if grown.is_err() {
            self.with(Cache::keep_backing);
        }
        grown.map(|()| self.members().backing = backing)
    }

    /// Has an empty log on `legs` take the place of a [spent](Cache::is_log_spent) one: what is on them goes.
    /// `before` is done when they have been blanked. Returns once the mark on the backing device says so, and
    /// lets go of the old devices, which it returns.
    ///
    /// # Errors
    /// If the log is not spent, a device cannot hold the new one or fails, or `before` fails. Then there is
    /// no log, and writes go to the backing device.
    pub fn move_log(
        &self,
        new: NewLog,
        legs: Vec<Arc<dyn Device>>,
        before: impl FnOnce() -> Result<()>,
    ) -> Result<Vec<Arc<dyn Device>>> {
        let infos: Vec<_> = legs.iter().map(|leg| leg.info()).collect();
        self.look(|core| core.may_move(new, &infos))?;
        legs.iter().try_for_each(|leg| erase(&**leg))?;
        before()?;
        let queues = legs.iter().map(|leg| queue_of(&**leg, &self.memory)).collect::<Result<Vec<_>>>()?;
        let old = self.members().legs.len();
        (0..old).for_each(|leg| self.running.remove_member(Member::Leg(leg)));
        for (leg, queue) in queues.into_iter().enumerate() {
            self.running.add_member(Member::Leg(leg), queue)?;
        }
        let old = std::mem::replace(&mut self.members().legs, legs.into_iter().map(Some).collect());
        self.with(|core, now| core.move_log(new, infos, now))?;
        let moved =
            self.wait_for(|core| match (core.state(), core.status().and_then(|status| status.log_error)) {
                (State::Serving, None) => Some(Ok(())),
                (State::Serving, Some(why)) => core.is_log_spent().then_some(Err(why)),
                (State::Latched { because } | State::Failed { because }, _) => Some(Err(because)),
                _ => Some(Err("the cache stopped".to_owned())),
            })?;
        let place = || self.info().name;
        moved.map_err(|why| Error::new(ErrorKind::Invalid, "move the log of", place()).because(why))?;
        Ok(old.into_iter().flatten().collect())
    }

    /// Returns the devices of the log as they are now.
    fn legs(&self) -> Vec<Option<DeviceInfo>> {
        self.members().legs.iter().map(|leg| leg.as_ref().map(|leg| leg.info())).collect()
    }
}

/// Returns a queue to a member.
fn queue_of(device: &dyn Device, memory: &Pool) -> Result<Box<dyn Queue>> {
    device.open_queue(QueueOptions { depth: DEPTH, pool: memory.clone() })
}

impl Device for CachedDevice {
    fn info(&self) -> DeviceInfo {
        self.running.look(Cache::info)
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let wake = self.running.wake()?;
        let port = self.running.open_port(wake.clone());
        let running = Arc::clone(&self.running);
        Ok(Box::new(CacheQueue {
            running,
            port,
            wake,
            capacity: options.depth.max(1) as usize,
            in_flight: 0,
        }))
    }

    /// Returns all of `range` as one extent of unknown state. What was written is in the log or on the
    /// backing device; which, and whether anything was, is reported by status.
    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        Ok(vec![Extent { range, state: ExtentState::Unknown }])
    }

    fn set_wce(&self, _enabled: bool) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "switch the write cache of", self.info().name)
            .because("a cache's mode decides when data is durable; change it with `plumb cache mode`"))
    }

    fn latched(&self) -> Option<Latch> {
        let at = self.running.time().now();
        self.running.look(|core| match core.state() {
            State::Latched { .. } => Some(Latch { errno: Errno::EIO, at }),
            _ => None,
        })
    }

    fn power(&self) -> Power {
        let members = self.members();
        let all = members.present().map(|(_, device)| device.power());
        all.fold(Power::ALWAYS, |all, one| Power {
            is_on: all.is_on && one.is_on,
            losses: all.losses + one.losses,
        })
    }
}

//! [`CachedDevice`]: a cache on open devices, presented as a [`Device`].

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
    /// Cached device, without the space of the marker.
    pub backing: Arc<dyn Device>,
}

impl Members {
    /// Returns the present devices with their names.
    pub fn present(&self) -> impl Iterator<Item = (Member, &Arc<dyn Device>)> {
        let legs = self.legs.iter().enumerate();
        let legs = legs.filter_map(|(leg, device)| Some((Member::Leg(leg), device.as_ref()?)));
        legs.chain([(Member::Backing, &self.backing)])
    }
}

/// A running cache. Clones refer to the same cache. When the last of them and of its queues is dropped it
/// stops; acknowledged data is then in the log.
#[derive(Clone)]
pub struct CachedDevice {
    running: Arc<RunningCache>,
    members: Arc<Mutex<Members>>,
    memory: Pool,
}

impl CachedDevice {
    /// Opens the cache whose log is on these legs, recovers it and starts to serve, except in a dry run. In
    /// real time every thread that uses the cache polls the queues of the members, so file members must be
    /// opened as shared (`FileOptions::shared` of plumb-linux).
    ///
    /// # Errors
    /// The core's message if it refuses or fails; or the error of a member that cannot open a queue.
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
            // Stopped: it was a dry run.
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

    /// Inspects the core.
    pub fn look<R>(&self, look: impl FnOnce(&Cache) -> R) -> R {
        self.running.look(look)
    }

    /// Returns the latency of client requests since the cache was opened.
    pub fn latency(&self) -> LatencyByRequest {
        self.running.latency()
    }

    /// Modifies the core.
    pub fn with<R>(&self, tell: impl FnOnce(&mut Cache, Nanos) -> R) -> R {
        self.running.with(tell)
    }

    /// Waits until `look` returns a value.
    ///
    /// # Errors
    /// If the system cannot wait, or nothing will ever happen in virtual time.
    pub fn wait_for<R>(&self, look: impl FnMut(&mut Cache) -> Option<R>) -> Result<R> {
        let stuck = || Error::new(ErrorKind::PowerLost, "wait for", "a cache that makes no more progress");
        self.running.wait_for(look)?.ok_or_else(stuck)
    }

    /// Waits for the next mark of the backing device: see [`Cache::to_mark`]. `None` once another thread has
    /// called [`end_marking`](Self::end_marking).
    pub fn wait_to_mark(&self, is_over: &AtomicBool) -> Option<Mark> {
        self.running.wait_to_mark(is_over)
    }

    /// Ends the wait in [`wait_to_mark`](Self::wait_to_mark).
    pub fn end_marking(&self, is_over: &AtomicBool) {
        self.running.end_marking(is_over);
    }

    /// Ends immediately, like a killed process: no further requests go to its devices, and no further answers
    /// to clients.
    pub fn halt(&self) {
        self.running.halt();
    }

    /// Returns the members.
    pub fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a leg of a mirror and releases its device. Returns once the log records that durably.
    ///
    /// # Errors
    /// If it is the last leg with complete data, or the cache does not serve.
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

    /// Replaces a removed leg by a device, whose contents are lost. Calls `before` after the device was
    /// blanked. The contents are copied after this returns.
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

    /// Checks that [`grow`](Self::grow) would start now.
    ///
    /// # Errors
    /// Fails as [`grow`](Self::grow) does.
    pub fn may_grow(&self, size: Bytes) -> Result<()> {
        let legs = self.legs();
        self.look(|core| core.may_grow(size, &legs))
    }

    /// Extends the log to `size` of each device: see [`Cache::grow`].
    ///
    /// # Errors
    /// If the log would not become larger, or a device is too small.
    pub fn grow(&self, size: Bytes) -> Result<()> {
        let legs = self.legs();
        self.with(|core, now| core.grow(size, legs, now))
    }

    /// Extends the cache to all of `backing`, its backing device after growing; `witnesses` are those of the
    /// larger device. `mark` must mark the device with its new size, durably.
    ///
    /// # Errors
    /// If the cache does not serve, its log is sealed, or `mark` fails: the cache then keeps its size.
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

    /// Replaces a [spent](Cache::is_log_spent) log by an empty one on `legs`, whose contents are lost. Calls
    /// `before` after they were blanked. Returns the released old devices once the mark on the backing device
    /// names the new log.
    ///
    /// # Errors
    /// If the log is not spent, a device is unsuitable or fails, or `before` fails. Then there is no log, and
    /// writes go to the backing device.
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

    /// Returns the current devices of the log.
    fn legs(&self) -> Vec<Option<DeviceInfo>> {
        self.members().legs.iter().map(|leg| leg.as_ref().map(|leg| leg.info())).collect()
    }
}

/// Opens a queue to a member.
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

    /// Returns all of `range` as one extent of unknown state. Written data is in the log or on the backing
    /// device; the status shows how much.
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

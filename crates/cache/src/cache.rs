//! [`Cache`]: the interface of a cache for its users.

use plumb_block::{
    Bytes, Completion, DeviceInfo, Errno, Error, ErrorKind, Latch, Lba, LbaRange, Nanos, Outcome, Payload,
    Request, Result, VolatileCache,
};

use crate::action::{Action, ActionId, Member};
use crate::core::Core;
use crate::devices::{Devices, block_fits, transfer_fits};
use crate::format::block::BLOCK;
use crate::format::superblock::{LegState, SlotContent, Superblock, Tail};
use crate::geometry::{Geometry, SEGMENT_BLOCKS};
use crate::grow;
use crate::io::ClientRequest;
use crate::recovery::Recovery;
use crate::resilver;
use crate::seal::NewLog;
use crate::settings::{
    BUFFER, BUFFERS_MIN, DestageOptions, LEGS_MAX, LOG_BLOCK, Layout, Mark, Mode, Options, Settings,
};
use crate::status::{State, Status};

/// A write-back cache, from recovery to stop. See the [crate].
#[derive(Debug)]
pub struct Cache {
    stage: Stage,
    /// Requests that came before the cache serves.
    waiting: Vec<Request>,
    /// Command that came before the cache serves, to be run then.
    command: Option<fn(&mut Core)>,
}

#[derive(Debug)]
enum Stage {
    /// Or refused by recovery.
    Recovering(Box<Recovery>),
    Open(Box<Core>),
}

/// A write that makes a cache. It has to be followed by a flush of the member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitialWrite {
    /// Device that is written.
    pub member: Member,
    /// Where, in logical blocks of that device.
    pub range: LbaRange,
    /// Bytes to write.
    pub bytes: Vec<u8>,
}

/// Description of the cache in the superblock of a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leg {
    /// The number of the leg.
    pub number: usize,
    /// Number of them.
    pub legs: usize,
    /// Settings that the cache was made with, or has grown to.
    pub settings: Settings,
    /// The size of the cached device.
    pub backing_size: Bytes,
}

impl Cache {
    /// Returns the writes that make a cache of these devices; they have to be carried out and then flushed.
    /// The backing device keeps what it has.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if the settings cannot be met by the devices: the sentence names which
    /// and why.
    pub fn create(
        settings: &Settings,
        legs: &[DeviceInfo],
        backing: &DeviceInfo,
    ) -> Result<Vec<InitialWrite>> {
        let geometry = shape(settings, legs, backing)?;
        let mut superblock = Superblock {
            cache: settings.cache,
            backing: settings.backing,
            backing_size: backing.size,
            geometry,
            leg: 0,
            legs: vec![LegState::Live; legs.len()],
            epoch: 1,
            generation: 0,
            session: 0,
            tail: Tail { segment: 0, sequence: 1, previous: 0 },
            durable: 0,
            first: 1,
            unreadable: Vec::new(),
        };
        let mut writes = Vec::new();
        for (leg, info) in legs.iter().enumerate() {
            superblock.leg = leg as u8;
            // Both versions, so that nothing of an older cache is left in any slot.
            for (generation, range) in [0, 1].into_iter().cycle().zip(Self::superblocks_of(info)) {
                superblock.generation = generation;
                let mut bytes = vec![0; BLOCK];
                superblock.encode(&mut bytes);
                writes.push(InitialWrite { member: Member::Leg(leg), range, bytes });
            }
        }
        Ok(writes)
    }

    /// Returns where superblocks are on a leg, in its logical blocks; each may be damaged. With zeroes there
    /// a device is no leg of any cache.
    pub fn superblocks_of(leg: &DeviceInfo) -> [LbaRange; 4] {
        let scale = LOG_BLOCK / leg.logical_block.0.min(LOG_BLOCK);
        Superblock::places(leg).map(|place| LbaRange::new(Lba(place * scale), scale))
    }

    /// Returns the leg that this block is a superblock of, with what it says of the cache; `None` if it is
    /// not a superblock.
    ///
    /// # Errors
    /// The version of the format, if that is a later one.
    pub fn leg_of(block: &[u8]) -> std::result::Result<Option<Leg>, u32> {
        let found = match Superblock::decode(block) {
            SlotContent::Valid(found) => found,
            SlotContent::Newer(version) => return Err(version),
            SlotContent::Nothing => return Ok(None),
        };
        let Superblock { cache, backing, backing_size, geometry, leg, ref legs, .. } = *found;
        let settings = Settings {
            cache,
            backing,
            size: geometry.leg_size(),
            segment: Bytes(geometry.segment_bytes()),
            layout: geometry.layout,
        };
        Ok(Some(Leg { number: usize::from(leg), legs: legs.len(), settings, backing_size }))
    }

    /// Opens what is on these devices: begins recovery, which is done by actions. `None` is a leg that is not
    /// there. Requests wait until the cache serves; [`state`](Cache::state) says when, or why it never will.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if the options make no sense. What is wrong on the devices is found by
    /// recovery.
    pub fn open(options: Options, legs: Vec<Option<DeviceInfo>>, backing: DeviceInfo) -> Result<Self> {
        let memory = &options.memory;
        if memory.buffer_size() < BUFFER || memory.available() < BUFFERS_MIN as usize {
            return Err(invalid(format!(
                "its memory is {memory:?}; it needs {BUFFERS_MIN} free buffers of {BUFFER}"
            )));
        }
        let record_max = options.record_max;
        if !(Bytes(LOG_BLOCK)..=Bytes::kib(512)).contains(&record_max)
            || !record_max.0.is_multiple_of(LOG_BLOCK)
        {
            return Err(invalid(format!(
                "the largest record is {record_max}; it has to be 4 KiB to 512 KiB, in steps of 4 KiB"
            )));
        }
        if legs.len() > LEGS_MAX {
            return Err(invalid(format!("its log has {} devices: name at most {LEGS_MAX}", legs.len())));
        }
        legs.iter().flatten().try_for_each(transfer_fits).map_err(invalid)?;
        let recovery = Recovery::begin(options, Devices::new(legs, backing));
        let stage = Stage::Recovering(Box::new(recovery));
        let mut this = Self { stage, waiting: Vec::new(), command: None };
        // Without any leg it is over already.
        this.after_recovery();
        Ok(this)
    }

    /// Takes a request. It is answered once, after any time: see [`take_answers`](Cache::take_answers). The
    /// contract is that of [`plumb_block::device`]; a deadline is not looked at.
    pub fn submit(&mut self, request: Request, now: Nanos) {
        self.advance(now);
        match &mut self.stage {
            Stage::Recovering(recovery) if recovery.refusal.is_some() => {
                recovery.io.refuse(&ClientRequest { tag: request.tag, at: now }, Errno::EIO, request.payload);
            }
            Stage::Recovering(_) => self.waiting.push(request),
            Stage::Open(core) => core.submit(request),
        }
    }

    /// Takes the end of an action, with its payload. An action that nobody waits for is let go.
    pub fn completed(&mut self, id: ActionId, outcome: Outcome, payload: Payload, now: Nanos) {
        self.advance(now);
        match &mut self.stage {
            Stage::Recovering(recovery) => {
                recovery.completed(id, outcome, payload);
                self.after_recovery();
            }
            Stage::Open(core) => core.completed(id, outcome, payload),
        }
    }

    /// Tells what time it is.
    pub fn advance(&mut self, now: Nanos) {
        match &mut self.stage {
            Stage::Recovering(recovery) => recovery.io.advance(now),
            Stage::Open(core) => core.base.io.advance(now),
        }
    }

    /// Returns when the cache next does something by itself. `None`: only when it is told of something.
    pub fn next_event(&self) -> Option<Nanos> {
        self.core()?.next_event()
    }

    /// Goes on with all that it was told since it was last called, and appends the actions that come of it.
    pub fn take_actions(&mut self, into: &mut Vec<Action>) {
        match &mut self.stage {
            Stage::Recovering(recovery) => recovery.io.take_actions(into),
            Stage::Open(core) => {
                core.advance();
                core.base.io.take_actions(into);
            }
        }
    }

    /// Appends the answers that [`take_actions`](Cache::take_actions) has brought since it was last called.
    pub fn take_answers(&mut self, into: &mut Vec<Completion>) {
        match &mut self.stage {
            Stage::Recovering(recovery) => recovery.io.take_answers(into),
            Stage::Open(core) => core.base.io.take_answers(into),
        }
    }

    /// Returns how the cache is.
    pub fn state(&self) -> State {
        match &self.stage {
            Stage::Recovering(recovery) => {
                recovery.refusal.clone().map_or(State::Recovering, |because| State::Failed { because })
            }
            Stage::Open(core) => core.state(),
        }
    }

    /// Returns the status of the cache; `None` before it serves.
    pub fn status(&self) -> Option<Status> {
        self.core().map(Core::status)
    }

    /// Returns the device that clients see: the size and the logical block of the backing device.
    pub fn info(&self) -> DeviceInfo {
        let (options, devices) = match &self.stage {
            Stage::Recovering(recovery) => (&recovery.options, &recovery.devices),
            Stage::Open(core) => (&core.base.options, &core.base.devices),
        };
        let backing = devices.backing();
        let is_volatile = |info: &DeviceInfo| info.volatile_cache != VolatileCache::None;
        let volatile = match options.mode {
            // Nothing that is volatile is acknowledged in it.
            Mode::Protected => false,
            _ => is_volatile(backing) || devices.present_legs().any(is_volatile),
        };
        DeviceInfo {
            name: format!("cache of {}", backing.name),
            transfer_max: Bytes(devices.backing_transfer_max()),
            atomic_unit: backing.logical_block,
            atomic_unit_min: backing.logical_block,
            atomic_boundary: Bytes(0),
            volatile_cache: if volatile { VolatileCache::Enabled } else { VolatileCache::None },
            fua_native: false,
            ..backing.clone()
        }
    }

    /// Destages everything, and goes on serving.
    pub fn drain(&mut self, now: Nanos) {
        self.command(now, Core::drain);
    }

    /// Stops when what was asked until now is answered: everything is durable then, in the log or on the
    /// backing device, and [`state`](Cache::state) is [`Stopped`](State::Stopped). What is asked later fails.
    pub fn stop(&mut self, now: Nanos) {
        self.command(now, |core| core.stop(false));
    }

    /// Destages everything and then stops as [`stop`](Cache::stop) does, so that the backing device can be
    /// used without the cache.
    pub fn detach(&mut self, now: Nanos) {
        self.command(now, |core| core.stop(true));
    }

    /// Acknowledges writes by another rule from now on; that is over when
    /// [`is_mode_settled`](Self::is_mode_settled). [`Ordered`](Mode::Ordered) holds from when what was
    /// written before is destaged: [`status`](Self::status) says when. Nothing changes unless the cache
    /// serves.
    pub fn set_mode(&mut self, mode: Mode, now: Nanos) {
        if let Ok(core) = self.core_at(now) {
            core.set_mode(mode);
        }
    }

    /// Destages by other thresholds from now on. Nothing changes unless the cache serves.
    pub fn set_destage(&mut self, options: DestageOptions, now: Nanos) {
        if let Ok(core) = self.core_at(now) {
            core.set_destage(options);
        }
    }

    /// Returns true if what [`Protected`](Mode::Protected) took to be durable is, after another mode was set:
    /// the legs were flushed.
    pub fn is_mode_settled(&self) -> bool {
        self.core().is_some_and(|core| core.flushes.is_settled())
    }

    /// Returns the mark that the backing device is to get durably, until [`marked`](Self::marked) answers;
    /// `None` if there is nothing new, or the cache was opened without an [`Identity`](crate::Identity). Of a
    /// witness that the mark before it stated, too, the contents are those that were stated; what the others
    /// hold is read from the backing device after this has returned.
    pub fn to_mark(&self) -> Option<Mark> {
        self.core().and_then(|core| core.marks.request)
    }

    /// Returns whether the backing device names the session that is served, so that something may be
    /// acknowledged.
    pub fn is_session_marked(&self) -> bool {
        self.core().is_some_and(|core| core.base.condition.is_serving() && core.marks.is_marked(&core.base))
    }

    /// Returns the mark that the backing device is to get once the cache has [`Stopped`](State::Stopped). No
    /// answer to it is expected.
    pub fn mark_at_stop(&self) -> Option<Mark> {
        self.core().and_then(Core::mark_at_stop)
    }

    /// Takes note that the backing device has this mark durably; or why it does not, after which nothing is
    /// written any more.
    pub fn marked(&mut self, mark: Mark, result: std::result::Result<(), String>, now: Nanos) {
        if let Ok(core) = self.core_at(now) {
            core.marked(mark, result);
        }
    }

    /// Takes leg `leg` of a mirror out, if it counts: [`status`](Cache::status) shows it as lost once that is
    /// durable.
    ///
    /// # Errors
    /// A sentence: it is the last that has everything, or the cache does not serve.
    pub fn retire_leg(&mut self, leg: usize, now: Nanos) -> Result<()> {
        resilver::retire_leg(&mut self.core_at(now)?.base, leg).map_err(invalid)
    }

    /// Checks that a device can [replace](Cache::replace_leg) a leg.
    ///
    /// # Errors
    /// A sentence: it is too small, or its blocks are none that a cache can use.
    pub fn may_replace(&self, by: &DeviceInfo) -> Result<()> {
        resilver::may_replace(&self.core().ok_or_else(not_serving)?.base, by).map_err(invalid)
    }

    /// Puts a device into the place of a leg that was taken out, and of which every action is answered.
    /// Zeroes have to be durable by now where its [superblocks](Cache::superblocks_of) are. It is written
    /// from now on, and read once everything was copied to it: [`status`](Cache::status) shows it as live
    /// then.
    ///
    /// # Errors
    /// A sentence: the leg still counts, another one is being copied to, or the device does not do.
    pub fn replace_leg(&mut self, leg: usize, by: DeviceInfo, now: Nanos) -> Result<()> {
        self.core_at(now)?.replace_leg(leg, by).map_err(invalid)
    }

    /// Returns true if the log already uses as much of each leg as it would of `size`, or will once it has
    /// grown.
    pub fn is_grown_to(&self, size: Bytes) -> bool {
        self.core().is_some_and(|core| grow::is_grown_to(&core.base, size))
    }

    /// Checks that [`grow`](Cache::grow) would begin now.
    ///
    /// # Errors
    /// As [`grow`](Cache::grow).
    pub fn may_grow(&self, size: Bytes, legs: &[Option<DeviceInfo>]) -> Result<()> {
        grow::grown_to(&self.core().ok_or_else(not_serving)?.base, size, legs).map(drop).map_err(invalid)
    }

    /// Makes the log use `size` of each leg, while it serves: [`status`](Cache::status) shows when. `legs`
    /// are the legs as they are now; a part of the log may have to be destaged first. It is given up if that
    /// fails.
    ///
    /// # Errors
    /// A sentence: the log would not become larger, or a leg has not that much.
    pub fn grow(&mut self, size: Bytes, legs: Vec<Option<DeviceInfo>>, now: Nanos) -> Result<()> {
        grow::grow(&mut self.core_at(now)?.base, size, legs).map_err(invalid)
    }

    /// Makes the mark on the backing device state no witness, so that the device can be marked with another
    /// size: [`is_mark_silent`](Self::is_mark_silent) says when. [`grow_backing`](Self::grow_backing) or
    /// [`keep_backing`](Self::keep_backing) ends that.
    ///
    /// # Errors
    /// A sentence: the cache does not serve, or its log is no longer written.
    pub fn silence_mark(&mut self, now: Nanos) -> Result<()> {
        let core = self.core_at(now)?;
        grow::silence_mark(&mut core.base, &mut core.marks).map_err(invalid)
    }

    /// Returns true if the mark on the backing device states no witness, and none that does is on its way.
    pub fn is_mark_silent(&self) -> bool {
        self.core().is_some_and(|core| core.marks.is_silent())
    }

    /// Takes `size` of a backing device that has grown, and that is marked with this size durably, at its new
    /// end. `witnesses` are those of the larger device ([`Options::witnesses`]).
    ///
    /// # Errors
    /// A sentence: the mark is not [silent](Self::is_mark_silent), or the device would be smaller.
    pub fn grow_backing(&mut self, size: Bytes, witnesses: Vec<LbaRange>, now: Nanos) -> Result<()> {
        let core = self.core_at(now)?;
        grow::grow_backing(&mut core.base, &mut core.marks, size, witnesses).map_err(invalid)
    }

    /// Makes the mark state witnesses again: the backing device stays as large as it was.
    pub fn keep_backing(&mut self, now: Nanos) {
        if let Ok(core) = self.core_at(now) {
            core.marks.speak();
        }
    }

    /// Begins to empty the log, so that another can [take its place](Self::move_log): it is no longer
    /// written, what it holds is written back, and writes go past it. That stays so until another log is in
    /// its place, also when the cache is opened again.
    ///
    /// # Errors
    /// A sentence: the cache does not serve, or nobody marks its backing device.
    pub fn retire_log(&mut self, now: Nanos) -> Result<()> {
        self.core_at(now)?.retire_log().map_err(invalid)
    }

    /// Returns true if everything in a log that is no longer written is durable on the backing device, and
    /// nobody reads that log: its devices may go.
    pub fn is_log_spent(&self) -> bool {
        self.core().is_some_and(Core::is_log_spent)
    }

    /// Checks that devices can hold the log that is to take the place of the present one.
    ///
    /// # Errors
    /// As [`create`](Cache::create).
    pub fn may_move(&self, new: NewLog, legs: &[DeviceInfo]) -> Result<()> {
        self.core().ok_or_else(not_serving)?;
        self.moved(new, legs).map(drop)
    }

    /// Has an empty log on other devices take the place of a [spent](Self::is_log_spent) one. Zeroes have to
    /// be durable by now where its [superblocks](Cache::superblocks_of) are. The mark on the backing device
    /// that is not [sealed](Mark::is_sealed) any more makes it the log: a crash before that leaves the spent
    /// one. [`Status::log_error`] says when, or that the new one failed.
    ///
    /// # Errors
    /// A sentence: the log is not spent, or the devices cannot hold one.
    pub fn move_log(&mut self, new: NewLog, legs: Vec<DeviceInfo>, now: Nanos) -> Result<()> {
        let geometry = self.moved(new, &legs)?;
        self.core_at(now)?.move_log(geometry, legs).map_err(invalid)
    }

    /// Returns the shape of a log that takes the place of the present one.
    fn moved(&self, NewLog { size, layout }: NewLog, legs: &[DeviceInfo]) -> Result<Geometry> {
        let core = self.core().ok_or_else(not_serving)?;
        let (cache, backing) = (core.base.superblock.cache, core.base.superblock.backing);
        let segment = Bytes(core.base.log.geometry.segment_bytes());
        shape(&Settings { cache, backing, size, segment, layout }, legs, core.base.devices.backing())
    }

    /// Returns the failed flush that stopped writes and flushes, if the cache is [`Latched`](State::Latched).
    pub fn latched(&self) -> Option<Latch> {
        self.core()?.base.condition.latch()
    }

    fn core(&self) -> Option<&Core> {
        if let Stage::Open(core) = &self.stage { Some(core) } else { None }
    }

    fn core_at(&mut self, now: Nanos) -> Result<&mut Core> {
        self.advance(now);
        if let Stage::Open(core) = &mut self.stage { Ok(core) } else { Err(not_serving()) }
    }

    /// Does it, or later, once the cache serves.
    fn command(&mut self, now: Nanos, command: fn(&mut Core)) {
        match self.core_at(now) {
            Ok(core) => command(core),
            Err(_) => self.command = Some(command),
        }
    }

    /// Goes on if recovery is over.
    fn after_recovery(&mut self) {
        let Stage::Recovering(recovery) = &mut self.stage else { return };
        let now;
        if let Some(recovered) = recovery.recovered.take() {
            now = recovered.io.now();
            self.stage = Stage::Open(Box::new(Core::new(recovered)));
        } else if recovery.refusal.is_some() {
            now = recovery.io.now();
        } else {
            return;
        }
        for request in std::mem::take(&mut self.waiting) {
            self.submit(request, now);
        }
        if let Some(command) = self.command.take() {
            self.command(now, command);
        }
    }
}

fn not_serving() -> Error {
    invalid("it does not serve".to_owned())
}

fn invalid(detail: String) -> Error {
    Error::new(ErrorKind::Invalid, "use", "a cache").because(detail)
}

/// Returns the geometry that the settings give on these devices.
fn shape(settings: &Settings, legs: &[DeviceInfo], backing: &DeviceInfo) -> Result<Geometry> {
    let segment_blocks = settings.segment.0 / LOG_BLOCK;
    if !settings.segment.0.is_multiple_of(LOG_BLOCK) || !SEGMENT_BLOCKS.contains(&segment_blocks) {
        let found = settings.segment;
        return Err(invalid(format!(
            "its segments are {found}; they have to be 32 KiB to 64 MiB, in steps of 4 KiB"
        )));
    }
    if legs.is_empty() || legs.len() > LEGS_MAX {
        return Err(invalid(format!("its log has {} devices: name 1 to {LEGS_MAX}", legs.len())));
    }
    legs.iter().chain([backing]).try_for_each(block_fits).map_err(invalid)?;
    legs.iter().try_for_each(transfer_fits).map_err(invalid)?;
    if let Some(small) = legs.iter().find(|leg| leg.size < settings.size) {
        let (name, size, asked) = (&small.name, small.size, settings.size);
        return Err(invalid(format!(
            "{name} has {} bytes, less than the {} that are to be used",
            size.0, asked.0
        )));
    }
    let geometry = Geometry {
        logical_block: backing.logical_block.0,
        segment_blocks: segment_blocks as u32,
        per_leg: Geometry::per_leg(settings.size, segment_blocks as u32),
        rotation: 0,
        layout: if legs.len() == 1 { Layout::Mirror } else { settings.layout },
        legs: legs.len() as u8,
    };
    if !geometry.is_sound() {
        let (size, segment) = (settings.size, settings.segment);
        return Err(invalid(format!(
            "{size} of each device of the log is too little: it has to hold at least three segments of {segment} and 24 KiB"
        )));
    }
    Ok(geometry)
}

#[cfg(test)]
mod tests;

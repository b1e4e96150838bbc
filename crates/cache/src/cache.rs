//! [`Cache`]: the public interface of the state machine.

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
    /// Requests that arrived before the cache serves.
    waiting: Vec<Request>,
    /// Command that arrived before the cache serves, to be run then.
    command: Option<fn(&mut Core)>,
}

#[derive(Debug)]
enum Stage {
    /// Recovery that proceeds, or has refused the devices.
    Recovering(Box<Recovery>),
    Open(Box<Core>),
}

/// A write that creates a cache. The member must be flushed afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitialWrite {
    /// Device to write.
    pub member: Member,
    /// Range in logical blocks of the device.
    pub range: LbaRange,
    /// Bytes to write.
    pub bytes: Vec<u8>,
}

/// A leg's description of the cache, from its superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leg {
    /// Number of this leg.
    pub number: usize,
    /// Total number of legs.
    pub legs: usize,
    /// Settings of the cache at creation, or after growing.
    pub settings: Settings,
    /// Size of the cached device.
    pub backing_size: Bytes,
}

impl Cache {
    /// Returns the writes that create a cache on these devices; execute them and then flush. The backing
    /// device is not changed.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if the devices cannot satisfy the settings; the message names the
    /// device and the reason.
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
            // Write both versions, so that no slot keeps data of an older cache.
            for (generation, range) in [0, 1].into_iter().cycle().zip(Self::superblocks_of(info)) {
                superblock.generation = generation;
                let mut bytes = vec![0; BLOCK];
                superblock.encode(&mut bytes);
                writes.push(InitialWrite { member: Member::Leg(leg), range, bytes });
            }
        }
        Ok(writes)
    }

    /// Returns the positions of superblocks on a leg, in its logical blocks; each may be damaged. Zeroes
    /// there make the device a leg of no cache.
    pub fn superblocks_of(leg: &DeviceInfo) -> [LbaRange; 4] {
        let scale = LOG_BLOCK / leg.logical_block.0.min(LOG_BLOCK);
        Superblock::places(leg).map(|place| LbaRange::new(Lba(place * scale), scale))
    }

    /// Parses the superblock in this block; `None` if it is not one.
    ///
    /// # Errors
    /// Fails with the version number if that is newer than supported.
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

    /// Opens the cache on these devices and starts recovery, which proceeds by actions. `None` stands for a
    /// missing leg. Requests wait until the cache serves; [`state`](Cache::state) tells when, or why it never
    /// will.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) for invalid options. Problems on the devices are reported by recovery.
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
        // Without any leg, recovery is over already.
        this.after_recovery();
        Ok(this)
    }

    /// Accepts a request. It is answered exactly once, at any later time: see
    /// [`take_answers`](Cache::take_answers). The contract is that of [`plumb_block::device`]; deadlines are
    /// ignored.
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

    /// Reports the completion of an action, with its payload. A completion that nothing waits for is ignored.
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

    /// Reports the current time.
    pub fn advance(&mut self, now: Nanos) {
        match &mut self.stage {
            Stage::Recovering(recovery) => recovery.io.advance(now),
            Stage::Open(core) => core.base.io.advance(now),
        }
    }

    /// Returns the time of the next event; `None` if the cache acts only on calls.
    pub fn next_event(&self) -> Option<Nanos> {
        self.core()?.next_event()
    }

    /// Processes everything reported since the last call, and appends the resulting actions.
    pub fn take_actions(&mut self, into: &mut Vec<Action>) {
        match &mut self.stage {
            Stage::Recovering(recovery) => recovery.io.take_actions(into),
            Stage::Open(core) => {
                core.advance();
                core.base.io.take_actions(into);
            }
        }
    }

    /// Appends the answers produced by [`take_actions`](Cache::take_actions) since the last call.
    pub fn take_answers(&mut self, into: &mut Vec<Completion>) {
        match &mut self.stage {
            Stage::Recovering(recovery) => recovery.io.take_answers(into),
            Stage::Open(core) => core.base.io.take_answers(into),
        }
    }

    /// Returns the condition of the cache.
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

    /// Returns the device seen by clients, with the size and the logical block of the backing device.
    pub fn info(&self) -> DeviceInfo {
        let (options, devices) = match &self.stage {
            Stage::Recovering(recovery) => (&recovery.options, &recovery.devices),
            Stage::Open(core) => (&core.base.options, &core.base.devices),
        };
        let backing = devices.backing();
        let is_volatile = |info: &DeviceInfo| info.volatile_cache != VolatileCache::None;
        let volatile = match options.mode {
            // Acknowledged data is never volatile in this mode.
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

    /// Destages everything and continues to serve.
    pub fn drain(&mut self, now: Nanos) {
        self.command(now, Core::drain);
    }

    /// Stops after all requests so far have been answered. Then everything is durable, in the log or on the
    /// backing device, and [`state`](Cache::state) is [`Stopped`](State::Stopped). Later requests fail.
    pub fn stop(&mut self, now: Nanos) {
        self.command(now, |core| core.stop(false));
    }

    /// Destages everything and then stops as [`stop`](Cache::stop) does, so that the backing device is usable
    /// without the cache.
    pub fn detach(&mut self, now: Nanos) {
        self.command(now, |core| core.stop(true));
    }

    /// Changes the mode. The change is complete when [`is_mode_settled`](Self::is_mode_settled) returns true.
    /// [`Ordered`](Mode::Ordered) takes full effect once all earlier data is destaged, as
    /// [`status`](Self::status) shows. Ignored unless the cache serves.
    pub fn set_mode(&mut self, mode: Mode, now: Nanos) {
        if let Ok(core) = self.core_at(now) {
            core.set_mode(mode);
        }
    }

    /// Changes the thresholds of destaging. Ignored unless the cache serves.
    pub fn set_destage(&mut self, options: DestageOptions, now: Nanos) {
        if let Ok(core) = self.core_at(now) {
            core.set_destage(options);
        }
    }

    /// Returns true once the legs were flushed after a change from [`Protected`](Mode::Protected), whose data
    /// was assumed durable.
    pub fn is_mode_settled(&self) -> bool {
        self.core().is_some_and(|core| core.flushes.is_settled())
    }

    /// Returns the mark to write durably to the backing device, until [`marked`](Self::marked) is called;
    /// `None` if there is no new one, or the cache was opened without an [`Identity`](crate::Identity). For a
    /// witness that the previous mark also stated, keep the stated contents. Read those of other witnesses
    /// from the backing device after this call.
    pub fn to_mark(&self) -> Option<Mark> {
        self.core().and_then(|core| core.marks.request)
    }

    /// Returns true if the mark names the current session, so that requests may be acknowledged.
    pub fn is_session_marked(&self) -> bool {
        self.core().is_some_and(|core| core.base.condition.is_serving() && core.marks.is_marked(&core.base))
    }

    /// Returns the final mark of a [`Stopped`](State::Stopped) cache. [`marked`](Self::marked) need not be
    /// called for it.
    pub fn mark_at_stop(&self) -> Option<Mark> {
        self.core().and_then(Core::mark_at_stop)
    }

    /// Reports that the backing device has this mark durably, or why it could not be written; in that case
    /// nothing is written any more.
    pub fn marked(&mut self, mark: Mark, result: std::result::Result<(), String>, now: Nanos) {
        if let Ok(core) = self.core_at(now) {
            core.marked(mark, result);
        }
    }

    /// Removes leg `leg` of a mirror if it counts. [`status`](Cache::status) shows it as lost once that is
    /// durable.
    ///
    /// # Errors
    /// If it is the last leg with complete data, or the cache does not serve.
    pub fn retire_leg(&mut self, leg: usize, now: Nanos) -> Result<()> {
        resilver::retire_leg(&mut self.core_at(now)?.base, leg).map_err(invalid)
    }

    /// Checks that a device can [replace](Cache::replace_leg) a leg.
    ///
    /// # Errors
    /// If the device is too small or its block size is unsuitable.
    pub fn may_replace(&self, by: &DeviceInfo) -> Result<()> {
        resilver::may_replace(&self.core().ok_or_else(not_serving)?.base, by).map_err(invalid)
    }

    /// Replaces a removed leg, all actions of which must have completed. The positions of its
    /// [superblocks](Cache::superblocks_of) must already be zeroed durably. New records are written to it
    /// from now on. It is read once everything was copied to it, when [`status`](Cache::status) shows it as
    /// live.
    ///
    /// # Errors
    /// If the leg still counts, another one is being copied to, or the device is unsuitable.
    pub fn replace_leg(&mut self, leg: usize, by: DeviceInfo, now: Nanos) -> Result<()> {
        self.core_at(now)?.replace_leg(leg, by).map_err(invalid)
    }

    /// Returns true if the log already uses as much of each leg as it would with `size`, or is growing to
    /// that.
    pub fn is_grown_to(&self, size: Bytes) -> bool {
        self.core().is_some_and(|core| grow::is_grown_to(&core.base, size))
    }

    /// Checks that [`grow`](Cache::grow) would start now.
    ///
    /// # Errors
    /// Fails as [`grow`](Cache::grow) does.
    pub fn may_grow(&self, size: Bytes, legs: &[Option<DeviceInfo>]) -> Result<()> {
        grow::grown_to(&self.core().ok_or_else(not_serving)?.base, size, legs).map(drop).map_err(invalid)
    }

    /// Extends the log to `size` of each leg while the cache serves; [`status`](Cache::status) shows when it
    /// is done. `legs` are the current descriptions of the legs. A part of the log may have to be destaged
    /// first; if that fails, the growth is abandoned.
    ///
    /// # Errors
    /// If the log would not become larger, or a leg is too small.
    pub fn grow(&mut self, size: Bytes, legs: Vec<Option<DeviceInfo>>, now: Nanos) -> Result<()> {
        grow::grow(&mut self.core_at(now)?.base, size, legs).map_err(invalid)
    }

    /// Makes the mark state no witness, so that the device can be marked with another size:
    /// [`is_mark_silent`](Self::is_mark_silent) tells when. Ends with [`grow_backing`](Self::grow_backing) or
    /// [`keep_backing`](Self::keep_backing).
    ///
    /// # Errors
    /// If the cache does not serve, or its log is sealed.
    pub(crate) fn silence_mark(&mut self, now: Nanos) -> Result<()> {
        let core = self.core_at(now)?;
        grow::silence_mark(&mut core.base, &mut core.marks).map_err(invalid)
    }

    /// Returns true if the mark on the backing device states no witness, and no mark that does is being
    /// written.
    pub(crate) fn is_mark_silent(&self) -> bool {
        self.core().is_some_and(|core| core.marks.is_silent())
    }

    /// Adopts `size` of a backing device that has grown and has a durable mark with this size at its new end.
    /// `witnesses` are those of the larger device ([`Options::witnesses`]).
    ///
    /// # Errors
    /// If the mark is not [silent](Self::is_mark_silent), or the device would become smaller.
    pub fn grow_backing(&mut self, size: Bytes, witnesses: Vec<LbaRange>, now: Nanos) -> Result<()> {
        let core = self.core_at(now)?;
        grow::grow_backing(&mut core.base, &mut core.marks, size, witnesses).map_err(invalid)
    }

    /// Makes the mark state witnesses again; the backing device keeps its size.
    pub(crate) fn keep_backing(&mut self, now: Nanos) {
        if let Ok(core) = self.core_at(now) {
            core.marks.speak();
        }
    }

    /// Starts to empty the log, so that another can [replace it](Self::move_log): it is no longer written,
    /// its contents are written back, and writes bypass it. This state ends only when another log is in
    /// place, even if the cache is reopened.
    ///
    /// # Errors
    /// If the cache does not serve, or its backing device is not marked.
    pub fn retire_log(&mut self, now: Nanos) -> Result<()> {
        self.core_at(now)?.retire_log().map_err(invalid)
    }

    /// Returns true if everything in a sealed log is durable on the backing device, and nothing reads the
    /// log: its devices may be removed.
    pub fn is_log_spent(&self) -> bool {
        self.core().is_some_and(Core::is_log_spent)
    }

    /// Checks that devices can hold a log that replaces the present one.
    ///
    /// # Errors
    /// Fails as [`create`](Cache::create) does.
    pub fn may_move(&self, new: NewLog, legs: &[DeviceInfo]) -> Result<()> {
        self.core().ok_or_else(not_serving)?;
        self.moved(new, legs).map(drop)
    }

    /// Replaces a [spent](Self::is_log_spent) log by an empty one on other devices. The positions of its
    /// [superblocks](Cache::superblocks_of) must already be zeroed durably. The new log takes effect with the
    /// first mark that is no longer [sealed](Mark::is_sealed); a crash before that leaves the spent one.
    /// [`Status::log_error`] tells when, or that the new one failed.
    ///
    /// # Errors
    /// If the log is not spent, or the devices cannot hold one.
    pub fn move_log(&mut self, new: NewLog, legs: Vec<DeviceInfo>, now: Nanos) -> Result<()> {
        let geometry = self.moved(new, &legs)?;
        self.core_at(now)?.move_log(geometry, legs).map_err(invalid)
    }

    /// Returns the shape of a log that replaces the present one.
    fn moved(&self, NewLog { size, layout }: NewLog, legs: &[DeviceInfo]) -> Result<Geometry> {
        let core = self.core().ok_or_else(not_serving)?;
        let (cache, backing) = (core.base.superblock.cache, core.base.superblock.backing);
        let segment = Bytes(core.base.log.geometry.segment_bytes());
        shape(&Settings { cache, backing, size, segment, layout }, legs, core.base.devices.backing())
    }

    /// Returns the failed flush that stopped writes and flushes if the cache is [`Latched`](State::Latched).
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

    /// Runs a command now, or once the cache serves.
    fn command(&mut self, now: Nanos, command: fn(&mut Core)) {
        match self.core_at(now) {
            Ok(core) => command(core),
            Err(_) => self.command = Some(command),
        }
    }

    /// Proceeds if recovery is over.
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

/// Returns the geometry for these settings and devices.
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

//! A simulated drive as a state machine, which combines timing, contents, faults and broken promises.
//!
//! ```text
//!  submit ──► powered? valid? latched? ──► fault drawn ──► contents: in flight ──► timing ··· Event
//!                                                                                        │
//!  port ◄── completion ◄── fault applied ◄── contents: visible (or lost track of) ◄──────┘
//! ```
//!
//! # The fault model
//! - **A power cut** ends every command in flight as [`PowerLost`](plumb_block::Outcome::PowerLost). The
//!   crash rules select one of the outcomes that the drive's [`Promise`] allows; its behaviour may add
//!   [`Damage`](crate::contents::Damage). The seed determines the selection.
//! - **A lie about flushes** changes what a flush covers, never its answer. A drive that ignores flushes
//!   answers them at once; a driver that drops flushes does so before they reach the drive.
//! - **An injected error** makes the command fail after its usual time. A failed or unanswered write may have
//!   landed, and may still land.
//! - **A failed flush**, or a failed FUA write, latches the drive until its power is cycled.
//! - **FUA without native FUA** is a write followed by a flush, as in the kernel (blk-flush.c), within the
//!   drive's answer. The flush is like any other: it counts, may trigger a cut, is subject to faults, and
//!   fails once the drive is latched.
//!
//! Invariants: every submitted command completes exactly once, at the port it came from, unless that port is
//! closed or a fault leaves a command without a deadline unanswered. The given time never runs backwards.

mod counters;
mod in_flight;
mod port;
mod power;
mod promise;
mod serve;
mod submit;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use plumb_block::{
    Bytes, Completion, DeviceInfo, Errno, Error, ErrorKind, Extent, Latch, LbaRange, Nanos, VolatileCache,
};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use crate::command::CommandId;
use crate::contents::{Backing, Contents, CutReport, Promise, Shape};
use crate::cut::ArmedCut;
use crate::fault::{Fault, FaultError};
use crate::model::{Behaviour, Kind, Model, Wce};
use crate::timing::{Event, Timing};

pub use counters::Counters;
use in_flight::{InFlight, NEVER};
use port::Port;
pub use port::PortNumber;

/// Options for creating a drive.
#[derive(Debug, Default)]
pub struct DriveOptions {
    /// Capacity; `None`: the model's default.
    pub size: Option<Bytes>,
    /// State of the write cache at power-on; `None`: the model's default.
    pub wce: Option<bool>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Storage for durable contents.
    pub backing: Backing,
    /// Faults in addition to the model's own.
    pub faults: Vec<Fault>,
}

/// A drive.
pub struct Drive {
    name: String,
    model: String,
    behaviour: Behaviour,
    kind: Kind,
    info: DeviceInfo,
    timing: Box<dyn Timing>,
    contents: Contents,
    chance: Xoshiro256PlusPlus,
    faults: Vec<Fault>,
    armed: Option<ArmedCut>,
    is_powered: bool,
    /// True if the write cache is on; `None` if there is none to switch.
    wce: Option<bool>,
    /// State of the write cache at power-on; `None` if there is none to switch.
    saved_wce: Option<bool>,
    latch: Option<Latch>,
    ports: Vec<Port>,
    /// Number of completions waiting in ports.
    ready: usize,
    in_flight: InFlight,
    /// Times and commands of answers that do not come from the timing.
    later: BinaryHeap<Reverse<(Nanos, CommandId)>>,
    /// Lower bound of the deadlines in flight; recomputed only when it is reached, since deadlines are rarely
    /// missed.
    no_deadline_before: Nanos,
    counters: Counters,
    last_cut: Option<CutReport>,
    /// Buffer for events, kept to reuse its memory.
    events: Vec<Event>,
    /// Destaged commands not yet reported to the contents.
    destaged: VecDeque<CommandId>,
}

impl Drive {
    /// Creates a drive of this model, powered on and idle.
    ///
    /// # Errors
    /// If the backing does not suit the drive's size, or a fault refers to blocks beyond its end.
    pub fn new(model: &Model, options: DriveOptions) -> plumb_block::Result<Self> {
        let size = options.size.unwrap_or(model.geometry.default_size.0);
        let wce = match model.behaviour.wce {
            Wce::Absent => None,
            Wce::On => Some(options.wce.unwrap_or(true)),
            Wce::Off => Some(options.wce.unwrap_or(false)),
        };
        let info = model.device_info(size, VolatileCache::None);
        let shape = Shape { logical_block: info.logical_block, blocks: info.blocks() };
        let promise = promise::promise(&model.behaviour, model.kind, &info, wce);
        let contents = Contents::new(shape, promise, backing(model, options.backing))?;
        for fault in &options.faults {
            let wrong = |error: FaultError| {
                Error::new(ErrorKind::Invalid, "make", "a drive with a fault").because(error.to_string())
            };
            fault.fits(info.blocks()).map_err(wrong)?;
        }
        let mut faults = model.faults.clone();
        faults.extend(options.faults);
        let mut drive = Self {
            name: model.name.clone(),
            model: model.name.clone(),
            behaviour: model.behaviour.clone(),
            kind: model.kind,
            info,
            timing: model.timing(size, options.seed),
            contents: contents.with_seed(options.seed),
            chance: Xoshiro256PlusPlus::seed_from_u64(options.seed),
            faults,
            armed: None,
            is_powered: true,
            wce,
            saved_wce: wce,
            latch: None,
            ports: Vec::new(),
            ready: 0,
            in_flight: InFlight::default(),
            later: BinaryHeap::new(),
            no_deadline_before: NEVER,
            counters: Counters::default(),
            last_cut: None,
            events: Vec::new(),
            destaged: VecDeque::new(),
        };
        if let Some(enabled) = wce {
            drive.timing.set_wce(Nanos::ZERO, enabled);
        }
        drive.state_volatile_cache();
        Ok(drive)
    }

    /// Returns the drive's description of itself.
    pub const fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Returns the name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Sets the name of the drive.
    pub fn rename(&mut self, name: impl Into<String>) {
        self.name = name.into();
        self.info.name.clone_from(&self.name);
    }

    /// Returns the promises that the drive really keeps, in the current state of its write cache.
    pub const fn promise(&self) -> Promise {
        self.contents.promise()
    }

    /// Returns whether the write cache is on; `None` if there is none to switch.
    pub const fn wce(&self) -> Option<bool> {
        self.wce
    }

    /// Returns true if the power is on.
    pub const fn is_powered(&self) -> bool {
        self.is_powered
    }

    /// Returns the failed flush since power-on, if any.
    pub const fn latched(&self) -> Option<Latch> {
        self.latch
    }

    /// Returns the counters of what was requested of the drive and what it has done.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the amount of data that a power cut would put at risk now.
    pub fn at_risk(&self) -> Bytes {
        self.contents.at_risk()
    }

    /// Returns the report of the last power cut; `None` before the first.
    pub const fn last_cut(&self) -> Option<&CutReport> {
        self.last_cut.as_ref()
    }

    /// Returns the extents of the blocks of `range`.
    pub fn extents(&self, range: LbaRange) -> Vec<Extent> {
        self.contents.extents(range)
    }

    /// Adds a fault; several of one kind are possible.
    pub fn set_fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// Removes all faults, including the model's own.
    pub fn clear_faults(&mut self) {
        self.faults.clear();
    }

    /// Returns the active faults.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Opens a port for a queue.
    pub fn open_port(&mut self) -> PortNumber {
        let number = self.ports.iter().position(|port| !port.is_open && port.ready.is_empty());
        let number = number.unwrap_or_else(|| {
            self.ports.push(Port::default());
            self.ports.len() - 1
        });
        self.ports[number].is_open = true;
        PortNumber(number as u32)
    }

    /// Closes a port: its commands continue, but their completions are discarded.
    pub(crate) fn close_port(&mut self, port: PortNumber) {
        self.in_flight.orphan(port);
        let port = &mut self.ports[port.0 as usize];
        port.is_open = false;
        self.ready -= port.ready.len();
        port.ready.clear();
    }

    /// Moves the completions of `port` to `completions`. Returns their number.
    pub fn take_ready(&mut self, port: PortNumber, completions: &mut Vec<Completion>) -> usize {
        let ready = &mut self.ports[port.0 as usize].ready;
        let count = ready.len();
        if count > 0 {
            completions.append(ready);
            self.ready -= count;
        }
        count
    }

    /// Returns the ports that have completions.
    pub(crate) fn ports_ready(&self) -> impl Iterator<Item = PortNumber> + '_ {
        let ready = self.ports.iter().enumerate().filter(|(_, port)| !port.ready.is_empty());
        ready.map(|(number, _)| PortNumber(number as u32))
    }

    /// Returns the time of the next event that needs no request.
    pub fn next_event(&self) -> Option<Nanos> {
        let timing = self.timing.next_event().unwrap_or(NEVER).min(self.no_deadline_before);
        let first = if self.later.is_empty() && self.armed.is_none() {
            timing
        } else {
            timing.min(self.next_of_own())
        };
        (first != NEVER).then_some(first)
    }

    /// Returns the time of the next answer to an ignored flush or slowed command, or of the power cut.
    fn next_of_own(&self) -> Nanos {
        let later = self.later.peek().map(|Reverse((at, _))| *at);
        let armed = self.armed.as_ref().and_then(|armed| armed.due);
        later.into_iter().chain(armed).min().unwrap_or(NEVER)
    }

    /// Returns true if a port has completions.
    pub(crate) const fn has_ready(&self) -> bool {
        self.ready > 0
    }

    #[inline]
    fn complete(&mut self, port: PortNumber, completion: Completion) {
        let port = &mut self.ports[port.0 as usize];
        if port.is_open {
            port.ready.push(completion);
            self.ready += 1;
        }
    }

    fn latch(&mut self, errno: Errno, at: Nanos) {
        self.latch.get_or_insert(Latch { errno, at });
    }
}

/// Returns the backing for a drive; a null drive stores nothing.
fn backing(model: &Model, wanted: Backing) -> Backing {
    if model.kind == Kind::Null { Backing::Nothing } else { wanted }
}

impl std::fmt::Debug for Drive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drive").field("name", &self.name).field("model", &self.model).finish_non_exhaustive()
    }
}

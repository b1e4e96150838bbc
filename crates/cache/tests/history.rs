//! Histories: steps of a cache and the devices below it, generated from a seed, run, and reduced if they
//! fail.
//!
//! Each step has its own seed for its choices, so that a history without some of its steps is a history, too.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use plumb_cache::Mode;
use plumb_crash::below;

use crate::setup::{Faults, LeftOut, Legs, MODES, Setup};
use crate::world::World;

/// One step of a history. `roll` seeds its own choices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    /// Write blocks.
    Write { lba: u64, nlb: u64, fua: bool },
    /// Write zeroes without data.
    Zeroes { lba: u64, nlb: u64, fua: bool },
    /// Discard blocks.
    Discard { lba: u64, nlb: u64 },
    /// Read blocks.
    Read { lba: u64, nlb: u64 },
    /// Flush.
    Flush,
    /// Let this number of commands of the devices below complete, drawn from those in flight; time passes if
    /// there are none.
    Run { commands: u64, roll: u64 },
    /// Let everything be answered.
    Settle { roll: u64 },
    /// Let everything be answered, and read everything that was written.
    Verify { roll: u64 },
    /// Let time pass, with all due events.
    Pass { millis: u64, roll: u64 },
    /// Cut the power of everything, and begin recovery.
    Cut { roll: u64 },
    /// Kill the process of the cache, and begin recovery.
    Kill { roll: u64 },
    /// Execute a command of the operator.
    Ask { what: Ask, roll: u64 },
    /// Inject a fault.
    Break { fault: Fault },
}

/// Command of an operator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ask {
    /// Write everything back.
    Drain,
    /// Stop the process normally, and start it again.
    Stop,
    /// Write everything back, end the process, and use the backing device without the log.
    Detach,
    /// Change the mode.
    Mode(Mode),
    /// Let the log grow by this number of segments on each leg.
    Grow { segments: u64 },
    /// Replace a leg of a mirror: by a new device, or by itself with its contents.
    Replace { leg: usize, is_same: bool },
    /// Move to another log, on new devices.
    Move,
}

/// Fault that is injected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// The `nth` command of this kind from now fails. Members are the legs, then the backing device.
    Fails { member: usize, kind: FaultKind, nth: u64 },
    /// Bits of a byte of a leg flip.
    Flip { leg: usize, byte: u64, bits: u8 },
    /// A block can no longer be read.
    Unreadable { member: usize, lba: u64 },
    /// Every leg becomes read-only.
    ReadOnly,
    /// A leg is lost permanently.
    Lost { leg: usize },
    /// A leg is absent until the next restart, and then returns unchanged.
    Away { leg: usize },
}

impl Fault {
    /// Returns this fault on leg `leg` instead of its own.
    pub(crate) fn on_leg(self, leg: usize) -> Self {
        match self {
            Self::Fails { kind, nth, .. } => Self::Fails { member: leg, kind, nth },
            Self::Flip { byte, bits, .. } => Self::Flip { leg, byte, bits },
            Self::Unreadable { lba, .. } => Self::Unreadable { member: leg, lba },
            Self::ReadOnly => self,
            Self::Lost { .. } => Self::Lost { leg },
            Self::Away { .. } => Self::Away { leg },
        }
    }
}

/// Kind of command that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    Read,
    Write,
    Flush,
}

/// A history: its setup and its steps.
#[derive(Debug, Clone)]
pub(crate) struct History {
    pub(crate) seed: u64,
    pub(crate) setup: Setup,
    pub(crate) left_out: LeftOut,
    pub(crate) steps: Vec<Step>,
    /// True if the backing device is marked.
    pub(crate) marks: bool,
}

impl History {
    /// Returns the history of a seed.
    pub(crate) fn from_seed(seed: u64) -> Self {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let setup = Setup::draw(&mut chance);
        Self::on(seed, setup, &mut chance)
    }

    /// Creates a history of this setup.
    pub(crate) fn on(seed: u64, setup: Setup, chance: &mut Xoshiro256PlusPlus) -> Self {
        let mut steps = Vec::new();
        let phases = 2 + below(chance, 5);
        for _ in 0..phases {
            phase(&setup, chance, &mut steps);
            crash(&setup, chance, &mut steps);
        }
        steps.push(Step::Verify { roll: chance.next_u64() });
        Self { seed, setup, left_out: LeftOut::Nothing, steps, marks: false }
    }

    /// Runs the history. Fails with a description of what went wrong.
    pub(crate) fn run(&self) -> Result<World, String> {
        let new = if self.marks { World::marked } else { World::new };
        let mut world = new(&self.setup, self.left_out)?;
        for (index, step) in self.steps.iter().enumerate() {
            world.step(*step).map_err(|why| format!("step {index}, {step:?}: {why}"))?;
        }
        Ok(world)
    }

    /// Returns the history without the steps that it does not need to fail.
    pub(crate) fn smaller(&self) -> Self {
        let mut best = self.clone();
        let mut chunk = best.steps.len().div_ceil(2);
        while chunk > 0 {
            let (mut at, mut is_smaller) = (0, false);
            while at < best.steps.len() {
                let mut tried = best.clone();
                tried.steps.drain(at..(at + chunk).min(best.steps.len()));
                if tried.run().is_err() {
                    (best, is_smaller) = (tried, true);
                } else {
                    at += chunk;
                }
            }
            if !is_smaller || chunk > 1 {
                chunk /= 2;
            }
        }
        best
    }

    /// Describes the failure for people: the seed, the setup, and the fewest steps.
    pub(crate) fn told(&self) -> String {
        let smaller = self.smaller();
        let why = smaller.run().err().unwrap_or_default();
        let steps: String = smaller.steps.iter().map(|step| format!("\n    {step:?},")).collect();
        format!("seed {}: {why}\n  on {:?}\n  steps: [{steps}\n  ]", self.seed, self.setup)
    }
}

/// Adds requests of one kind, which complete at random.
fn phase(setup: &Setup, chance: &mut Xoshiro256PlusPlus, steps: &mut Vec<Step>) {
    let count = 1 + below(chance, 12);
    match below(chance, 8) {
        0 => stream(setup, chance, steps),
        1 => overwrites(setup, chance, steps, count),
        _ => {
            for _ in 0..count {
                steps.push(request(setup, chance));
                breathe(chance, steps);
            }
        }
    }
    match below(chance, 8) {
        0 => steps.push(Step::Pass { millis: 1 << below(chance, 15), roll: chance.next_u64() }),
        1 | 2 => steps.push(Step::Settle { roll: chance.next_u64() }),
        3 => steps.push(Step::Verify { roll: chance.next_u64() }),
        4 => steps.push(Step::Ask { what: ask(setup, chance), roll: chance.next_u64() }),
        _ => {}
    }
    if setup.faults != Faults::None && below(chance, 2) == 0 {
        let fault = fault(setup, chance);
        let at = below(chance, steps.len() as u64 + 1) as usize;
        steps.insert(at, Step::Break { fault });
        if setup.layout == Legs::Mirror && below(chance, 2) == 0 {
            steps.push(Step::Ask { what: replace(chance), roll: chance.next_u64() });
            if below(chance, 2) == 0 {
                steps.push(Step::Pass { millis: 1, roll: chance.next_u64() });
            }
        }
    }
}

/// Sometimes lets some commands complete.
fn breathe(chance: &mut Xoshiro256PlusPlus, steps: &mut Vec<Step>) {
    if below(chance, 2) == 0 {
        steps.push(Step::Run { commands: 1 + below(chance, 8), roll: chance.next_u64() });
    }
}

fn request(setup: &Setup, chance: &mut Xoshiro256PlusPlus) -> Step {
    let (lba, nlb) = range(setup, chance);
    let fua = below(chance, 6) == 0;
    match below(chance, 16) {
        0..8 => Step::Write { lba, nlb, fua },
        8 => Step::Zeroes { lba, nlb, fua },
        9 => Step::Discard { lba, nlb },
        10..12 => Step::Read { lba, nlb },
        _ => Step::Flush,
    }
}

/// Draws a range, mostly small and in one place, so that requests overlap.
fn range(setup: &Setup, chance: &mut Xoshiro256PlusPlus) -> (u64, u64) {
    let longest = match below(chance, 64) {
        0 => (1 << 20) / setup.block,
        1..8 => (1 << 16) / setup.block,
        8..32 => 8192 / setup.block,
        _ => 1,
    };
    let blocks = setup.blocks();
    let nlb = 1 + below(chance, longest.min(blocks).max(1));
    let room = if below(chance, 4) > 0 { (setup.hot).min(blocks) } else { blocks };
    let lba = below(chance, room).min(blocks - nlb);
    (lba, nlb)
}

/// Adds sequential writes, like those of a copy, which bypass the log from some length on.
fn stream(setup: &Setup, chance: &mut Xoshiro256PlusPlus, steps: &mut Vec<Step>) {
    let nlb = (16384 / setup.block).min(setup.blocks() / 8);
    let count = 3 + below(chance, 6);
    let first = below(chance, setup.blocks() - nlb * count.min(setup.blocks() / nlb) + 1);
    for index in 0..count {
        let lba = first + index * nlb;
        if lba + nlb <= setup.blocks() {
            steps.push(Step::Write { lba, nlb, fua: false });
            breathe(chance, steps);
        }
    }
    if below(chance, 2) == 0 {
        steps.push(Step::Flush);
        steps.push(Step::Settle { roll: chance.next_u64() });
    }
}

/// Adds repeated writes of a few blocks, with occasional flushes.
fn overwrites(setup: &Setup, chance: &mut Xoshiro256PlusPlus, steps: &mut Vec<Step>, count: u64) {
    let (lba, nlb) = range(setup, chance);
    for _ in 0..count {
        steps.push(Step::Write { lba, nlb: nlb.min(16), fua: below(chance, 8) == 0 });
        breathe(chance, steps);
        if below(chance, 4) == 0 {
            steps.push(Step::Flush);
        }
    }
}

/// Adds one or more power cuts or kills, some of them during recovery.
fn crash(setup: &Setup, chance: &mut Xoshiro256PlusPlus, steps: &mut Vec<Step>) {
    for _ in 0..below(chance, 4) {
        let roll = chance.next_u64();
        let kills = setup.faults != Faults::None || below(chance, 3) == 0;
        steps.push(if kills && below(chance, 2) == 0 { Step::Kill { roll } } else { Step::Cut { roll } });
        match below(chance, 3) {
            0 => steps.push(Step::Run { commands: below(chance, 30), roll: chance.next_u64() }),
            _ => steps.push(Step::Verify { roll: chance.next_u64() }),
        }
    }
}

fn replace(chance: &mut Xoshiro256PlusPlus) -> Ask {
    Ask::Replace { leg: below(chance, 2) as usize, is_same: below(chance, 2) == 0 }
}

fn ask(setup: &Setup, chance: &mut Xoshiro256PlusPlus) -> Ask {
    match below(chance, 8) {
        4..8 if setup.layout == Legs::Mirror => replace(chance),
        0 | 1 => Ask::Drain,
        2 => Ask::Grow { segments: 1 + below(chance, setup.room.max(1)) },
        3 => Ask::Stop,
        4 => Ask::Detach,
        5 if setup.faults == Faults::LogWrites => Ask::Move,
        _ => Ask::Mode(MODES[below(chance, 4) as usize]),
    }
}

fn fault(setup: &Setup, chance: &mut Xoshiro256PlusPlus) -> Fault {
    if setup.faults == Faults::LogWrites {
        let leg = below(chance, setup.legs() as u64) as usize;
        return match below(chance, 3) {
            0 => Fault::ReadOnly,
            _ => Fault::Fails { member: leg, kind: FaultKind::Write, nth: 1 + below(chance, 6) },
        };
    }
    let legs = setup.legs() as u64;
    let member = below(chance, legs + 1) as usize;
    let leg = member.min(legs as usize - 1);
    let kind = [FaultKind::Read, FaultKind::Write, FaultKind::Flush][below(chance, 3) as usize];
    match below(chance, 8) {
        0..4 => Fault::Fails { member, kind, nth: 1 + below(chance, 6) },
        4 => Fault::Flip { leg, byte: chance.next_u64(), bits: 1 << below(chance, 8) },
        5 => Fault::Unreadable { member, lba: chance.next_u64() },
        6 => Fault::Lost { leg },
        _ => Fault::Away { leg },
    }
}

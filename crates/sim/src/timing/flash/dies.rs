//! The dies: reservation of their time for reads, programs and garbage collection.
//!
//! Each die has the times at which it is free for reads and for programs; a command reserves its time at
//! admission. A channel serves transfers in the order of admission.

use plumb_block::mixed;

use super::parameters::Parameters;
use crate::model::Rate;

/// Maximum delay of one program by collection: ten seconds. Prevents overflow for any model.
const EXTRA_MAX: u128 = 10_000_000_000;

/// Nanoseconds per byte as a multiple of 1/65,536, which saves a division for each transfer.
#[derive(Debug, Clone, Copy)]
pub(super) struct PerByte(u64);

impl PerByte {
    /// Returns the inverse of `rate`.
    pub(super) const fn from_rate(rate: Rate) -> Self {
        Self((1_000_000_000 << 16) / rate.0)
    }

    /// Returns the time for `bytes`, which must be below 2^31.
    #[inline]
    pub(super) const fn cost(self, bytes: u64) -> u64 {
        (bytes * self.0) >> 16
    }
}

/// A divisor that is usually a power of two.
#[derive(Debug, Clone, Copy)]
struct Divisor {
    value: u64,
    /// Binary logarithm if it is a power of two.
    shift: Option<u32>,
}

impl Divisor {
    fn new(value: u64) -> Self {
        Self { value, shift: value.is_power_of_two().then(|| value.trailing_zeros()) }
    }

    /// Returns quotient and remainder.
    #[inline]
    const fn split(self, number: u64) -> (u64, u64) {
        match self.shift {
            Some(shift) => (number >> shift, number & (self.value - 1)),
            None => (number / self.value, number % self.value),
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Die {
    /// Time at which it can read next.
    read_free: u64,
    /// Time at which it can program next.
    program_free: u64,
}

/// SLC buffer with its fill level.
#[derive(Debug)]
struct Slc {
    size: u64,
    used: u64,
    program: u64,
    fold: Rate,
    fold_after: u64,
}

/// All dies with their channels.
#[derive(Debug)]
pub(super) struct Dies {
    dies: Vec<Die>,
    channel_free: Vec<u64>,
    channel: PerByte,
    unit: u64,
    by_unit: Divisor,
    by_dies: Divisor,
    by_channels: Divisor,
    read: u64,
    /// Range of the variation of read times.
    read_band: u64,
    program: u64,
    suspend: Option<u64>,
    /// Erase time for the space of one unit.
    erase_share: u64,
    slc: Option<Slc>,
    /// Die for the next unit.
    next: usize,
    /// Time when the last unit and all before it are programmed.
    pub(super) last_end: u64,
    /// Bytes that collection still has to move.
    debt: u64,
    /// Host bytes over which the debt is paid.
    window: u64,
    seed: u64,
}

impl Dies {
    pub(super) fn new(parameters: &Parameters, window: u64, seed: u64) -> Self {
        let spread = (parameters.read.0.0 as f64 * parameters.read_spread) as u64;
        Self {
            dies: vec![Die::default(); (parameters.channels * parameters.dies) as usize],
            channel_free: vec![0; parameters.channels as usize],
            channel: PerByte::from_rate(parameters.channel),
            unit: parameters.unit(),
            by_unit: Divisor::new(parameters.unit()),
            by_dies: Divisor::new(u64::from(parameters.channels * parameters.dies)),
            by_channels: Divisor::new(u64::from(parameters.channels)),
            read: parameters.read.0.0 - spread,
            read_band: 2 * spread,
            program: parameters.program.0.0,
            suspend: parameters.suspend.map(|time| time.0.0),
            erase_share: parameters.erase.0.0 / u64::from(parameters.block_pages),
            slc: parameters.slc.as_ref().map(|slc| Slc {
                size: slc.size.0.0,
                used: 0,
                program: slc.program.0.0,
                fold: slc.fold,
                fold_after: slc.fold_after.0.0,
            }),
            next: 0,
            last_end: 0,
            debt: 0,
            window,
            seed,
        }
    }

    /// Reads `bytes` from byte `first`, starting at `at` at the earliest. Returns the time when the last of
    /// them is in the controller.
    #[inline]
    pub(super) fn read(&mut self, at: u64, first: u64, bytes: u64) -> u64 {
        let (mut stripe, mut offset) = self.by_unit.split(first);
        let (mut left, mut end) = (bytes, at);
        while left > 0 {
            let part = left.min(self.unit - offset);
            end = end.max(self.read_part(at, stripe, part));
            left -= part;
            offset = 0;
            stripe += 1;
        }
        end
    }

    #[inline]
    fn read_part(&mut self, at: u64, stripe: u64, bytes: u64) -> u64 {
        let place = self.by_dies.split(stripe).1 as usize;
        let spread = (u128::from(mixed(stripe ^ self.seed)) * u128::from(self.read_band)) >> 64;
        let cells = self.read + spread as u64;
        let die = &mut self.dies[place];
        let mut start = at.max(die.read_free);
        if die.program_free > start {
            start = self.suspend.map_or(die.program_free, |suspend| start + suspend);
        }
        die.read_free = start + cells;
        // A program in progress is delayed accordingly, and the next waits for the read.
        die.program_free = die.program_free.max(start) + cells;
        let transfer = self.channel.cost(bytes);
        let carried = self.carry(place, at, transfer);
        carried.max(start + cells + transfer)
    }

    /// Occupies the channel of a die for `transfer`. Returns the end.
    #[inline]
    fn carry(&mut self, place: usize, at: u64, transfer: u64) -> u64 {
        let channel = self.by_channels.split(place as u64).1 as usize;
        let free = &mut self.channel_free[channel];
        *free = at.max(*free) + transfer;
        *free
    }

    /// Adds bytes that collection has to move because of a write.
    pub(super) fn owe(&mut self, bytes: u64) {
        self.debt = self.debt.saturating_add(bytes);
    }

    /// Programs one unit, starting at `at` at the earliest, and `extra` bytes that are read and programmed
    /// again. Returns the end.
    pub(super) fn program(&mut self, at: u64, extra: u64) -> u64 {
        self.rest(at);
        let place = self.next;
        self.next = if place + 1 == self.dies.len() { 0 } else { place + 1 };
        let cells = self.take_slc().unwrap_or(self.program);
        let paid = (u128::from(self.debt) * u128::from(self.unit)).div_ceil(u128::from(self.window)) as u64;
        self.debt -= paid.min(self.debt);
        let again = paid.min(self.window * 64).saturating_add(extra);
        let moving = u128::from(again)
            * u128::from(self.read + self.read_band / 2 + self.program + self.erase_share)
            / u128::from(self.unit);
        let transfer = self.channel.cost(self.unit);
        let carried = self.carry(place, at, transfer);
        let die = &mut self.dies[place];
        let start = at.max(die.program_free);
        let end = (start + transfer + cells + self.erase_share).max(carried) + moving.min(EXTRA_MAX) as u64;
        die.program_free = end;
        self.last_end = self.last_end.max(end);
        end
    }

    /// Accounts for idle time until `at`, in which the dies paid debts and folded the SLC buffer.
    fn rest(&mut self, at: u64) {
        let idle = at.saturating_sub(self.last_end);
        if idle == 0 {
            return;
        }
        let rate = self.unit * self.dies.len() as u64;
        let moved = u128::from(idle) * u128::from(rate) / u128::from(self.read + self.program);
        self.debt = self.debt.saturating_sub(u64::try_from(moved).unwrap_or(u64::MAX));
        if let Some(slc) = &mut self.slc {
            let folding =
                u128::from(idle.saturating_sub(slc.fold_after)) * u128::from(slc.fold.0) / 1_000_000_000;
            slc.used = slc.used.saturating_sub(u64::try_from(folding).unwrap_or(u64::MAX));
        }
    }

    /// Returns the time to program a unit with one bit per cell, if there is room for it.
    fn take_slc(&mut self) -> Option<u64> {
        let slc = self.slc.as_mut().filter(|slc| slc.used + self.unit <= slc.size)?;
        slc.used += self.unit;
        Some(slc.program)
    }

    /// Stops all operations after a power cut; data on the flash stays.
    pub(super) fn power_cut(&mut self) {
        self.dies.fill(Die::default());
        self.channel_free.fill(0);
        self.last_end = 0;
    }
}

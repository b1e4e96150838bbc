//! Setup of a history: the log, its legs, the backing device, and the possible faults.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use plumb_block::{Bytes, DeviceInfo, Lba, Nanos, Pattern, Pool, VolatileCache};
use plumb_cache::{
    Cache, DestageOptions, InitialWrite, Layout, Member, MissingLegs, Mode, Options, Purpose, Settings, Uuid,
    Wait, Waits,
};
use plumb_crash::below;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::medium::Medium;
use plumb_block::conformance::oracle::SEED;

/// Step that is omitted, or not waited for, to test whether that is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LeftOut {
    Nothing,
    /// Commands of this purpose are answered as done, but not executed.
    Purpose(Purpose),
    /// The cache omits this wait.
    Wait(Wait),
}

/// Faults that may happen in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Faults {
    /// Only power cuts and kills.
    None,
    /// One leg of a mirror at a time, and the next one after a replacement: the user must not notice.
    OneLeg,
    /// Legs of a log that is not a mirror fail writes, and the user must not notice, since the backing device
    /// is marked.
    LogWrites,
    /// All faults: requests may fail, but wrong data is never read, and flushed data is never lost.
    Any,
}

/// Layout of the log on its legs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Legs {
    Single,
    Mirror,
    Stripe,
}

/// All modes.
pub(crate) const MODES: [Mode; 4] = [Mode::WriteBack, Mode::WriteThrough, Mode::Protected, Mode::Ordered];

/// Setting of a history: devices, sizes and faults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Setup {
    /// The name of the cache.
    pub(crate) cache: u8,
    pub(crate) layout: Legs,
    /// The logical block of the backing, and so of the cache.
    pub(crate) block: u64,
    pub(crate) leg_block: u64,
    /// The largest transfer of a leg, in bytes.
    pub(crate) leg_transfer: u64,
    pub(crate) segment_bytes: u64,
    pub(crate) segments: u64,
    /// Number of further segments for which each leg has room.
    pub(crate) room: u64,
    pub(crate) backing_bytes: u64,
    /// Number of blocks at the start that receive most requests.
    pub(crate) hot: u64,
    /// True if the backing device promises zeroes for discarded blocks.
    pub(crate) discard_zeroes: bool,
    pub(crate) mode: Mode,
    pub(crate) faults: Faults,
    /// The largest payload of a record, in bytes.
    pub(crate) record_max: u64,
    /// Bytes after which a stream bypasses the log.
    pub(crate) bypass_after: Option<u64>,
    /// Share of the log in use from which data is destaged.
    pub(crate) destage_start: f64,
    /// True if the backing device rests between two times of writing back.
    pub(crate) rests: bool,
}

impl Setup {
    /// A single leg, everything as small as it can be.
    pub(crate) const SMALL: Self = Self {
        cache: 1,
        layout: Legs::Single,
        block: 4096,
        leg_block: 4096,
        leg_transfer: 1 << 20,
        segment_bytes: 32 << 10,
        segments: 5,
        room: 0,
        backing_bytes: 64 << 10,
        hot: 8,
        discard_zeroes: true,
        mode: Mode::WriteBack,
        faults: Faults::None,
        record_max: 16 << 10,
        bypass_after: Some(32 << 10),
        destage_start: 0.3,
        rests: false,
    };

    pub(crate) fn draw(chance: &mut Xoshiro256PlusPlus) -> Self {
        let one_of = |chance: &mut Xoshiro256PlusPlus, values: &[u64]| {
            values[below(chance, values.len() as u64) as usize]
        };
        let layout = [Legs::Single, Legs::Single, Legs::Mirror, Legs::Stripe][below(chance, 4) as usize];
        let faults = match below(chance, 5) {
            0..3 => Faults::None,
            3 if layout == Legs::Mirror => Faults::OneLeg,
            _ => Faults::Any,
        };
        // Long writes are expensive, so few histories have room for them.
        let is_large = below(chance, 40) == 0;
        let mut setup = Self {
            cache: 1,
            layout,
            block: one_of(chance, &[512, 4096, 4096]),
            leg_block: one_of(chance, &[512, 512, 4096]),
            leg_transfer: 1 << 20,
            segment_bytes: if is_large { 256 << 10 } else { one_of(chance, &[32 << 10, 32 << 10, 64 << 10]) },
            segments: 4 + below(chance, 8),
            room: below(chance, 5),
            backing_bytes: if is_large { 4 << 20 } else { one_of(chance, &[128 << 10, 256 << 10]) },
            hot: one_of(chance, &[4, 16, 64]),
            discard_zeroes: below(chance, 2) == 0,
            mode: if below(chance, 2) == 0 { Mode::WriteBack } else { MODES[below(chance, 4) as usize] },
            faults,
            record_max: one_of(chance, &[4096, 16 << 10, 64 << 10]),
            destage_start: [0.3, 0.6, 0.9][below(chance, 3) as usize],
            rests: false,
            bypass_after: if below(chance, 4) == 0 {
                None
            } else {
                Some(one_of(chance, &[16 << 10, 48 << 10]))
            },
        };
        setup.rests = setup.segments == 7 && setup.room % 2 == 1;
        if setup.segments.is_multiple_of(3) {
            // Recovery reads a segment in several parts, and records go on from one to the next.
            setup.leg_transfer = 20 << 10;
        }
        setup
    }

    pub(crate) const fn legs(&self) -> usize {
        match self.layout {
            Legs::Single => 1,
            Legs::Mirror | Legs::Stripe => 2,
        }
    }

    pub(crate) const fn blocks(&self) -> u64 {
        self.backing_bytes / self.block
    }

    fn backing(&self) -> DeviceInfo {
        let info = DeviceInfo::plain("backing", Bytes(self.backing_bytes), Bytes(self.block));
        DeviceInfo {
            volatile_cache: VolatileCache::Enabled,
            fua_native: true,
            discard_max: Bytes(self.backing_bytes),
            discard_zeroes: self.discard_zeroes,
            ..info
        }
    }

    fn leg(&self, number: usize) -> DeviceInfo {
        let size = self.grown(self.room);
        let info = DeviceInfo::plain(format!("leg {number}"), size, Bytes(self.leg_block));
        // In protected mode the user vouches for the legs.
        let cache = if self.mode == Mode::Protected { VolatileCache::None } else { VolatileCache::Enabled };
        DeviceInfo { volatile_cache: cache, fua_native: true, transfer_max: Bytes(self.leg_transfer), ..info }
    }

    /// Returns the size that a leg needs for its segments and `segments` more, the superblocks, and a little
    /// extra.
    pub(crate) const fn grown(&self, segments: u64) -> Bytes {
        Bytes((self.segments + segments) * self.segment_bytes + (8 << 12))
    }

    fn settings(&self) -> Settings {
        Settings {
            cache: Uuid([self.cache; 16]),
            backing: Uuid([2; 16]),
            size: self.grown(0),
            segment: Bytes(self.segment_bytes),
            layout: if self.layout == Legs::Stripe { Layout::Stripe } else { Layout::Mirror },
        }
    }

    /// Returns the legs and the backing, with a cache newly made on them.
    pub(crate) fn members(&self) -> Result<Vec<Medium>, String> {
        let legs: Vec<DeviceInfo> = (0..self.legs()).map(|number| self.leg(number)).collect();
        let writes = Cache::create(&self.settings(), &legs, &self.backing())
            .map_err(|error| format!("not created: {error}"))?;
        // The old content of the leg is not all zeroes.
        let mut images = vec![vec![0xa5; self.grown(self.room).0 as usize]; legs.len()];
        for InitialWrite { member, range, bytes } in writes {
            let Member::Leg(leg) = member else { return Err("created on the backing device".to_owned()) };
            let offset = (range.lba.0 * self.leg_block) as usize;
            images[leg][offset..][..bytes.len()].copy_from_slice(&bytes);
        }
        let image = initial(self.block as usize, self.backing_bytes as usize);
        let mut members: Vec<Medium> =
            legs.into_iter().zip(images).map(|(info, image)| Medium::new(info, &image)).collect();
        members.push(Medium::new(self.backing(), &image));
        Ok(members)
    }

    pub(crate) fn options(&self, memory: Pool, left_out: LeftOut, degraded: bool) -> Options {
        Options {
            mode: self.mode,
            degraded: if degraded { MissingLegs::Any } else { MissingLegs::No },
            record_max: Bytes(self.record_max),
            bypass_after: self.bypass_after.map(Bytes),
            destage: DestageOptions {
                start: self.destage_start,
                rests: self.rests,
                idle: if self.rests { Nanos(u64::MAX) } else { DestageOptions::DEFAULT.idle },
                ..DestageOptions::DEFAULT
            },
            waits: if let LeftOut::Wait(wait) = left_out { Waits::without(wait) } else { Waits::ALL },
            ..Options::new(memory)
        }
    }
}

/// Generation 0 of every block, made once for each size.
fn initial(block: usize, bytes: usize) -> Vec<u8> {
    static IMAGES: Mutex<BTreeMap<(usize, usize), Vec<u8>>> = Mutex::new(BTreeMap::new());
    let mut images = IMAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let image = images.entry((block, bytes)).or_insert_with(|| {
        let mut image = vec![0; bytes];
        Pattern { seed: SEED, lba: Lba(0), generation: 0 }.fill(block, &mut image);
        image
    });
    image.clone()
}

//! A simulated device beneath the cache, a leg or the backing: what is visible, what a power cut may leave (by
//! `plumb_crash`), and faults. Commands are carried out when the caller says so, in any order.
//!
//! It keeps plain images rather than the extents of `plumb_sim`, for it is cloned, compared and damaged byte by byte.

use std::collections::BTreeSet;
use std::rc::Rc;

use plumb_block::{Bytes, DeviceInfo, LbaRange, Op, Payload, VolatileCache};
use plumb_crash::{Keep, Kind, Landing, Promise, Survival, Survivor, Window, below};
use rand_xoshiro::Xoshiro256PlusPlus;

/// One in so many commands in flight at a cut leaves a block that cannot be read.
const UNREADABLE_ODDS: u64 = 6;

/// What a command makes of its blocks.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    first: u64,
    /// `None`: zeroes.
    bytes: Option<Rc<[u8]>>,
}

/// The content of one device.
#[derive(Debug, Clone)]
pub(crate) struct Medium {
    pub(crate) info: DeviceInfo,
    /// What is left if all is lost that may be lost.
    stored: Vec<u8>,
    visible: Vec<u8>,
    /// Blocks that cannot be read until they are written: now, and if all is lost that may be lost.
    unreadable: BTreeSet<u64>,
    stored_unreadable: BTreeSet<u64>,
    window: Window<Content>,
    next: u64,
    /// Whether it is gone for good.
    pub(crate) is_dead: bool,
    /// The blocks that were ever read, if anybody wants to know.
    read: BTreeSet<u64>,
    pub(crate) notes_reads: bool,
}

impl Medium {
    pub(crate) fn new(info: DeviceInfo, image: Vec<u8>) -> Self {
        assert_eq!(image.len() as u64, info.size.0);
        let volatile = info.volatile_cache == VolatileCache::Enabled;
        let promise = Promise { volatile, discard_zeroes: info.discard_zeroes, ..Promise::VOLATILE };
        let (stored, visible) = (image.clone(), image);
        Self {
            info,
            stored,
            visible,
            unreadable: BTreeSet::new(),
            stored_unreadable: BTreeSet::new(),
            window: Window::new(promise),
            next: 0,
            is_dead: false,
            read: BTreeSet::new(),
            notes_reads: false,
        }
    }

    fn block(&self) -> usize {
        self.info.logical_block.0 as usize
    }

    fn bytes_of(&self, range: LbaRange) -> std::ops::Range<usize> {
        range.lba.0 as usize * self.block()..range.end().0 as usize * self.block()
    }

    /// Takes a command: from now on a cut may leave it. Reads have no number.
    pub(crate) fn submit(&mut self, op: Op, range: LbaRange, payload: &Payload) -> Option<u64> {
        let (kind, bytes) = match op {
            Op::Read => return None,
            Op::Flush => {
                self.next += 1;
                self.window.submit_flush(self.next);
                return Some(self.next);
            }
            Op::Write { fua } => (Kind::Write { fua }, Some(self.payload(range, payload))),
            Op::WriteZeroes { fua, .. } => (Kind::WriteZeroes { fua }, None),
            Op::Discard => (Kind::Discard { zeroes: self.info.discard_zeroes }, None),
        };
        assert!(self.info.holds(range), "{op:?} of {range:?} is outside of {}", self.info.name);
        self.next += 1;
        self.window.submit(self.next, kind, range, Content { first: range.lba.0, bytes });
        Some(self.next)
    }

    fn payload(&self, range: LbaRange, payload: &Payload) -> Rc<[u8]> {
        let length = range.nlb as usize * self.block();
        let mut bytes = vec![0; length];
        match payload {
            Payload::Bytes(buffer) => bytes.copy_from_slice(buffer),
            Payload::Pattern(pattern) => pattern.fill(self.block(), &mut bytes),
            Payload::None | Payload::Into(_) => panic!("a write without bytes to {}", self.info.name),
        }
        bytes.into()
    }

    /// The command is done. Visible from now on; a flush covers what completed before it was submitted.
    pub(crate) fn complete(&mut self, id: u64, chance: &mut Xoshiro256PlusPlus) {
        let Some(command) = self.window.command(id).cloned() else { return self.finish(id) };
        // A discard without promise may do nothing that one sees.
        let promises = command.kind != (Kind::Discard { zeroes: false });
        if promises || below(chance, 2) == 0 {
            lay(&mut self.visible, self.info.logical_block, command.range, &command.content);
            forget(&mut self.unreadable, command.range);
        }
        self.finish(id);
    }

    fn finish(&mut self, id: u64) {
        let Self { window, stored, stored_unreadable, info, .. } = self;
        let mut store = |run: LbaRange, content: &Content| {
            lay(stored, info.logical_block, run, content);
            forget(stored_unreadable, run);
        };
        window.complete(id, Landing::AtCompletion, &mut store);
    }

    /// The command is answered with an error. Of a write each block has landed or not, and may land until a cut.
    pub(crate) fn fail(&mut self, id: u64, chance: &mut Xoshiro256PlusPlus) {
        self.window.fail(id);
        if let Some(command) = self.window.command(id).cloned() {
            for lba in command.range.lba.0..command.range.end().0 {
                if below(chance, 2) == 0 {
                    let run = LbaRange::new(plumb_block::Lba(lba), 1);
                    lay(&mut self.visible, self.info.logical_block, run, &command.content);
                }
            }
        }
    }

    /// The bytes of `range`; `None` if one of its blocks cannot be read.
    pub(crate) fn read(&mut self, range: LbaRange) -> Option<&[u8]> {
        assert!(self.info.holds(range), "a read of {range:?} is outside of {}", self.info.name);
        if self.notes_reads {
            self.read.extend(range.lba.0..range.end().0);
        }
        let broken = self.unreadable.range(range.lba.0..range.end().0).next();
        if broken.is_some() { None } else { Some(&self.visible[self.bytes_of(range)]) }
    }

    /// The process that used the device was killed: of what was in flight all, nothing or some blocks have landed.
    pub(crate) fn kill(&mut self, in_flight: &[u64], chance: &mut Xoshiro256PlusPlus) {
        for id in in_flight {
            let Some(command) = self.window.command(*id).cloned() else {
                self.window.fail(*id);
                continue;
            };
            match below(chance, 3) {
                0 => self.complete(*id, chance),
                1 => self.window.withdraw(*id),
                _ => {
                    let keep = Keep::Some { seed: below(chance, u64::MAX) };
                    let part = |(first, count)| {
                        (LbaRange::new(command.range.lba + first, count), command.content.clone())
                    };
                    let parts = keep.runs(command.range.nlb).into_iter().map(part).collect();
                    for part in self.window.divide(*id, parts) {
                        self.complete(part, chance);
                    }
                }
            }
        }
    }

    /// Cuts the power: what survives is drawn. Nothing is in flight afterwards, and all that is left is durable.
    pub(crate) fn cut(&mut self, chance: &mut Xoshiro256PlusPlus, survival: Survival) {
        let drawn = self.window.draw(chance, survival);
        for one in &drawn.remainders {
            let Some(command) = self.window.command(one.id) else { continue };
            // A discard changes a mapping and writes nothing.
            let is_write = !matches!(command.kind, Kind::Discard { .. });
            let is_broken = is_write && !command.span.is_completed() && !one.is_atomic;
            for (first, count) in one.keep.runs(command.range.nlb) {
                let kept = LbaRange::new(command.range.lba + first, count);
                for (run, _) in self.window.versions(kept).filter(|(_, ids)| ids.contains(&one.id)) {
                    lay(&mut self.stored, self.info.logical_block, run, &command.content);
                    forget(&mut self.stored_unreadable, run);
                }
            }
            if is_broken && below(chance, UNREADABLE_ODDS) == 0 {
                self.stored_unreadable.insert(command.range.lba.0 + below(chance, command.range.nlb));
            }
        }
        self.end_power();
    }

    fn end_power(&mut self) {
        self.visible.clone_from(&self.stored);
        self.unreadable.clone_from(&self.stored_unreadable);
        self.window.clear();
    }

    /// The window of what a cut may take: for who enumerates.
    pub(crate) const fn window(&self) -> &Window<Content> {
        &self.window
    }

    /// The device after a cut with this outcome of its window.
    pub(crate) fn after(&self, outcome: &[(LbaRange, Survivor)]) -> Self {
        let mut left = self.clone();
        for (range, survivor) in outcome {
            match survivor {
                Survivor::Stored => {}
                Survivor::Command(id) => {
                    let Some(command) = self.window.command(*id) else { continue };
                    lay(&mut left.stored, self.info.logical_block, *range, &command.content);
                    forget(&mut left.stored_unreadable, *range);
                }
                Survivor::Unreadable => left.stored_unreadable.extend(range.lba.0..range.end().0),
            }
        }
        left.end_power();
        left
    }

    /// Makes these the bytes of `range`, durably, while nothing is at risk.
    pub(crate) fn overwrite(&mut self, range: LbaRange, bytes: &[u8]) {
        let content = Content { first: range.lba.0, bytes: Some(bytes.into()) };
        lay(&mut self.stored, self.info.logical_block, range, &content);
        forget(&mut self.stored_unreadable, range);
        self.end_power();
    }

    /// Damages the medium itself: flips bits of one byte.
    pub(crate) fn flip(&mut self, byte: usize, bits: u8) {
        self.stored[byte] ^= bits;
        self.visible[byte] ^= bits;
    }

    /// Makes a block unreadable until it is written.
    pub(crate) fn break_block(&mut self, lba: u64) {
        self.unreadable.insert(lba);
        self.stored_unreadable.insert(lba);
    }

    /// The blocks that were read since it was told to note that.
    pub(crate) fn blocks_read(&self) -> Vec<u64> {
        self.read.iter().copied().collect()
    }

    /// What one sees of the whole device.
    pub(crate) fn image(&self) -> &[u8] {
        &self.visible
    }
}

/// These blocks were written, and can be read again.
fn forget(unreadable: &mut BTreeSet<u64>, range: LbaRange) {
    if !unreadable.is_empty() {
        unreadable.retain(|lba| !(range.lba.0..range.end().0).contains(lba));
    }
}

/// Puts the part of a content that belongs into `range` there.
fn lay(image: &mut [u8], block: Bytes, range: LbaRange, content: &Content) {
    let block = block.0 as usize;
    let into = &mut image[range.lba.0 as usize * block..range.end().0 as usize * block];
    match &content.bytes {
        Some(bytes) => {
            let from = (range.lba.0 - content.first) as usize * block;
            into.copy_from_slice(&bytes[from..from + into.len()]);
        }
        None => into.fill(0),
    }
}

//! A simulated device below the cache, a leg or the backing device: its visible contents, the possible
//! contents after a power cut (by `plumb_crash`), and faults. The caller determines the order in which
//! commands are executed.
//!
//! A medium keeps plain images rather than the extents of `plumb_sim`, since it is cloned, compared and
//! damaged byte by byte.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::rc::Rc;

use plumb_block::{DeviceInfo, LbaRange, Op, Payload, VolatileCache};
use plumb_crash::{Keep, Kind, Landing, Promise, Survival, Survivor, Window, below};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Number of commands in flight at a cut per one that leaves an unreadable block.
const UNREADABLE_ODDS: u64 = 6;

/// The bytes of a block. Devices share them, so that copies are cheap, and their hash is computed once.
#[derive(Debug)]
struct Page {
    bytes: Box<[u8]>,
    hash: OnceCell<u64>,
}

impl Page {
    fn new(bytes: &[u8]) -> Rc<Self> {
        Rc::new(Self { bytes: bytes.into(), hash: OnceCell::new() })
    }

    fn hash(&self) -> u64 {
        *self.hash.get_or_init(|| {
            let mut hasher = DefaultHasher::new();
            self.bytes.hash(&mut hasher);
            hasher.finish()
        })
    }
}

/// Content that a command gives to its blocks.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    first: u64,
    pages: Rc<[Rc<Page>]>,
}

/// The content of one device.
#[derive(Debug, Clone)]
pub(crate) struct Medium {
    pub(crate) info: DeviceInfo,
    /// Content if everything that may be lost is lost.
    stored: Vec<Rc<Page>>,
    visible: Vec<Rc<Page>>,
    /// Blocks that cannot be read until they are written.
    unreadable: BTreeSet<u64>,
    /// Blocks that cannot be read if everything that may be lost is lost.
    stored_unreadable: BTreeSet<u64>,
    window: Window<Content>,
    next: u64,
    /// Failed commands that may still land, each with the last number assigned before its failure.
    failed: Vec<(u64, u64)>,
    /// True if the device is lost permanently.
    pub(crate) is_dead: bool,
    /// Blocks that were read, if they are recorded.
    read: BTreeSet<u64>,
    pub(crate) notes_reads: bool,
}

impl Medium {
    pub(crate) fn new(info: DeviceInfo, image: &[u8]) -> Self {
        assert_eq!(image.len() as u64, info.size.0);
        let volatile = info.volatile_cache == VolatileCache::Enabled;
        let promise = Promise { volatile, discard_zeroes: info.discard_zeroes, ..Promise::VOLATILE };
        let stored = pages_of(image, info.logical_block.0 as usize);
        let visible = stored.clone();
        Self {
            info,
            stored,
            visible,
            unreadable: BTreeSet::new(),
            stored_unreadable: BTreeSet::new(),
            window: Window::new(promise),
            next: 0,
            failed: Vec::new(),
            is_dead: false,
            read: BTreeSet::new(),
            notes_reads: false,
        }
    }

    fn block(&self) -> usize {
        self.info.logical_block.0 as usize
    }

    /// Takes a command: from now on a cut may leave it. Reads have no number.
    pub(crate) fn submit(&mut self, op: Op, range: LbaRange, payload: &Payload) -> Option<u64> {
        let kind = match op {
            Op::Read => return None,
            Op::Flush => {
                self.next += 1;
                self.window.submit_flush(self.next);
                return Some(self.next);
            }
            Op::Write { fua } => Kind::Write { fua },
            Op::WriteZeroes { fua, .. } => Kind::WriteZeroes { fua },
            Op::Discard => Kind::Discard { zeroes: self.info.discard_zeroes },
        };
        assert!(self.info.holds(range), "{op:?} of {range:?} is outside of {}", self.info.name);
        self.next += 1;
        let content = self.content(range, payload);
        self.window.submit(self.next, kind, range, content);
        Some(self.next)
    }

    fn content(&self, range: LbaRange, payload: &Payload) -> Content {
        let (block, count) = (self.block(), range.nlb as usize);
        let pages = match payload {
            Payload::Bytes(buffer) => pages_of(buffer, block).into(),
            Payload::Pattern(pattern) => {
                let mut bytes = vec![0; count * block];
                pattern.fill(block, &mut bytes);
                pages_of(&bytes, block).into()
            }
            Payload::None => vec![Page::new(&vec![0; block]); count].into(),
            Payload::Into(_) => panic!("a write without bytes to {}", self.info.name),
        };
        Content { first: range.lba.0, pages }
    }

    /// Completes the command. Its data is visible from now on; a flush covers commands completed before its
    /// submission.
    pub(crate) fn complete(&mut self, id: u64, chance: &mut Xoshiro256PlusPlus) {
        let Some(command) = self.window.command(id).cloned() else {
            self.finish(id);
            let landing: Vec<u64> =
                self.failed.extract_if(.., |(_, last)| *last < id).map(|(id, _)| id).collect();
            return self.kill(&landing, chance);
        };
        // A discard without a promise may have no visible effect.
        let promises = command.kind != (Kind::Discard { zeroes: false });
        if promises || below(chance, 2) == 0 {
            lay(&mut self.visible, command.range, &command.content);
            forget(&mut self.unreadable, command.range);
        }
        self.finish(id);
    }

    fn finish(&mut self, id: u64) {
        let Self { window, stored, stored_unreadable, .. } = self;
        let mut store = |run: LbaRange, content: &Content| {
            lay(stored, run, content);
            forget(stored_unreadable, run);
        };
        window.complete(id, Landing::AtCompletion, &mut store);
    }

    /// Answers the command with an error. Each block of a write may have landed, or may land until a cut, or
    /// until the completion of a flush submitted after the failure.
    pub(crate) fn fail(&mut self, id: u64, chance: &mut Xoshiro256PlusPlus) {
        self.window.fail(id);
        if let Some(command) = self.window.command(id).cloned() {
            self.failed.push((id, self.next));
            for lba in command.range.lba.0..command.range.end().0 {
                if below(chance, 2) == 0 {
                    let run = LbaRange::new(plumb_block::Lba(lba), 1);
                    lay(&mut self.visible, run, &command.content);
                }
            }
        }
    }

    /// Reads `range`. Returns true if all of its blocks can be read.
    pub(crate) fn read(&mut self, range: LbaRange, into: &mut [u8]) -> bool {
        assert!(self.info.holds(range), "a read of {range:?} is outside of {}", self.info.name);
        if self.notes_reads {
            self.read.extend(range.lba.0..range.end().0);
        }
        let broken = self.unreadable.range(range.lba.0..range.end().0).next();
        let pages = &self.visible[range.lba.0 as usize..range.end().0 as usize];
        for (page, into) in pages.iter().zip(into.chunks_exact_mut(self.info.logical_block.0 as usize)) {
            into.copy_from_slice(&page.bytes);
        }
        broken.is_none()
    }

    /// Records that the process that used the device was killed: of commands in flight, all, none or some
    /// blocks have landed.
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

    /// Cuts the power, and draws the survivors. Afterwards no command is in flight, and all data is durable.
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
                    lay(&mut self.stored, run, &command.content);
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
        self.failed.clear();
    }

    /// Returns the window of commands that a cut may lose, for enumerations.
    pub(crate) const fn window(&self) -> &Window<Content> {
        &self.window
    }

    /// Returns the device after a cut with this outcome of its window.
    pub(crate) fn after(&self, outcome: &[(LbaRange, Survivor)]) -> Self {
        let mut left = self.clone();
        for (range, survivor) in outcome {
            match survivor {
                Survivor::Stored => {}
                Survivor::Command(id) => {
                    let Some(command) = self.window.command(*id) else { continue };
                    lay(&mut left.stored, *range, &command.content);
                    forget(&mut left.stored_unreadable, *range);
                }
                Survivor::Unreadable => left.stored_unreadable.extend(range.lba.0..range.end().0),
            }
        }
        left.end_power();
        left
    }

    /// Sets the bytes of `range` durably, while nothing is at risk.
    pub(crate) fn overwrite(&mut self, range: LbaRange, bytes: &[u8]) {
        let content = Content { first: range.lba.0, pages: pages_of(bytes, self.block()).into() };
        lay(&mut self.stored, range, &content);
        forget(&mut self.stored_unreadable, range);
        self.end_power();
    }

    /// Damages the medium itself: flips bits of one byte.
    pub(crate) fn flip(&mut self, byte: usize, bits: u8) {
        let (page, byte) = (byte / self.block(), byte % self.block());
        for pages in [&mut self.stored, &mut self.visible] {
            let mut flipped = pages[page].bytes.clone();
            flipped[byte] ^= bits;
            pages[page] = Page::new(&flipped);
        }
    }

    /// Makes a block unreadable until it is written.
    pub(crate) fn break_block(&mut self, lba: u64) {
        self.unreadable.insert(lba);
        self.stored_unreadable.insert(lba);
    }

    /// Returns the blocks that were read since they are recorded.
    pub(crate) fn blocks_read(&self) -> Vec<u64> {
        self.read.iter().copied().collect()
    }

    /// Returns the visible content of the whole device.
    pub(crate) fn image(&self) -> Vec<u8> {
        self.visible.iter().map(|page| &page.bytes[..]).collect::<Vec<_>>().concat()
    }

    /// Hashes the state of a device on which nothing is at risk.
    pub(crate) fn hash(&self, hasher: &mut DefaultHasher) {
        self.stored.iter().for_each(|page| hasher.write_u64(page.hash()));
        self.stored_unreadable.hash(hasher);
    }
}

/// Removes the written blocks of `range` from the unreadable ones.
fn forget(unreadable: &mut BTreeSet<u64>, range: LbaRange) {
    if !unreadable.is_empty() {
        unreadable.retain(|lba| !(range.lba.0..range.end().0).contains(lba));
    }
}

/// Copies the part of a content that belongs to `range` into the image.
fn lay(image: &mut [Rc<Page>], range: LbaRange, content: &Content) {
    let from = (range.lba.0 - content.first) as usize;
    let pages = &content.pages[from..from + range.nlb as usize];
    image[range.lba.0 as usize..range.end().0 as usize].clone_from_slice(pages);
}

fn pages_of(bytes: &[u8], block: usize) -> Vec<Rc<Page>> {
    bytes.chunks_exact(block).map(Page::new).collect()
}
